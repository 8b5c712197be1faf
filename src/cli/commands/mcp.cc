// `caisson mcp`: serves sandboxes to agent hosts. The server is the program caisson-mcp; this file parses its options
// and starts it.
#include <string>
#include <vector>

#include "cli/commands/mcp_options.h"
#include "cli/companion.h"
#include "cli/output.h"
#include "cli/policy_options.h"
#include "cli/verb.h"

namespace caisson::cli {
namespace {

constexpr Option kServerOptions[] = {kMcpWorkspace, kMcpAllowCommit, kAllowWeaker, kMcpHttp, kMcpWithoutToken};
constexpr Option kInstallOptions[] = {kMcpYes};
/// For protocol tests only, so not in the help.
constexpr Option kConformance{.name = "conformance", .help = "Serve the fixtures of the official conformance suite."};
constexpr Option kTestOptions[] = {kConformance};
constexpr OptionGroup kGroups[] = {{"Server", kServerOptions}, {"Install", kInstallOptions}, {"", kTestOptions}};

int perform(const Arguments& arguments) {
  const auto& operands = arguments.operands;
  if (!operands.empty() && (operands.size() != 2 || operands[0] != "install"))
    return complain(usageError(operands[0], "`install HOST` or nothing is expected", "caisson mcp --help"));
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
        "`install HOST` puts the entry that starts this server into the configuration of an agent host, after showing "
        "it: claude-code, claude-desktop, cursor, vscode, codex, gemini.",
    .examples =
        "claude mcp add caisson -- caisson mcp  in Claude Code\n"
        "caisson mcp install cursor  in Cursor\n"
        "caisson mcp --http 7070  over HTTP, at http://127.0.0.1:7070/mcp",
    .topic = Topic::agents,
    .syntax = {.groups = kGroups, .operands = "[install HOST]"},
    .perform = perform,
};

}  // namespace caisson::cli
