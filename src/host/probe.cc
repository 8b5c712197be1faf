#include "host/probe.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/magic.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "host/probe_support.h"
#include "sys/fd.h"
#include "sys/helper_process.h"
#include "sys/kernel_abi.h"
#include "sys/kernel_file.h"

namespace caisson::host {
namespace {

using sys::attempt, sys::Attempt, sys::Fd, sys::readKernelFile;

constexpr int kChildTimeoutMs = 5000;

/// Whether a call exists, from its result with deliberately invalid arguments: any error but ENOSYS or a filter's EPERM
/// means that it does.
Attempt presence(long result) {
  if (result < 0 && (errno == ENOSYS || errno == EPERM)) return {errno};
  return {0};
}

std::optional<std::int64_t> readNumber(const char* path) {
  const std::string text = readKernelFile(path);
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) return std::nullopt;
  return value;
}

bool exists(const char* path) { return ::access(path, F_OK) == 0; }

long installFilter(unsigned flags) {
  sock_filter allow{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = SECCOMP_RET_ALLOW};
  const sock_fprog program{.len = 1, .filter = &allow};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/// Installs a filter with these flags in a child. A task may have only one listener, so each kind gets its own child.
template <unsigned kFlags>
void trySeccomp(void* result) {
  auto* outcome = static_cast<Attempt*>(result);
  *outcome = attempt(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  if (outcome->ok()) *outcome = attempt(installFilter(kFlags));
}

std::vector<std::string> containerSigns() {
  std::vector<std::string> signs;
  for (const char* file : {"/.dockerenv", "/run/.containerenv"}) {
    if (exists(file)) signs.emplace_back(file);
  }
  if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) signs.emplace_back("KUBERNETES_SERVICE_HOST");
  // A cgroup namespace hides the engine's names in /proc/1/cgroup; the container's root file system still has them.
  const std::string mounts = readKernelFile("/proc/self/mountinfo");
  const std::size_t root = mounts.find(" / / ");
  const std::string line = root == std::string::npos ? "" : mounts.substr(root, mounts.find('\n', root) - root);
  for (const char* word : {"/docker/", "/containers/storage/", "containerd"}) {
    if (line.find(word) != std::string::npos) signs.push_back(std::string("root file system below ") + word);
  }
  if (std::getenv("CAISSON") != nullptr && exists("/home/sandbox")) signs.emplace_back("CAISSON: a caisson sandbox");
  const std::string cgroup = readKernelFile("/proc/1/cgroup");
  for (const char* word : {"docker", "kubepods", "libpod", "containerd", "lxc"}) {
    if (cgroup.find(word) != std::string::npos) signs.push_back(std::string("cgroup of process 1 names ") + word);
  }
  if (const char* variable = std::getenv("container"); variable != nullptr && *variable != '\0') {
    signs.push_back(std::string("container=").append(variable));
  }
  return signs;
}

/// The program that users start: this one, or `caisson` for one that it starts, which is beside it or in
/// libexec/caisson.
std::string launcherPath() {
  std::error_code problem;
  const std::filesystem::path own = std::filesystem::read_symlink(sys::kOwnProgram, problem);
  if (own.filename() == "caisson") return own.string();
  for (const char* relative : {"caisson", "../../bin/caisson"}) {
    const std::string path = (own.parent_path() / relative).lexically_normal().string();
    if (::access(path.c_str(), X_OK) == 0 && !std::filesystem::is_directory(path, problem)) return path;
  }
  return own.string();
}

/// In /etc, or where `cmake --install` puts it, which is relative to the program.
std::string profileFile(const std::filesystem::path& program) {
  constexpr const char* kInstalled = "/etc/apparmor.d/caisson";
  if (exists(kInstalled)) return kInstalled;
  const std::string packaged = (program.parent_path().parent_path() / "share/caisson/apparmor/caisson").string();
  return exists(packaged.c_str()) ? packaged : "";
}

std::string fileSystemName(std::uint32_t magic) {
  switch (magic) {
    case EXT4_SUPER_MAGIC: return "ext4";
    case XFS_SUPER_MAGIC: return "xfs";
    case BTRFS_SUPER_MAGIC: return "btrfs";
    case TMPFS_MAGIC: return "tmpfs";
    case OVERLAYFS_SUPER_MAGIC: return "overlay";
    case NFS_SUPER_MAGIC: return "nfs";
    case 0x2fc12fc1: return "zfs";
    case 0xf2f52010: return "f2fs";
    case 0x65735546: return "fuse";
    default: break;
  }
  std::array<char, 8> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), magic, 16).ptr;
  return std::string("0x").append(digits.data(), end);
}

}  // namespace

std::string_view name(Engine engine) {
  switch (engine) {
    case Engine::none: return "none";
    case Engine::docker: return "Docker";
    case Engine::podman: return "Podman";
    case Engine::kubernetes: return "Kubernetes";
    case Engine::containerd: return "containerd";
    case Engine::nspawn: return "systemd-nspawn";
    case Engine::lxc: return "LXC";
    case Engine::caisson: return "a caisson sandbox";
    case Engine::other: return "unknown";
  }
  return "unknown";
}

Engine engineOf(const std::vector<std::string>& signs) {
  struct Sign {
    std::string_view word;
    Engine engine;
  };
  // The first that matches: a pod's containers also have the signs of containerd, and Docker's root file system may.
  static constexpr Sign kSigns[] = {{"caisson", Engine::caisson},
                                    {"KUBERNETES", Engine::kubernetes},
                                    {"kubepods", Engine::kubernetes},
                                    {"containerenv", Engine::podman},
                                    {"libpod", Engine::podman},
                                    {"podman", Engine::podman},
                                    {"containers/storage", Engine::podman},
                                    {"docker", Engine::docker},
                                    {"containerd", Engine::containerd},
                                    {"nspawn", Engine::nspawn},
                                    {"lxc", Engine::lxc}};
  for (const Sign& sign : kSigns) {
    if (std::ranges::any_of(signs, [&](const std::string& one) { return one.find(sign.word) != std::string::npos; }))
      return sign.engine;
  }
  return signs.empty() ? Engine::none : Engine::other;
}

void runInChild(void (*body)(void* result), void* result, std::size_t size) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  Fd reader(ends[0]);
  Fd writer(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The parent may have died before the prctl; pid 1 of a PID namespace sees its parent as 0.
    if (const pid_t seen = ::getppid(); seen != parent && seen != 0) ::_exit(1);
    body(result);  // works on the child's copy of the caller's memory
    ::_exit(::write(writer.get(), result, size) == static_cast<ssize_t>(size) ? 0 : 1);
  }
  writer.reset();
  pollfd readable{.fd = reader.get(), .events = POLLIN, .revents = 0};
  std::array<char, 1024> answer{};
  if (size <= answer.size() && ::poll(&readable, 1, kChildTimeoutMs) == 1 &&
      ::read(reader.get(), answer.data(), size) == static_cast<ssize_t>(size)) {
    std::copy_n(answer.data(), size, static_cast<char*>(result));
  } else {
    ::kill(child, SIGKILL);
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

KernelVersion parseKernelRelease(std::string_view release) {
  KernelVersion version{.release = std::string(release)};
  const char* end = release.data() + release.size();
  const auto major = std::from_chars(release.data(), end, version.major);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return {.release = std::string(release)};
  if (std::from_chars(major.ptr + 1, end, version.minor).ec != std::errc{}) return {.release = std::string(release)};
  return version;
}

Attempt landlockAttempt(int& abi) {
  const long answer = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, sys::kLandlockCreateRulesetVersion);
  abi = answer > 0 ? static_cast<int>(answer) : 0;
  return attempt(answer);
}

/// Enters a domain that restricts only device creation; in a child, since a domain cannot be left.
void tryLandlock(void* result) {
  const sys::LandlockRulesetAttr rights{sys::kFsMakeChar, 0, 0};
  const long rules = ::syscall(SYS_landlock_create_ruleset, &rights, 8, 0);
  Attempt& answer = *static_cast<Attempt*>(result);
  answer = attempt(rules);
  if (!answer.ok()) return;
  answer = attempt(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
  if (answer.ok()) answer = attempt(::syscall(SYS_landlock_restrict_self, rules, 0));
}

int landlockAbi() {
  int abi = 0;
  (void)landlockAttempt(abi);
  return abi;
}

SeccompProbe probeSeccomp() {
  return {
      .filter = inChild<Attempt>(trySeccomp<0>),
      .user_notify = inChild<Attempt>(trySeccomp<SECCOMP_FILTER_FLAG_NEW_LISTENER>),
      .wait_killable = inChild<Attempt>(trySeccomp < SECCOMP_FILTER_FLAG_NEW_LISTENER | sys::kSeccompWaitKillable >)};
}

bool seccompAvailable() { return inChild<Attempt>(trySeccomp<0>).ok(); }

bool seccompUserNotify() { return inChild<Attempt>(trySeccomp<SECCOMP_FILTER_FLAG_NEW_LISTENER>).ok(); }

SyscallProbe probeSyscalls() {
  SyscallProbe probe;
  sys::OpenHow how{.flags = O_PATH | O_CLOEXEC, .mode = 0, .resolve = sys::kResolveInRoot};
  const Fd opened(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how)));
  probe.openat2 = {opened ? 0 : errno};
  probe.clone3 = presence(::syscall(SYS_clone3, nullptr, 0));
  const Fd self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  probe.pidfd_open = {self ? 0 : errno};
  probe.close_range = presence(::syscall(SYS_close_range, ~0U, 0U, 0U));  // last before first: EINVAL
  return probe;
}

Obstacles readObstacles() {
  Obstacles found;
  found.max_user_namespaces = readNumber("/proc/sys/user/max_user_namespaces");
  found.unprivileged_userns_clone = readNumber("/proc/sys/kernel/unprivileged_userns_clone");
  found.apparmor_restrict_unprivileged_userns = readNumber("/proc/sys/kernel/apparmor_restrict_unprivileged_userns");
  const std::string modules = readKernelFile("/sys/kernel/security/lsm");
  for (const std::string_view module : split(modules, ',')) found.security_modules.emplace_back(module);
  if (exists("/sys/module/apparmor")) {
    found.apparmor_label = readKernelFile("/proc/self/attr/apparmor/current");
    if (found.apparmor_label.empty()) found.apparmor_label = readKernelFile("/proc/self/attr/current");
    found.program = launcherPath();
    found.apparmor_profile_file = profileFile(found.program);
    struct stat link{};
    found.apparmor_profile_disabled = ::lstat("/etc/apparmor.d/disable/caisson", &link) == 0;
  }
  const std::string status = readKernelFile("/proc/self/status");
  for (const std::string_view line : split(status, '\n')) {
    if (line.starts_with("Seccomp:\t")) found.seccomp_mode = std::atoi(line.data() + 9);
    if (line.starts_with("NoNewPrivs:\t")) found.no_new_privileges = line.ends_with('1');
  }
  found.container_signs = containerSigns();
  return found;
}

DiskProbe probeDisk(const std::string& path) {
  DiskProbe probe{.path = path};
  Fd directory;
  for (;;) {
    directory = Fd(::open(probe.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (directory || errno != ENOENT) break;
    const std::size_t slash = probe.path.find_last_of('/');
    if (slash == std::string::npos || probe.path == "/") break;
    probe.path.resize(slash == 0 ? 1 : slash);
  }
  if (!directory) {
    probe.writable = {errno};
    return probe;
  }
  struct statfs file_system{};
  struct statvfs space{};
  if (::fstatfs(directory.get(), &file_system) == 0) {
    probe.file_system = fileSystemName(static_cast<std::uint32_t>(file_system.f_type));
  }
  if (::fstatvfs(directory.get(), &space) == 0) {
    probe.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
    probe.total_bytes = std::uint64_t{space.f_blocks} * space.f_frsize;
    probe.free_inodes = space.f_favail;
    probe.counts_inodes = space.f_files != 0;
  }
  // An unnamed file: the kernel removes it with its descriptor, even if we crash.
  const Fd file(::openat(directory.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  probe.writable = {file ? 0 : errno};
  if (!file && errno == EOPNOTSUPP) probe.writable = attempt(::faccessat(directory.get(), ".", W_OK, AT_EACCESS));
  if (file) probe.user_xattr = attempt(::fsetxattr(file.get(), "user.caisson.probe", "1", 1, 0));
  return probe;
}

Probes probeHost(const std::string& state_home) {
  Probes probes;
  utsname names{};
  if (::uname(&names) == 0) {
    probes.kernel = parseKernelRelease(names.release);
    probes.machine = names.machine;
  }
  probes.uid = ::geteuid();
  probes.landlock = landlockAttempt(probes.landlock_abi);
  if (probes.landlock.ok()) probes.landlock_restrict = inChild<Attempt>(tryLandlock);
  probes.seccomp = probeSeccomp();
  probes.namespaces = userNamespaces();
  probes.syscalls = probeSyscalls();
  probes.cgroup = probeCgroups();
  probes.obstacles = readObstacles();
  probes.home = probeDisk(state_home);
  probes.systemd = exists("/run/systemd/system");
  const std::string manager = "/run/user/" + std::to_string(probes.uid) + "/systemd/private";
  probes.systemd_user_manager = exists(manager.c_str());
  return probes;
}

}  // namespace caisson::host
