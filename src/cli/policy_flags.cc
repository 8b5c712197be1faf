#include "cli/policy_flags.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>

#include "approval/owner.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/policy_options.h"
#include "policy/decode/syntax.h"
#include "policy/model.h"
#include "policy/profiles/profiles.h"
#include "policy/rules/denied_names.h"
#include "session/session_policy.h"

namespace caisson::cli {
namespace {

const Flag* findFlag(const Option& option) {
  for (const auto flags : kAllFlags)
    for (const Flag& flag : flags)
      if (flag.option.name == option.name) return &flag;
  return nullptr;
}

/// The library names the policy key; the user typed a flag.
Error blame(Error error, const Given& given) {
  const std::string flag = "--" + std::string(given.option->name) + " " + std::string(given.value);
  if (error.sys_errno != 0) {
    error.hint = error.hint.empty() ? "check " + flag : error.hint;
    return error;
  }
  std::string reason = error.reason.empty() ? error.call : error.reason;
  const bool quoted = reason.find("\"" + std::string(given.value) + "\"") != std::string::npos;
  const std::string subject = quoted ? "--" + std::string(given.option->name) : flag;  // the value is shown once
  return plainError(Stage::usage, error.object, subject, reason, error.hint);
}

/// Policies hold absolute host paths. A path with `..` is resolved on disk, since removing `..` textually is wrong
/// behind a link.
Result<std::string> absolutePath(std::string_view path) {
  // A shell does not expand `~` in --ro=~/x.
  std::string expanded;
  if (path == "~" || path.starts_with("~/")) {
    expanded = policy::expandHome(path).value_or(std::string(path));
    path = expanded;
  }
  const bool climbs = ("/" + std::string(path) + "/").find("/../") != std::string::npos;
  if (!climbs && path.starts_with('/')) return std::string(path);
  using CString = std::unique_ptr<char, decltype(&std::free)>;
  if (climbs) {
    const CString real(::realpath(std::string(path).c_str(), nullptr), &std::free);
    if (real == nullptr) return fail(sysError(Stage::usage, "realpath", path, errno));
    return std::string(real.get());
  }
  const CString here(::getcwd(nullptr, 0), &std::free);
  if (here == nullptr) return fail(sysError(Stage::usage, "getcwd", ".", errno, "go to a directory that exists"));
  while (path.starts_with("./")) path.remove_prefix(2);
  if (path == ".") path = {};
  while (path.ends_with('/')) path.remove_suffix(1);
  std::string absolute(here.get());
  if (path.empty()) return absolute;
  if (absolute != "/") absolute += '/';
  return absolute += path;
}

/// Relative inside paths are relative to /workspace, the payload's working directory.
std::string insidePath(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  return path.starts_with('/') ? std::string(path) : "/workspace/" + std::string(path);
}

Result<void> applyWorkspace(Policy& policy, std::string_view value) {
  const auto parts = splitWorkspace(value);
  if (!parts) return fail(parts.error());
  // DIR:none shows no directory, so only the mode matters.
  if (!parts->directory.empty() && parts->mode != "none") {
    const auto path = absolutePath(parts->directory);
    if (!path) return fail(path.error());
    if (auto done = policy.set("filesystem.workspace.path", *path); !done) return done;
  }
  if (parts->mode.empty()) return {};
  // The landlock tier replaces the overlay of a profile, but not one that the user requests.
  if (parts->mode == "overlay") policy.model().typed.emplace_back("filesystem.workspace.mode");
  return policy.set("filesystem.workspace.mode", parts->mode);
}

Result<void> applyEnvironment(Policy& policy, std::string_view key, std::string_view value) {
  const auto variable = readVariable(value);
  if (!variable) return fail(variable.error());
  return *variable ? policy.append(key, (*variable)->name + "=" + (*variable)->value) : Result<void>{};
}

/// What a person types is that person's decision: ceilings do not bind it.
Result<void> setTyped(Policy& policy, std::string_view key, std::string_view value) {
  auto done = policy.set(key, value);
  if (done) policy.model().typed.emplace_back(key);
  return done;
}

/// Sets the total disk limit, and keeps changes on disk where possible: in memory they would hit the memory limit
/// first. Directories on disk are no longer limited below the total.
Result<void> applyDisk(Policy& policy, std::string_view key, std::string_view value) {
  if (auto done = setTyped(policy, key, value); !done) return done;
  policy::Filesystem& filesystem = policy.model().filesystem;
  if (filesystem.overlay_store != policy::OverlayStore::disk) {
    filesystem.overlay_store = policy::OverlayStore::prefer_disk;
  }
  for (policy::Tmpfs& directory : filesystem.tmpfs) {
    if (directory.store == policy::DirectoryStore::memory) continue;
    directory.size = std::max(directory.size, *filesystem.max_total_size);
  }
  return {};
}

/// A directory begins with / or ./ or ~/; all else is the name of an image.
Result<void> applyImage(Policy& policy, std::string_view key, std::string_view value) {
  const bool directory = value.starts_with('/') || value.starts_with('.') || value.starts_with('~');
  if (!directory) return policy.set(key, value);
  const auto path = absolutePath(value);
  return path ? policy.set(key, *path) : fail(path.error());
}

Result<void> appendEach(Policy& policy, std::string_view key, std::string_view list) {
  for (const std::string_view element : split(list, ',')) {
    if (auto done = policy.append(key, element); !done) return done;
  }
  return {};
}

Result<void> applyFlag(Policy& policy, const Flag& flag, std::string_view value) {
  // An unset shell variable becomes an empty value, which must not mean the current directory, writable.
  if (value.empty() && flag.apply != Apply::set_true) {
    return fail(
        plainError(Stage::usage, "caisson", flag.key, "the value is empty", "give a value, or leave the option out"));
  }
  switch (flag.apply) {
    case Apply::base:
    case Apply::approval: return {};
    case Apply::set: return setTyped(policy, flag.key, value);
    case Apply::time_limit: return setTyped(policy, flag.key, value == "0" ? "none" : value);
    case Apply::set_true: return policy.set(flag.key, "true");
    case Apply::append: return policy.append(flag.key, value);
    case Apply::append_list: return appendEach(policy, flag.key, value);
    case Apply::append_path: {
      const auto path = absolutePath(value);
      return path ? policy.append(flag.key, *path) : fail(path.error());
    }
    case Apply::append_inside: return policy.append(flag.key, insidePath(value));
    case Apply::workspace: return applyWorkspace(policy, value);
    case Apply::image: return applyImage(policy, flag.key, value);
    case Apply::disk: return applyDisk(policy, flag.key, value);
    case Apply::environment: return applyEnvironment(policy, flag.key, value);
  }
  return {};
}

Result<Policy> defaultPolicy() {
  const auto owner = approval::loadOwner();
  if (!owner) return fail(owner.error());
  auto policy = Policy::profile(owner->profile.value_or(std::string(policy::kDefaultProfile)));
  if (policy || !owner->profile) return policy;
  return fail(plainError(Stage::policy, "configuration", owner->files.back() + ": defaults.profile",
                         "there is no built-in profile \"" + *owner->profile + "\"", policy.error().hint));
}

Result<BasedPolicy> based(Result<Policy> policy, PolicyBase base) {
  if (!policy) return fail(policy.error());
  return BasedPolicy{*std::move(policy), base, {}};
}

Result<BasedPolicy> basePolicy(const Arguments& arguments, const ProjectLookup& lookup) {
  const auto file = arguments.value(kPolicyFile);
  const auto profile = arguments.value(kProfile);
  if (file && profile)
    return fail(usageError("--profile " + std::string(*profile),
                           "given together with --policy; one of them is the base",
                           "let the file say `extends = \"" + std::string(*profile) + "\"`"));
  if (file) return based(Policy::load(std::string(*file)), PolicyBase::file);
  if (profile) {
    auto policy = Policy::profile(*profile);
    if (!policy) return fail(blame(policy.error(), {&kProfile, *profile}));
    // The profile's hosts are for the egress filter, which the host's network does not pass.
    const auto host_network = [](const Given& given) { return given.option->name == "net" && given.value == "host"; };
    if (std::ranges::any_of(arguments.given, host_network)) policy->model().network.allowed_hosts.clear();
    return based(std::move(policy), PolicyBase::profile);
  }
  auto project = projectPolicy(lookup);
  if (!project) return fail(project.error());
  if (*project) return BasedPolicy{std::move((*project)->policy), PolicyBase::project, (*project)->directory};
  return based(defaultPolicy(), PolicyBase::standard);
}

/// Rejects flags that have no effect with the policy's network mode.
Result<void> refuseUnserved(const policy::Policy& policy, const Arguments& arguments) {
  switch (policy.network.mode) {
    case policy::NetworkMode::none: break;
    case policy::NetworkMode::proxy: return {};
    case policy::NetworkMode::host: break;
  }
  for (const Option& option : {kAllowHost, kAllowPort})
    if (arguments.has(option))
      return fail(usageError(spelling(option), "only network mode `proxy` has a list of hosts and ports",
                             "add --net proxy, or leave it out"));
  return {};
}

/// Adds what the project's file denies if another directory than its own is the workspace, for example one below it.
Result<void> denyAsInProject(const std::vector<std::string>& denied, const std::string& directory, Policy& policy) {
  const policy::Workspace& workspace = policy.model().filesystem.workspace;
  std::error_code problem;
  const auto real = std::filesystem::canonical(workspace.path.empty() ? "." : workspace.path, problem);
  if (problem || workspace.mode == policy::WorkspaceMode::none) return {};  // what there is none of shows nothing
  policy::DeniedElsewhere elsewhere = policy::deniedElsewhere(denied, directory, real.string());
  if (!elsewhere.whole.empty()) {
    return fail(plainError(Stage::policy, "policy", directory + "/caisson.toml",
                           "it denies " + elsewhere.whole + ", and the workspace " + real.string() + " lies in it",
                           "use another directory"));
  }
  auto& entries = policy.model().filesystem.denied;
  std::ranges::move(elsewhere.entries, std::back_inserter(entries));
  return {};
}

}  // namespace

Result<WorkspaceArgument> splitWorkspace(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  // A colon before a slash is part of a directory's name.
  if (colon == std::string_view::npos || text.find('/', colon) != std::string_view::npos)
    return WorkspaceArgument{text, {}};
  const std::string_view mode = text.substr(colon + 1);
  for (const std::string_view known : {"none", "ro", "rw", "overlay"})
    if (mode == known) return WorkspaceArgument{text.substr(0, colon), mode};
  return fail(
      usageError("", "expected none, ro, rw or overlay after the colon",
                 "a directory whose name holds a colon is written with its mode: " + std::string(text) + ":overlay"));
}

Result<std::optional<Variable>> readVariable(std::string_view text) {
  const std::size_t equals = text.find('=');
  Variable variable{std::string(text.substr(0, equals)), {}};
  const bool usable = !variable.name.empty() &&
                      std::ranges::all_of(variable.name, [](unsigned char c) { return c > ' ' && c != 0x7F; });
  if (!usable) {
    return fail(usageError("--env " + std::string(text), "the name of a variable has no blanks and is not empty",
                           "--env NAME=VALUE, or --env NAME to pass on the caller's value"));
  }
  if (equals != std::string_view::npos) {
    variable.value = text.substr(equals + 1);
    return variable;
  }
  const char* callers = std::getenv(variable.name.c_str());
  if (callers == nullptr) {
    printNotice("--env " + variable.name + ": there is no such variable here, so none is passed");
    return std::nullopt;
  }
  variable.value = callers;
  return variable;
}

Error attributeToFlag(Error error, const Arguments& arguments) {
  if (error.stage != Stage::policy) return error;
  for (const Given& given : arguments.given) {
    const Flag* flag = findFlag(*given.option);
    if (flag != nullptr && !flag->key.empty() && error.object.starts_with(flag->key))
      return blame(std::move(error), given);
  }
  return error;
}

Result<void> checkForSession(const Arguments& arguments, const policy::Policy& policy) {
  if (auto checked = session::checkPolicy(policy); !checked) return fail(attributeToFlag(checked.error(), arguments));
  return {};
}

Result<Policy> withFlags(Policy base, const Arguments& arguments) {
  for (const Given& given : arguments.given) {
    const Flag* flag = findFlag(*given.option);
    if (flag == nullptr) continue;  // an option of the verb
    if (auto done = applyFlag(base, *flag, given.value); !done) return fail(blame(done.error(), given));
  }
  if (auto served = refuseUnserved(base.model(), arguments); !served) return fail(served.error());
  return base;
}

std::vector<std::string> keysOfFlags(const Arguments& arguments) {
  std::vector<std::string> keys;
  for (const Given& given : arguments.given) {
    const Flag* flag = findFlag(*given.option);
    if (flag != nullptr && !flag->key.empty()) keys.emplace_back(flag->key);
  }
  return keys;
}

Result<BasedPolicy> basedPolicyFrom(const Arguments& arguments, const ProjectLookup& project) {
  auto base = basePolicy(arguments, project);
  if (!base) return base;
  const std::vector<std::string> denied = base->policy.model().filesystem.denied;
  auto policy = withFlags(std::move(base->policy), arguments);
  if (!policy) return fail(policy.error());
  if (base->base == PolicyBase::project) {
    if (auto added = denyAsInProject(denied, base->directory, *policy); !added) return fail(added.error());
  }
  return BasedPolicy{*std::move(policy), base->base, base->directory};
}

Result<Policy> policyFrom(const Arguments& arguments) {
  auto policy = basedPolicyFrom(arguments, {});
  if (!policy) return fail(policy.error());
  return std::move(policy->policy);
}

}  // namespace caisson::cli
