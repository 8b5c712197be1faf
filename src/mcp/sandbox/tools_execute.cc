// Tools for commands: run, wait, kill.
#include <atomic>

#include "base/utf8.h"
#include "mcp/sandbox/background.h"
#include "mcp/sandbox/explain.h"
#include "mcp/sandbox/resources.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tasks.h"
#include "mcp/sandbox/tools.h"

namespace caisson::mcp {
namespace {

using std::chrono::milliseconds;
using Clock = Execution::Clock;

/// Hosts time out after some minutes of silence, or after 60 s in total.
constexpr milliseconds kHeartbeat{5000};
/// A command that takes longer becomes a task, if the client takes tasks.
constexpr std::int64_t kTaskAfterMs = 2000;

constexpr Parameter kExecuteParameters[] = {
    kSandboxId,
    {.name = "command",
     .required = true,
     .description = "A shell command line (run by sh -c), or with `args` the program to run."},
    {.name = "args",
     .type = ParameterType::texts,
     .description = "Arguments: then `command` is run directly, without a shell."},
    {.name = "working_dir",
     .description = "Directory to run in (default /workspace): absolute in the sandbox, or relative to /workspace."},
    {.name = "stdin", .description = "Standard input for the command, then end of file.", .any_bytes = true},
    {.name = "env", .type = ParameterType::variables, .description = "Additional environment variables."},
    {.name = "timeout_ms",
     .type = ParameterType::integer,
     .description = "Kill the command after this long (default 2 minutes). The sandbox's policy has a ceiling (an hour "
                    "by default).",
     .least = 1,
     .most = 24 * 3600 * 1000},
    {.name = "wait_ms",
     .type = ParameterType::integer,
     .description = "Return after this long even if the command still runs (default 45000). 0 returns at once.",
     .least = 0,
     .most = 600'000},
    {.name = "background",
     .type = ParameterType::boolean,
     .description = "For servers and other commands that go on: return at once with an exec_id. It has no time-out "
                    "unless timeout_ms is given, and lives as long as the sandbox."},
    {.name = "keep_stdin",
     .type = ParameterType::boolean,
     .description = "With background: leave standard input open, for sandbox_process with action input. In a task: the "
                    "user is asked for input."},
};

constexpr Parameter kProcessParameters[] = {
    kSandboxId,
    {.name = "exec_id", .required = true, .description = "The exec_id that sandbox_execute returned."},
    {.name = "action",
     .description = "wait (default): wait for its end or for wait_ms; kill: end it with all its child processes; "
                    "input: write to the standard input of a background command.",
     .choices = "wait|kill|input"},
    {.name = "data", .description = "With action input: what to write.", .any_bytes = true},
    {.name = "close", .type = ParameterType::boolean, .description = "With action input: then end the input."},
    {.name = "wait_ms",
     .type = ParameterType::integer,
     .description = "How long to wait (default 45000); 0: only look.",
     .least = 0,
     .most = 600'000},
    {.name = "offset",
     .type = ParameterType::integer,
     .description = "Return standard output from this byte on, to read on where an answer was cut.",
     .least = 0,
     .most = INT64_MAX},
};

std::string statusOf(const RunResult& result) {
  switch (result.outcome) {
    case OutcomeKind::exited: return "exited";
    case OutcomeKind::signaled: return "killed";
    case OutcomeKind::limit: return result.limit == Limit::time ? "timed_out" : "limit";
    case OutcomeKind::denied: return "denied";
    case OutcomeKind::setup_failed: return "setup_failed";
    case OutcomeKind::cancelled: return "cancelled";
  }
  return "exited";
}

/// Whether the command did not do what it was to do, so that an explanation helps.
bool hasFailed(const RunResult& result) {
  return result.outcome != OutcomeKind::cancelled && (result.outcome != OutcomeKind::exited || result.exit_code != 0);
}

void describeEnd(Json& value, const RunResult& result, const OperatorBounds& bounds) {
  value["status"] = statusOf(result);
  if (result.outcome == OutcomeKind::exited) value["exit_code"] = result.exit_code;
  if (result.outcome == OutcomeKind::signaled) value["signal"] = result.signal;
  if (result.outcome == OutcomeKind::limit) value["limit"] = name(result.limit);
  if (result.error) value["error"] = result.error->message();
  Json denials = Json::array();
  for (const Denial& denial : result.denials) denials.push_back(describeDenial(bounds, denial));
  if (!denials.empty()) value["denials"] = std::move(denials);
  if (!result.notices.empty()) value["notices"] = result.notices;
  if (!result.warnings.empty()) value["warnings"] = result.warnings;
}

Json describeExecution(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, const Execution& execution,
                       std::uint64_t offset, const std::string& note = {}) {
  const Execution::View view = execution.view();
  if (view.result && !*view.result) return failure(call, view.result->error());
  Json value{{"sandbox_id", sandbox.id()}, {"exec_id", execution.id()}, {"status", "running"}};
  bool out_cut = false;
  bool err_cut = false;
  value["stdout"] = abbreviated(view.out.substr(std::min<std::uint64_t>(offset, view.out.size())), out_cut);
  value["stderr"] = abbreviated(view.err, err_cut);
  value["stdout_bytes"] = view.out.size();
  value["stderr_bytes"] = view.err.size();
  value["truncated"] = out_cut || err_cut;
  const std::string whole = outputUri(sandbox, execution.id(), out_cut ? "stdout" : "stderr");
  if (out_cut || err_cut) value["full_output_uri"] = whole;
  const bool ended = view.result && *view.result;
  const std::uint64_t out_dropped = view.out_dropped + (ended ? (*view.result)->out.dropped : 0);
  const std::uint64_t err_dropped = view.err_dropped + (ended ? (*view.result)->err.dropped : 0);
  if (out_dropped > 0) value["stdout_dropped_bytes"] = out_dropped;
  if (err_dropped > 0) value["stderr_dropped_bytes"] = err_dropped;
  if (!isUtf8(view.out) || !isUtf8(view.err)) value["binary"] = true;
  value["duration_ms"] = static_cast<std::int64_t>(view.seconds * 1000);
  if (!note.empty()) value["note"] = note;
  if (view.output_gone) value["note"] = kOutputGone;
  if (!view.result) {
    value["note"] = (note.empty() ? "" : note + ". ") +
                    "Still running. Call sandbox_process with this exec_id to wait for it, look at it or kill it.";
    return structuredResult(call, std::move(value));
  }
  const RunResult& result = **view.result;
  describeEnd(value, result, sandboxes.settings().bounds);
  const Json explanations = hasFailed(result) ? explainFailure(sandboxes, sandbox, {result.denials, view.err}) : Json();
  addExplanations(value, explanations);
  const bool failed = result.outcome == OutcomeKind::setup_failed || result.outcome == OutcomeKind::denied;
  Json described = structuredResult(call, std::move(value), failed);
  addExplanationText(described, explanations);
  if (out_cut || err_cut) addLink(call, described, whole, out_cut ? "whole stdout" : "whole stderr", "text/plain");
  return described;
}

/// Waits while sending progress. Returns false if the call was cancelled.
bool awaitEnd(Call& call, const std::shared_ptr<Execution>& execution, milliseconds patience,
              bool kill_when_cancelled) {
  const auto stopped = std::make_shared<std::atomic<bool>>(false);
  const auto guard = call.onCancel([execution, stopped, kill_when_cancelled] {
    stopped->store(true);
    if (kill_when_cancelled) execution->kill();
    execution->wake();
  });
  const auto begin = Clock::now();
  const auto end = begin + patience;
  while (Clock::now() < end && !*stopped) {
    const auto until = std::min<Clock::time_point>(end, Clock::now() + kHeartbeat);
    if (execution->wait(until, [&] { return stopped->load(); })) break;
    if (*stopped || Clock::now() >= end) break;
    call.progress(std::chrono::duration<double>(Clock::now() - begin).count(), std::nullopt, execution->lastLine());
  }
  return !*stopped;
}

milliseconds patienceOf(const Sandboxes& sandboxes, const Arguments& arguments) {
  const auto wanted = arguments.integer("wait_ms");
  return wanted ? milliseconds(*wanted) : sandboxes.settings().answer_within;
}

Outcome startBackground(Sandboxes& sandboxes, Call& call, Sandbox& sandbox, ExecRequest request,
                        const Arguments& arguments) {
  request.keep_input = arguments.flag("keep_stdin");
  const auto number = sandboxes.with(sandbox, [&](Session& session) { return session.start(request); });
  if (!number) return failure(call, number.error());
  // A server that can't start fails quickly; this wait lets the response include its error.
  const milliseconds patience(arguments.integer("wait_ms").value_or(200));
  Json described = describeBackground(sandboxes, call, sandbox, *number, patience, 0);
  if (!call.cancelled()) return described;
  // No client knows the exec_id, so none could kill it later.
  (void)sandboxes.with(sandbox, [&](Session& session) { return session.stop(*number); });
  return errorResult("cancelled");
}

Outcome processInBackground(Sandboxes& sandboxes, Call& call, Sandbox& sandbox, std::uint32_t number,
                            const Arguments& arguments) {
  const std::string action = arguments.text("action");
  const auto done = sandboxes.with(sandbox, [&](Session& session) -> Result<void> {
    if (action == "kill") return session.stop(number);
    if (action == "input") return session.feed(number, arguments.text("data"), arguments.flag("close"));
    return {};
  });
  if (!done) return failure(call, done.error());
  const milliseconds patience =
      action == "input" ? milliseconds(arguments.integer("wait_ms").value_or(200)) : patienceOf(sandboxes, arguments);
  return describeBackground(sandboxes, call, sandbox, number, patience,
                            static_cast<std::uint64_t>(arguments.integer("offset").value_or(0)));
}

Outcome execute(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  const std::string command = arguments.text("command");
  if (command.empty()) return errorResult("`command` is empty");
  ExecRequest request;
  if (arguments.has("args")) {
    request.command = arguments.texts("args");
    request.command.insert(request.command.begin(), command);
  } else {
    request.command = {"sh", "-c", command};
  }
  request.working_directory = arguments.text("working_dir");
  request.input = arguments.text("stdin");
  request.environment = arguments.variables("env");
  if (const auto timeout = arguments.integer("timeout_ms")) {
    request.timeout_seconds = static_cast<double>(*timeout) / 1e3;
  } else if (arguments.flag("background")) {
    request.timeout_seconds =
        sandboxes.settings().bounds.maxCommandSeconds();  // unlike other commands it has no default
  }
  std::string note;
  if (auto needs = offerNetwork(sandboxes, call, *sandbox, request.command, note)) return *std::move(needs);
  if (arguments.flag("background")) return startBackground(sandboxes, call, **sandbox, std::move(request), arguments);
  if (call.takesTask()) {
    request.default_timeout = true;
    request.keep_input = arguments.flag("keep_stdin") && call.can("elicitation");
    // 2025-11-25: the client requested a task, so it must get one.
    const std::int64_t wait =
        call.revision == ProtocolRevision::legacy ? 0 : arguments.integer("wait_ms").value_or(kTaskAfterMs);
    if (auto task = startTask(sandboxes, call, *sandbox, request, {milliseconds(wait), note})) return *std::move(task);
  }
  const auto execution = sandboxes.begin(*sandbox, std::move(request), command.substr(0, 200));
  // After a cancellation no client knows the exec_id, so the command is killed with its process tree.
  if (!awaitEnd(call, execution, patienceOf(sandboxes, arguments), true)) return errorResult("cancelled");
  return describeExecution(sandboxes, call, **sandbox, *execution, 0, note);
}

Outcome process(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  if (const auto number = backgroundNumber(arguments.text("exec_id")))
    return processInBackground(sandboxes, call, **sandbox, *number, arguments);
  if (arguments.text("action") == "input")
    return errorResult("only a command that was started with background and keep_stdin takes input");
  const auto execution = (*sandbox)->execution(arguments.text("exec_id"));
  if (execution == nullptr) {
    std::string known;
    for (const auto& other : (*sandbox)->executions()) known += (known.empty() ? "" : ", ") + other->id();
    return errorResult("there is no command with this exec_id in the sandbox; " +
                       (known.empty() ? "none ran yet" : "there are: " + known));
  }
  milliseconds patience = patienceOf(sandboxes, arguments);
  if (arguments.text("action") == "kill") {
    execution->kill();
    patience = std::max(patience, milliseconds(5000));
  }
  if (!awaitEnd(call, execution, patience, false)) return errorResult("cancelled");
  return describeExecution(sandboxes, call, **sandbox, *execution,
                           static_cast<std::uint64_t>(arguments.integer("offset").value_or(0)));
}

constexpr std::string_view kExecutionSchema = R"("sandbox_id":{"type":"string"},"exec_id":{"type":"string"},
  "status":{"type":"string","enum":["exited","running","killed","timed_out","limit","denied","setup_failed","cancelled"]},
  "exit_code":{"type":"integer","description":"Only when status is exited. Not 0 is an ordinary result"},
  "signal":{"type":"integer"},"limit":{"type":"string"},"error":{"type":"string"},
  "stdout":{"type":"string"},"stderr":{"type":"string"},
  "stdout_bytes":{"type":"integer"},"stderr_bytes":{"type":"integer"},
  "stdout_dropped_bytes":{"type":"integer"},"stderr_dropped_bytes":{"type":"integer"},
  "truncated":{"type":"boolean","description":"Something was left out of stdout or stderr here"},
  "full_output_uri":{"type":"string"},"binary":{"type":"boolean","description":"Bytes that are not text became U+FFFD"},
  "duration_ms":{"type":"integer"},"note":{"type":"string"},
  "notices":{"type":"array","items":{"type":"string"}},
  "warnings":{"type":"array","items":{"type":"string"},"description":"Protections that are weaker than usual"},
  "denials":{"type":"array","items":{"type":"object"}},
  "explanations":{"type":"array","items":{"type":"object"},"description":"If the command failed: what the sandbox's rules refused, and the remedy"})";

}  // namespace

constinit const Tool kExecuteTool{
    .name = "sandbox_execute",
    .title = "Run a command",
    .description =
        "Run a command in the sandbox and get its output. A non-zero exit_code is an ordinary result. A command that "
        "takes longer than 45 seconds (wait_ms) keeps running: the answer has status \"running\" and an exec_id to use "
        "with "
        "sandbox_process. Processes that a command leaves in the background live on in the sandbox. Standard input is "
        "empty unless given; there is no terminal. Long output is shown as its beginning and end.",
    .parameters = kExecuteParameters,
    .output = kExecutionSchema,
    .behaviour = {.destructive = true, .task = true},
    .perform = execute,
};

constinit const Tool kProcessTool{
    .name = "sandbox_process",
    .title = "Wait for, feed or kill a command",
    .description =
        "Wait for a command that sandbox_execute left running or started in the background, look at its output so far, "
        "write to its standard input, or kill it.",
    .parameters = kProcessParameters,
    .output = kExecutionSchema,
    .behaviour = {.destructive = true, .idempotent = true},
    .perform = process,
};

}  // namespace caisson::mcp
