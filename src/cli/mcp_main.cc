// The `caisson-mcp` program: `caisson mcp` starts it with its own command line, argv[0] being the path of caisson.
// A separate program, since the JSON library and the server are a fifth of the code and no launch needs them.
#include "base/text.h"
#include "cli/agent/install_hooks.h"
#include "cli/commands/mcp_install.h"
#include "cli/commands/mcp_options.h"
#include "cli/output.h"
#include "cli/policy_options.h"
#include "cli/program_main.h"
#include "cli/verb.h"
#include "mcp/serve.h"
#include "sys/helper_process.h"

namespace caisson::cli {
namespace {

int perform(std::span<char* const> line) {
  if (line.size() > 3 && std::string_view(line[1]) == "agent") return installHooks(line);
  if (line.size() < 2 || line[1] != kMcp.path)
    return complain(usageError("caisson-mcp", "start it with `caisson mcp`"));
  const auto arguments = parse(kMcp.syntax, line.subspan(2));
  if (!arguments) return complain(arguments.error());
  if (arguments->operands.size() == 2) return installInHost(arguments->operands[1], arguments->has(kMcpYes), line[0]);
  std::vector<std::string> workspaces, rungs;
  for (const Given& given : arguments->given) {
    if (given.option->name == kMcpWorkspace.name) workspaces.emplace_back(given.value);
    if (given.option->name != kAllowWeaker.name) continue;
    for (const std::string_view rung : split(given.value, ',')) rungs.emplace_back(rung);
  }
  const auto served = mcp::serve({.transport = {.http = std::string(arguments->value(kMcpHttp).value_or("")),
                                                .without_token = arguments->has(kMcpWithoutToken)},
                                  .allow_commit = arguments->has(kMcpAllowCommit),
                                  .workspaces = std::move(workspaces),
                                  .version = CAISSON_VERSION,
                                  .rungs = std::move(rungs),
                                  .program = sys::kOwnProgram});
  return served ? 0 : complain(served.error());
}

}  // namespace
}  // namespace caisson::cli

int main(int count, char** words) { caisson::cli::programMain(count, words, caisson::cli::perform); }
