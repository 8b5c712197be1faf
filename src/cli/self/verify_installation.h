// `caisson self verify`, carried out by caisson-mcp.
#pragma once

#include <span>

namespace caisson::cli {

/// `line`: the path of caisson, `self`, `verify`, and the arguments. Returns the exit status.
int verifyInstallation(std::span<char* const> line);

}  // namespace caisson::cli
