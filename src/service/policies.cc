#include "service/policies.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "approval/owner.h"
#include "approval/what.h"
#include "base/json_document.h"
#include "base/text.h"
#include "image/reference.h"
#include "policy/decode/decode.h"
#include "policy/decode/syntax.h"
#include "policy/fields.h"
#include "policy/limits.h"
#include "policy/profiles/profiles.h"
#include "service/tokens.h"
#include "sys/home_directory.h"
#include "sys/state_home.h"

namespace caisson::service {
namespace {

/// The keys that a token's policy document may have; all others are the owner's. Each one narrows, or is bounded by a
/// ceiling, a quota or an approval.
constexpr std::string_view kOpenKeys[] = {"name",
                                          "description",
                                          "working_directory",
                                          "isolation.hostname",
                                          "isolation.level",
                                          "filesystem.denied",
                                          "filesystem.tmpfs",
                                          "filesystem.max_file_size",
                                          "filesystem.max_total_size",
                                          "filesystem.max_inodes",
                                          "filesystem.workspace_exec",
                                          "process.max_processes",
                                          "process.allow_fork",
                                          "process.allow_exec",
                                          "process.allowed_executables",
                                          "process.blocked_executables",
                                          "process.isolate_commands",
                                          "network.mode",
                                          "network.allowed_hosts",
                                          "network.denied_hosts",
                                          "network.denied_ports",
                                          "network.exposed_ports",
                                          "network.max_bytes",
                                          "network.idle_seconds",
                                          "network.max_connections",
                                          "network.dns_queries_per_minute",
                                          "resources.cpu_seconds",
                                          "resources.cpus",
                                          "resources.memory",
                                          "resources.open_files",
                                          "resources.threads",
                                          "resources.wall_seconds",
                                          "resources.output",
                                          "resources.stack",
                                          "resources.io_read_bytes_per_second",
                                          "resources.io_write_bytes_per_second",
                                          "syscalls.names",
                                          "syscalls.critical",
                                          "syscalls.high",
                                          "syscalls.high_limit",
                                          "syscalls.high_window_seconds",
                                          "environment.set",
                                          "commands.max_length",
                                          "commands.allowed_patterns",
                                          "commands.blocked_patterns",
                                          "approvals.required"};
/// Of these, the ones that a token may widen.
constexpr std::string_view kOwnChoice[] = {"resources.",
                                           "process.max_",
                                           "filesystem.max_",
                                           "filesystem.tmpfs",
                                           "environment.set",
                                           "network.exposed_ports",
                                           "filesystem.workspace.mode",
                                           "network.mode",
                                           "network.allowed_hosts",
                                           "network.max_",
                                           "network.idle_seconds",
                                           "network.dns_queries_per_minute",
                                           "isolation.level",
                                           "filesystem.workspace.path"};
/// The server holds the output of commands that are waited for.
constexpr std::uint64_t kMaxOutput = 16 * policy::kMiB;

Error forbidden(std::string_view key, std::string reason, std::string hint) {
  return Error{.stage = Stage::policy,
               .call = "sandbox",
               .object = std::string(key),
               .sys_errno = EACCES,
               .reason = std::move(reason),
               .hint = std::move(hint)};
}

Result<policy::Policy> basePolicy(const PolicyOptions& options) {
  if (options.policy_json.empty()) {
    auto named = Policy::profile(options.profile.empty() ? policy::kDefaultProfile : std::string_view(options.profile));
    if (!named) return std::unexpected(named.error());
    return named->model();
  }
  return policy::parse(options.policy_json, policy::Format::json, "policy");
}

/// The directory that a caller names, if it may.
Result<std::string> allowedWorkspace(const Principal& caller, const std::string& wanted,
                                     const std::vector<std::string>& allowed) {
  if (wanted.empty()) return wanted;
  std::error_code problem;
  const std::string path = std::filesystem::canonical(wanted, problem).string();
  // One answer for "is not there" and "may not": a token must not learn which directories exist.
  const Error refused =
      forbidden("workspace", "this directory is not open to the API", "start the server with --allow-workspace DIR");
  if (problem && !caller.owner) return std::unexpected(refused);
  if (problem)
    return std::unexpected(
        Error{.stage = Stage::usage, .call = "workspace", .object = wanted, .sys_errno = problem.value()});
  const bool open = std::any_of(allowed.begin(), allowed.end(),
                                [&](const std::string& directory) { return policy::isWithin(path, directory); });
  if (!open && !caller.owner) return std::unexpected(refused);
  const std::string home = std::filesystem::weakly_canonical(sys::stateHome(), problem).string();
  if (policy::isWithin(home, path) || policy::isWithin(path, home))
    return std::unexpected(Error{.stage = Stage::usage,
                                 .call = "workspace",
                                 .object = path,
                                 .sys_errno = EINVAL,
                                 .reason = "the directory contains caisson's own state, or lies in it",
                                 .hint = "use another directory, or start the server with another CAISSON_HOME"});
  return path;
}

Result<void> applyOptions(Policy& policy, const PolicyOptions& options, const std::string& workspace) {
  Result<void> set;
  const auto apply = [&](std::string_view key, std::string_view value) {
    if (set) set = policy.set(key, value);
  };
  if (workspace.empty()) {
    apply("filesystem.workspace.mode", "none");
  } else {
    apply("filesystem.workspace.path", workspace);
    apply("filesystem.workspace.mode", "overlay");
  }
  if (!options.image.empty()) apply("filesystem.root", options.image);
  if (!options.memory.empty()) apply("resources.memory", options.memory);
  if (!options.disk.empty()) apply("filesystem.max_total_size", options.disk);
  if (options.cpus > 0) apply("resources.cpus", std::to_string(options.cpus));
  if (!options.allowed_hosts.empty()) {
    apply("network.mode", "proxy");
    for (const std::string& host : options.allowed_hosts)
      if (set) set = policy.append("network.allowed_hosts", host);
  }
  for (const auto& [name, value] : options.environment)
    if (set) set = policy.append("environment.set", name + "=" + value);
  return set;
}

/// An error for a key of the document that is not open to tokens.
Result<void> checkDocument(const std::string& text) {
  if (text.empty()) return {};
  const auto document = parseJson(text);
  if (!document) return std::unexpected(forbidden("policy", document.error(), ""));
  for (const policy::Field& field : policy::fields()) {
    const Json* node = &*document;
    for (const std::string_view part : split(field.key, '.'))
      if (node != nullptr) node = find(*node, part);
    if (node == nullptr || std::find(std::begin(kOpenKeys), std::end(kOpenKeys), field.key) != std::end(kOpenKeys))
      continue;
    return std::unexpected(forbidden(field.key, "a token may not set this key",
                                     "leave it out, or create the sandbox as the owner on the unix socket"));
  }
  return {};
}

/// What a token may not have, whatever approvals there are.
Result<void> checkToken(const policy::Policy& model, const PolicyOptions& options) {
  for (const policy::Widening& widening : model.widenings) {
    const bool own = std::any_of(std::begin(kOwnChoice), std::end(kOwnChoice),
                                 [&](std::string_view prefix) { return widening.key.starts_with(prefix); });
    const bool image = widening.key == "filesystem.root" && model.filesystem.root == options.image;
    if (!own && !image)
      return std::unexpected(forbidden(widening.key, "a token may not widen this key of the profile",
                                       "leave it out, or create the sandbox as the owner on the unix socket"));
  }
  if (model.network.mode == policy::NetworkMode::host)
    return std::unexpected(forbidden("network.mode", "a token may not use the host's network", "use allowed_hosts"));
  if (model.resources.output.value_or(0) > kMaxOutput)
    return std::unexpected(forbidden("resources.output", "a token may have at most 16 MiB", "use mode stream"));
  return {};
}

/// Sandboxes of several tokens: what one tenant's payload leaves in a cache must not reach another tenant.
void keepNoCaches(policy::Policy& model) {
  for (policy::Tmpfs& directory : model.filesystem.tmpfs) directory.cache.clear();
}

/// An equal share of the token's quota where the request names no size: otherwise the default profile, half of the
/// host's memory, would never fit.
void applyQuotaDefaults(const Principal& caller, const PolicyOptions& options, policy::Policy& model) {
  const std::uint64_t parts = std::max<std::uint64_t>(caller.quotas.sandboxes.value_or(1), 1);
  if (options.memory.empty() && caller.quotas.memory) model.resources.memory = *caller.quotas.memory / parts;
  if (options.disk.empty() && caller.quotas.disk) model.filesystem.max_total_size = *caller.quotas.disk / parts;
  if (options.cpus <= 0 && caller.quotas.cpus) model.resources.cpus = *caller.quotas.cpus / static_cast<double>(parts);
}

}  // namespace

Result<ChosenPolicy> choosePolicy(const Principal& caller, const PolicyOptions& options,
                                  const std::vector<std::string>& allowed) {
  auto base = basePolicy(options);
  if (!base) return std::unexpected(base.error());
  if (!caller.owner && base->filesystem.workspace.mode == policy::WorkspaceMode::rw)
    return std::unexpected(
        forbidden("filesystem.workspace.mode", "a sandbox never writes to a host directory", "use overlay and commit"));
  // A directory of the host can be a root, too; through the API only an image can.
  if (!options.image.empty()) {
    if (auto reference = image::Reference::parse(options.image); !reference) return std::unexpected(reference.error());
  }
  auto workspace = allowedWorkspace(caller, options.workspace, allowed);
  if (!workspace) return std::unexpected(workspace.error());
  if (!caller.owner) {
    if (auto checked = checkDocument(options.policy_json); !checked) return std::unexpected(checked.error());
  }
  ChosenPolicy chosen{.policy = Policy(*std::move(base))};
  chosen.policy.model().filesystem.workspace.path.clear();
  if (auto applied = applyOptions(chosen.policy, options, *workspace); !applied)
    return std::unexpected(applied.error());
  policy::Policy& model = chosen.policy.model();
  model.typed.clear();
  std::string& around = model.filesystem.workspace.around;
  for (const std::string& directory : allowed) {
    const bool holds = !workspace->empty() && policy::isWithin(*workspace, directory) && !sys::holdsHome(directory);
    if (holds && (around.empty() || policy::isWithin(around, directory))) around = directory;
  }
  if (!caller.owner) {
    if (auto checked = checkToken(model, options); !checked) return std::unexpected(checked.error());
    model.filesystem.toolchains = policy::Toolchains::none;  // directories of the owner's home
    model.use = useOfToken(caller.id);                       // its caches are removed with it (`caisson token revoke`)
    chosen.needs_approval = approval::loweredProtection(model);
    for (const std::string& host : model.network.allowed_hosts) chosen.needs_approval.push_back("host:" + host);
    applyQuotaDefaults(caller, options, model);
  }
  if (options.shared) keepNoCaches(model);
  const auto owner = approval::loadOwner();
  if (!owner) return std::unexpected(owner.error());
  const double ceiling = owner->ceilingsFor(model).wall_seconds;
  if (options.command_timeout > ceiling)
    return std::unexpected(
        Error{.stage = Stage::limits,
              .call = "sandbox",
              .object = "command_timeout",
              .reason = "above the ceiling of " + std::to_string(static_cast<long>(ceiling)) + " seconds",
              .hint = "ask for less; the owner can raise ceilings.wall_seconds in config.toml"});
  chosen.command_timeout =
      options.command_timeout > 0
          ? options.command_timeout
          : std::min({policy::effectiveWallSeconds(model), policy::defaultWallSeconds(policy::Level::full), ceiling});
  model.resources.wall_seconds = ceiling;  // of single commands; the default is in the sandbox's record
  if (auto checked = owner->check(model); !checked) return std::unexpected(checked.error());
  return chosen;
}

}  // namespace caisson::service
