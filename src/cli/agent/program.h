// Finds the program of an agent, and what of the host it needs inside the sandbox.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace caisson::cli {

struct AgentProgram {
  std::string path;                ///< without links
  std::vector<std::string> shown;  ///< host paths to show read-only; empty if the sandbox has it anyway
};

/// Looks `name` up as a shell does. A program of npm is shown with its whole node_modules, one in a `bin` directory
/// with the directory above; in the home only the program and its parts (lib, share ...), for keys may lie beside them.
/// Never shows a home directory or one above it.
Result<AgentProgram> findProgram(const std::string& name, const std::string& project);

}  // namespace caisson::cli
