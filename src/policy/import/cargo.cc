#include <algorithm>
#include <array>

#include "policy/decode/syntax.h"
#include "policy/import/builder.h"
#include "policy/units.h"

namespace caisson::policy {

namespace {

using NoteKind = ImportNote::Kind;
using Texts = ImportBuilder::Texts;

void readCargoNetwork(ImportBuilder& in) {
  const Texts hosts = in.reader().texts("network_allowlist");
  in.takeHosts("network_allowlist", hosts);
  in.lossy("blocked_protocols", "protocols other than HTTP and HTTPS are refused unless their ports are named");
  if (in.reader().has("port_restrictions.allowed_ports")) {
    in.setList("port_restrictions.allowed_ports", "network.allowed_ports",
               in.reader().texts("port_restrictions.allowed_ports"));
  }
  if (in.reader().has("port_restrictions.blocked_ranges")) {
    in.setList("port_restrictions.blocked_ranges", "network.denied_ports",
               in.reader().texts("port_restrictions.blocked_ranges"));
  }
}

void readExecution(ImportBuilder& in) {
  const Texts allowed = in.reader().texts("execution_policy.allowed_executables");
  for (const std::string& program : allowed) {
    const auto& list = in.policy().process.allowed_executables;
    if (!list || std::ranges::find(*list, program) == list->end())
      in.append("execution_policy.allowed_executables", "process.allowed_executables", program);
  }
  if (!allowed.empty())
    in.note(NoteKind::widening, "execution_policy.allowed_executables",
            "the linker chain is allowed as well: rustc cannot build without");
  for (const std::string& program : in.reader().texts("execution_policy.blocked_executables")) {
    const Texts& list = in.policy().process.blocked_executables;
    if (std::ranges::find(list, program) == list.end())
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
    in.note(NoteKind::widening, "sandbox_config.network.enabled", "network access through the egress filter");
    std::erase(in.policy().network.allowed_hosts, "preset:cargo");  // the profile's; the file lists its hosts
  }
  Texts more;
  for (const std::string& host : in.reader().texts("sandbox_config.network.allowlist")) {
    const Texts& known = in.policy().network.allowed_hosts;
    if (std::ranges::find(known, hostPattern(host)) == known.end()) more.push_back(host);
  }
  in.takeHosts("sandbox_config.network.allowlist", more);
  if (in.reader().has("sandbox_config.network.ports"))
    in.setList("sandbox_config.network.ports", "network.allowed_ports",
               in.reader().texts("sandbox_config.network.ports"));
  in.lossy("sandbox_config.security", "always so here: strict, audited, without shells in this profile");
}

void readBlockedPaths(ImportBuilder& in) {
  for (const std::string& path : in.reader().texts("blocked_paths")) {
    const bool programs = std::ranges::any_of(std::array{"/usr", "/bin", "/sbin"},
                                              [&](const char* top) { return isWithin(normalPath(path), top); });
    in.note(NoteKind::lossy, "blocked_paths",
            programs                ? path + " is shown read-only, with the allowed programs alone: cargo lies there"
            : path.starts_with('/') ? path + " of the host is not in the sandbox, which has a separate root"
                                    : path + " is a path of another system");
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
