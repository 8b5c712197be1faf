#include "host/facts.h"
#include "host/denied_matches.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>

#include "approval/owner.h"
#include "host/executables.h"
#include "host/named_open.h"
#include "host/root_ids.h"
#include "host/root_image.h"
#include "host/runtimes.h"
#include "host/shared_files.h"
#include "host/state_disk.h"
#include "host/state_homes.h"
#include "host/state_mounts.h"
#include "host/subordinate_ids.h"
#include "host/toolchains.h"
#include "host/tree_search.h"
#include "host/written_trees.h"
#include "isolation/child.h"
#include "plan/denied_paths.h"
#include "plan/filesystem.h"
#include "plan/image_root.h"
#include "plan/system_paths.h"
#include "plan/workspace.h"
#include "policy/decode/syntax.h"
#include "policy/document/document.h"
#include "sys/cgroup.h"
#include "sys/descriptor_path.h"
#include "sys/fd.h"
#include "sys/kernel_abi.h"
#include "sys/kernel_file.h"
#include "sys/machine.h"
#include "sys/raw_syscall.h"
#include "sys/real_name.h"
#include "sys/root_dir.h"
#include "sys/state_home.h"
#include "sys/user_scope.h"

extern char** environ;

namespace caisson::host {
namespace {

using plan::HostFacts;
using plan::HostPath;

/// Describes an open file. Everything later is done with this descriptor, or checked to be the same file.
HostPath describe(const std::string& requested, sys::Fd fd) {
  HostPath result;
  result.requested = requested;
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) {
    result.sys_errno = errno;
    return result;
  }
  // A current directory that was removed can still be opened; it has no links.
  if (!S_ISDIR(status.st_mode) || status.st_nlink > 0) result.path = sys::canonicalPath(fd.get()).value_or("");
  if (result.path.empty()) result.sys_errno = ENOENT;
  result.directory = S_ISDIR(status.st_mode);
  result.regular_file = S_ISREG(status.st_mode);
  result.uid = status.st_uid;
  result.gid = status.st_gid;
  if (result.directory && ::faccessat(fd.get(), ".", X_OK, 0) != 0) result.sys_errno = errno;
  result.opened = std::make_shared<const sys::Fd>(std::move(fd));
  return result;
}

/// Opens a path of the user's own, following links.
HostPath observe(const std::string& requested) {
  // O_PATH does not open the file itself, so a FIFO cannot block us and a device is not touched.
  sys::Fd fd(::open(requested.c_str(), O_PATH | O_CLOEXEC));
  if (fd) return describe(requested, std::move(fd));
  HostPath result;
  result.requested = requested;
  result.sys_errno = errno;
  return result;
}

/// Opens what a policy shows to the sandbox, without links that an earlier sandbox may have planted.
HostPath observeShown(const std::string& requested) {
  NamedOpen found = openNamed(requested);
  if (found.opened) return describe(requested, std::move(found.opened));
  HostPath result;
  result.requested = requested;
  result.sys_errno = found.error;
  result.why_not = std::move(found.why_not);
  result.remedy = std::move(found.remedy);
  return result;
}

/// Whether a user who owns nothing and is in no group may enter the directory at this canonical path: whether all
/// others may search it and every directory above it.
bool othersMayEnter(const std::string& path) {
  for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    struct stat status;
    if (::lstat(path.substr(0, end).c_str(), &status) != 0 || (status.st_mode & S_IXOTH) == 0) return false;
    if (end == std::string::npos) return true;
  }
}

std::string linkTarget(const std::string& path) {
  char target[4096];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
  return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : std::string();
}

void observeSystem(const std::string& root, HostFacts& facts) {
  for (const std::string_view directory : plan::kSystemDirectories) {
    const std::string path = root + std::string(directory);
    struct stat status;
    if (::lstat(path.c_str(), &status) != 0) continue;
    if (S_ISLNK(status.st_mode)) {
      facts.system_directories[std::string(directory)] = linkTarget(path);
    } else if (S_ISDIR(status.st_mode)) {
      facts.system_directories[std::string(directory)] = "";
    }
  }
  for (const std::string_view link : plan::kEtcLinks) {
    const std::string target = linkTarget(root + std::string(link));
    if (!target.empty()) facts.etc_links[std::string(link)] = target;
  }
}

/// The caller's home directories by their real names: /home may be a link, and HOME may be missing or wrong.
std::vector<std::string> observeHomes(uid_t uid) {
  std::vector<std::string> homes;
  const auto add = [&](const std::string& path) {
    if (path.empty() || path[0] != '/') return;
    const HostPath home = observe(path);
    const std::string& real = home.path.empty() ? path : home.path;
    if (real != "/" && std::find(homes.begin(), homes.end(), real) == homes.end()) homes.push_back(real);
  };
  const char* home = std::getenv("HOME");
  if (home != nullptr) add(home);
  add(sys::homeFromPasswd(uid));
  return homes;
}

/// Adds the canonical name of one of caisson's own places.
std::string ownPlace(const std::string& path, HostFacts& facts) {
  sys::RealName name = sys::realName(path);
  facts.own_links.insert(facts.own_links.end(), name.links.begin(), name.links.end());
  return std::move(name.path);
}

/// Notes the place if a sandbox could make it.
void noteMissing(const std::string& path, bool may_be_file, HostFacts& facts) {
  struct stat status;
  if (::lstat(path.c_str(), &status) == 0 && (may_be_file || S_ISDIR(status.st_mode))) return;
  facts.own_missing.push_back(path);
}

/// Finds the owner's configuration, and notes it where the sandbox could reach it.
std::string observeOwnConfig(const policy::Policy& policy, HostFacts& facts) {
  const policy::Filesystem& files = policy.filesystem;
  const std::string directory = approval::userConfigDirectory();
  if (directory.empty()) return {};
  const std::string path = ownPlace(directory, facts);
  const std::string& workspace = facts.workspace.path;
  if (!files.read_only.empty() || !files.read_write.empty() || files.workspace.mode == policy::WorkspaceMode::rw ||
      plan::below(directory, workspace) || plan::below(path, workspace) || plan::below(workspace, path)) {
    facts.own_config = path;
    noteMissing(path, false, facts);
  }
  return path;
}

/// Finds caisson's own directories, and their other names.
void observeOwnPlaces(const policy::Policy& policy, HostFacts& facts) {
  facts.own_state = ownPlace(sys::stateHome(), facts);
  if (!sys::isDefaultStateHome()) facts.own_default_state = ownPlace(sys::defaultStateHome(), facts);
  if (!facts.own_state.empty() && plan::below(facts.own_default_state, facts.own_state)) {
    facts.own_default_state.clear();
  }
  if (!facts.own_default_state.empty()) noteMissing(facts.own_default_state, false, facts);
  const std::string config = observeOwnConfig(policy, facts);
  const std::string layers = facts.own_state.empty() ? "" : sys::memoryStores(facts.uid, facts.own_state);
  facts.own_mounts = otherNamesOf({facts.own_state, facts.own_default_state, config, layers});
  // If it is not known what to hide, nothing is shown.
  const auto others = otherStateHomes();
  const std::vector<std::string> hidden = others.value_or(std::vector<std::string>{"/"});
  facts.own_mounts.insert(facts.own_mounts.end(), hidden.begin(), hidden.end());
  for (const std::string& name : facts.own_mounts) noteMissing(name, true, facts);
}

std::map<std::string, std::string> realNamesOfDenied(const policy::Policy& policy) {
  std::map<std::string, std::string> names;
  for (const std::string& entry : policy.filesystem.denied) {
    if (plan::isPattern(entry)) continue;
    const std::string path = policy::normalPath(entry);
    std::string real = sys::realName(path).path;
    if (!real.empty() && real != path) names.emplace(path, std::move(real));
  }
  return names;
}

/// Denied paths of the workspace and of writable trees that lead through a symbolic link there: what it leads to would
/// be shown once a payload has replaced the link.
std::vector<std::string> deniedThroughLinks(const policy::Policy& policy, const HostFacts& facts) {
  std::vector<std::string> found;
  const auto check = [&](const HostPath& tree, std::initializer_list<std::string> names) {
    if (!tree.directory || !tree.opened) return;
    for (const std::string& entry : policy.filesystem.denied) {
      const std::string path = policy::normalPath(entry);
      for (const std::string& top : names) {
        if (!plan::below(path, top) || path.size() <= top.size()) continue;
        const long fd = isolation::openBeneath(tree.opened->get(), path.c_str() + top.size() + 1, O_PATH);
        if (fd == -ELOOP) found.push_back(entry);
        if (fd >= 0) ::close(static_cast<int>(fd));
      }
    }
  };
  if (policy.filesystem.denied.empty()) return found;
  check(facts.workspace, {std::string(plan::kWorkspace), facts.workspace.path});  // both name the workspace
  for (const HostPath& tree : facts.read_write) check(tree, {tree.path, policy::normalPath(tree.requested)});
  return found;
}

/// The disks of the system, of the workspace, of directly writable directories, and of our state, where an overlay may
/// keep its changes.
std::vector<dev_t> observeDisks(const HostFacts& facts) {
  std::vector<dev_t> disks;
  const auto add = [&](const std::string& path) {
    const sys::Fd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    const auto disk = fd ? sys::diskOf(fd.get()) : std::nullopt;
    if (disk && std::find(disks.begin(), disks.end(), *disk) == disks.end()) disks.push_back(*disk);
  };
  add("/usr");
  add(facts.workspace.path);
  for (const HostPath& path : facts.read_write) add(path.path);
  add(sys::stateHome());
  return disks;
}

/// The path as mountinfo writes it: space, tab, newline and backslash as \ooo.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char letter : path) {
    char code[8];
    if (letter == ' ' || letter == '\t' || letter == '\n' || letter == '\\') {
      std::snprintf(code, sizeof(code), "\\%03o", static_cast<unsigned>(letter));
      text += code;
    } else {
      text += letter;
    }
  }
  return text;
}

std::uint64_t numberIn(const char* path) {
  const sys::Fd fd(::open(path, O_RDONLY | O_CLOEXEC));
  char text[32] = {};
  if (!fd || ::read(fd.get(), text, sizeof(text) - 1) <= 0) return 0;
  return std::strtoull(text, nullptr, 10);
}

/// Reads one block of /proc/cpuinfo: the kernel generates it on read, so a large machine's other blocks cost nothing.
std::string firstProcessor() {
  const sys::Fd fd(::open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC));
  char text[8192];
  const ssize_t bytes = fd ? ::read(fd.get(), text, sizeof(text)) : -1;
  if (bytes <= 0) return "";
  const std::string_view all(text, static_cast<std::size_t>(bytes));
  const std::size_t end = all.find("\n\n");
  return end == std::string_view::npos ? "" : std::string(all.substr(0, end + 1));
}

std::string currentDirectory() {
  char path[4096];
  return ::getcwd(path, sizeof(path)) != nullptr && path[0] == '/' ? path : "";
}

void observeKernel(HostFacts& facts) {
  utsname kernel{};
  ::uname(&kernel);
  facts.kernel_release = kernel.release;
  facts.kernel_version = kernel.version;
  const char* const end = kernel.release + std::strlen(kernel.release);
  const auto major = std::from_chars(kernel.release, end, facts.kernel_major);
  if (major.ptr != end && *major.ptr == '.') std::from_chars(major.ptr + 1, end, facts.kernel_minor);
  facts.tmpfs_user_xattrs = facts.kernel_major > 6 || (facts.kernel_major == 6 && facts.kernel_minor >= 6);
  const long abi = sys::raw(SYS_landlock_create_ruleset, nullptr, 0, sys::kLandlockCreateRulesetVersion);
  facts.landlock_abi = abi > 0 ? static_cast<int>(abi) : 0;
}

void observeOpenFiles(HostFacts& facts) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.open_files = limit.rlim_max;
}

void observeIdentity(const policy::Policy& policy, HostFacts& facts) {
  facts.uid = ::geteuid();
  facts.gid = ::getegid();
  const int groups = ::getgroups(0, nullptr);
  facts.supplementary_groups = groups > 0 ? static_cast<std::size_t>(groups) : 0;
  if (groups > 0) {  // ignore the primary group, which is often listed again
    std::vector<gid_t> list(static_cast<std::size_t>(groups));
    if (::getgroups(groups, list.data()) == groups) {
      facts.supplementary_groups = static_cast<std::size_t>(
          std::count_if(list.begin(), list.end(), [&](gid_t group) { return group != facts.gid; }));
    }
  }
  observeRoot(readRootFacts(), facts);
  const bool root_inside = plan::hasOtherRoot(policy) && policy.isolation.user == policy::InsideUser::root;
  if ((policy.isolation.separate_user || root_inside) && !facts.may_map_other_ids) {
    facts.subordinate = observeSubordinateIds(facts.uid, facts.gid);
  }
}

/// With `own_scope` and no usable cgroup, moves this process into a new scope of the user's systemd.
sys::CgroupBase findCgroups(bool own_scope, HostFacts& facts) {
  sys::CgroupBase cgroups = sys::CgroupBase::find();
  if (own_scope && cgroups.kind == sys::CgroupBase::Kind::none && sys::hasUserManager()) {
    if (const auto entered = sys::enterUserScope(); entered) {
      cgroups = sys::CgroupBase::find();
    } else {
      cgroups.why_not += "; the user's service manager was asked, but: " + entered.error().message();
    }
  }
  facts.cgroup = {std::string(sys::name(cgroups.kind)),
                  cgroups.usable.memory,
                  cgroups.usable.pids,
                  cgroups.usable.cpu,
                  cgroups.usable.cpuset,
                  cgroups.usable.io,
                  cgroups.why_not};
  return cgroups;
}

void observeMachine(HostFacts& facts) {
  facts.cpus = usableProcessors();
  facts.processor = firstProcessor();
  facts.memory = sys::machineMemory();
  facts.inotify_instances = numberIn("/proc/sys/fs/inotify/max_user_instances");
  facts.inotify_watches = numberIn("/proc/sys/fs/inotify/max_user_watches");
}

/// Adds the directories below `parent` that hold no part of the system.
void addOtherDirectories(const std::string& parent, HostFacts& facts) {
  static constexpr std::string_view kSystem[] = {"/etc", "/dev", "/proc", "/sys", "/var"};
  DIR* stream = ::opendir(parent.c_str());
  if (stream == nullptr) return;
  while (const dirent* entry = ::readdir(stream)) {
    const std::string_view name(entry->d_name);
    if (name == "." || name == "..") continue;
    const std::string path = (parent == "/" ? "" : parent) + "/" + std::string(name);
    const bool system = std::ranges::find(kSystem, path) != std::end(kSystem) ||
                        std::ranges::find(plan::kSystemDirectories, path) != std::end(plan::kSystemDirectories);
    struct stat status;
    if (!system && ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      facts.other_directories.push_back(path);
    }
  }
  ::closedir(stream);
}

/// Read-only paths in writable trees: their files may have names there that are writable.
void findSharedReadOnly(const policy::Policy& policy, HostFacts& facts) {
  const bool direct = policy.filesystem.workspace.mode == policy::WorkspaceMode::rw && facts.workspace.sys_errno == 0;
  for (const HostPath& path : facts.read_only) {
    const auto holds = [&](const HostPath& tree) {
      return tree.path != path.path && plan::below(path.path, tree.path);
    };
    if (path.sys_errno != 0) continue;
    if (std::ranges::any_of(facts.read_write, holds) || (direct && holds(facts.workspace)))
      findSharedFilesIn(path, facts.scan.shared_files);
  }
}

void observePaths(const policy::Policy& policy, const CollectOptions& options, HostFacts& facts) {
  if (policy.isolation.level == policy::Level::process) {
    addOtherDirectories("/", facts);
    addOtherDirectories("/var", facts);
  }
  facts.current_directory.path = currentDirectory();
  const policy::Workspace& workspace = policy.filesystem.workspace;
  if (workspace.mode != policy::WorkspaceMode::none) {
    const std::string requested = workspace.path.empty() ? "." : workspace.path;
    facts.workspace = options.workspace != nullptr
                          ? describe(requested, sys::Fd(::fcntl(options.workspace->descriptor(), F_DUPFD_CLOEXEC, 3)))
                          : observeShown(requested);
  }
  if (policy.isolation.tier == policy::Tier::landlock && facts.may_map_other_ids && facts.workspace.directory) {
    facts.workspace.payload_may_enter = othersMayEnter(facts.workspace.path);
  }
  facts.homes = observeHomes(facts.uid);
  for (const std::string& path : policy.filesystem.read_only) facts.read_only.push_back(observeShown(path));
  for (const std::string& path : policy.filesystem.read_write) facts.read_write.push_back(observeShown(path));
  facts.denied_real = realNamesOfDenied(policy);
  if (facts.workspace.directory) {
    facts.denied_matches = deniedMatches(facts.workspace.opened->get(), plan::deniedInWorkspace(policy, facts));
  }
  searchShownTrees(policy, options, facts);
  findSharedReadOnly(policy, facts);
  observeOwnPlaces(policy, facts);
  if (mayUseStateDisk(policy)) facts.state_disk = probeStateDisk(sys::stateHome());
  facts.denied_through_links = deniedThroughLinks(policy, facts);
  if (plan::limitsIo(policy.resources)) facts.disks = observeDisks(facts);
}

/// The variables that a policy may pass on, without those that hold a credential's secret.
void observeEnvironment(const policy::Policy& policy, HostFacts& facts) {
  const bool wants_all = policy.environment.mode != policy::EnvironmentMode::clean || !policy.environment.pass.empty();
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const char* equals = std::strchr(*variable, '=');
    if (equals == nullptr) continue;
    const std::string_view name(*variable, static_cast<std::size_t>(equals - *variable));
    const bool secret = std::ranges::any_of(policy.network.credentials,
                                            [&](const policy::Credential& one) { return one.secret_env == name; });
    if (!secret && (wants_all || name == "TERM")) facts.caller_environment.emplace(name, equals + 1);
  }
}

/// The optional extras that a policy names: an OCI seccomp profile and a SELinux label.
void observeExtras(const policy::Policy& policy, HostFacts& facts) {
  if (!policy.isolation.selinux_label.empty()) {  // the kernel registers its file system only if SELinux is active
    facts.selinux = sys::readKernelFile("/proc/filesystems").find("selinuxfs") != std::string::npos;
  }
  if (policy.syscalls.oci_profile.empty()) return;
  auto text = policy::readRegularFile(policy.syscalls.oci_profile);
  if (text) {
    facts.oci_profile = std::move(*text);
  } else {
    const Error& error = text.error();
    facts.why_no_oci_profile = error.sys_errno != 0 ? errnoName(error.sys_errno) : error.reason;
  }
}

std::map<std::string, std::string> callerVariables(std::initializer_list<const char*> names) {
  std::map<std::string, std::string> variables;
  for (const char* name : names) {
    if (const char* value = std::getenv(name)) variables[name] = value;
  }
  return variables;
}

}  // namespace

bool hasMountsBelow(const std::string& directory) {
  const std::string mounts = sys::readKernelFile("/proc/self/mountinfo");
  return mounts.find(" " + escaped(directory) + "/") != std::string::npos;
}

std::vector<std::uint32_t> usableProcessors() {
  std::vector<std::uint32_t> cpus;
  unsigned long mask[16] = {};
  const long bytes = ::syscall(SYS_sched_getaffinity, 0, sizeof(mask), mask);
  if (bytes <= 0) return cpus;
  for (std::uint32_t cpu = 0; cpu < static_cast<std::uint32_t>(bytes) * 8; ++cpu) {
    if ((mask[cpu / 64] >> (cpu % 64) & 1U) != 0) cpus.push_back(cpu);
  }
  return cpus;
}

plan::HostFacts collectFacts(const policy::Policy& policy, const CollectOptions& options) {
  HostFacts facts;
  observeKernel(facts);
  observeOpenFiles(facts);
  observeIdentity(policy, facts);
  sys::CgroupBase cgroups = findCgroups(options.own_scope, facts);
  if (options.found != nullptr) *options.found = std::move(cgroups);
  observeMachine(facts);
  observePaths(policy, options, facts);
  observeSystem("", facts);
  if (plan::hasOtherRoot(policy)) {
    observeRootImage(policy, facts);
  } else if (policy.filesystem.toolchains == policy::Toolchains::automatic &&
             policy.isolation.level == policy::Level::full) {
    facts.toolchains = findToolchains(facts.homes, callerVariables({"PATH", "RUSTUP_TOOLCHAIN", "PYENV_VERSION"}));
  }
  if (!plan::hasOtherRoot(policy)) facts.executables = observeExecutables(policy, facts.toolchains);
  observeEnvironment(policy, facts);
  observeExtras(policy, facts);
  if (policy.isolation.runtime != policy::Runtime::caisson) facts.runtime = observeRuntime(policy.isolation.runtime);
  return facts;
}

}  // namespace caisson::host
