// The options of `caisson mcp`, which `caisson` parses and `caisson-mcp` carries out.
#pragma once

#include "cli/options.h"
#include "cli/session_options.h"

namespace caisson::cli {

inline constexpr Option kMcpHttp{
    .name = "http",
    .value = "ADDR",
    .help =
        "Serve Streamable HTTP at PORT or HOST:PORT instead of standard input and output. Only "
        "loopback addresses; clients need the bearer token; the server logs the path of its file at startup."};
inline constexpr Option kMcpWithoutToken{.name = "http-without-token",
                                         .help = "Accept clients without a token (any local program)."};
inline constexpr Option kMcpWorkspace{
    .name = "workspace",
    .value = "DIR[:MODE]",
    .help =
        "A directory that sandboxes may show, as an overlay; the first is the default, and others are refused. MODE "
        "`ro`: nothing is committed to it; `none`: sandboxes start empty. Without this flag: the project the host "
        "names (CLAUDE_PROJECT_DIR), or the current directory unless that is a home; others need an approval.",
    .repeatable = true};
inline constexpr Option kMcpTools{
    .name = "tools",
    .value = "LIST",
    .help = "Offer only these tools, separated by commas, and those they need: sandbox_execute, sandbox_read_file ..."};
inline constexpr Option kMcpReadOnly{
    .name = "read-only",
    .help =
        "Never write to the user's files: no tool that commits, writes, edits or restores. Commands still run, and "
        "what they write ends with their sandbox."};
inline constexpr Option kMcpMaxSandboxes{
    .name = "max-sandboxes", .value = "N", .help = "At most so many sandboxes at a time (default: 128)."};
inline constexpr Option kMcpTtl{
    .name = "ttl", .value = "DUR", .help = "The longest time to live that a model may ask for (default: 7d)."};
inline constexpr Option kMcpTrust{
    .name = "trust",
    .help =
        "Use the project's caisson.toml without the consent of `caisson policy trust`, for CI. It is recorded in the "
        "audit log."};
inline constexpr Option kMcpAllowCommit{
    .name = "allow-commit",
    .help =
        "Let the model write its changes to the real files without asking, except what "
        "this machine would execute later."};
inline constexpr Option kMcpYes{.name = "yes", .help = "With install: write the entry without asking."};
inline constexpr Option kMcpScope{
    .name = "scope",
    .value = "project|user",
    .help =
        "With install: the configuration of this project, whose entry names no path of this machine, or of the user. "
        "Default: the project's for claude-code and vscode."};

/// The file flags of `run`, but with any number of workspaces.
constexpr auto mcpFileOptions() {
  auto options = kFileOptions;
  for (Option& option : options)
    if (option.name == kMcpWorkspace.name) option = kMcpWorkspace;
  return options;
}
inline constexpr auto kMcpFileOptions = mcpFileOptions();

}  // namespace caisson::cli
