// The options of `caisson mcp`, which `caisson` parses and `caisson-mcp` carries out.
#pragma once

#include "cli/options.h"

namespace caisson::cli {

inline constexpr Option kMcpHttp{
    .name = "http",
    .value = "ADDR",
    .help =
        "Serve Streamable HTTP at PORT or HOST:PORT instead of standard input and output. Only "
        "loopback addresses; clients need the token that is named at the start."};
inline constexpr Option kMcpWithoutToken{.name = "http-without-token",
                                         .help = "Let every program of this machine in that can reach the port."};
inline constexpr Option kMcpWorkspace{
    .name = "workspace",
    .value = "DIR",
    .help =
        "A directory that sandboxes may show; the first is the default. Without it: the "
        "project the host names (CLAUDE_PROJECT_DIR), or the current directory unless that "
        "is a home.",
    .repeatable = true};
inline constexpr Option kMcpAllowCommit{
    .name = "allow-commit",
    .help =
        "Let the model write its changes to the real files without asking, except what "
        "this machine would execute later."};
inline constexpr Option kMcpYes{.name = "yes", .help = "With install: write the entry without asking."};

}  // namespace caisson::cli
