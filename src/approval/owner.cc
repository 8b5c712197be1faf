#include "approval/owner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "approval/image_signatures.h"
#include "approval/owner_section.h"
#include "policy/decode/syntax.h"
#include "policy/decode/validate.h"
#include "policy/profiles/profiles.h"
#include "policy/units.h"
#include "sys/fd.h"
#include "sys/machine.h"
#include "sys/state_home.h"

namespace caisson::approval {

namespace {

using policy::Node;

constexpr std::string_view kSystemFile = "/etc/caisson/config.toml";

void decodeImages(Section& section, const std::string& file, ImageSettings& images) {
  section.size("quota", images.quota);
  section.texts("plain_http", images.plain_http);
  section.pairs("mirrors", "expected a list such as [\"docker.io=https://mirror.example\"]",
                [&](const std::string& host, const std::string& url) {
                  images.mirrors.emplace_back(host, url);
                  return url.starts_with("http://") || url.starts_with("https://");
                });
  section.pairs("signatures", "expected a list such as [\"docker.io/library/*=/etc/caisson/keys/team.pem\"]",
                [&](const std::string& pattern, const std::string& key) {
                  images.signatures.push_back({pattern, key, file});
                  return key.starts_with('/');
                });
}

bool isRuntime(const std::string& name) { return name == "runc" || name == "crun" || name == "runsc"; }

void decodeRuntimes(Section& section, RuntimeSettings& runtimes) {
  section.names("allowed", "expected a list of runc, crun and runsc", isRuntime, runtimes.allowed);
  section.pairs("paths", "expected a list such as [\"crun=/opt/crun/bin/crun\"]",
                [&](const std::string& name, const std::string& path) {
                  runtimes.paths.emplace_back(name, path);
                  return isRuntime(name) && path.starts_with('/');
                });
}

Result<void> decodeSection(const policy::Document& document, const std::string& name, const Node& table, Owner& owner) {
  Section section(document, table, name);
  if (name == "ceilings") {
    section.number("cpus", owner.ceilings.cpus);
    section.size("memory", owner.ceilings.memory);
    section.size("swap", owner.ceilings.swap);
    section.count("processes", owner.ceilings.processes);
    section.count("open_files", owner.ceilings.open_files);
    section.seconds("wall_seconds", owner.ceilings.wall_seconds);
    section.size("output", owner.ceilings.output);
  } else if (name == "defaults") {
    section.text("profile", owner.profile);
  } else if (name == "filesystem") {
    section.paths("always_denied", owner.always_denied);
  } else if (name == "network") {
    section.hosts("private_hosts", owner.private_hosts);
  } else if (name == "images") {
    decodeImages(section, document.name, owner.images);
    if (auto known = section.finish(); !known) return known;
    return canonicalizeRules(policy::place(document.name, table.line, "images.signatures"), owner.images);
  } else if (name == "runtimes") {
    decodeRuntimes(section, owner.runtimes);
  } else if (name == "alerts") {
    Alert& alert = owner.alerts.emplace_back();
    section.command("command", alert.command);
    section.url("webhook", alert.webhook);
  }
  return section.finish();
}

/// `merged` is the user's ceiling, or becomes the system's if the user has none. An error if it exceeds the system's.
template <class T>
Result<void> mergeCeiling(std::string_view key, const std::optional<T>& system, std::optional<T>& merged,
                          const std::string& file) {
  if (!merged) {
    merged = system;
  } else if (system && *merged > *system) {
    return fail(configError(file + ": ceilings." + std::string(key),
                            "it is above what the system's configuration allows",
                            "ask for less, or have " + std::string(kSystemFile) + " changed"));
  }
  return {};
}

/// The content of the file; nullopt if it does not exist. An error if another user could have written it.
Result<std::optional<std::string>> readOwned(const std::string& path, bool system) {
  if (path.empty()) return std::nullopt;
  const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!fd) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    return fail(sysError(Stage::policy, "open", path, errno, "make it a plain file that you can read, or remove it"));
  }
  struct stat status;
  if (::fstat(fd.get(), &status) != 0) return fail(sysError(Stage::policy, "fstat", path, errno));
  const bool owned = status.st_uid == 0 || (!system && status.st_uid == ::geteuid());
  if (!S_ISREG(status.st_mode) || !owned || (status.st_mode & 022U) != 0) {
    return fail(configError(path, "users other than its owner may write it",
                            system ? "chown root and chmod 644 it" : "make it your own and chmod 600 it"));
  }
  if (status.st_nlink > 1 && status.st_uid == ::geteuid())
    return fail(configError(path, "it has other names (hard links), by which a program could change it",
                            "make it a copy: cp " + path + " " + path + ".new && mv " + path + ".new " + path));
  std::string text;
  char buffer[4096];
  ssize_t got = 0;
  while ((got = ::read(fd.get(), buffer, sizeof(buffer))) > 0 && text.size() <= policy::kMaxDocumentBytes) {
    text.append(buffer, static_cast<std::size_t>(got));
  }
  if (got < 0) return fail(sysError(Stage::policy, "read", path, errno));
  return text;
}

Result<Owner> loadOne(const std::string& path, bool system) {
  auto text = readOwned(path, system);
  if (!text) return fail(text.error());
  if (!*text) return Owner{};
  auto document = policy::readText(**text, policy::Format::toml, path);
  if (!document) return fail(document.error());
  return decodeOwner(*document);
}

std::string userFile() {
  const std::string directory = userConfigDirectory();
  return directory.empty() ? "" : directory + "/config.toml";
}

/// Lowers values that are still those of profile `dev` to the ceilings: an owner who allows 4 GiB has not forbidden the
/// default profile on a machine with 64 GiB.
void lowerDefaults(const policy::Ceilings& most, policy::Policy& policy) {
  const policy::Policy dev = policy::builtin("dev").value_or(policy::Policy());
  const auto lower = [](auto& value, auto standard, auto ceiling) {
    if (value == standard && value > ceiling) value = ceiling;
  };
  lower(policy.resources.cpus, dev.resources.cpus, most.cpus);
  lower(policy.process.max_processes, dev.process.max_processes, most.processes);
  lower(policy.resources.open_files, dev.resources.open_files, most.open_files);
  std::uint64_t& memory = policy.resources.memory;
  if (memory == dev.resources.memory && !policy::isShare(most.memory) &&
      policy::resolveShare(memory, most.host_memory) > most.memory) {
    memory = most.memory;
  }
}

}  // namespace

std::string userConfigDirectory() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  if (config != nullptr && config[0] == '/') return std::string(config) + "/caisson";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] == '/') return std::string(home) + "/.config/caisson";
  const std::string listed = sys::homeFromPasswd(::geteuid());
  return listed.empty() ? "" : listed + "/.config/caisson";
}

policy::Ceilings Owner::ceilingsFor(const policy::Policy& policy) const {
  policy::Ceilings result = policy::ceilingsOf(policy);
  result.host_memory = sys::machineMemory();
  result.cpus = ceilings.cpus.value_or(result.cpus);
  result.memory = ceilings.memory.value_or(result.memory);
  result.swap = ceilings.swap.value_or(result.swap);
  result.processes = ceilings.processes.value_or(result.processes);
  result.open_files = ceilings.open_files.value_or(result.open_files);
  result.wall_seconds = ceilings.wall_seconds.value_or(result.wall_seconds);
  result.output = ceilings.output.value_or(result.output);
  return result;
}

Result<void> Owner::check(policy::Policy& policy) const {
  if (policy.isolation.runtime != policy::Runtime::caisson && runtimes.allowed) {
    constexpr std::string_view kNames[] = {"caisson", "runc", "crun", "runsc"};
    const std::string_view name = kNames[static_cast<std::size_t>(policy.isolation.runtime)];
    if (std::ranges::find(*runtimes.allowed, name) == runtimes.allowed->end()) {
      return fail(configError("isolation.runtime", "the owner's configuration does not allow " + std::string(name),
                              "leave out --runtime, or have runtimes.allowed changed"));
    }
  }
  const policy::Ceilings most = ceilingsFor(policy);
  if (policy.resources.ceilings == policy::CeilingSet::dev) lowerDefaults(most, policy);
  // A policy that sets no value has the default of its level, which may exceed what the owner allows.
  policy::Resources& resources = policy.resources;
  if (!resources.wall_seconds && ceilings.wall_seconds && policy::effectiveWallSeconds(policy) > *ceilings.wall_seconds)
    resources.wall_seconds = ceilings.wall_seconds;
  if (!resources.output && ceilings.output && policy::effectiveOutput(policy) > *ceilings.output)
    resources.output = ceilings.output;
  // The owner trusts these names as the host's own name servers resolve them, not as a server that a policy chooses.
  const bool resolved_elsewhere = !policy.network.dns_servers.empty() || !policy.network.upstream_proxy.empty();
  std::vector<std::string>& hosts = policy.network.private_hosts;
  for (const std::string& host : private_hosts) {
    if (!resolved_elsewhere && std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  }
  return policy::validate(policy, most);
}

policy::Ceilings noCeilings() {
  constexpr std::uint64_t kAny = policy::kMaxQuantity;
  return {.cpus = 1e9,
          .memory = kAny,
          .swap = kAny,
          .processes = kAny,
          .open_files = kAny,
          .wall_seconds = policy::kNoTimeLimit,
          .output = kAny};
}

Result<Owner> decodeOwner(const policy::Document& document) {
  Owner owner;
  owner.files.push_back(document.name);
  for (const auto& [name, table] : document.root.members) {
    constexpr std::string_view kTables[] = {"ceilings", "defaults", "filesystem", "network",
                                            "images",   "runtimes", "alerts"};
    const bool known = std::ranges::find(kTables, name) != std::end(kTables);
    if (!known || table.type != Node::Type::table) {
      return fail(configError(
          policy::place(document.name, table.line, name),
          "expected one of the tables ceilings, defaults, filesystem, network, images, runtimes and alerts"));
    }
    if (auto done = decodeSection(document, name, table, owner); !done) return fail(done.error());
  }
  return owner;
}

Result<Owner> mergeOwners(const Owner& system, const Owner& user) {
  Owner merged = user;
  const std::string file = user.files.empty() ? "" : user.files.front();
  CeilingOverrides& own = merged.ceilings;
  const CeilingOverrides& above = system.ceilings;
  Result<void> done = mergeCeiling("cpus", above.cpus, own.cpus, file);
  if (done) done = mergeCeiling("memory", above.memory, own.memory, file);
  if (done) done = mergeCeiling("swap", above.swap, own.swap, file);
  if (done) done = mergeCeiling("processes", above.processes, own.processes, file);
  if (done) done = mergeCeiling("open_files", above.open_files, own.open_files, file);
  if (done) done = mergeCeiling("wall_seconds", above.wall_seconds, own.wall_seconds, file);
  if (done) done = mergeCeiling("output", above.output, own.output, file);
  if (!done) return fail(done.error());
  if (!merged.profile) merged.profile = system.profile;
  merged.always_denied.insert(merged.always_denied.begin(), system.always_denied.begin(), system.always_denied.end());
  merged.private_hosts.insert(merged.private_hosts.begin(), system.private_hosts.begin(), system.private_hosts.end());
  ImageSettings& images = merged.images;
  if (!images.quota || (system.images.quota && *images.quota > *system.images.quota))
    images.quota = system.images.quota;
  images.mirrors.insert(images.mirrors.end(), system.images.mirrors.begin(), system.images.mirrors.end());
  images.plain_http.insert(images.plain_http.end(), system.images.plain_http.begin(), system.images.plain_http.end());
  images.signatures.insert(images.signatures.end(), system.images.signatures.begin(), system.images.signatures.end());
  // A runtime must be allowed by both files. The system's path wins.
  if (system.runtimes.allowed && merged.runtimes.allowed) {
    std::erase_if(*merged.runtimes.allowed, [&](const std::string& name) {
      return std::ranges::find(*system.runtimes.allowed, name) == system.runtimes.allowed->end();
    });
  } else if (system.runtimes.allowed) {
    merged.runtimes.allowed = system.runtimes.allowed;
  }
  merged.runtimes.paths.insert(merged.runtimes.paths.begin(), system.runtimes.paths.begin(),
                               system.runtimes.paths.end());
  // Neither file may disable the other's alerts.
  merged.alerts.insert(merged.alerts.begin(), system.alerts.begin(), system.alerts.end());
  merged.files.insert(merged.files.begin(), system.files.begin(), system.files.end());
  return merged;
}

Result<Owner> loadOwner(const std::string& system_file, const std::string& user_file) {
  auto system = loadOne(system_file, true);
  if (!system) return system;
  auto user = loadOne(user_file, false);
  if (!user) return user;
  return mergeOwners(*system, *user);
}

Result<Owner> loadOwner() { return loadOwner(std::string(kSystemFile), userFile()); }

Result<void> denyAlways(const Owner& owner, const std::string& workspace, policy::Policy& policy) {
  for (const std::string& denied : owner.always_denied) {
    const auto conflict = [&](const std::string& shown) -> std::unexpected<Error> {
      return fail(plainError(Stage::policy, "configuration", "filesystem.always_denied: " + denied,
                             "the owner's configuration denies it, and " + shown + " lies in it",
                             "use another directory, or have the configuration changed"));
    };
    for (const auto* list : {&policy.filesystem.read_only, &policy.filesystem.read_write}) {
      for (const std::string& shown : *list) {
        if (policy::isWithin(policy::normalPath(shown), denied)) return conflict(shown);
      }
    }
    if (!workspace.empty() && policy::isWithin(workspace, denied)) return conflict(workspace);
    std::string inside = denied;
    if (!workspace.empty() && policy::isWithin(denied, workspace) && policy.isolation.level == policy::Level::full) {
      inside = "/workspace" + denied.substr(workspace.size());
    }
    policy.filesystem.denied.push_back(inside);
  }
  return {};
}

Result<policy::Policy> underOwner(const policy::Policy& policy) {
  auto owner = loadOwner();
  if (!owner) return fail(owner.error());
  policy::Policy result = policy;
  if (auto checked = owner->check(result); !checked) return fail(checked.error());
  if (owner->always_denied.empty()) return result;
  const policy::Workspace& workspace = policy.filesystem.workspace;
  std::string real;
  if (workspace.mode != policy::WorkspaceMode::none) {
    const std::unique_ptr<char, decltype(&std::free)> path(
        ::realpath(workspace.path.empty() ? "." : workspace.path.c_str(), nullptr), &std::free);
    if (path != nullptr) real = path.get();
  }
  if (auto denied = denyAlways(*owner, real, result); !denied) return fail(denied.error());
  return result;
}

}  // namespace caisson::approval
