#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "policy/decode/syntax.h"
#include "policy/import/builder.h"
#include "policy/rules/denied_names.h"
#include "policy/units.h"

namespace caisson::policy {

namespace {

using NoteKind = ImportNote::Kind;
using Texts = ImportBuilder::Texts;

/// The ports from `text`, which may be a range; nothing if it is none.
std::optional<std::pair<int, int>> portRange(const std::string& text) {
  if (findFlaw(Syntax::port, text)) return std::nullopt;
  const std::size_t dash = text.find('-');
  return std::pair{std::stoi(text), std::stoi(dash == std::string::npos ? text : text.substr(dash + 1))};
}

/// Ports, as ranges without overlaps: the first and the last port of each.
using PortRanges = std::map<int, int>;

PortRanges joinedRanges(const Texts& ports) {
  std::vector<std::pair<int, int>> ranges;
  for (const std::string& text : ports)
    if (const auto range = portRange(text)) ranges.push_back(*range);
  std::ranges::sort(ranges);
  PortRanges joined;
  for (const auto& [first, last] : ranges) {
    if (joined.empty() || joined.rbegin()->second + 1 < first) {
      joined.emplace_hint(joined.end(), first, last);
    } else {
      joined.rbegin()->second = std::max(joined.rbegin()->second, last);
    }
  }
  return joined;
}

/// Moves the ports from `first` to `last` out of `ranges`, as entries of a policy.
void takeRange(PortRanges& ranges, int first, int last, Texts& taken) {
  auto range = ranges.upper_bound(first);
  if (range != ranges.begin() && std::prev(range)->second >= first) --range;
  while (range != ranges.end() && range->first <= last) {
    const auto [begin, end] = *range;
    range = ranges.erase(range);
    const int from = std::max(begin, first), to = std::min(end, last);
    taken.push_back(std::to_string(from) + (from == to ? "" : "-" + std::to_string(to)));
    if (begin < from) ranges.emplace(begin, from - 1);
    if (end > to) ranges.emplace(to + 1, end);
  }
}

/// The ports that both lists allow. Invalid entries stay, for an error about them. Each port is taken once, so the time
/// does not depend on the product of both lengths.
Texts portsOfBoth(const Texts& one, const Texts& other) {
  PortRanges allowed = joinedRanges(other);
  Texts both;
  for (const std::string& text : one) {
    if (const auto range = portRange(text)) {
      takeRange(allowed, range->first, range->second, both);
    } else {
      both.push_back(text);
    }
  }
  for (const std::string& text : other)
    if (!portRange(text)) both.push_back(text);
  return both;
}

/// Two keys list ports: if both do, only those in both lists are allowed.
void readPorts(ImportBuilder& in) {
  constexpr std::string_view kRestrictions = "port_restrictions.allowed_ports",
                             kConfig = "sandbox_config.network.ports";
  const bool restricted = in.reader().has(kRestrictions), configured = in.reader().has(kConfig);
  const Texts ports = in.reader().texts(kRestrictions), others = in.reader().texts(kConfig);
  if (!restricted && !configured) return;
  const std::string_view key = restricted ? kRestrictions : kConfig;
  const Texts allowed = restricted && configured ? portsOfBoth(ports, others) : restricted ? ports : others;
  in.setList(key, "network.allowed_ports", allowed);
  if (restricted && configured && (allowed != ports || allowed != others))
    in.note(NoteKind::lossy, key, "only ports that " + std::string(kConfig) + " lists as well are allowed");
}

void readCargoNetwork(ImportBuilder& in) {
  const Texts hosts = in.reader().texts("network_allowlist");
  in.takeHosts("network_allowlist", hosts);
  in.lossy("blocked_protocols", "protocols other than HTTP and HTTPS are refused unless their ports are named");
  readPorts(in);
  if (in.reader().has("port_restrictions.blocked_ranges")) {
    in.setList("port_restrictions.blocked_ranges", "network.denied_ports",
               in.reader().texts("port_restrictions.blocked_ranges"));
  }
}

void readExecution(ImportBuilder& in) {
  const Texts allowed = in.reader().texts("execution_policy.allowed_executables");
  const Texts before = in.policy().process.allowed_executables.value_or(Texts{});
  std::set<std::string> known(before.begin(), before.end());
  for (const std::string& program : allowed) {
    if (known.insert(program).second)
      in.append("execution_policy.allowed_executables", "process.allowed_executables", program);
  }
  const std::set<std::string> named(allowed.begin(), allowed.end());
  Texts more;
  std::ranges::copy_if(before, std::back_inserter(more), [&](const auto& program) { return !named.contains(program); });
  if (!allowed.empty() && !more.empty())
    in.note(NoteKind::widening, "execution_policy.allowed_executables",
            "programs of the profile are allowed as well: " + joined(more));
  const Texts& own = in.policy().process.blocked_executables;
  std::set<std::string> blocked(own.begin(), own.end());
  for (const std::string& program : in.reader().texts("execution_policy.blocked_executables")) {
    if (blocked.insert(program).second)
      in.append("execution_policy.blocked_executables", "process.blocked_executables", program);
  }
  const Node* rules = in.reader().take("execution_policy.command_validation");
  if (rules == nullptr) return;
  constexpr std::string_view kShape = "expected a list of rules, each with a text \"regex\"";
  if (rules->type != Node::Type::list) return in.refuse("execution_policy.command_validation", std::string(kShape));
  Texts patterns;
  for (const Node& rule : rules->items) {
    const Node* regex = rule.type == Node::Type::table ? rule.find("regex") : nullptr;
    if (regex == nullptr || regex->type != Node::Type::text)
      return in.refuse("execution_policy.command_validation", std::string(kShape));
    for (const auto& [key, value] : rule.members) {
      if (key != "regex" && key != "description")
        return in.refuse("execution_policy.command_validation", "a rule has no such key: " + key);
    }
    patterns.push_back(regex->text);
  }
  in.setList("execution_policy.command_validation", "commands.allowed_patterns", patterns);
}

/// Imports sizes of directories that `size_limits` does not name.
void readConfigSizes(ImportBuilder& in) {
  struct Size {
    std::string_view key, stated, path;
  };
  constexpr Size kSizes[] = {{"target_size_mb", "size_limits.target_directory", "/target"},
                             {"log_size_mb", "size_limits.log_files", "/logs"},
                             {"temp_size_mb", "size_limits.temp_files", "/tmp"}};
  for (const Size& size : kSizes) {
    const std::string from = "sandbox_config.file_system." + std::string(size.key);
    const auto count = in.reader().integer(from);
    if (!count || in.reader().has(size.stated)) continue;
    if (*count <= 0 || static_cast<std::uint64_t>(*count) > kMaxQuantity / kMiB) {
      in.refuse(from, "expected a number of megabytes");
      continue;
    }
    in.resizeTmpfs(from, size.path, static_cast<std::uint64_t>(*count) * kMiB);
  }
  in.lossy("sandbox_config.file_system.workspace_size_mb", "the workspace is read-only and needs no limit");
}

/// Imports sandbox_config. Its resource limits become ceilings, which only an owner can set.
void readConfig(ImportBuilder& in) {
  const auto ceiling = [&](std::string_view key, std::string_view ours, std::uint64_t factor) {
    const std::string path = "sandbox_config.resource_limits." + std::string(key);
    const auto value = in.reader().integer(path);
    if (!value) return;
    const auto count = static_cast<std::uint64_t>(*value);
    if (count > kMaxQuantity / factor) return in.refuse(path, "too large");
    in.ceiling(std::string(ours) + " = " + std::to_string(count * factor));
  };
  ceiling("memory_mb", "memory", kMiB);
  ceiling("wall_seconds", "wall_seconds", 1);
  ceiling("processes", "processes", 1);
  ceiling("files", "open_files", 1);
  in.lossy("sandbox_config.resource_limits.cpu_seconds", "there is no ceiling of CPU time beside that of time");
  in.lossy("sandbox_config.resource_limits.threads", "threads have the ceiling of processes");
  readConfigSizes(in);
  if (const auto enabled = in.reader().boolean("sandbox_config.network.enabled"); enabled && *enabled) {
    in.set("sandbox_config.network.enabled", "network.mode", "proxy");
    in.widen("sandbox_config.network.enabled", "network.mode", "network access through the egress filter");
    std::erase(in.policy().network.allowed_hosts, "preset:cargo");  // the profile's; the file lists its hosts
  }
  Texts more;
  const Texts& hosts = in.policy().network.allowed_hosts;
  std::set<std::string> known(hosts.begin(), hosts.end());
  for (const std::string& host : in.reader().texts("sandbox_config.network.allowlist")) {
    if (known.insert(hostPattern(host)).second) more.push_back(host);
  }
  in.takeHosts("sandbox_config.network.allowlist", more);
  constexpr std::string_view kSecurityStays = "always so here: strict, audited, without shells in this profile";
  const Node* security = in.reader().take("sandbox_config.security");
  const bool open = security != nullptr && std::ranges::any_of(security->members, [](const auto& member) {
                      return member.second.type == Node::Type::boolean && !member.second.boolean;
                    });
  if (security != nullptr)
    in.note(open ? NoteKind::unsafe : NoteKind::lossy, "sandbox_config.security", std::string(kSecurityStays));
}

/// Directories that the sandbox makes itself: a path in them is not the host's.
bool isOfSandbox(const std::string& path) {
  return path == "/tmp" || std::ranges::any_of(std::array{"/etc", "/proc", "/sys", "/dev", "/run", "/var", "/boot"},
                                               [&](const char* top) { return isWithin(path, top); });
}

/// Denies what an absolute path means in the workspace, wherever that is. Whether it means the whole workspace.
bool denyBlockedPath(ImportBuilder& in, const std::string& named, const std::string& path) {
  constexpr std::string_view kKey = "blocked_paths";
  if (deniesPath(path, "/workspace") || (!in.workspace().empty() && deniesPath(path, in.workspace()))) return true;
  const WorkspacePart part = partOfWorkspace(path, in.workspace());
  for (const std::string& below : part.below) in.append(kKey, "filesystem.denied", "/workspace/" + below);
  const bool programs = std::ranges::any_of(std::array{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"},
                                            [&](const char* top) { return isWithin(path, top); });
  const bool homes = path == "/" || path == "/home" || path == "/root" ||
                     (path.starts_with("/home/") && path.find('/', std::size("/home/") - 1) == std::string::npos);
  if (programs) {
    in.note(NoteKind::lossy, kKey, named + " is shown read-only, with the allowed programs alone: cargo lies there");
  } else if (part.whole || homes) {
    in.note(NoteKind::lossy, kKey, named + " of the host is not in the sandbox, except for the workspace");
  } else if (hasWildcards(path) || isOfSandbox(path)) {
    if (part.below.empty())
      in.note(NoteKind::lossy, kKey, named + " of the host is not in the sandbox, which has a separate root");
  } else if (!isWithin(path, "/workspace")) {
    in.append(kKey, "filesystem.denied", path);  // it may lie in the workspace of a run elsewhere
  }
  return false;
}

void readBlockedPaths(ImportBuilder& in) {
  for (const std::string& path : in.reader().texts("blocked_paths")) {
    if (isLongerThanAPath(path)) return in.refuse("blocked_paths", "a path is longer than 4095 bytes");
    const std::string plain = withoutAllBelow(expandHome(path).value_or(path));
    const bool other_system = path.find('\\') != std::string::npos || (path.size() > 1 && path[1] == ':');
    if (other_system || plain.empty()) {
      in.note(NoteKind::lossy, "blocked_paths", path + " is a path of another system");
    } else if (!plain.starts_with('/') && plain != ".") {
      in.append("blocked_paths", "filesystem.denied", normalPath("/workspace/" + plain));
    } else if (plain == "." || denyBlockedPath(in, path, normalPath(plain))) {
      in.note(NoteKind::unsafe, "blocked_paths",
              path + ": the workspace cannot be hidden; filesystem.workspace.mode is \"none\"");
      in.set("blocked_paths", "filesystem.workspace.mode", "none");
    }
  }
}

}  // namespace

void importCargo(ImportBuilder& in) {
  in.lossy("directory_permissions",
           "always so in this profile: workspace read-only, cargo-home and target writable, logs write-only, metadata "
           "read-only for the payload");
  if (const auto bytes = in.reader().size("size_limits.target_directory"))
    in.resizeTmpfs("size_limits.target_directory", "/target", *bytes);
  if (const auto bytes = in.reader().size("size_limits.log_files"))
    in.resizeTmpfs("size_limits.log_files", "/logs", *bytes);
  if (const auto bytes = in.reader().size("size_limits.temp_files"))
    in.resizeTmpfs("size_limits.temp_files", "/tmp", *bytes);
  in.lossy("size_limits.total_workspace", "the workspace is read-only and needs no limit");
  if (const auto seconds = in.reader().seconds("process_limits.cpu_time"))
    in.set("process_limits.cpu_time", "resources.cpu_seconds", formatNumber(*seconds));
  if (const auto seconds = in.reader().seconds("process_limits.wall_time"))
    in.set("process_limits.wall_time", "resources.wall_seconds", formatNumber(*seconds));
  in.takeMemory("process_limits.memory");
  if (const auto processes = in.reader().integer("process_limits.processes"))
    in.set("process_limits.processes", "process.max_processes", std::to_string(*processes));
  if (const auto threads = in.reader().integer("process_limits.threads"))
    in.set("process_limits.threads", "resources.threads", std::to_string(*threads));
  if (const auto files = in.reader().integer("process_limits.file_descriptors"))
    in.set("process_limits.file_descriptors", "resources.open_files", std::to_string(*files));
  readCargoNetwork(in);
  readBlockedPaths(in);
  readExecution(in);
  readConfig(in);
}

}  // namespace caisson::policy
