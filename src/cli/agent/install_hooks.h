// `caisson agent install|uninstall`, carried out by caisson-mcp.
#pragma once

#include <span>

namespace caisson::cli {

/// `line`: the path of caisson, `agent`, `install` or `uninstall`, and the arguments. Returns the exit status.
int installHooks(std::span<char* const> line);

}  // namespace caisson::cli
