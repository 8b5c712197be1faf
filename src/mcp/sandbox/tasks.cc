#include "mcp/sandbox/tasks.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/text.h"
#include "mcp/sandbox/background.h"
#include "mcp/sandbox/tools.h"

namespace caisson::mcp {
namespace {

using std::chrono::milliseconds;

/// So many commands start between two removals of old ones.
constexpr std::uint32_t kRemoveEvery = 16;
constexpr milliseconds kStep{100};
/// The end of each stream that tasks/get shows while the command runs.
constexpr std::uint64_t kPartialBytes = 4000;

RpcError internalError(const Error& error) { return {code::kInternal, error.message(), {}}; }

/// Keys of input requests must never repeat in a task's life, which may be longer than that of this server.
const std::string& serverNonce() {
  static const std::string nonce = [] {
    std::uint64_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random) std::abort();
    return std::to_string(random);
  }();
  return nonce;
}

std::string inputKey(unsigned round) { return "stdin-" + serverNonce() + "-" + std::to_string(round); }

InputRequest inputRequest(const ExecInfo& info) {
  const std::string command = info.command.empty() ? "" : inQuotes(info.command.back(), 200);
  const Json text{{"type", "string"}, {"title", "Text"}, {"description", "A line for its standard input."}};
  const Json end{{"type", "boolean"}, {"title", "End of input"}, {"description", "No more input will follow."}};
  return {"elicitation/create",
          {{"mode", "form"},
           {"message", "The command " + command + " in the sandbox reads from its standard input."},
           {"requestedSchema", {{"type", "object"}, {"properties", {{"text", text}, {"end", end}}}}}}};
}

/// The last bytes of a stream, not beginning inside a character.
Result<std::string> tailOf(Session& session, std::uint32_t number, OutputStreamKind stream, std::uint64_t size) {
  auto piece = session.logs(number, stream, size > kPartialBytes ? size - kPartialBytes : 0, kPartialBytes);
  if (!piece) return std::unexpected(piece.error());
  std::size_t begin = 0;
  while (begin < std::min<std::size_t>(4, piece->data.size()) &&
         (static_cast<unsigned char>(piece->data[begin]) & 0xC0U) == 0x80U)
    ++begin;
  return piece->data.substr(begin);
}

std::string lastLineOf(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return printable(text.substr(text.rfind('\n') + 1), 200);
}

/// What is known of a command that has no result: its output so far.
Result<void> addPartialOutput(Session& session, const TaskReference& reference, const ExecInfo& info, Task& task) {
  const auto out = tailOf(session, reference.number, OutputStreamKind::out, info.out_bytes);
  if (!out) return std::unexpected(out.error());
  const auto err = tailOf(session, reference.number, OutputStreamKind::err, info.err_bytes);
  if (!err) return std::unexpected(err.error());
  if (task.message.empty()) task.message = lastLineOf(out->empty() ? *err : *out);
  task.details = {{"caisson/command",
                   {{"sandbox_id", reference.sandbox},
                    {"exec_id", backgroundId(reference.number)},
                    {"stdout", *out},
                    {"stderr", *err},
                    {"stdout_bytes", info.out_bytes},
                    {"stderr_bytes", info.err_bytes}}}};
  return {};
}

void setStatus(const Call& call, const Sandbox& sandbox, const TaskReference& reference, const ExecInfo& info,
               Task& task) {
  const auto round = reference.takes_input ? sandbox.inputRound(reference.number) : std::nullopt;
  if (info.running && round && call.can("elicitation")) {
    task.status = Task::Status::input_required;
    task.requests.emplace(inputKey(*round), inputRequest(info));
  } else if (info.running) {
    task.status = Task::Status::working;
  } else if (info.stopped) {
    task.status = Task::Status::cancelled;
    task.message = "the command was killed on request";
  } else if (info.ended_with_sandbox) {
    task.status = Task::Status::failed;
    task.message = "the command was killed when its sandbox ended";
    task.error = {code::kInternal,
                  task.message + ": its server exited, or the sandbox was stopped, restored or expired",
                  {{"sandbox_id", sandbox.id()}, {"exec_id", backgroundId(reference.number)}}};
  } else {
    task.status = Task::Status::completed;
  }
}

Result<Task> describe(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, const TaskReference& reference) {
  auto described = sandboxes.with(sandbox, [&](Session& session) -> Result<Task> {
    const auto info = session.status(reference.number);
    if (!info) return std::unexpected(info.error());
    auto whole = session.info();
    if (!whole) return std::unexpected(whole.error());
    // Reading the state uses files only, which does not count as use of the session.
    if (info->running && whole->expires_in > 0 && whole->expires_in < whole->ttl_seconds / 2 &&
        session.renew(whole->ttl_seconds))
      whole->expires_in = whole->ttl_seconds;
    Task task;
    task.created = Task::Clock::time_point(std::chrono::seconds(info->started));
    task.updated = task.created + milliseconds(static_cast<std::int64_t>(info->usage.wall_ms));
    const auto age = std::chrono::duration_cast<milliseconds>(Task::Clock::now() - task.created).count();
    task.ttl_ms = std::max<std::int64_t>(1, age + static_cast<std::int64_t>(whole->expires_in * 1000));
    setStatus(call, sandbox, reference, *info, task);
    if (task.status == Task::Status::completed) return task;
    if (auto added = addPartialOutput(session, reference, *info, task); !added) return std::unexpected(added.error());
    return task;
  });
  if (described && described->status == Task::Status::completed)
    described->result = describeCommand(sandboxes, call, sandbox, reference.number, 0);
  return described;
}

/// Waits for the end of the command; returns whether it ended. A cancelled call waits no longer.
bool awaitSoon(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, std::uint32_t number, milliseconds wait) {
  const auto deadline = Execution::Clock::now() + wait;
  for (;;) {
    const auto left = std::chrono::duration<double>(deadline - Execution::Clock::now()).count();
    const double step = std::clamp(left, 0.0, std::chrono::duration<double>(kStep).count());
    const auto info = sandboxes.with(sandbox, [&](Session& session) { return session.wait(number, step); });
    if (!info || !info->running) return true;
    if (call.cancelled() || left <= 0) return false;
  }
}

/// Writes the answer to the command's standard input. A person who declines ends the input.
std::optional<RpcError> feed(Sandboxes& sandboxes, Sandbox& sandbox, std::uint32_t number, unsigned round,
                             const Json& answer) {
  const Json* content = findObject(answer, "content");
  const bool accepted = textAt(answer, "action") == "accept";
  if (accepted && content == nullptr) return RpcError{code::kInvalidParams, "an accepted answer needs content", {}};
  std::string text = accepted ? textAt(*content, "text").value_or("") : "";
  const bool close = !accepted || booleanAt(*content, "end").value_or(false);
  if (!text.empty() && text.back() != '\n') text += '\n';
  // Not for a command that ended with its sandbox: feed() would start that again.
  const auto info = sandboxes.with(sandbox, [&](Session& session) { return session.status(number); });
  if (!info) return unknownTask();
  if (!info->running || !sandbox.takeInputRound(number, round)) return std::nullopt;
  const auto fed = sandboxes.with(sandbox, [&](Session& session) { return session.feed(number, text, close); });
  if (!fed && fed.error().sys_errno == ETIMEDOUT) return internalError(fed.error());
  if (close || !fed) sandbox.noteInputClosed(number);  // another error: the command ended or closed its input
  return std::nullopt;
}

}  // namespace

std::optional<Outcome> startTask(Sandboxes& sandboxes, Call& call, const SandboxPointer& sandbox,
                                 const ExecRequest& request, const TaskOptions& options) {
  using Started = std::optional<std::uint32_t>;
  const auto started = sandboxes.with(*sandbox, [&](Session& session) -> Result<Started> {
    const auto info = session.info();
    if (!info) return std::unexpected(info.error());
    if (info->directory != "/workspace") return Started();  // the landlock tier, which keeps no processes
    auto number = session.start(request);
    if (!number) return std::unexpected(number.error());
    if (*number % kRemoveEvery == 0) (void)session.dropEnded(kKeptCommands);
    return Started(*number);
  });
  if (!started) return failure(call, started.error());
  if (!*started) return std::nullopt;
  const TaskReference reference{sandbox->id(), **started, request.keep_input};
  const auto id = sealTaskId(reference);
  const bool ended = id && awaitSoon(sandboxes, call, *sandbox, reference.number, options.wait);
  if (!id || (!ended && call.cancelled())) {
    // No client knows the id of the command, so none could kill it later.
    (void)sandboxes.with(*sandbox, [&](Session& session) { return session.stop(reference.number); });
    return id ? Outcome(errorResult("cancelled")) : Outcome(failure(call, id.error()));
  }
  if (ended && call.revision == ProtocolRevision::modern)
    return describeCommand(sandboxes, call, *sandbox, reference.number, 0, options.note);
  auto task = describe(sandboxes, call, *sandbox, reference);
  if (!task) return failure(call, task.error());
  task->id = *id;
  if (!options.note.empty()) task->message = options.note;
  return *std::move(task);
}

std::expected<Task, RpcError> readTask(Sandboxes& sandboxes, const Call& call, const std::string& id) {
  const auto reference = openTaskId(id);
  if (!reference) return std::unexpected(unknownTask());
  const auto sandbox = sandboxes.find(reference->sandbox);
  if (!sandbox) return std::unexpected(unknownTask());
  auto task = describe(sandboxes, call, **sandbox, *reference);
  if (!task) return std::unexpected(unknownTask());  // removed, or destroyed meanwhile
  task->id = id;
  return *std::move(task);
}

std::optional<RpcError> updateTask(Sandboxes& sandboxes, const std::string& id, const Json& answers) {
  const auto reference = openTaskId(id);
  const auto sandbox = reference ? sandboxes.find(reference->sandbox) : std::unexpected(Error{});
  if (!sandbox) return unknownTask();
  const auto round = reference->takes_input ? (*sandbox)->inputRound(reference->number) : std::nullopt;
  const Json* answer = round ? findObject(answers, inputKey(*round)) : nullptr;
  if (answer == nullptr) return std::nullopt;
  return feed(sandboxes, **sandbox, reference->number, *round, *answer);
}

std::optional<RpcError> cancelTask(Sandboxes& sandboxes, const std::string& id) {
  const auto reference = openTaskId(id);
  const auto sandbox = reference ? sandboxes.find(reference->sandbox) : std::unexpected(Error{});
  if (!sandbox) return unknownTask();
  const auto stopped = sandboxes.with(**sandbox, [&](Session& session) { return session.stop(reference->number); });
  if (stopped) return std::nullopt;
  const Stage stage = stopped.error().stage;
  return stage == Stage::state || stage == Stage::usage ? unknownTask() : internalError(stopped.error());
}

}  // namespace caisson::mcp
