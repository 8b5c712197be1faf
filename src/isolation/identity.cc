// Who the payload is: id maps, user and group, capabilities.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/securebits.h>

#include <cerrno>

#include "isolation/child.h"
#include "sys/kernel_abi.h"

namespace caisson::isolation {
namespace {

struct CapabilityHeader {
  std::uint32_t version;
  int pid;
};
struct CapabilityData {
  std::uint32_t effective, permitted, inheritable;
};

void writeProcFile(const Block& block, const char* path, const char* text) {
  const long fd =
      must(block, Stage::namespaces, "open", path, raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0));
  must(block, Stage::namespaces, "write", path, raw(SYS_write, fd, text, length(text)));
  closeFd(static_cast<int>(fd));
}

}  // namespace

void writeIdMaps(const Block& block) {
  // An ordinary user may map just its own ids, and only after giving up setgroups.
  writeProcFile(block, "/proc/self/setgroups", "deny");
  writeProcFile(block, "/proc/self/uid_map", block.uid_map);
  writeProcFile(block, "/proc/self/gid_map", block.gid_map);
}

void becomeInsideUser(const Block& block) {
  if (!block.change_user) return;  // an ordinary caller's id is already the mapped one
  must(block, Stage::identity, "setgroups", "", raw(SYS_setgroups, 0, nullptr));
  must(block, Stage::identity, "setresgid", "",
       raw(SYS_setresgid, block.inside_gid, block.inside_gid, block.inside_gid));
  must(block, Stage::identity, "setresuid", "",
       raw(SYS_setresuid, block.inside_uid, block.inside_uid, block.inside_uid));
  // The change of user made this process undumpable, so it could not write its own /proc files, which the time
  // namespace needs. runChild() makes it undumpable again before the payload starts.
  raw(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0);
}

void dropOwnCapabilities(const Block& block, std::uint64_t kept) {
  CapabilityHeader header{sys::kCapabilityVersion3, 0};
  const auto low = static_cast<std::uint32_t>(kept), high = static_cast<std::uint32_t>(kept >> 32);
  const CapabilityData sets[2] = {{low, low, 0}, {high, high, 0}};
  must(block, Stage::identity, "capset", "all other sets empty", raw(SYS_capset, &header, sets));
}

void dropCapabilities(const Block& block) {
  // Bounding and ambient first: both need a capability that the last step takes away.
  for (int capability = 0; capability < 64; ++capability) {
    if ((block.kept_capabilities >> capability & 1U) != 0) continue;
    const long result = raw(SYS_prctl, PR_CAPBSET_DROP, capability, 0, 0, 0);
    if (result == -EINVAL) break;  // past the last capability this kernel knows
    if (result == -EPERM) break;   // nothing left to drop with; the permitted set below decides
  }
  raw(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  // Root that keeps some keeps them over exec, and loses them with its id: the kernel's usual rules, within
  // no_new_privs.
  const int rules = block.kept_capabilities != 0 ? 0 : SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP;
  raw(SYS_prctl, PR_SET_SECUREBITS,
      rules | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
          SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
      0, 0, 0);
  dropOwnCapabilities(block, block.kept_capabilities);
}

bool hasOtherCapabilities(std::uint64_t kept) {
  CapabilityHeader header{sys::kCapabilityVersion3, 0};
  CapabilityData data[2] = {};
  if (raw(SYS_capget, &header, data) < 0) return true;
  const std::uint32_t low = data[0].effective | data[0].permitted, high = data[1].effective | data[1].permitted;
  const std::uint64_t held = std::uint64_t{high} << 32 | low;
  return (held & ~kept) != 0 || (data[0].inheritable | data[1].inheritable) != 0;
}

}  // namespace caisson::isolation
