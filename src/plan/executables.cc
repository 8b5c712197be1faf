#include "plan/executables.h"

#include <algorithm>
#include <set>

#include "plan/filesystem.h"
#include "plan/system_paths.h"
#include "plan/workspace.h"
#include "policy/decode/syntax.h"

namespace caisson::plan {
namespace {

constexpr std::string_view kAllowedKey = "process.allowed_executables";
constexpr std::string_view kBlockedKey = "process.blocked_executables";

/// Directories that contain only programs: shown empty.
constexpr std::string_view kProgramDirectories[] = {"bin",       "sbin",       "games",       "libexec",
                                                    "local/bin", "local/sbin", "local/games", "local/libexec"};

std::string_view lastPart(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool isProgramDirectory(std::string_view below_usr) {
  return std::find(std::begin(kProgramDirectories), std::end(kProgramDirectories), below_usr) !=
         std::end(kProgramDirectories);
}

bool isMultiCall(std::string_view name) {
  return std::find(std::begin(kMultiCall), std::end(kMultiCall), name) != std::end(kMultiCall);
}

bool isEmptied(std::string_view path) {
  const std::string_view parent = path.substr(0, path.rfind('/'));
  if (parent == "/bin" || parent == "/sbin") return true;
  return parent.starts_with("/usr/") && isProgramDirectory(parent.substr(5));
}

bool staysExecutable(const policy::Policy& policy, const Plan& plan, const std::string& target) {
  const auto& directories = policy.process.executable_directories;
  return std::any_of(directories.begin(), directories.end(), [&](const std::string& one) {
    const std::string path = policy::normalPath(one);
    return path == target || (path == kWorkspace && target == plan.workspace_target);
  });
}

Error listError(std::string_view entry, std::string_view reason, std::string_view hint) {
  return plainError(Stage::plan, "plan", std::string(kAllowedKey) + ": " + std::string(entry), reason, hint);
}

Result<void> checkPrograms(const HostFacts& host) {
  const std::vector<Program>& programs = host.executables.allowed;
  for (const Program& program : programs) {
    if (program.too_large) {
      return fail(listError(program.entry, "more files lie below this directory than can be looked at",
                            "name the directories of programs in it"));
    }
    const std::string many =
        isMultiCall(lastPart(program.real)) ? std::string(lastPart(program.real)) : program.multi_call;
    if (!many.empty() && !isMultiCall(lastPart(program.entry))) {
      return fail(listError(program.entry, "it is " + many + " here, which is a shell and every other applet as well",
                            "list \"" + many + "\" if all of them are meant"));
    }
    if (program.script_for.empty()) continue;
    const bool interpreter_listed = std::any_of(programs.begin(), programs.end(), [&](const Program& other) {
      return other.directory ? below(program.script_for, other.real) : other.real == program.script_for;
    });
    if (!interpreter_listed) {
      return fail(listError(program.entry, "it is a script for " + program.script_for + ", which is not in the list",
                            "list the interpreter as well, if every script may run"));
    }
  }
  return {};
}

/// Whether the allowlist has this program, or may have it in a directory, for an early and clear error. The enforcement
/// is that an unlisted program is missing or not executable.
bool mayStart(const policy::Policy& policy, const HostFacts& host, const std::string& program) {
  const bool bare = program.find('/') == std::string::npos;
  for (const Program& one : host.executables.allowed) {
    if (one.real.empty()) continue;
    if (one.directory && (bare || below(program, one.real) || below(program, one.path))) return true;
    if (bare ? lastPart(one.path) == program || lastPart(one.real) == program
             : one.path == program || one.real == program || one.entry == program) {
      return true;
    }
  }
  return !policy.process.executable_directories.empty();  // it may be built there: the kernel decides
}

Error refusedProgram(std::string_view rule, const std::string& program, std::string_view why) {
  return withCode(plainError(Stage::policy, "run", rule, "\"" + program + "\" " + std::string(why),
                             "`caisson policy explain` shows the lists"),
                  ErrorCode::command_denied);
}

void makeNoexec(const policy::Policy& policy, Plan& plan) {
  const bool listed = policy.process.allowed_executables.has_value();
  for (Step& step : plan.steps) {
    if (auto* bind = std::get_if<Bind>(&step)) {
      const bool system = !bind->canonical && !bind->writable;
      if (system && !listed) continue;  // a blocklist does not change the system's programs
      bind->executable = !system && staysExecutable(policy, plan, bind->target);
    } else if (auto* tmpfs = std::get_if<MountTmpfs>(&step)) {
      tmpfs->executable = staysExecutable(policy, plan, tmpfs->target);
    } else if (auto* overlay = std::get_if<MountOverlay>(&step)) {
      overlay->executable = staysExecutable(policy, plan, overlay->target);
    }
  }
}

/// The mount of an allowed program or library. One in a home is opened by a root caller (`owned`): the sandbox's user
/// may not be able to enter that home.
Bind executableBind(const Plan& plan, const HostFacts& host, const std::string& path, SourceType type) {
  const bool in_home = std::ranges::any_of(host.homes, [&](const std::string& home) {
    return path.size() > home.size() && path.starts_with(home) && path[home.size()] == '/';
  });
  if (plan.layered_root)
    return Bind{.source = path, .target = path, .executable = true, .inside = true, .type = SourceType::file};
  return Bind{.source = path,
              .target = path,
              .executable = true,
              .canonical = true,
              .type = type,
              .owned = plan.identity.maps_files && in_home};
}

std::string summary(const policy::Policy& policy, const HostFacts& host) {
  std::string text;
  std::string absent;
  if (policy.process.allowed_executables) {
    for (const Program& program : host.executables.allowed) {
      std::string& list = program.real.empty() ? absent : text;
      list += (list.empty() ? "" : " ") + program.entry;
    }
    text = "only " + (text.empty() ? std::string("none") : text);
    if (!absent.empty()) text += "; not on this host: " + absent;
  }
  if (!host.executables.blocked.empty()) {
    text += text.empty() ? "without" : "; without";
    for (const std::string& path : host.executables.blocked) text += " " + path;
  }
  return text.empty() ? "no program of the blocklist is on this host" : text;
}

}  // namespace

Result<void> checkExecutableLists(const policy::Policy& policy, const HostFacts& host) {
  if (!hasExecutableRules(policy)) return {};
  const std::string_view key = policy.process.allowed_executables ? kAllowedKey : kBlockedKey;
  if (policy.isolation.level == policy::Level::none || policy.isolation.tier == policy::Tier::landlock) {
    return fail(plainError(Stage::plan, "plan", key,
                           "executable lists rest on mounts of the sandbox's own, which this level or tier has none of",
                           "use --level full or process"));
  }
  return checkPrograms(host);
}

Result<void> checkExecutables(const policy::Policy& policy, const HostFacts& host, const Command& command) {
  if (!hasExecutableRules(policy)) return {};
  if (auto checked = checkExecutableLists(policy, host); !checked) return checked;
  const std::string& program = command.argv.front();
  for (const std::string& entry : policy.process.blocked_executables) {
    if (program == entry || lastPart(program) == entry) return fail(refusedProgram(kBlockedKey, program, "is blocked"));
  }
  if (policy.process.allowed_executables && !mayStart(policy, host, program)) {
    return fail(refusedProgram(kAllowedKey, program, "is not among the programs that may be started"));
  }
  return {};
}

void addSystemWithoutPrograms(const HostFacts& host, Plan& plan) {
  for (const std::string_view directory : kSystemDirectories) {
    const auto found = host.system_directories.find(std::string(directory));
    if (found == host.system_directories.end()) continue;
    const std::string path(directory);
    if (!found->second.empty()) {
      plan.steps.push_back(MakeSymlink{path, found->second});
    } else if (path == "/usr" || path == "/bin" || path == "/sbin") {
      plan.steps.push_back(MakeDirectory{path});
    } else {
      plan.steps.push_back(Bind{.source = path, .target = path, .executable = false, .type = SourceType::directory});
    }
  }
  plan.steps.push_back(MakeDirectory{"/usr/local"});
  for (const auto& [name, link] : host.executables.usr) {
    const std::string path = "/usr/" + name;
    if (name == "local") continue;
    if (isProgramDirectory(name)) {
      plan.steps.push_back(MakeDirectory{path});
    } else if (!link.empty()) {
      plan.steps.push_back(MakeSymlink{path, link});
    } else {
      plan.steps.push_back(Bind{.source = path, .target = path, .executable = false, .optional = true});
    }
  }
}

void addExecutables(const policy::Policy& policy, const HostFacts& host, Plan& plan) {
  if (!hasExecutableRules(policy)) return;
  makeNoexec(policy, plan);
  std::set<std::string> shown;
  for (const Program& program : host.executables.allowed) {
    if (program.real.empty() || !shown.insert(program.real).second) continue;
    plan.steps.push_back(
        executableBind(plan, host, program.real, program.directory ? SourceType::directory : SourceType::file));
  }
  for (const std::string& library : host.executables.libraries) {
    if (shown.insert(library).second) plan.steps.push_back(executableBind(plan, host, library, SourceType::file));
  }
  for (const Program& program : host.executables.allowed) {
    if (program.real.empty() || plan.host_view || plan.layered_root || !isEmptied(program.path)) continue;
    if (shown.insert(program.path).second) plan.steps.push_back(MakeSymlink{program.path, program.real});
  }
  for (const std::string& path : host.executables.blocked) plan.steps.push_back(MaskPath{path});
  plan.layers["executables"] = summary(policy, host);
  for (const std::string& directory : policy.process.executable_directories) {
    plan.warnings.push_back("programs in " + directory + " are executable and outside the executable lists");
  }
}

}  // namespace caisson::plan
