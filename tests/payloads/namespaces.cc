// New namespaces, by every call that creates or enters one. In a new user namespace a process has all capabilities over
// it, which exposes the least tested kernel code.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <optional>

#include "payload.h"

namespace payload {
namespace {

struct NamedFlag {
  std::string_view name;
  std::uint64_t flag;
};

constexpr NamedFlag kFlags[] = {
    {"user", CLONE_NEWUSER}, {"pid", CLONE_NEWPID}, {"mnt", CLONE_NEWNS},        {"net", CLONE_NEWNET},
    {"ipc", CLONE_NEWIPC},   {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}, {"time", 0x80},
};

/// "user" or "user,net": the flags of the named namespaces.
std::optional<std::uint64_t> flagsOf(std::string_view names) {
  std::uint64_t flags = 0;
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    std::uint64_t found = 0;
    for (const NamedFlag& known : kFlags) {
      if (known.name == name) found = known.flag;
    }
    if (found == 0) return std::nullopt;
    flags |= found;
    names.remove_prefix(name.size() == names.size() ? name.size() : name.size() + 1);
  }
  return flags;
}

/// In the child of a successful clone: exits at once. In the parent: reports.
int afterClone(std::string_view call, long pid) {
  if (pid == 0) _exit(0);
  if (pid < 0) return refused(call);
  waitpid(static_cast<pid_t>(pid), nullptr, __WALL);
  return done();
}

int tryUnshare(const Arguments& arguments) {
  const auto flags = flagsOf(arguments[0]);
  if (!flags) return kUsage;
  return report("unshare", syscall(SYS_unshare, *flags));
}

int tryClone(const Arguments& arguments) {
  const auto flags = flagsOf(arguments[0]);
  if (!flags) return kUsage;
  return afterClone("clone", syscall(SYS_clone, *flags | SIGCHLD, 0, 0, 0, 0));
}

/// The flags of clone3 are in memory, which a filter cannot read.
int tryClone3(const Arguments& arguments) {
  const auto flags = flagsOf(arguments[0]);
  if (!flags) return kUsage;
  clone_args request{};
  request.flags = *flags;
  request.exit_signal = SIGCHLD;
  return afterClone("clone3", syscall(SYS_clone3, &request, sizeof(request)));
}

/// Enters a namespace that it is already in: changes nothing even if allowed.
int trySetns(const Arguments& arguments) {
  const std::string path = "/proc/self/ns/" + arguments[0];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return refused("open " + path);
  return report("setns", setns(fd, 0));
}

bool writeOnce(const char* path, const std::string& text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(fd);
  return written;
}

/// Becomes root of a nested user namespace with a new mount namespace, then runs another verb there.
int asNestedRoot(const Arguments& arguments) {
  const uid_t uid = getuid();
  const gid_t gid = getgid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return refused("unshare");
  if (!writeOnce("/proc/self/setgroups", "deny")) return refused("write setgroups");
  if (!writeOnce("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1")) return refused("write uid_map");
  if (!writeOnce("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1")) return refused("write gid_map");
  return perform(arguments);
}

constexpr Verb kVerbs[] = {
    {"unshare", "NAMESPACE[,NAMESPACE]", 1, tryUnshare},       {"clone", "NAMESPACE[,NAMESPACE]", 1, tryClone},
    {"clone3", "NAMESPACE[,NAMESPACE]", 1, tryClone3},         {"setns", "NAMESPACE", 1, trySetns},
    {"as-nested-root", "VERB [ARGUMENT]...", 1, asNestedRoot},
};

}  // namespace

std::span<const Verb> namespaceVerbs() { return kVerbs; }

}  // namespace payload
