// `caisson agent -- CMD`: a whole agent in a separate session.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "api/result_json.h"
#include "cli/agent/agent_options.h"
#include "cli/agent/configuration.h"
#include "cli/agent/program.h"
#include "cli/agent/project_session.h"
#include "cli/agent/providers.h"
#include "cli/agent/review.h"
#include "cli/agent/verbs.h"
#include "cli/approval.h"
#include "cli/output.h"
#include "cli/own_program.h"
#include "cli/policy_flags.h"
#include "cli/session/verbs.h"
#include "policy/model.h"

namespace caisson::cli {
namespace {

constexpr Option kApi{.name = "api",
                      .value = "NAME",
                      .help =
                          "A model API the agent may use: anthropic, openai, google, openrouter, mistral, deepseek, "
                          "groq, xai. Known agents have theirs.",
                      .repeatable = true};
constexpr Option kApiCa{
    .name = "api-ca",
    .value = "FILE",
    .help = "Trust these authorities, and no others, for the server of the API: a company's gateway, for example."};
constexpr Option kName{.name = "name", .value = "NAME", .help = "A name for the session."};
constexpr Option kKeep{.name = "keep", .help = "Do not ask at the end: keep the session and its changes."};
/// Not for the hook: an agent outside the sandbox could edit the file and loosen the sandbox of its commands.
constexpr Option kTrust{
    .name = "trust",
    .help =
        "Use the project's caisson.toml without the consent of `caisson policy trust`, for CI. It is recorded in the "
        "audit log."};
constexpr Option kOwn[] = {kApi, kApiCa, kName, kKeep, kTrust};
constexpr OptionGroup kOwnGroups[] = {{"Agent", kOwn}};
constexpr auto kGroups = joinGroups(kAgentPolicyGroups, kOwnGroups);

Error passedKey(const std::string& where) {
  return usageError(where, "the agent would be able to read the key",
                    "leave it out: the key is added to requests outside the sandbox");
}

/// A key that --env or the policy passes would be readable inside. Every API has several variables, so all of all APIs
/// are refused, whether they are set or not.
Result<void> refusePassedKeys(const Arguments& arguments, const policy::Environment& environment) {
  const auto isKey = [](std::string_view name) {
    return std::ranges::any_of(providers(), [&](const Provider& api) { return api.key_env == name; });
  };
  for (const Given& given : arguments.given) {
    const std::string_view name = given.value.substr(0, given.value.find('='));
    if (given.option->name == "env" && isKey(name)) return fail(passedKey("--env " + std::string(name)));
  }
  for (const std::string& name : environment.pass)
    if (isKey(name)) return fail(passedKey("environment.pass " + name));
  if (environment.mode != policy::EnvironmentMode::inherit) return {};
  for (const Provider& api : providers()) {
    const std::string name(api.key_env);
    if (std::getenv(name.c_str()) != nullptr) return fail(passedKey("environment.mode inherit: " + name));
  }
  return {};
}

struct AgentPlan {
  Policy policy;
  std::vector<std::string> command;
  const KnownAgent* agent = nullptr;
  std::vector<const Provider*> apis;
};

Result<void> addEnvironment(Policy& policy, const KnownAgent* agent) {
  if (agent == nullptr) return {};
  for (const std::string_view variable : agent->environment)
    if (auto set = policy.append("environment.set", variable); !set) return set;
  return {};
}

/// The workspace is the policy's, else the project of this directory, at its own path: agents print and store paths.
Result<std::string> chooseWorkspace(Policy& policy) {
  policy::Workspace& workspace = policy.model().filesystem.workspace;
  if (workspace.path.empty()) {
    auto project = projectDirectory(".");
    if (!project) return project;
    workspace.path = *project;
  }
  if (workspace.mode != policy::WorkspaceMode::overlay)
    return fail(
        usageError("--workspace", "an agent works on an overlay, which is reviewed at the end", "leave out the mode"));
  workspace.same_path = true;
  return workspace.path;
}

Result<AgentPlan> planFrom(const Arguments& arguments) {
  auto based = basedPolicyFrom(arguments, {.directory = "", .trust = arguments.has(kTrust)});
  if (!based) return fail(based.error());
  AgentPlan plan{.policy = std::move(based->policy), .command = {arguments.command.begin(), arguments.command.end()}};
  plan.agent = findAgent(plan.command[0]);
  auto refused = refusePassedKeys(arguments, plan.policy.model().environment);
  if (!refused) return fail(refused.error());
  const auto workspace = chooseWorkspace(plan.policy);
  if (!workspace) return fail(workspace.error());
  ApiChoice choice{.ca_file = std::string(arguments.value(kApiCa).value_or(""))};
  for (const Given& given : arguments.given)
    if (given.option->name == kApi.name) choice.names.emplace_back(given.value);
  auto apis = addApis(plan.policy, plan.agent, choice);
  if (!apis) return fail(apis.error());
  plan.apis = *std::move(apis);
  if (auto added = addEnvironment(plan.policy, plan.agent); !added) return fail(added.error());
  if (plan.policy.model().filesystem.root != "host") return plan;  // the program is the image's
  const auto program = findProgram(plan.command[0], *workspace);
  if (!program) return fail(program.error());
  plan.command[0] = program->path;
  for (const std::string& path : program->shown) {
    if (auto added = plan.policy.append("filesystem.read_only", path); !added) return fail(added.error());
    printNotice("shown to the agent, read-only: " + path);
  }
  return plan;
}

Result<Session> createSession(SessionStore& store, const Arguments& arguments, const AgentPlan& plan) {
  SessionOptions options{.policy = plan.policy, .ttl_seconds = kAgentSessionSeconds, .keep = true};
  options.policy.model().use = kAgentUse;
  options.name = arguments.value(kName).value_or("");
  auto session = store.create(options);
  if (!session) return fail(attributeToFlag(session.error(), arguments));
  if (plan.agent == nullptr) return session;
  const auto left_out = copyConfiguration(*session, *plan.agent, plan.apis);
  if (!left_out) {
    (void)session->destroy();
    return fail(left_out.error());
  }
  for (const std::string& line : *left_out) printNotice("not copied: " + line);
  return session;
}

std::string startDirectory(const AgentPlan& plan) {
  std::error_code problem;
  const std::string here = std::filesystem::current_path(problem).string();
  const std::string& workspace = plan.policy.model().filesystem.workspace.path;
  return !problem && (here + "/").starts_with(workspace + "/") ? here : workspace;
}

int perform(const Arguments& arguments) {
  if (arguments.command.empty())
    return printError(usageError("agent", "no agent given; it comes after `--`", "caisson agent -- claude"));
  const auto plan = planFrom(arguments);
  if (!plan) return printError(plan.error());
  if (auto checked = checkForSession(arguments, plan->policy.model()); !checked) return printError(checked.error());
  if (auto approvals = obtainApprovals(arguments, plan->policy.model()); !approvals)
    return printError(approvals.error());
  if (plan->apis.empty())
    printNotice(plan->agent == nullptr ? "no model API is allowed; --api names one"
                                       : "no key of a model API is set, so the agent cannot reach a model");
  auto store = openSessionsForCommands();
  if (!store) return printError(store.error());
  auto session = createSession(*store, arguments, *plan);
  if (!session) return printError(session.error());
  ExecRequest request;
  request.command = plan->command;
  request.working_directory = startDirectory(*plan);
  request.out = request.err = StreamMode::relay;
  request.relay_stdin = request.forward_signals = true;
  request.interactive = ::isatty(STDIN_FILENO) == 1;
  request.ask_for_hosts = false;  // the prompt and a full-screen agent would share the screen
  surviveBrokenPipes();
  const auto result = session->exec(request);
  const int status = reportCommand(result ? *result : refusedResult(result.error()), false);
  if (auto reviewed = reviewChanges(*session, !arguments.has(kKeep)); !reviewed) {
    printError(reviewed.error());
    return status == 0 ? kRefused : status;
  }
  return status;
}

}  // namespace

constinit const Verb kAgentRun{
    .path = "agent run",
    .summary = "Run a whole agent in a separate session",
    .description =
        "The agent works on an overlay of the project that this directory belongs to. It reaches the server of its "
        "model API and what --allow-host adds, nothing else. Its key is taken from the environment (ANTHROPIC_API_KEY, "
        "OPENAI_API_KEY, GEMINI_API_KEY ...) and added to requests outside the sandbox; inside, the variable holds a "
        "placeholder. claude, codex, gemini, opencode, aider and others are known by their names, with the files that "
        "configure them: those are copied key by key, without credentials, and what is left out is named. Other agents "
        "need --api.\n\n"
        "At the end it shows what changed and asks, on a terminal, whether to write it to the project. Otherwise the "
        "session is kept, and the commands for it are printed. The exit status is the agent's. `run` may be left out.",
    .examples =
        "caisson agent -- claude\n"
        "caisson agent --allow-host preset:npm -- codex exec 'add a test'",
    .topic = Topic::agents,
    .syntax = {.groups = kGroups, .command = "-- CMD [ARG]..."},
    .perform = perform,
};

}  // namespace caisson::cli
