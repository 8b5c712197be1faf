#include "plan/filesystem.h"
#include "plan/denied_paths.h"
#include "plan/named_paths.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "base/sha256.h"
#include "plan/credentials.h"
#include "plan/executables.h"
#include "plan/filesystem_parts.h"
#include "plan/network.h"
#include "plan/optional_layers.h"
#include "plan/proc_files.h"
#include "plan/system_paths.h"
#include "plan/toolchains.h"
#include "plan/workspace.h"

namespace caisson::plan {
namespace {

constexpr std::uint64_t kShmBytes = 64 * policy::kMiB;

}  // namespace

std::string passwdFile() {
  return "root:x:0:0:root:/root:/usr/sbin/nologin\n"
         "sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/bash\n"
         "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
}
std::string groupFile() { return "root:x:0:\ntty:x:5:\nsandbox:x:1000:\nnogroup:x:65534:\n"; }
std::string hostsFile(const std::string& hostname) {
  return "127.0.0.1 localhost " + hostname + "\n::1 localhost " + hostname + "\n";
}

namespace {

void addSystem(const HostFacts& host, Plan& plan) {
  for (const std::string_view directory : kSystemDirectories) {
    const auto found = host.system_directories.find(std::string(directory));
    if (found == host.system_directories.end()) continue;
    if (found->second.empty()) {
      plan.steps.push_back(
          Bind{.source = std::string(directory), .target = std::string(directory), .type = SourceType::directory});
    } else {
      plan.steps.push_back(MakeSymlink{std::string(directory), found->second});
    }
  }
}

void addEtc(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  plan.steps.push_back(MakeDirectory{"/etc"});
  plan.steps.push_back(MakeFile{"/etc/passwd", passwdFile()});
  plan.steps.push_back(MakeFile{"/etc/group", groupFile()});
  plan.steps.push_back(MakeFile{"/etc/hosts", hostsFile(plan.hostname)});
  plan.steps.push_back(MakeFile{"/etc/hostname", plan.hostname + "\n"});
  addResolver(policy, plan);
  plan.steps.push_back(MakeFile{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"});
  // The sandbox shows the caller's files under another uid (and, in an overlay, other inode numbers). git would
  // consider all of them changed and hash them at every `git status`.
  plan.steps.push_back(MakeFile{"/etc/gitconfig", "[core]\n\tcheckStat = minimal\n"});
  for (const auto& [path, to] : host.etc_links) plan.steps.push_back(MakeSymlink{path, to});
  for (const SystemPath& entry : etcPaths()) {
    plan.steps.push_back(Bind{.source = std::string(entry.path),
                              .target = std::string(entry.path),
                              .executable = false,
                              .optional = true,
                              .type = entry.type});
  }
  addTrustFile(policy, plan);
}

}  // namespace

void addResolver(const policy::Policy& policy, Plan& plan) {
  if (const std::string resolver = resolverFile(policy); !resolver.empty()) {
    plan.steps.push_back(MakeFile{"/etc/resolv.conf", resolver});
  } else {
    plan.steps.push_back(Bind{.source = "/etc/resolv.conf",
                              .target = "/etc/resolv.conf",
                              .executable = false,
                              .optional = true,
                              .type = SourceType::file});
  }
}

void addDevices(Plan& plan) {
  plan.steps.push_back(MakeDirectory{"/dev"});
  for (const std::string_view device : kDevices) {
    plan.steps.push_back(Bind{.source = std::string(device),
                              .target = std::string(device),
                              .writable = true,
                              .executable = false,
                              .devices = true,
                              .type = SourceType::file});
  }
  plan.steps.push_back(MountDevpts{"/dev/pts"});
  plan.steps.push_back(MakeSymlink{"/dev/ptmx", "pts/ptmx"});
  plan.steps.push_back(MakeSymlink{"/dev/fd", "/proc/self/fd"});
  plan.steps.push_back(MakeSymlink{"/dev/stdin", "/proc/self/fd/0"});
  plan.steps.push_back(MakeSymlink{"/dev/stdout", "/proc/self/fd/1"});
  plan.steps.push_back(MakeSymlink{"/dev/stderr", "/proc/self/fd/2"});
  plan.steps.push_back(MountTmpfs{"/dev/shm", kShmBytes, 8192, 01777, false});
}

void addProc(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  MountProc proc{.target = "/proc", .shown = {std::begin(kShownProc), std::end(kShownProc)}};
  proc.may_be_subset = mayMiss(policy, policy::OptionalLayer::proc_subset);
  proc.may_be_bound = mayMiss(policy, policy::OptionalLayer::proc_bound);
  plan.shown_memory = shownMemory(policy, host);
  std::vector<CoverFile> files = procFiles(policy, host);
  for (const CoverFile& file : files) {
    const std::string name = file.target.substr(std::size("/proc/") - 1);
    if (name.find('/') == std::string::npos) proc.shown.push_back(name);
  }
  plan.steps.push_back(std::move(proc));
  plan.steps.push_back(
      Bind{.source = "/proc/sys", .target = "/proc/sys", .executable = false, .optional = true, .inside = true});
  for (CoverFile& file : files) plan.steps.push_back(std::move(file));
}

namespace {

/// What the payload may know about its sandbox, as JSON. Replaces characters of the policy's name that JSON would have
/// to escape, since a policy can be named after any file.
std::string describeSandbox(const policy::Policy& policy) {
  std::string name = policy.name;
  std::ranges::replace_if(
      name, [](unsigned char c) { return c < 0x80 && std::isalnum(c) == 0 && c != '-' && c != '_' && c != '.'; }, '_');
  std::erase_if(name, [](unsigned char c) { return c >= 0x80; });
  const policy::Resources& resources = policy.resources;
  std::string text = "{\"policy\":\"" + name + "\",\"processes\":" + std::to_string(policy.process.max_processes);
  const auto add = [&](std::string_view key, std::uint64_t value) {
    text.append(",\"").append(key).append("\":").append(std::to_string(value));
  };
  if (resources.threads) add("threads", *resources.threads);
  add("memory_bytes", resources.memory);
  add("open_files", resources.open_files);
  if (resources.cpu_seconds) add("cpu_seconds", static_cast<std::uint64_t>(*resources.cpu_seconds));
  if (resources.wall_seconds) add("wall_seconds", static_cast<std::uint64_t>(*resources.wall_seconds));
  const auto mode = policy.network.mode;
  text += mode == policy::NetworkMode::none    ? ",\"network\":\"none\"}\n"
          : mode == policy::NetworkMode::proxy ? ",\"network\":\"proxy\"}\n"
                                               : ",\"network\":\"host\"}\n";
  return text;
}

}  // namespace

/// With another user id its files would not be the caller's to remove.
std::string whyNotOnDisk(const HostFacts& host, const Plan& plan) {
  return plan.identity.subordinate() ? "isolation.separate_user" : host.state_disk.why_not;
}

Result<void> checkDirectoryStores(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  const std::string why_not = whyNotOnDisk(host, plan);
  if (why_not.empty()) return {};
  std::string in_memory;
  for (const policy::Tmpfs& tmpfs : policy.filesystem.tmpfs) {
    if (tmpfs.store == policy::DirectoryStore::disk) {
      return fail(plainError(Stage::host, "plan", "filesystem.tmpfs: " + tmpfs.path,
                             "it cannot be kept on disk: " + why_not,
                             "set CAISSON_HOME to a directory on a local disk, or store to prefer_disk or memory"));
    }
    if (tmpfs.store == policy::DirectoryStore::prefer_disk) in_memory += (in_memory.empty() ? "" : ", ") + tmpfs.path;
  }
  if (!in_memory.empty()) {
    plan.warnings.push_back("kept in memory and limited by resources.memory: " + in_memory + " (" + why_not + ")");
  }
  return {};
}

namespace {

MountTmpfs sizedDirectory(const policy::Policy& policy, const policy::Tmpfs& tmpfs, mode_t mode, const HostFacts& host,
                          const Plan& plan) {
  const bool on_disk = tmpfs.store != policy::DirectoryStore::memory && whyNotOnDisk(host, plan).empty();
  return MountTmpfs{.target = tmpfs.path,
                    .bytes = tmpfs.size,
                    .inodes = tmpfs.inodes,
                    .mode = mode,
                    .executable = tmpfs.exec,
                    .access = tmpfs.access,
                    .on_disk = on_disk,
                    .cache = on_disk ? cacheOf(policy, tmpfs, host, plan) : ""};
}

}  // namespace

void addTemporary(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  for (const policy::Tmpfs& tmpfs : policy.filesystem.tmpfs) {
    const bool shared = tmpfs.path == "/tmp" || tmpfs.path == "/var/tmp";
    plan.steps.push_back(sizedDirectory(policy, tmpfs, shared ? 01777 : 0700, host, plan));
    // A directory that only the system writes would otherwise be empty: it describes the sandbox.
    if (tmpfs.access == policy::TmpfsAccess::ro)
      plan.steps.push_back(MakeFile{tmpfs.path + "/sandbox.json", describeSandbox(policy), 0444});
  }
}

namespace {

/// Covers everything of the host's root that is not the system: other users' files, sockets of services, of the session
/// bus, container engines and agents (Landlock does not cover connect()), and caisson's own state.
void coverPrivatePlaces(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  constexpr std::uint64_t kCoverBytes = 1 * policy::kMiB;
  std::set<std::string> covers{"/home", "/root", "/run", "/var/run", "/media", "/mnt", "/tmp", "/var/tmp"};
  covers.insert(host.other_directories.begin(), host.other_directories.end());
  covers.insert(host.homes.begin(), host.homes.end());
  if (!host.own_state.empty()) covers.insert(host.own_state);
  // First: only the first 32 tmpfs steps can be watched for their size.
  for (const policy::Tmpfs& tmpfs : policy.filesystem.tmpfs) {
    if (tmpfs.path != "/tmp" && tmpfs.path != "/var/tmp") continue;
    plan.steps.push_back(sizedDirectory(policy, tmpfs, 01777, host, plan));
    covers.erase(tmpfs.path);
  }
  plan.steps.push_back(MaskPath{"/dev/log", MaskPath::Absent::skip, false});
  for (const std::string& cover : covers) plan.steps.push_back(MountTmpfs{cover, kCoverBytes, 1024, 0755, false, true});
}

}  // namespace

void linkWorkspace(const HostFacts& host, const std::string& target, Plan& plan) {
  const auto isThere = [](const HostPath& path) { return below(path.path, kWorkspace); };
  if (below(target, kWorkspace) || std::ranges::any_of(host.read_only, isThere) ||
      std::ranges::any_of(host.read_write, isThere)) {
    return;
  }
  plan.steps.push_back(MakeSymlink{std::string(kWorkspace), target});
}

Result<void> addWorkspaceAndRules(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  const auto target = workspaceTarget(policy, host);
  if (!target) return fail(target.error());
  if (auto added = addWorkspace(policy, host, *target, plan); !added) return added;
  if (plan.workspace_shown) linkWorkspace(host, *target, plan);
  addDeniedInWorkspace(policy, host, *target, plan);
  if (auto added = addOwnPaths(policy, host, *target, plan); !added) return added;
  addExecutables(policy, host, plan);
  addDenied(policy, host, *target, plan);
  addLinkNames(policy, host, plan);  // last: no later step may follow them
  return {};
}

namespace {

/// The mode of /root inside: 0111 if the policy shows a path below it, which can then be reached but not listed; else
/// 0.
mode_t modeOfRootsHome(const policy::Policy& policy, const HostFacts& host) {
  const auto below = [](const std::string& path) { return path.starts_with("/root/"); };
  const policy::Filesystem& shown = policy.filesystem;
  const bool toolchain =
      std::ranges::any_of(host.toolchains, [&](const Toolchain& one) { return below(one.programs); });
  const bool named = std::ranges::any_of(shown.read_only, below) || std::ranges::any_of(shown.read_write, below);
  const bool workspace = shown.workspace.same_path && below(host.workspace.path);
  return named || toolchain || workspace ? 0111 : 0;
}

}  // namespace

std::string workspaceCache(const std::string& use, const std::string& path) {
  return use + "-" + hex(Sha256().add(path).finish()).substr(0, 32);
}

std::string cacheOf(const policy::Policy& policy, const policy::Tmpfs& tmpfs, const HostFacts& host, const Plan& plan) {
  const bool other_user = plan.identity.parent_writes_maps;
  if (tmpfs.cache.empty()) return "";
  if (other_user && (!plan.identity.maps_files || !host.state_disk.why_no_overlay.empty())) return "";
  // A name shares a cache between the user's own policies; those of an HTTP token never reach another tenant.
  if (tmpfs.cache != "workspace")
    return (policy.use.starts_with("token-") ? policy.use + "-" : "") + "shared-" + tmpfs.cache;
  const bool shown = policy.filesystem.workspace.mode != policy::WorkspaceMode::none && !host.workspace.path.empty() &&
                     !currentDirectoryIsTooBroad(policy, host);
  if (!shown) return "";
  return workspaceCache(policy.use, host.workspace.path);
}

Result<void> planOwnRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  plan.own_root = true;
  plan.working_directory = kHome;
  plan.steps.reserve(96);
  plan.steps.push_back(MountTmpfs{"/", kRootBytes, kRootInodes, 0755, false});
  if (policy.process.allowed_executables) {
    addSystemWithoutPrograms(host, plan);
  } else {
    addSystem(host, plan);
  }
  addEtc(policy, host, plan);
  plan.steps.push_back(MakeDirectory{"/root", modeOfRootsHome(policy, host)});
  plan.steps.push_back(MakeDirectory{"/var"});
  plan.steps.push_back(MakeSymlink{"/var/run", "/run"});
  plan.steps.push_back(MakeDirectory{"/home"});
  addDevices(plan);
  addProc(policy, host, plan);
  if (auto checked = checkDirectoryStores(policy, host, plan); !checked) return checked;
  addTemporary(policy, host, plan);
  if (auto checked = checkDenied(policy, host); !checked) return checked;
  addToolchains(host, plan);
  if (!hasOtherRoot(policy)) maskOwnMounts(host, plan);
  if (auto added = addNamedPaths(policy, host, plan); !added) return added;
  if (auto added = addWorkspaceAndRules(policy, host, plan); !added) return added;
  plan.steps.push_back(ReadOnlyRoot{});
  const bool has_home = std::any_of(policy.filesystem.tmpfs.begin(), policy.filesystem.tmpfs.end(),
                                    [](const policy::Tmpfs& t) { return t.path == kHome; });
  if (plan.working_directory == kHome && !has_home) plan.working_directory = "/";
  return {};
}

Result<void> planHostRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  plan.own_root = true;
  plan.host_view = true;
  plan.working_directory = "/tmp";
  plan.steps.reserve(64);
  if (auto checked = checkDenied(policy, host); !checked) return checked;
  // Read-only as a whole: Landlock does not cover chmod, chown, utimes or setxattr.
  plan.steps.push_back(Bind{.source = "/", .target = "/", .devices = true, .type = SourceType::directory});
  plan.steps.push_back(MountTmpfs{"/dev/shm", kShmBytes, 8192, 01777, false});
  plan.steps.push_back(MountDevpts{"/dev/pts"});  // hides the caller's terminals
  addProc(policy, host, plan);
  // As at level full, the user is `sandbox` and the host has the policy's hostname.
  plan.steps.push_back(CoverFile{"/etc/passwd", passwdFile()});
  plan.steps.push_back(CoverFile{"/etc/group", groupFile()});
  plan.steps.push_back(CoverFile{"/etc/hosts", hostsFile(plan.hostname)});
  plan.steps.push_back(CoverFile{"/etc/hostname", plan.hostname + "\n"});
  if (auto checked = checkDirectoryStores(policy, host, plan); !checked) return checked;
  coverPrivatePlaces(policy, host, plan);
  maskOwnMounts(host, plan);
  if (auto added = addNamedPaths(policy, host, plan); !added) return added;
  if (auto added = addWorkspace(policy, host, host.workspace.path, plan); !added) return added;
  addExecutables(policy, host, plan);
  addDeniedInWorkspace(policy, host, host.workspace.path, plan);
  addDenied(policy, host, host.workspace.path, plan);
  addLinkNames(policy, host, plan);  // last: no later step may follow them
  return {};
}

}  // namespace caisson::plan
