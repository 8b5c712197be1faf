#include "degraded/without.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/syscall_names.h"

namespace caisson::test {
namespace {

constexpr int kUsage = 2;
constexpr int kNoFilter = 120;
constexpr std::uint32_t kNewTime = 0x80;
constexpr std::uint32_t kNamespaceFlags =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

constexpr std::string_view kMaskedProc = "masked_proc";

using Code = std::vector<sock_filter>;

sock_filter load(std::size_t offset) { return {BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<std::uint32_t>(offset)}; }
sock_filter answer(std::uint32_t value) { return {BPF_RET | BPF_K, 0, 0, value}; }
sock_filter refusal(int error) { return answer(SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)); }

/// With the call's number loaded: returns `error` for this one.
void refuseCall(Code& code, int number, int error) {
  code.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(number)});
  code.push_back(refusal(error));
}

/// The same, but only with one of `flags` in an argument.
void refuseFlags(Code& code, int number, std::uint32_t flags, int error, unsigned argument = 0) {
  code.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 4, static_cast<std::uint32_t>(number)});
  code.push_back(
      load(offsetof(seccomp_data, args) + 8 * argument));  // the low half: both our architectures are little-endian
  code.push_back({BPF_JMP | BPF_JSET | BPF_K, 0, 1, flags});
  code.push_back(refusal(error));
  code.push_back(answer(SECCOMP_RET_ALLOW));
}

bool refuseNamed(Code& code, std::string_view name, int error) {
  const auto number = syscallNumber(name);
  if (!number) return false;
  refuseCall(code, *number, error);
  return true;
}

std::optional<int> errorCalled(std::string_view name) {
  if (name == "ENOSYS") return ENOSYS;
  if (name == "EPERM") return EPERM;
  if (name == "EACCES") return EACCES;
  return std::nullopt;
}

/// The filter for "SYSCALL,SYSCALL:ERRNO"; nothing if a part is unknown.
std::optional<Code> filterFor(std::string_view wanted) {
  std::optional<int> error;
  if (const std::size_t colon = wanted.rfind(':'); colon != std::string_view::npos) {
    error = errorCalled(wanted.substr(colon + 1));
    if (!error) return std::nullopt;
    wanted = wanted.substr(0, colon);
  }
  Code code{load(offsetof(seccomp_data, nr))};
  while (!wanted.empty()) {
    const std::size_t comma = wanted.find(',');
    const std::string_view name = wanted.substr(0, comma);
    wanted.remove_prefix(comma == std::string_view::npos ? wanted.size() : comma + 1);
    if (name == "time_namespace") {
      refuseFlags(code, *syscallNumber("unshare"), kNewTime, error.value_or(EINVAL));
      continue;
    }
    if (name == kMaskedProc) continue;  // not a call: maskProc()
    if (name == "seccomp_listener") {   // another process around us already listens
      refuseFlags(code, *syscallNumber("seccomp"), SECCOMP_FILTER_FLAG_NEW_LISTENER, error.value_or(EBUSY), 1);
      continue;
    }
    if (name != "namespaces") {
      if (!refuseNamed(code, name, error.value_or(ENOSYS))) return std::nullopt;
      continue;
    }
    if (!refuseNamed(code, "clone3", ENOSYS)) return std::nullopt;
    refuseFlags(code, *syscallNumber("clone"), kNamespaceFlags, error.value_or(EPERM));
    refuseFlags(code, *syscallNumber("unshare"), kNamespaceFlags | kNewTime, error.value_or(EPERM));
  }
  code.push_back(answer(SECCOMP_RET_ALLOW));
  return code;
}

int printError(const char* what, int status) {
  std::perror(what);
  return status;
}

bool writeText(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  const bool written = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (fd >= 0) close(fd);
  return written;
}

/// Maps the caller's own ids, so that the program has the same uid in the new user namespace.
bool mapSelf(uid_t uid, gid_t gid) {
  const auto line = [](unsigned id) { return std::to_string(id) + " " + std::to_string(id) + " 1"; };
  return writeText("/proc/self/setgroups", "deny") && writeText("/proc/self/uid_map", line(uid)) &&
         writeText("/proc/self/gid_map", line(gid));
}

/// Covers what docker and podman cover, and makes read-only what they make read-only. An ordinary user gets a user
/// namespace for it, and loses its capabilities there at exec.
bool maskProc() {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (unshare(CLONE_NEWNS | (uid == 0 ? 0 : CLONE_NEWUSER)) != 0) return false;
  if (uid != 0 && !mapSelf(uid, gid)) return false;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  for (const char* file : {"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug"}) {
    if (mount("/dev/null", file, nullptr, MS_BIND, nullptr) != 0 && errno != ENOENT) return false;
  }
  for (const char* directory : {"/proc/acpi", "/proc/scsi", "/proc/asound"}) {
    if (mount("tmpfs", directory, "tmpfs", MS_RDONLY, "size=4k") != 0 && errno != ENOENT) return false;
  }
  for (const char* path : {"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}) {
    if (mount(path, path, nullptr, MS_BIND | MS_REC, nullptr) != 0 && errno == ENOENT) continue;
    if (mount(nullptr, path, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, nullptr) !=
        0)
      return false;
  }
  return true;
}

}  // namespace

int runWithout(int argc, char** argv) {
  const auto filter = argc >= 4 && std::string_view(argv[2]) == "--" ? filterFor(argv[1]) : std::nullopt;
  if (!filter) {
    std::fputs("usage: without SYSCALL[,SYSCALL]...[:ENOSYS|EPERM|EACCES] -- PROGRAM [ARGUMENT]...\n", stderr);
    return kUsage;
  }
  if (std::string_view(argv[1]).find(kMaskedProc) != std::string_view::npos && !maskProc())
    return printError("without: masked_proc", kNoFilter);
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return printError("without: no_new_privs", kNoFilter);
  Code code = *filter;
  const sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) return printError("without: filter", kNoFilter);
  execvp(argv[3], argv + 3);
  return printError("without: exec", errno == ENOENT ? 127 : 126);
}

}  // namespace caisson::test
