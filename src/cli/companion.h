// Programs that `caisson` becomes: servers, which it does not contain, so that a launch stays fast.
#pragma once

#include <string>
#include <string_view>

#include "cli/options.h"
#include "cli/verb.h"

namespace caisson::cli {

/// Replaces this process by the program `name` (caisson-mcp, caisson-server) with the same command line, argv[0] being
/// the path of caisson. Returns the exit status if that fails.
int becomeCompanion(std::string_view name, const Verb& verb, const Arguments& arguments);

/// Replaces this process; returns only if that fails. `hint`: what to do then.
int becomeProgram(const std::string& program, const std::vector<std::string>& line, std::string_view hint);

/// An error if `program` is in the cache of npx, uvx or `pipx run`: a configuration must not name what they may remove.
Result<void> checkNotInCache(std::string_view program);

/// The path of caisson, also in caisson-commands, which it became; empty if /proc is not mounted.
std::string ownProgram();
/// The directory of ownProgram().
std::string ownDirectory();
/// The path of a program beside caisson, as it is built, or in libexec, as it is installed.
std::string companionProgram(std::string_view name);

}  // namespace caisson::cli
