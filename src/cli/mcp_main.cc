// The `caisson-mcp` program: `caisson mcp` starts it with its own command line, argv[0] being the path of caisson.
// A separate program, since the JSON library and the server are a fifth of the code and no launch needs them.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "cli/agent/install_hooks.h"
#include "cli/approval.h"
#include "cli/commands/mcp_install.h"
#include "cli/commands/mcp_options.h"
#include "cli/output.h"
#include "cli/policy_flags.h"
#include "cli/program_main.h"
#include "cli/self/verify_installation.h"
#include "cli/self/version.h"
#include "cli/verb.h"
#include "mcp/serve.h"
#include "policy/model.h"
#include "policy/units.h"
#include "sys/helper_process.h"

namespace caisson::cli {
namespace {

Result<std::vector<mcp::ServedDirectory>> workspacesFrom(const Arguments& arguments) {
  std::vector<mcp::ServedDirectory> workspaces;
  for (const Given& given : arguments.given) {
    if (given.option->name != kMcpWorkspace.name) continue;
    const auto parts = splitWorkspace(given.value);
    if (!parts)
      return fail(usageError("--workspace " + std::string(given.value), parts.error().reason, parts.error().hint));
    if (parts->directory.empty() && parts->mode.empty())
      return fail(usageError("--workspace", "the value is empty", "name a directory, or leave the option out"));
    workspaces.push_back({std::string(parts->directory.empty() ? "." : parts->directory), std::string(parts->mode)});
  }
  return workspaces;
}

/// Where the project's caisson.toml is looked for: the directory that sandboxes show.
std::string projectDirectory(const std::vector<mcp::ServedDirectory>& workspaces) {
  if (!workspaces.empty()) return workspaces.front().mode == "none" ? "" : workspaces.front().path;
  const char* project = std::getenv("CLAUDE_PROJECT_DIR");
  return project != nullptr ? project : "";
}

Result<void> readNumbers(const Arguments& arguments, mcp::OperatorBounds& bounds) {
  if (const auto text = arguments.value(kMcpMaxSandboxes)) {
    const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), bounds.max_sandboxes);
    if (problem != std::errc() || end != text->data() + text->size() || bounds.max_sandboxes == 0)
      return fail(
          usageError("--max-sandboxes " + std::string(*text), "expected a number above 0", "--max-sandboxes 8"));
  }
  if (const auto text = arguments.value(kMcpTtl)) {
    const auto seconds = policy::parseSeconds(*text);
    if (!seconds || *seconds < 1)
      return fail(usageError("--ttl " + std::string(*text), "expected a time of a second or more", "--ttl 2h"));
    bounds.max_ttl_seconds = std::min(bounds.max_ttl_seconds, static_cast<std::int64_t>(std::ceil(*seconds)));
  }
  return {};
}

/// The operator's policy: the flags as `run` reads them, except --workspace, which a server has several of.
/// `install` only describes, so it needs no approval.
Result<mcp::OperatorBounds> boundsFrom(const Arguments& arguments, const std::string& project, bool install) {
  auto flags = std::make_shared<Arguments>(arguments);
  std::erase_if(flags->given, [](const Given& given) { return given.option->name == kMcpWorkspace.name; });
  const auto based = basedPolicyFrom(*flags, {project, arguments.has(kMcpTrust)});
  if (!based) return fail(based.error());
  if (auto checked = checkForSession(*flags, based->policy.model()); !checked) return fail(checked.error());
  if (auto approved = install ? namedApprovals(arguments) : obtainApprovals(arguments, based->policy.model());
      !approved)
    return fail(approved.error());
  mcp::OperatorBounds bounds;
  bounds.whole = based->base == PolicyBase::file || based->base == PolicyBase::project;
  bounds.profile = bounds.whole || based->base == PolicyBase::profile;
  bounds.project = based->directory;
  bounds.keys = keysOfFlags(*flags);
  bounds.read_only = arguments.has(kMcpReadOnly);
  bounds.policy = [flags, base = based->policy](const std::string& profile) -> Result<Policy> {
    if (profile.empty()) return base;
    auto policy = Policy::profile(profile);
    return policy ? withFlags(*std::move(policy), *flags) : policy;
  };
  if (auto read = readNumbers(arguments, bounds); !read) return fail(read.error());
  return bounds;
}

Result<mcp::ServeOptions> optionsFrom(const Arguments& arguments) {
  auto workspaces = workspacesFrom(arguments);
  if (!workspaces) return fail(workspaces.error());
  auto bounds = boundsFrom(arguments, projectDirectory(*workspaces), !arguments.operands.empty());
  if (!bounds) return fail(bounds.error());
  mcp::ServeOptions options{.transport = {.http = std::string(arguments.value(kMcpHttp).value_or("")),
                                          .without_token = arguments.has(kMcpWithoutToken)},
                            .allow_commit = arguments.has(kMcpAllowCommit),
                            .workspaces = *std::move(workspaces),
                            .tools = {},
                            .bounds = *std::move(bounds),
                            .version = std::string(programVersion()),
                            .program = sys::kOwnProgram};
  if (const auto tools = arguments.value(kMcpTools))
    for (const std::string_view name : split(*tools, ',')) options.tools.emplace_back(name);
  return options;
}

int perform(std::span<char* const> line) {
  if (line.size() > 3 && std::string_view(line[1]) == "agent") return installHooks(line);
  if (line.size() > 2 && std::string_view(line[1]) == "self") return verifyInstallation(line);
  if (line.size() < 2 || line[1] != kMcp.path)
    return printError(usageError("caisson-mcp", "start it with `caisson mcp`"));
  const auto arguments = parse(kMcp.syntax, line.subspan(2));
  if (!arguments) return printError(arguments.error());
  const auto options = optionsFrom(*arguments);
  if (!options) return printError(options.error());
  if (arguments->operands.size() == 2) {
    const auto tools = mcp::toolsWithNeeds(options->tools);
    return tools ? installInHost(*arguments, line[0]) : printError(tools.error());
  }
  const auto served = mcp::serve(*options);
  return served ? 0 : printError(served.error());
}

}  // namespace
}  // namespace caisson::cli

int main(int count, char** words) { caisson::cli::programMain(count, words, caisson::cli::perform); }
