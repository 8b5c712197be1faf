// The sandbox's self-test, run inside with the payload's rights before the payload starts. If a forbidden action
// succeeds, the launch fails.
#include <fcntl.h>
#include <linux/prctl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>

#include "isolation/child.h"

namespace caisson::isolation {
namespace {

constexpr const char* kForbiddenFile = "/caisson-self-test";
constexpr const char* kForbiddenSetting = "/proc/sys/kernel/domainname";

[[noreturn]] void notProtected(const Block& block, const char* what) {
  reportAndExit(block, Stage::self_test, "self-test", what, EPERM);
}

/// Whether /proc is one of another pid namespace: the caller's.
bool isProcBound() {
  char number[16] = {};
  const long bytes = raw(SYS_readlinkat, AT_FDCWD, "/proc/self", number, sizeof(number) - 1);
  long shown = 0;
  for (long at = 0; at < bytes; ++at) shown = shown * 10 + (number[at] - '0');
  return bytes > 0 && shown != raw(SYS_getpid);
}

}  // namespace

void selfTest(const Block& block) {
  if (!block.self_test) return;
  if (hasOtherCapabilities(block.kept_capabilities)) notProtected(block, "a capability is left");
  if (raw(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) notProtected(block, "no_new_privs is off");
  const long file = block.root_writable
                        ? raw(SYS_openat, AT_FDCWD, kForbiddenSetting, O_WRONLY | O_CLOEXEC, 0)
                        : raw(SYS_openat, AT_FDCWD, kForbiddenFile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0 && block.root_writable) notProtected(block, "a setting of the kernel can be written");
  if (file >= 0) {
    raw(SYS_unlinkat, AT_FDCWD, kForbiddenFile, 0);
    notProtected(block, "a write outside the writable directories succeeded");
  }
  if (block.landlock_is_the_wall) {
    const long root = raw(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (root >= 0) notProtected(block, "the host's root can be listed");
  }
  if (block.supervisor_environment != nullptr && isProcBound() &&
      raw(SYS_openat, AT_FDCWD, block.supervisor_environment, O_RDONLY | O_CLOEXEC, 0) >= 0) {
    notProtected(block, "the environment of a process outside can be read");
  }
  if (block.network_none) {
    // Connecting a datagram socket only looks up a route: it sends nothing even if the protection is missing.
    const long probe = raw(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (probe >= 0) {
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = __builtin_bswap16(9);
      address.sin_addr.s_addr = __builtin_bswap32(0xc0000201);  // 192.0.2.1, a documentation address
      if (raw(SYS_connect, probe, &address, sizeof(address)) == 0) notProtected(block, "a route to the outside exists");
      closeFd(static_cast<int>(probe));
    }
  }
}

void selfTestOfFilter(const Block& block) {
  if (!block.self_test || !block.has_filter) return;
  // The kernel would return EINVAL for the size; our filters answer first.
  const long answer = raw(SYS_openat2, AT_FDCWD, nullptr, nullptr, 0);
  if (answer != -ENOSYS && answer != -EPERM) notProtected(block, "the system-call filter is not in force");
}

}  // namespace caisson::isolation
