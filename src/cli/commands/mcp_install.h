// `caisson mcp install HOST`.
#pragma once

#include <string>

#include "cli/options.h"

namespace caisson::cli {

/// Shows the change to an agent host's configuration, asks unless --yes, and writes it: the agent host then starts
/// `caisson mcp` with the flags of `arguments`. `program` is the path of caisson. The entry in a project's file names
/// neither that nor any other path of this machine. Returns the exit status.
int installInHost(const Arguments& arguments, const std::string& program);

}  // namespace caisson::cli
