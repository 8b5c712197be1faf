// `caisson mcp`: serves sandboxes to agent hosts.
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "cli/commands/mcp_install.h"
#include "cli/output.h"
#include "cli/verb.h"
#include "mcp/serve.h"
#include "sys/helper_process.h"

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
constexpr Option kAllowCommit{.name = "allow-commit",
                              .help =
                                  "Let the model write its changes to the real files without asking, except what "
                                  "this machine would execute later."};
constexpr Option kOptions[] = {kWorkspace, kAllowCommit, kHttp, kWithoutToken};
constexpr Option kYes{.name = "yes", .help = "With install: write the entry without asking."};
constexpr Option kInstallOptions[] = {kYes};
/// For protocol tests only, so not in the help.
constexpr Option kConformance{.name = "conformance", .help = "Serve the fixtures of the official conformance suite."};
constexpr Option kTestOptions[] = {kConformance};
constexpr OptionGroup kGroups[] = {{"Server", kOptions}, {"Install", kInstallOptions}, {"", kTestOptions}};

/// Replaces this process by the program with the fixtures, which is built beside this one.
int serveFixtures(const std::string& http) {
  std::error_code problem;
  const std::filesystem::path own = std::filesystem::read_symlink(sys::kOwnProgram, problem);
  const std::string program = (own.parent_path() / "caisson-mcp-conformance").string();
  std::vector<const char*> words{program.c_str()};
  if (!http.empty()) words.insert(words.end(), {"--http", http.c_str()});
  words.push_back(nullptr);
  ::execv(program.c_str(), const_cast<char* const*>(words.data()));
  return complain(sysError(Stage::usage, "execv", program, errno, "build the target caisson-mcp-conformance"));
}

int perform(const Arguments& arguments) {
  if (!arguments.operands.empty()) {
    if (arguments.operands.size() != 2 || arguments.operands[0] != "install")
      return complain(usageError(arguments.operands[0], "`install HOST` or nothing is expected", "caisson mcp --help"));
    return installInHost(arguments.operands[1], arguments.has(kYes));
  }
  std::vector<std::string> workspaces;
  for (const Given& given : arguments.given)
    if (given.option->name == kWorkspace.name) workspaces.emplace_back(given.value);
  const std::string http(arguments.value(kHttp).value_or(""));
  if (arguments.has(kConformance)) return serveFixtures(http);
  const auto served = mcp::serve({.transport = {.http = http, .without_token = arguments.has(kWithoutToken)},
                                  .allow_commit = arguments.has(kAllowCommit),
                                  .workspaces = std::move(workspaces),
                                  .version = CAISSON_VERSION,
                                  .program = sys::kOwnProgram});
  return served ? 0 : complain(served.error());
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
