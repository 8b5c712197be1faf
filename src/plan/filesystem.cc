#include "plan/filesystem.h"

#include <algorithm>

#include "plan/system_paths.h"

namespace caisson::plan {
namespace {

constexpr std::uint64_t kRootBytes = 4 * policy::kMiB;
constexpr std::uint64_t kRootInodes = 2048;
constexpr std::uint64_t kShmBytes = 64 * policy::kMiB;
constexpr std::uint64_t kOverlayBytes = 1 * policy::kGiB;
constexpr std::uint64_t kOverlayInodes = 1'000'000;

bool below(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

std::string passwd() {
  return "root:x:0:0:root:/root:/usr/sbin/nologin\n"
         "sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/bash\n"
         "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";
}
std::string group() { return "root:x:0:\ntty:x:5:\nsandbox:x:1000:\nnogroup:x:65534:\n"; }
std::string hosts(const std::string& hostname) {
  return "127.0.0.1 localhost " + hostname + "\n::1 localhost " + hostname + "\n";
}

void addSystem(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  const std::string root = policy.filesystem.root == "host" ? "" : policy.filesystem.root;
  for (const std::string_view directory : kSystemDirectories) {
    const auto found = host.system_directories.find(std::string(directory));
    if (found == host.system_directories.end()) continue;
    if (found->second.empty()) {
      plan.steps.push_back(Bind{
          .source = root + std::string(directory), .target = std::string(directory), .type = SourceType::directory});
    } else {
      plan.steps.push_back(MakeSymlink{std::string(directory), found->second});
    }
  }
}

void addEtc(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  const std::string root = policy.filesystem.root == "host" ? "" : policy.filesystem.root;
  plan.steps.push_back(MakeDirectory{"/etc"});
  plan.steps.push_back(MakeFile{"/etc/passwd", passwd()});
  plan.steps.push_back(MakeFile{"/etc/group", group()});
  plan.steps.push_back(MakeFile{"/etc/hosts", hosts(plan.hostname)});
  plan.steps.push_back(MakeFile{"/etc/hostname", plan.hostname + "\n"});
  plan.steps.push_back(MakeFile{"/etc/resolv.conf", "# no network: nothing resolves here\n"});
  plan.steps.push_back(MakeFile{"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"});
  // The sandbox shows the caller's files under another user id (and, in an overlay, other inode numbers), which git
  // would take for changed files and hash again, all of them, at every `git status`.
  plan.steps.push_back(MakeFile{"/etc/gitconfig", "[core]\n\tcheckStat = minimal\n"});
  for (const auto& [path, to] : host.etc_links) plan.steps.push_back(MakeSymlink{path, to});
  for (const SystemPath& entry : etcPaths()) {
    plan.steps.push_back(Bind{.source = root + std::string(entry.path),
                              .target = std::string(entry.path),
                              .executable = false,
                              .optional = true,
                              .type = entry.type});
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

void addProc(Plan& plan) {
  plan.steps.push_back(MountProc{"/proc"});
  for (const std::string_view entry : kMaskedProc) plan.steps.push_back(MaskPath{std::string(entry)});
  for (const std::string_view entry : kReadOnlyProc) {
    plan.steps.push_back(Bind{.source = std::string(entry),
                              .target = std::string(entry),
                              .executable = false,
                              .optional = true,
                              .inside = true});
  }
}

void addTemporary(const policy::Policy& policy, Plan& plan) {
  for (const policy::Tmpfs& tmpfs : policy.filesystem.tmpfs) {
    const bool shared = tmpfs.path == "/tmp" || tmpfs.path == "/var/tmp";
    plan.steps.push_back(
        MountTmpfs{tmpfs.path, tmpfs.size, tmpfs.inodes, static_cast<mode_t>(shared ? 01777 : 0700), tmpfs.exec});
  }
}

Result<void> checkWorkspace(const HostFacts& host) {
  const HostPath& workspace = host.workspace;
  if (workspace.sys_errno != 0) {
    return fail(sysError(Stage::host, "open workspace", workspace.requested, workspace.sys_errno,
                         "give an existing directory you can enter: --workspace DIR, or --workspace :none"));
  }
  if (!workspace.directory) {
    return fail(plainError(Stage::host, "open workspace", workspace.requested, "it is not a directory",
                           "give a directory, or show one file with --ro FILE"));
  }
  return {};
}

/// F4: the current directory is not taken as workspace when it is `/`, a home directory or above one.
bool tooBroad(const HostFacts& host) {
  const std::string& path = host.workspace.path;
  if (path == "/" || path == "/home" || path == "/root") return true;
  if (!host.home.empty() && below(host.home, path)) return true;
  // /home/NAME of somebody else
  return path.starts_with("/home/") && path.find('/', 6) == std::string::npos;
}

/// Paths below the workspace, relative to it, that `denied` names.
std::vector<std::string> deniedBelow(const std::vector<std::string>& denied, std::string_view directory) {
  std::vector<std::string> result;
  for (const std::string& path : denied) {
    if (below(path, directory) && path.size() > directory.size()) result.push_back(path.substr(directory.size() + 1));
  }
  return result;
}

Result<void> addWorkspace(const policy::Policy& policy, const HostFacts& host, const std::string& target, Plan& plan) {
  const policy::Workspace& workspace = policy.filesystem.workspace;
  policy::WorkspaceMode mode = workspace.mode;
  if (mode != policy::WorkspaceMode::none && workspace.path.empty() && tooBroad(host)) {
    plan.notices.push_back("the current directory " + host.workspace.path +
                           " is a home directory or above one, so the sandbox has no workspace; name one with "
                           "--workspace DIR");
    mode = policy::WorkspaceMode::none;
  }
  if (mode == policy::WorkspaceMode::none) {
    plan.layers["workspace"] = "none";
    return {};
  }
  if (auto checked = checkWorkspace(host); !checked) return checked;

  std::vector<std::string> hidden;
  if (!workspace.show_secrets) {
    hidden = host.workspace_entries;
    plan.masked_secrets = host.workspace_entries;
  }
  if (mode == policy::WorkspaceMode::overlay) {
    MountOverlay overlay{.lower = host.workspace.path,
                         .target = target,
                         .whiteouts = hidden,
                         .bytes = policy.filesystem.max_total_size.value_or(kOverlayBytes),
                         .inodes = policy.filesystem.max_inodes.value_or(kOverlayInodes),
                         .executable = policy.filesystem.workspace_exec,
                         .owned = plan.identity.parent_writes_maps};
    const bool memory = policy.filesystem.overlay_store == policy::OverlayStore::memory ||
                        (policy.filesystem.overlay_store == policy::OverlayStore::automatic && host.tmpfs_user_xattrs);
    overlay.on_disk = !memory;
    for (std::string& path : deniedBelow(policy.filesystem.denied, target))
      overlay.whiteouts.push_back(std::move(path));
    plan.steps.push_back(std::move(overlay));
    plan.workspace_overlay = true;
    plan.layers["workspace"] = "overlay of " + host.workspace.path + ", changes are discarded at the end";
    plan.layers["disk_quota"] = memory ? "hard (tmpfs size and inodes)" : "none (overlay store on disk)";
  } else {
    const bool writable = mode == policy::WorkspaceMode::rw;
    plan.steps.push_back(Bind{.source = host.workspace.path,
                              .target = target,
                              .writable = writable,
                              .executable = policy.filesystem.workspace_exec,
                              .canonical = true,
                              .owned = plan.identity.parent_writes_maps});
    for (const std::string& name : hidden) plan.steps.push_back(MaskPath{target + "/" + name});
    plan.layers["workspace"] = (writable ? "read-write " : "read-only ") + host.workspace.path;
    if (writable) plan.warnings.push_back("workspace is writable directly: its changes cannot be rolled back");
  }
  plan.working_directory = target;
  return {};
}

Result<void> addNamedPaths(const HostFacts& host, Plan& plan) {
  const auto add = [&](const HostPath& path, bool writable) -> Result<void> {
    const char* flag = writable ? "--rw" : "--ro";
    if (path.sys_errno != 0) {
      return fail(sysError(Stage::host, std::string("open ") + flag, path.requested, path.sys_errno,
                           "name an existing file or directory that you can read"));
    }
    if (!path.directory && !path.regular_file) {
      return fail(plainError(Stage::host, std::string("open ") + flag, path.requested,
                             "it is neither a file nor a directory (sockets, pipes and devices are never handed in)",
                             "name a file or a directory"));
    }
    if (path.path == "/") {
      return fail(plainError(Stage::host, std::string("open ") + flag, path.requested, "it is the whole host",
                             "name the directories the program needs"));
    }
    plan.steps.push_back(Bind{.source = path.path,
                              .target = path.path,
                              .writable = writable,
                              .executable = true,
                              .canonical = true,
                              .owned = plan.identity.parent_writes_maps});
    if (writable) plan.warnings.push_back(path.path + " is writable directly: changes cannot be rolled back");
    return {};
  };
  for (const HostPath& path : host.read_only) {
    if (auto added = add(path, false); !added) return added;
  }
  for (const HostPath& path : host.read_write) {
    if (auto added = add(path, true); !added) return added;
  }
  return {};
}

/// Denied paths outside an overlay become masks. In a tree that is writable directly, a path that does not exist
/// yet cannot be held without privilege (F6): refused rather than half done.
MaskPath::Absent whenAbsent(const policy::Policy& policy, const HostFacts& host, const std::string& path) {
  const bool direct = policy.filesystem.workspace.mode == policy::WorkspaceMode::rw && below(path, kWorkspace);
  const bool named = std::any_of(host.read_write.begin(), host.read_write.end(),
                                 [&](const HostPath& writable) { return below(path, writable.path); });
  if (direct || named) return MaskPath::Absent::refuse;
  const bool temporary = std::any_of(policy.filesystem.tmpfs.begin(), policy.filesystem.tmpfs.end(),
                                     [&](const policy::Tmpfs& tmpfs) { return below(path, tmpfs.path); });
  return temporary ? MaskPath::Absent::create : MaskPath::Absent::skip;
}

void addDenied(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  for (const std::string& path : policy.filesystem.denied) {
    const bool in_overlay = plan.workspace_overlay && below(path, kWorkspace) && path != kWorkspace;
    if (!in_overlay) plan.steps.push_back(MaskPath{path, whenAbsent(policy, host, path)});
  }
}

Result<void> checkDenied(const policy::Policy& policy) {
  for (const std::string& path : policy.filesystem.denied) {
    if (path.find_first_of("*?[") != std::string::npos) {
      return fail(plainError(Stage::policy, "plan", "filesystem.denied: " + path,
                             "patterns cannot be enforced by the kernel in a directly visible tree",
                             "name the paths one by one"));
    }
  }
  return {};
}

}  // namespace

bool looksSecret(std::string_view name) {
  static constexpr std::string_view kExact[] = {
      ".npmrc",  ".netrc",  ".pypirc",    ".git-credentials", "id_rsa", "id_dsa", "id_ecdsa",        "id_ed25519",
      ".pgpass", ".my.cnf", ".dockercfg", ".htpasswd",        ".boto",  ".s3cfg", "credentials.json"};
  if (name.starts_with(".env")) {
    // templates without values are meant to be read
    return !name.ends_with(".example") && !name.ends_with(".sample") && !name.ends_with(".template") &&
           (name.size() == 4 || name[4] == '.' || name[4] == '-' || name[4] == '_');
  }
  if (name.ends_with(".pem") || name.ends_with(".key") || name.ends_with(".p12") || name.ends_with(".pfx")) return true;
  return std::find(std::begin(kExact), std::end(kExact), name) != std::end(kExact);
}

Result<void> planOwnRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  plan.own_root = true;
  plan.working_directory = kHome;
  plan.steps.reserve(96);
  plan.steps.push_back(MountTmpfs{"/", kRootBytes, kRootInodes, 0755, false});
  addSystem(policy, host, plan);
  addEtc(policy, host, plan);
  plan.steps.push_back(MakeDirectory{"/root", 0});
  plan.steps.push_back(MakeDirectory{"/var"});
  plan.steps.push_back(MakeSymlink{"/var/run", "/run"});
  plan.steps.push_back(MakeDirectory{"/home"});
  addDevices(plan);
  addProc(plan);
  addTemporary(policy, plan);
  if (auto checked = checkDenied(policy); !checked) return checked;
  if (auto added = addNamedPaths(host, plan); !added) return added;
  if (auto added = addWorkspace(policy, host, std::string(kWorkspace), plan); !added) return added;
  addDenied(policy, host, plan);
  plan.steps.push_back(ReadOnlyRoot{});
  const bool has_home = std::any_of(policy.filesystem.tmpfs.begin(), policy.filesystem.tmpfs.end(),
                                    [](const policy::Tmpfs& t) { return t.path == kHome; });
  if (plan.working_directory == kHome && !has_home) plan.working_directory = "/";
  return {};
}

Result<void> planHostRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  plan.own_root = false;
  plan.working_directory = "/dev/shm";
  if (auto checked = checkDenied(policy); !checked) return checked;
  const HostPath& workspace = host.workspace;
  const bool overlay = policy.filesystem.workspace.mode == policy::WorkspaceMode::overlay;
  plan.steps.push_back(MountTmpfs{"/dev/shm", kShmBytes, 8192, 01777, false});
  plan.steps.push_back(MountProc{"/proc"});
  for (const std::string_view entry : kMaskedProc) plan.steps.push_back(MaskPath{std::string(entry)});
  for (const policy::Tmpfs& tmpfs : policy.filesystem.tmpfs) {
    if (tmpfs.path != "/tmp" && tmpfs.path != "/var/tmp") continue;
    // A workspace below /tmp would vanish under a fresh one; Landlock keeps the rest of it closed.
    if (below(workspace.path, tmpfs.path) && policy.filesystem.workspace.mode != policy::WorkspaceMode::none) {
      if (tmpfs.path == "/tmp") plan.scratch_directory = "/dev/shm";
      continue;
    }
    plan.steps.push_back(MountTmpfs{tmpfs.path, tmpfs.size, tmpfs.inodes, 01777, tmpfs.exec});
  }
  if (overlay) {
    if (auto added = addWorkspace(policy, host, workspace.path, plan); !added) return added;
  } else if (policy.filesystem.workspace.mode != policy::WorkspaceMode::none) {
    if (auto checked = checkWorkspace(host); !checked) return checked;
    plan.working_directory = workspace.path;
    plan.layers["workspace"] =
        (policy.filesystem.workspace.mode == policy::WorkspaceMode::rw ? "read-write " : "read-only ") + workspace.path;
    if (!policy.filesystem.workspace.show_secrets) {
      plan.masked_secrets = host.workspace_entries;
      for (const std::string& name : host.workspace_entries)
        plan.steps.push_back(MaskPath{workspace.path + "/" + name});
    }
  }
  for (const std::string& path : policy.filesystem.denied) plan.steps.push_back(MaskPath{path});
  return {};
}

}  // namespace caisson::plan
