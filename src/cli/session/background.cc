// `caisson session ps|logs|stop`: background commands.
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <thread>

#include "api/result_json.h"
#include "base/json_writer.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kJson{.name = "json", .help = "Print one JSON object."};
constexpr Option kPsOptions[] = {kJson};
constexpr OptionGroup kPsGroups[] = {{"Output", kPsOptions}};

constexpr Option kFollow{.name = "follow", .letter = 'f', .help = "Go on until the command ends."};
constexpr Option kOffset{
    .name = "offset", .value = "BYTES", .help = "Leave out this much of each stream (default: 0)."};
constexpr Option kLogOptions[] = {kFollow, kOffset};
constexpr OptionGroup kLogGroups[] = {{"Options", kLogOptions}};

constexpr Option kLeftBehind{.name = "left-behind",
                             .help = "End the processes whose commands have ended, instead of a command."};
constexpr Option kGrace{.name = "grace", .value = "DUR", .help = "Time between SIGTERM and SIGKILL (default: 2s)."};
constexpr Option kStopOptions[] = {kGrace, kLeftBehind};
constexpr OptionGroup kStopGroups[] = {{"Options", kStopOptions}};

constexpr std::size_t kPiece = 1U << 20;

Result<std::uint64_t> numberFrom(std::string_view text, std::string_view what) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size()) return number;
  return fail(usageError(text, std::string(what) + " is expected", "caisson session ps ID"));
}

Result<std::uint32_t> execFrom(const Arguments& arguments) {
  auto number = numberFrom(arguments.operands[1], "the number of a background command");
  if (!number) return fail(number.error());
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(*number, UINT32_MAX));
}

std::string stateOf(const ExecInfo& info) {
  if (info.running) return "running";
  if (info.outcome == OutcomeKind::exited) return "exited " + std::to_string(info.exit_code);
  if (info.outcome == OutcomeKind::limit) return "limit " + std::string(name(info.limit));
  if (info.outcome == OutcomeKind::denied) return "denied";
  return "signal " + std::to_string(info.signal);
}

std::string refusalsOf(const ExecInfo& info) {
  std::uint64_t count = 0;
  for (const Violation& one : info.violations) count += one.count;
  return count == 0 ? "" : "  (" + std::to_string(count) + (count == 1 ? " refused call)" : " refused calls)");
}

int ps(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session ps", 1, 1);
  if (!session) return printError(session.error());
  const auto infos = session->processes();
  if (!infos) return printError(infos.error());
  const auto left = session->leftBehind();
  if (!left) return printError(left.error());
  if (!arguments.has(kJson)) {
    std::string text;
    for (const ExecInfo& info : *infos) {
      text += std::to_string(info.exec) + "  " + stateOf(info) + " ";
      for (const std::string& word : info.command) text += " " + safeLine(word);
      text += refusalsOf(info) + "\n";
    }
    for (const LeftBehind& one : *left) {
      text += "left behind  pid " + std::to_string(one.pid) + "  " + safeLine(one.program) + "\n";
    }
    return print(text);
  }
  JsonWriter json;
  json.beginObject().key("commands").beginArray();
  for (const ExecInfo& info : *infos) {
    json.beginObject().key("exec").number(info.exec).key("command").beginArray();
    for (const std::string& word : info.command) json.string(word);
    json.end().key("started").number(info.started).key("running").boolean(info.running);
    json.key("outcome");
    info.running ? json.null() : json.string(name(info.outcome));
    json.key("exit_code").number(info.exit_code).key("signal").number(info.signal);
    json.key("stdout_bytes").number(info.out_bytes).key("stderr_bytes").number(info.err_bytes);
    json.key("stdout_dropped").number(info.out_dropped).key("stderr_dropped").number(info.err_dropped);
    writeViolations(json, info.violations);
    json.end();
  }
  json.end().key("left_behind").beginArray();
  for (const LeftBehind& one : *left) {
    json.beginObject().key("pid").number(one.pid).key("program").string(one.program).end();
  }
  json.end().end();
  return print(json.text() + "\n");
}

int logs(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session logs", 2, 2);
  if (!session) return printError(session.error());
  const auto exec = execFrom(arguments);
  if (!exec) return printError(exec.error());
  std::uint64_t offsets[2] = {0, 0};
  if (const auto text = arguments.value(kOffset)) {
    const auto offset = numberFrom(*text, "a number of bytes");
    if (!offset) return printError(offset.error());
    offsets[0] = offsets[1] = *offset;
  }
  bool ended[2] = {false, false};
  while (!ended[0] || !ended[1]) {
    bool moved = false;
    for (int stream = 0; stream < 2; ++stream) {
      const auto piece =
          session->logs(*exec, stream == 0 ? OutputStreamKind::out : OutputStreamKind::err, offsets[stream], kPiece);
      if (!piece) return printError(piece.error());
      if (writeContent(stream == 0 ? STDOUT_FILENO : STDERR_FILENO, piece->data) != 0) return 0;  // the reader is gone
      moved = moved || !piece->data.empty();
      offsets[stream] = piece->next;
      ended[stream] = piece->end;
    }
    if (moved) continue;
    if (!arguments.has(kFollow)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  const auto info = session->status(*exec);
  if (info && info->out_dropped + info->err_dropped > 0) {
    printNotice(std::to_string(info->out_dropped + info->err_dropped) + " bytes beyond the output limit were dropped");
  }
  for (const Violation& one : info ? info->violations : std::vector<Violation>{}) {
    printNotice("refused: " + one.syscall + " (" + one.severity + "), " + std::to_string(one.count) +
                (one.count == 1 ? " time, by " : " times, by ") + safeLine(one.program));
  }
  return 0;
}

int stop(const Arguments& arguments) {
  const bool left_behind = arguments.has(kLeftBehind);
  auto session = sessionOf(arguments, "session stop", left_behind ? 1 : 2, left_behind ? 1 : 2);
  if (!session) return printError(session.error());
  double grace = 2;
  if (const auto text = arguments.value(kGrace)) {
    const auto seconds = secondsFrom(*text, "--grace");
    if (!seconds) return printError(seconds.error());
    grace = *seconds;
  }
  if (left_behind) {
    const auto stopped = session->stopLeftBehind(grace);
    if (!stopped) return printError(stopped.error());
    for (const LeftBehind& one : *stopped)
      printNotice("ended: pid " + std::to_string(one.pid) + " " + safeLine(one.program));
    return 0;
  }
  const auto exec = execFrom(arguments);
  if (!exec) return printError(exec.error());
  if (auto stopped = session->stop(*exec, grace); !stopped) return printError(stopped.error());
  return 0;
}

}  // namespace

constinit const Verb kSessionPs{
    .path = "session ps",
    .summary = "List a session's background commands",
    .description =
        "Running and ended ones, by their numbers; then processes that were left behind by commands that have ended. "
        "While one of those runs, `checkpoint`, `restore` and `fork` need --stop.",
    .topic = Topic::session,
    .syntax = {.groups = kPsGroups, .operands = "ID"},
    .perform = ps,
};

constinit const Verb kSessionLogs{
    .path = "session logs",
    .summary = "Print what a background command wrote",
    .description = "Its standard output to standard output, its standard error to standard error.",
    .examples = "caisson session logs --follow fix-login 1",
    .topic = Topic::session,
    .syntax = {.groups = kLogGroups, .operands = "ID EXEC"},
    .perform = logs,
};

constinit const Verb kSessionStop{
    .path = "session stop",
    .summary = "End a background command",
    .description =
        "Sends SIGTERM to all its processes, and SIGKILL after --grace. With --left-behind and without EXEC: the "
        "processes that `caisson session ps` lists as left behind.",
    .examples =
        "caisson session stop fix-login 1\n"
        "caisson session stop --left-behind fix-login",
    .topic = Topic::session,
    .syntax = {.groups = kStopGroups, .operands = "ID [EXEC]"},
    .perform = stop,
};

}  // namespace caisson::cli
