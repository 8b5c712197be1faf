#include "policy/rules/shells.h"

#include <algorithm>

#include "policy/decode/syntax.h"

namespace caisson::policy {
namespace {

constexpr std::string_view kShells[] = {"sh",   "bash", "dash", "rbash", "ash",     "zsh",   "ksh",
                                        "mksh", "fish", "csh",  "tcsh",  "busybox", "toybox"};

constexpr std::string_view kProgramDirectories[] = {"/bin",      "/sbin",          "/usr/bin",
                                                    "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"};

/// Whether an entry of an allowlist (a name, a path, or a directory with everything below it) is a shell or has a usual
/// program directory in it.
bool letsShellStart(std::string_view entry) {
  if (isShellName(entry)) return true;
  return entry.starts_with('/') && std::ranges::any_of(kProgramDirectories, [&](std::string_view directory) {
           return isWithin(directory, normalPath(entry));
         });
}

}  // namespace

std::span<const std::string_view> shellNames() { return kShells; }

bool isShellName(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);
  return std::ranges::find(kShells, name) != std::end(kShells);
}

bool canStartShell(const Policy& policy) {
  const Process& process = policy.process;
  if (policy.isolation.level == Level::none || policy.isolation.tier == Tier::landlock) return true;
  if (std::ranges::count(policy.isolation.may_be_missing, OptionalLayer::landlock) > 0) return true;
  if (!process.allow_exec) return false;
  if (!process.executable_directories.empty()) return true;
  if (process.allowed_executables) return std::ranges::any_of(*process.allowed_executables, letsShellStart);
  return !std::ranges::all_of(kShells, [&](std::string_view shell) {
    return std::ranges::find(process.blocked_executables, shell) != process.blocked_executables.end();
  });
}

}  // namespace caisson::policy
