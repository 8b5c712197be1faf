// `caisson mcp`: serves sandboxes to agent hosts. The server is the program caisson-mcp; this file parses its options
// and starts it.
#include <string>
#include <vector>

#include "cli/commands/mcp_options.h"
#include "cli/companion.h"
#include "cli/output.h"
#include "cli/verb.h"

namespace caisson::cli {
namespace {

constexpr Option kServerOptions[] = {kMcpTools, kMcpReadOnly, kMcpAllowCommit, kMcpMaxSandboxes,
                                     kMcpTtl,   kMcpTrust,    kMcpHttp,        kMcpWithoutToken};
constexpr Option kInstallOptions[] = {kMcpScope, kMcpYes};
/// For protocol tests only, so not in the help.
constexpr Option kConformance{.name = "conformance", .help = "Serve the fixtures of the official conformance suite."};
constexpr Option kTestOptions[] = {kConformance};
constexpr OptionGroup kGroups[] = {{"Server", kServerOptions},   {"Policy", kSessionBaseOptions},
                                   {"Files", kMcpFileOptions},   {"Network", kSessionNetworkOptions},
                                   {"Limits", kLimitOptions},    {"Environment", kEnvironmentOptions},
                                   {"Install", kInstallOptions}, {"", kTestOptions},
                                   {"", kSessionHiddenOptions}};

int perform(const Arguments& arguments) {
  const auto& operands = arguments.operands;
  if (!operands.empty() && (operands.size() != 2 || operands[0] != "install"))
    return printError(usageError(operands[0], "`install HOST` or nothing is expected", "caisson mcp --help"));
  if (arguments.has(kConformance)) {
    const std::string program = ownDirectory() + "/caisson-mcp-conformance";
    std::vector<std::string> line{program};
    if (const auto http = arguments.value(kMcpHttp)) line.insert(line.end(), {"--http", std::string(*http)});
    return becomeProgram(program, line, "build the target caisson-mcp-conformance");
  }
  return becomeCompanion("caisson-mcp", kMcp, arguments);
}

}  // namespace

constinit const Verb kMcp{
    .path = "mcp",
    .summary = "Serve sandboxes to an agent host (Model Context Protocol)",
    .description =
        "Speaks the Model Context Protocol, versions 2026-07-28 and 2024-11-05 to 2025-11-25, on standard input and "
        "output. Standard output carries nothing else; the log goes to standard error, its level is CAISSON_LOG "
        "(debug, info, warning, error, off).\n\n"
        "The flags are the operator's policy. No tool offers what they decide as a parameter: --profile, --policy, "
        "--image, --user, --net, one --workspace. A model may choose less than the limits, never more; an attempt is "
        "refused and recorded in the audit log. --policy, and a caisson.toml of the project that you consented to "
        "with `caisson policy trust`, decide everything.\n\n"
        "`install HOST` puts the entry that starts this server, with the same flags, into the configuration of an "
        "agent host, after showing it: claude-code, claude-desktop, codex, cursor, gemini, jetbrains, opencode, "
        "vscode, windsurf, zed.",
    .examples =
        "claude mcp add caisson -- caisson mcp  in Claude Code\n"
        "caisson mcp install cursor --profile bash --net none  in Cursor, with an operator's policy\n"
        "caisson mcp --workspace . --read-only --tools sandbox_execute,sandbox_read_file  looks only\n"
        "caisson mcp --http 7070  over HTTP, at http://127.0.0.1:7070/mcp",
    .topic = Topic::agents,
    .syntax = {.groups = kGroups, .operands = "[install HOST]"},
    .perform = perform,
};

}  // namespace caisson::cli
