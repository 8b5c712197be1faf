// `caisson mcp`: the sandbox as a server for agent hosts (SPEC D2).
#include "cli/output.h"
#include "cli/verb.h"
#include "mcp/serve.h"

namespace caisson::cli {
namespace {

constexpr Option kHttp{.name = "http",
                       .value = "ADDR",
                       .help =
                           "Serve Streamable HTTP at PORT or HOST:PORT instead of standard input and output. Only "
                           "loopback addresses; clients need the token that is named at the start."};
constexpr Option kWithoutToken{.name = "http-without-token",
                               .help = "Let every program of this machine in that can reach the port."};
constexpr Option kWorkspace{.name = "workspace",
                            .value = "DIR",
                            .help =
                                "A directory that sandboxes may show; the first is the default. Without it: the "
                                "project the host names (CLAUDE_PROJECT_DIR), or the current directory unless that "
                                "is a home.",
                            .repeatable = true};
constexpr Option kOptions[] = {kWorkspace, kHttp, kWithoutToken};
/// For tests of the protocol: not in the help, since no person needs it.
constexpr Option kConformance{.name = "conformance", .help = "Serve the fixtures of the official conformance suite."};
constexpr Option kTestOptions[] = {kConformance};
constexpr OptionGroup kGroups[] = {{"Server", kOptions}, {"", kTestOptions}};

int perform(const Arguments& arguments) {
  std::vector<std::string> workspaces;
  for (const Given& given : arguments.given)
    if (given.option->name == kWorkspace.name) workspaces.emplace_back(given.value);
  const auto served = mcp::serve({.http = std::string(arguments.value(kHttp).value_or("")),
                                  .without_token = arguments.has(kWithoutToken),
                                  .conformance = arguments.has(kConformance),
                                  .workspaces = std::move(workspaces),
                                  .version = CAISSON_VERSION});
  return served ? 0 : complain(served.error());
}

}  // namespace

constinit const Verb kMcp{
    .path = "mcp",
    .summary = "Serve sandboxes to an agent host (Model Context Protocol)",
    .description =
        "Speaks the Model Context Protocol, versions 2026-07-28 and 2024-11-05 to 2025-11-25, on standard input and "
        "output. Standard output carries nothing else; the log goes to standard error, its level is CAISSON_LOG "
        "(debug, info, warning, error, off).",
    .examples =
        "claude mcp add caisson -- caisson mcp  in Claude Code\n"
        "caisson mcp --http 7070  over HTTP, at http://127.0.0.1:7070/mcp",
    .topic = Topic::agents,
    .syntax = {.groups = kGroups},
    .perform = perform,
};

}  // namespace caisson::cli
