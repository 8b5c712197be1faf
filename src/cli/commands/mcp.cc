// `caisson mcp`: serves sandboxes to agent hosts. The server is the program caisson-mcp; this file parses its options
// and starts it.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/commands/mcp_options.h"
#include "cli/output.h"
#include "cli/policy_options.h"
#include "cli/verb.h"
#include "sys/helper_process.h"

namespace caisson::cli {
namespace {

namespace fs = std::filesystem;

constexpr Option kServerOptions[] = {kMcpWorkspace, kMcpAllowCommit, kAllowWeaker, kMcpHttp, kMcpWithoutToken};
constexpr Option kInstallOptions[] = {kMcpYes};
/// For protocol tests only, so not in the help.
constexpr Option kConformance{.name = "conformance", .help = "Serve the fixtures of the official conformance suite."};
constexpr Option kTestOptions[] = {kConformance};
constexpr OptionGroup kGroups[] = {{"Server", kServerOptions}, {"Install", kInstallOptions}, {"", kTestOptions}};

/// Replaces this process; returns only if that fails.
int becomeProgram(const std::string& program, const std::vector<std::string>& line, std::string_view hint) {
  std::vector<const char*> words;
  for (const std::string& word : line) words.push_back(word.c_str());
  words.push_back(nullptr);
  ::execv(program.c_str(), const_cast<char* const*>(words.data()));
  return complain(sysError(Stage::usage, "execv", program, errno, hint));
}

/// Beside caisson, as it is built, or in libexec, as it is installed.
std::string serverProgram(const fs::path& directory) {
  for (const fs::path& path :
       {directory / "caisson-mcp", directory / "../libexec/caisson/caisson-mcp", fs::path(CAISSON_INSTALLED_MCP)})
    if (::access(path.c_str(), X_OK) == 0) return path.string();
  return (directory / "caisson-mcp").string();
}

int perform(const Arguments& arguments) {
  const auto& operands = arguments.operands;
  if (!operands.empty() && (operands.size() != 2 || operands[0] != "install"))
    return complain(usageError(operands[0], "`install HOST` or nothing is expected", "caisson mcp --help"));
  std::error_code problem;
  const fs::path own = fs::read_symlink(sys::kOwnProgram, problem);
  if (problem) return complain(usageError("mcp", "can't find out where caisson is", "is /proc mounted?"));
  if (arguments.has(kConformance)) {
    const std::string program = (own.parent_path() / "caisson-mcp-conformance").string();
    std::vector<std::string> line{program};
    if (const auto http = arguments.value(kMcpHttp)) line.insert(line.end(), {"--http", std::string(*http)});
    return becomeProgram(program, line, "build the target caisson-mcp-conformance");
  }
  std::vector<std::string> line{own.string(), std::string(kMcp.path)};
  for (const Given& given : arguments.given) {
    line.push_back("--" + std::string(given.option->name));
    if (!given.option->value.empty()) line.back() += "=" + std::string(given.value);
  }
  line.insert(line.end(), operands.begin(), operands.end());
  return becomeProgram(serverProgram(own.parent_path()), line, "install caisson-mcp beside caisson; in a clone: make");
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
