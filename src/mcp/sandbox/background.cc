#include "mcp/sandbox/background.h"

#include <charconv>

#include "base/utf8.h"
#include "mcp/sandbox/explain.h"
#include "mcp/sandbox/resources.h"
#include "mcp/sandbox/tools.h"

namespace caisson::mcp {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// The part of one stream in a response. Hosts cut or reject more than about 50 000 characters.
constexpr std::size_t kShown = 16'000;
constexpr std::size_t kLargestLog = std::size_t{4} << 20U;
constexpr milliseconds kStep{1000};
constexpr int kStepsPerHeartbeat = 5;

void describeEnd(Json& value, const ExecInfo& info) {
  switch (info.outcome) {
    case OutcomeKind::exited:
      value["status"] = "exited";
      value["exit_code"] = info.exit_code;
      return;
    case OutcomeKind::limit:
      value["status"] = info.limit == Limit::time ? "timed_out" : "limit";
      value["limit"] = name(info.limit);
      return;
    case OutcomeKind::denied: value["status"] = "denied"; return;
    default: value["status"] = "killed"; value["signal"] = info.signal;
  }
}

}  // namespace

std::optional<std::uint32_t> backgroundNumber(const std::string& exec_id) {
  std::uint32_t number = 0;
  if (exec_id.size() < 2 || exec_id[0] != 'b') return std::nullopt;
  const char* const end = exec_id.data() + exec_id.size();
  const auto [stop, problem] = std::from_chars(exec_id.data() + 1, end, number);
  return problem == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

std::string backgroundId(std::uint32_t number) { return "b" + std::to_string(number); }

std::string abbreviated(const std::string& text, bool& cut) {
  cut = text.size() > kShown;
  if (!cut) return text;
  std::size_t head = kShown / 2;
  std::size_t tail = text.size() - kShown / 2;
  const auto inside = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U; };
  while (head > 0 && inside(head)) --head;  // not inside a character
  while (tail < text.size() && inside(tail)) ++tail;
  return text.substr(0, head) + "\n[... " + std::to_string(tail - head) + " bytes left out here ...]\n" +
         text.substr(tail);
}

Json describeCommand(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, std::uint32_t number,
                     std::uint64_t offset, const std::string& note) {
  const Result<Json> described = sandboxes.with(sandbox, [&](Session& session) -> Result<Json> {
    const auto info = session.status(number);
    if (!info) return std::unexpected(info.error());
    auto out = session.logs(number, OutputStreamKind::out, offset, kLargestLog);
    if (!out) return std::unexpected(out.error());
    auto err = session.logs(number, OutputStreamKind::err, 0, kLargestLog);
    if (!err) return std::unexpected(err.error());
    bool out_cut = false;
    bool err_cut = false;
    Json value{{"sandbox_id", sandbox.id()}, {"exec_id", backgroundId(number)}, {"status", "running"}};
    value["stdout"] = abbreviated(out->data, out_cut);
    value["stderr"] = abbreviated(err->data, err_cut);
    value["stdout_bytes"] = info->out_bytes;
    value["stderr_bytes"] = info->err_bytes;
    value["truncated"] = out_cut || err_cut;
    const std::string whole = outputUri(sandbox, backgroundId(number), out_cut ? "stdout" : "stderr");
    if (out_cut || err_cut) value["full_output_uri"] = whole;
    if (info->out_dropped > 0) value["stdout_dropped_bytes"] = info->out_dropped;
    if (info->err_dropped > 0) value["stderr_dropped_bytes"] = info->err_dropped;
    if (!isUtf8(out->data) || !isUtf8(err->data)) value["binary"] = true;
    Json denials = Json::array();
    for (const Violation& refused : info->violations)
      denials.push_back(describeDenial(sandboxes.settings().bounds, refused));
    if (!denials.empty()) value["denials"] = std::move(denials);
    if (!note.empty()) value["note"] = note;
    if (const auto whole_session = session.info(); whole_session && !whole_session->warnings.empty())
      value["warnings"] = whole_session->warnings;
    if (!info->running) {
      describeEnd(value, *info);
      value["duration_ms"] = static_cast<std::int64_t>(info->usage.wall_ms);
    }
    const bool denied = !info->running && info->outcome == OutcomeKind::denied;
    const bool failed =
        !info->running && !info->stopped && (info->outcome != OutcomeKind::exited || info->exit_code != 0);
    const Json explanations =
        failed ? explainFailure(sandboxes, sandbox, {{info->violations.begin(), info->violations.end()}, err->data})
               : Json();
    addExplanations(value, explanations);
    Json result = structuredResult(call, std::move(value), denied);
    addExplanationText(result, explanations);
    if (out_cut || err_cut) addLink(call, result, whole, out_cut ? "whole stdout" : "whole stderr", "text/plain");
    return result;
  });
  return described ? *described : failure(call, described.error());
}

Json describeBackground(Sandboxes& sandboxes, Call& call, Sandbox& sandbox, std::uint32_t number, milliseconds patience,
                        std::uint64_t offset) {
  const auto begin = Clock::now();
  for (int steps = 1;; ++steps) {
    const auto left =
        std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(begin + patience - Clock::now()));
    const double seconds = std::chrono::duration<double>(std::min(left, kStep)).count();
    const auto info = sandboxes.with(sandbox, [&](Session& session) { return session.wait(number, seconds); });
    if (!info) return failure(call, info.error());
    if (!info->running || left <= kStep || call.cancelled()) break;
    if (steps % kStepsPerHeartbeat == 0)
      call.progress(std::chrono::duration<double>(Clock::now() - begin).count(), std::nullopt, "still running");
  }
  return describeCommand(sandboxes, call, sandbox, number, offset);
}

}  // namespace caisson::mcp
