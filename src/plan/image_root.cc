#include "plan/image_root.h"

#include <algorithm>
#include <set>

#include "base/safe_text.h"
#include "base/text.h"
#include "plan/credentials.h"
#include "plan/denied_paths.h"
#include "plan/executables.h"
#include "plan/filesystem.h"
#include "plan/filesystem_parts.h"
#include "plan/named_paths.h"
#include "plan/nested_paths.h"
#include "plan/system_paths.h"
#include "plan/workspace.h"
#include "policy/decode/syntax.h"

namespace caisson::plan {
namespace {

constexpr std::uint64_t kChangedBytes = 4 * policy::kGiB;
constexpr std::uint64_t kChangedInodes = 1'000'000;
/// The kernel reads the names of all layers from one text of 256 bytes.
constexpr std::size_t kMaxLayers = 60;

Error rootError(const policy::Policy& policy, std::string_view reason, std::string_view hint) {
  return plainError(Stage::plan, "plan", "filesystem.root: " + policy.filesystem.root, reason, hint);
}

/// A field of a line of /etc/passwd or /etc/group.
std::string_view fieldOf(std::string_view line, int number) {
  for (; number > 0; --number) line.remove_prefix(std::min(line.find(':'), line.size() - 1) + 1);
  return line.substr(0, line.find(':'));
}

/// The image's passwd or group with an entry for the sandbox's user, in place of one with the same name or id.
std::string withSandboxUser(std::string_view file, std::string_view entry) {
  std::string text;
  for (const std::string_view line : split(file, '\n')) {
    if (std::ranges::count(line, ':') < 2 || fieldOf(line, 0) == "sandbox" || fieldOf(line, 2) == "1000") continue;
    text.append(line).append("\n");
  }
  return text.append(entry).append("\n");
}

void addAccounts(const HostFacts& host, Plan& plan) {
  const RootFacts& root = host.root;
  const bool is_root = plan.identity.inside_uid == 0;
  if (root.passwd.empty()) {
    plan.steps.push_back(MakeFile{"/etc/passwd", is_root ? "root:x:0:0:root:/root:/bin/sh\n" : passwdFile()});
    plan.steps.push_back(MakeFile{"/etc/group", groupFile()});
  } else if (!is_root) {
    plan.steps.push_back(
        MakeFile{"/etc/passwd", withSandboxUser(root.passwd, "sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/sh")});
    plan.steps.push_back(MakeFile{"/etc/group", withSandboxUser(root.group, "sandbox:x:1000:")});
  }
}

void addImageEtc(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  plan.steps.push_back(MakeDirectory{"/etc"});
  addAccounts(host, plan);
  plan.steps.push_back(MakeFile{"/etc/hosts", hostsFile(plan.hostname)});
  plan.steps.push_back(MakeFile{"/etc/hostname", plan.hostname + "\n"});
  addResolver(policy, plan);
  // As with the host's root: files have other inode numbers than git remembers.
  if (!host.root.has_git_config) plan.steps.push_back(MakeFile{"/etc/gitconfig", "[core]\n\tcheckStat = minimal\n"});
  if (host.root.has_apt && plan.identity.inside_uid == 0) {
    // apt would change to the user _apt for downloads, which a sandbox with a single id cannot.
    if (!plan.identity.hasMoreIds()) {
      plan.steps.push_back(MakeDirectory{"/etc/apt/apt.conf.d"});
      plan.steps.push_back(MakeFile{"/etc/apt/apt.conf.d/zz-caisson", "APT::Sandbox::User \"root\";\n"});
    }
    // The changes need not survive a crash of the host: without this, most of an installation waits for the disk.
    plan.steps.push_back(MakeDirectory{"/etc/dpkg/dpkg.cfg.d"});
    plan.steps.push_back(MakeFile{"/etc/dpkg/dpkg.cfg.d/zz-caisson", "force-unsafe-io\n"});
  }
  addTrustFile(policy, plan);
}

/// Where changes to the root go: to disk, as a directory of the run's or session's store, or to memory.
Result<void> addChanges(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  const std::string no_disk = whyNotOnDisk(host, plan);
  const std::string why = no_disk.empty() ? host.state_disk.why_no_overlay : no_disk;
  if (!why.empty() && !host.tmpfs_user_xattrs) {
    return fail(rootError(policy, "changes cannot be kept on disk (" + why + "), nor in memory before Linux 6.6",
                          "set CAISSON_HOME to a directory on a local disk"));
  }
  plan.steps.push_back(MountTmpfs{.target = std::string(kRootChanges),
                                  .bytes = kChangedBytes,
                                  .inodes = kChangedInodes,
                                  .mode = 0755,
                                  .executable = true,
                                  .on_disk = why.empty()});
  if (!why.empty())
    plan.warnings.push_back("changes to the root are kept in memory and limited by resources.memory (" + why + ")");
  return {};
}

std::string targetOf(const Step& step) {
  return std::visit(
      [](const auto& one) {
        if constexpr (requires { one.target; }) return one.target;
        return std::string();
      },
      step);
}

bool isMade(const Step& step) {
  return std::holds_alternative<MakeDirectory>(step) || std::holds_alternative<MakeFile>(step) ||
         std::holds_alternative<MakeSymlink>(step);
}

/// Whether the step mounts something at a path of the root that must exist.
bool needsMountPoint(const Step& step) {
  if (const auto* bind = std::get_if<Bind>(&step)) return !bind->inside || isCopy(*bind);
  return std::holds_alternative<MountTmpfs>(step) || std::holds_alternative<MountProc>(step) ||
         std::holds_alternative<MountDevpts>(step) || std::holds_alternative<MountOverlay>(step);
}

/// Sorts the steps of a tree into those before MountRoot, which make files and mount points in the tmpfs, and those
/// after it, which mount.
class TreeOrder {
 public:
  void add(Step step) {
    const std::string target = targetOf(step);
    const bool in_mount = std::ranges::any_of(mounted_, [&](const std::string& top) { return below(target, top); });
    if (isMade(step) && !in_mount) {
      if (const auto* link = std::get_if<MakeSymlink>(&step); link != nullptr && link->optional) {
        links_.push_back(std::move(step));
      } else if (!std::holds_alternative<MakeDirectory>(step) || made_.insert(target).second) {
        files_.push_back(std::move(step));
      }
      return;
    }
    if (needsMountPoint(step)) {
      if (!in_mount && made_.insert(target).second) addMountPoint(step, target);
      mounted_.push_back(target);
    }
    mounts_.push_back(std::move(step));
  }

  std::vector<Step> files() && { return std::move(files_); }
  /// Names that lead elsewhere: after everything that is made, so that nothing is made through them.
  std::vector<Step> links() && { return std::move(links_); }
  std::vector<Step> mounts() && { return std::move(mounts_); }

 private:
  void addMountPoint(const Step& step, const std::string& target) {
    const auto* bind = std::get_if<Bind>(&step);
    if (bind != nullptr && bind->type == SourceType::file) {
      files_.push_back(MakeFile{target, "", 0444});
    } else {
      files_.push_back(MakeDirectory{target});
    }
  }

  std::vector<Step> files_, links_, mounts_;
  std::vector<std::string> mounted_;
  std::set<std::string> made_;
};

/// An error if a host path or the workspace would be shown below a link of the image, such as /lib: our directory would
/// hide the link.
Result<void> checkLinks(const policy::Policy& policy, const HostFacts& host, const std::vector<Step>& mounts) {
  for (const Step& step : mounts) {
    const std::string target = targetOf(step);
    const std::string top = target.empty() ? "" : target.substr(1, target.find('/', 1) - 1);
    const auto link = host.root.top_level.find(top);
    const bool fixed = top == "tmp" || top == "proc" || top == "dev" || top == "run" || top == "home" || top == "etc" ||
                       top == "var" || top == "workspace";
    if (link == host.root.top_level.end() || link->second.empty() || fixed || !needsMountPoint(step)) continue;
    return fail(rootError(policy, "it has a link at /" + top + ", so " + target + " cannot be shown",
                          "show it at another path, or use another root"));
  }
  return {};
}

/// Puts the steps into the order that the overlay needs.
Result<void> arrange(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  TreeOrder order;
  for (Step& step : plan.steps) order.add(std::move(step));
  std::vector<Step> mounts = std::move(order).mounts();
  if (auto checked = checkLinks(policy, host, mounts); !checked) return checked;
  plan.steps.clear();
  plan.steps.push_back(MountTmpfs{"/", kRootBytes, kRootInodes, 0755, false});
  std::ranges::move(std::move(order).files(), std::back_inserter(plan.steps));
  std::ranges::move(std::move(order).links(), std::back_inserter(plan.steps));
  if (plan.root_writable) {
    if (auto added = addChanges(policy, host, plan); !added) return added;
  }
  for (const std::string& layer : host.root.layers) {
    plan.steps.push_back(RootLayer{.source = layer, .owned = plan.identity.maps_files});
  }
  MountRoot root{
      .hidden = {"dev"}, .writable = plan.root_writable, .executable = !policy.process.allowed_executables.has_value()};
  for (const auto& [name, link] : host.root.top_level) root.names.push_back("/" + name);
  plan.steps.push_back(std::move(root));
  std::ranges::move(mounts, std::back_inserter(plan.steps));
  return {};
}

/// Masks in the root what the workspace hides of it: the same directory of the host, at another path. Programs and
/// libraries of the system that only look like secrets (`/bin/env`) stay.
void hideInRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  if (!showsWorkspace(policy, host)) return;
  const auto hide = [&](const std::vector<std::string>& paths, bool denied) {
    for (const std::string& path : paths) {
      for (const std::string& name : namesInRoot(host, host.workspace.path + "/" + path)) {
        const auto holds = [&](std::string_view directory) { return below(name, directory); };
        if (denied || std::ranges::none_of(kSystemDirectories, holds)) plan.steps.push_back(MaskPath{name});
      }
    }
  };
  hide(hiddenInWorkspace(policy, host), false);
  hide(host.denied_matches, true);
  hide(host.scan.denied_names, true);
}

/// The program is the sandbox's user, or root, whatever the image says.
void noteUser(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  const std::string user = host.root.user.substr(0, host.root.user.find(':'));
  if (user.empty()) return;
  std::string uid = user;
  for (const std::string_view line : split(host.root.passwd, '\n')) {
    if (std::ranges::count(line, ':') >= 2 && fieldOf(line, 0) == user) uid = fieldOf(line, 2);
  }
  if (uid == std::to_string(plan.identity.inside_uid)) return;
  plan.notices.push_back("the image's user " + safeLine(user) + " is not used: the program is " +
                         (policy.isolation.user == policy::InsideUser::root ? "root" : "sandbox (1000)") + " inside");
}

/// A directory of the user's that is too much to show: it holds caisson's state, or a whole home.
Result<void> checkDirectory(const policy::Policy& policy, const HostFacts& host) {
  if (!host.root.digest.empty()) return {};
  for (const std::string& layer : host.root.layers) {
    if (layer == "/") return fail(rootError(policy, "it is the whole host", "write filesystem.root = \"host\""));
    const auto inside = [&](const std::string& other) { return !other.empty() && below(other, layer); };
    if (std::ranges::any_of(host.homes, inside))
      return fail(rootError(policy, "it is a home directory or above one", "name the directory of a root file system"));
    const auto shows = [&](const std::string& own) { return inside(own) || below(layer, own); };
    if (std::ranges::any_of(ownPlaces(host), shows))
      return fail(rootError(policy, "the sandbox would see caisson's own state", "use another directory"));
  }
  return {};
}

/// Lists hold in a root that cannot be written. A blocklist does not: an image can have a program under any name.
Result<void> checkLists(const policy::Policy& policy, const HostFacts& host) {
  if (!hasExecutableRules(policy)) return {};
  if (!policy.process.blocked_executables.empty()) {
    return fail(rootError(policy, "a blocklist of programs cannot hold: an image may have them under other names",
                          "use process.allowed_executables"));
  }
  if (policy.isolation.user == policy::InsideUser::root) {
    return fail(rootError(policy, "executable lists cannot hold in a root that is writable",
                          "leave out process.allowed_executables or isolation.user"));
  }
  const auto directory = std::ranges::find_if(host.executables.allowed, &Program::directory);
  if (directory == host.executables.allowed.end()) return {};
  return fail(rootError(policy, "process.allowed_executables names the directory " + directory->entry,
                        "name its programs one by one"));
}

}  // namespace

Result<void> checkOtherRoot(const policy::Policy& policy, const HostFacts& host) {
  if (!hasOtherRoot(policy)) return {};
  if (policy.isolation.level != policy::Level::full || policy.isolation.tier != policy::Tier::namespaces)
    return fail(rootError(policy, "only level full, in namespaces, can have another root", "use --level full"));
  if (!host.root.why_not.empty()) return fail(rootError(policy, host.root.why_not, host.root.hint));
  if (host.root.layers.empty() || host.root.layers.size() > kMaxLayers) {
    return fail(rootError(policy,
                          "it has " + std::to_string(host.root.layers.size()) + " layers, at most " +
                              std::to_string(kMaxLayers) + " can be mounted",
                          "build the image with fewer layers"));
  }
  if (auto checked = checkLists(policy, host); !checked) return checked;
  const auto limited = std::ranges::find_if(
      policy.filesystem.tmpfs, [](const policy::Tmpfs& one) { return one.access != policy::TmpfsAccess::rw; });
  if (policy.isolation.user == policy::InsideUser::root && limited != policy.filesystem.tmpfs.end()) {
    return fail(rootError(policy,
                          "the access of " + limited->path +
                              " rests on Landlock, which cannot limit it in a root that "
                              "is writable",
                          "give it access rw, or leave out isolation.user"));
  }
  return checkDirectory(policy, host);
}

Result<void> planImageRoot(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  plan.own_root = true;
  plan.layered_root = true;
  plan.root_writable = policy.isolation.user == policy::InsideUser::root;
  plan.working_directory = host.root.working_directory.empty() ? "/" : host.root.working_directory;
  plan.root_in_use = host.root.in_use;
  noteUser(policy, host, plan);
  addImageEtc(policy, host, plan);
  addDevices(plan);
  addProc(policy, host, plan);
  if (auto checked = checkDirectoryStores(policy, host, plan); !checked) return checked;
  addTemporary(policy, host, plan);
  if (plan.root_writable && !host.root.top_level.contains("root")) plan.steps.push_back(MakeDirectory{"/root", 0700});
  if (auto checked = checkDenied(policy, host); !checked) return checked;
  hideInRoot(policy, host, plan);
  if (auto added = addNamedPaths(policy, host, plan); !added) return added;
  if (auto added = addWorkspaceAndRules(policy, host, plan); !added) return added;
  if (auto arranged = arrange(policy, host, plan); !arranged) return arranged;
  const std::string what = host.root.digest.empty() ? "directory " + host.root.layers.front()
                                                    : "image " + policy.filesystem.root + " (" + host.root.digest + ")";
  plan.layers["root"] = what + (plan.root_writable ? ", changes are kept apart" : ", read-only");
  return {};
}

}  // namespace caisson::plan
