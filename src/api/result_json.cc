#include "api/result_json.h"

#include <csignal>
#include <cstring>

#include "base/base64.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json_writer.h"
#include "base/utf8.h"

namespace caisson {
namespace {

/// Output cut at a byte limit may end inside a character; that does not make it binary.
std::string_view withoutSplitCharacter(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) return text;
    if (byte < 0xC0) continue;
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    return length > back ? text.substr(0, text.size() - back) : text;
  }
  return text;
}

void writeStream(JsonWriter& json, std::string_view name, const Stream& stream) {
  const std::string_view text = stream.truncated ? withoutSplitCharacter(stream.data) : std::string_view(stream.data);
  const bool is_text = isUtf8(text);
  json.key(name).string(is_text ? text : std::string_view(encodeBase64(stream.data)));
  json.key(std::string(name) + "_encoding").string(is_text ? "utf-8" : "base64");
}

void writeTruncated(JsonWriter& json, const RunResult& result) {
  json.key("truncated").beginObject();
  json.key("stdout").boolean(result.out.truncated).key("stderr").boolean(result.err.truncated);
  if (result.out.dropped > 0) json.key("stdout_dropped_bytes").number(result.out.dropped);
  if (result.err.dropped > 0) json.key("stderr_dropped_bytes").number(result.err.dropped);
  json.end();
}

void writeUsage(JsonWriter& json, const Usage& usage) {
  json.key("usage").beginObject();
  json.key("wall_ms").number(usage.wall_ms);
  json.key("user_cpu_ms").number(usage.user_cpu_ms);
  json.key("system_cpu_ms").number(usage.system_cpu_ms);
  json.key("peak_memory_bytes").number(usage.peak_memory_bytes);
  json.key("read_bytes").number(usage.read_bytes);
  json.key("written_bytes").number(usage.written_bytes);
  json.key("processes_peak");
  usage.processes_peak ? json.number(*usage.processes_peak) : json.null();
  json.key("network_bytes").number(usage.network_bytes);
  json.key("network_connections").number(usage.network_connections);
  json.key("network_denied").number(usage.network_denied);
  json.end();
}

void writeDenial(JsonWriter& json, const Denial& denial) {
  json.key("rule").string(denial.rule).key("object").string(denial.object);
  json.key("operation").string(denial.operation).key("remedy").string(denial.remedy);
  if (denial.count > 0) json.key("count").number(denial.count);
}

void writeDenials(JsonWriter& json, const std::vector<Denial>& denials) {
  json.key("denials").beginArray();
  for (const Denial& denial : denials) {
    json.beginObject();
    writeDenial(json, denial);
    json.end();
  }
  json.end();
}

void writeEscape(JsonWriter& json, const Escape& escape) {
  json.key("escape").beginObject();
  json.key("indicator").string(escape.indicator).key("severity").string(escape.severity);
  json.key("reason").string(escape.reason).key("rollback").string(escape.rollback);
  json.key("quarantined").string(escape.quarantined).key("trace").string(escape.trace).end();
}

/// Writes "files", which only results of runs with --learn or --trace files have.
void writeFiles(JsonWriter& json, const std::vector<FileRequest>& files) {
  json.key("files").beginArray();
  for (const FileRequest& request : files) {
    json.beginObject().key("path").string(request.path).key("operation").string(name(request.operation));
    json.key("state").string(name(request.state)).key("count").number(request.count).end();
  }
  json.end();
}

void writeStrings(JsonWriter& json, std::string_view name, const std::vector<std::string>& lines) {
  json.key(name).beginArray();
  for (const std::string& line : lines) json.string(line);
  json.end();
}

void writeError(JsonWriter& json, const Error& error) {
  json.key("error").beginObject();
  json.key("stage").string(name(error.stage));
  json.key("code").string(name(error.code));
  json.key("call").string(error.call);
  json.key("object").string(error.object);
  json.key("errno");
  error.sys_errno != 0 ? json.string(errnoName(error.sys_errno)) : json.null();
  json.key("reason");
  const char* words = error.sys_errno != 0 ? strerrordesc_np(error.sys_errno) : nullptr;
  json.string(error.reason.empty() && words != nullptr ? words : std::string_view(error.reason));
  json.key("hint").string(error.hint);
  json.end();
}

}  // namespace

void writeViolations(JsonWriter& json, const std::vector<Violation>& violations) {
  json.key("violations").beginArray();
  for (const Violation& violation : violations) {
    json.beginObject();
    writeDenial(json, violation);
    json.key("severity").string(violation.severity).key("indicator").string(violation.indicator);
    if (!violation.syscall.empty()) {
      json.key("syscall").string(violation.syscall).key("number").number(violation.number);
      json.key("architecture").string(violation.architecture);
      json.key("arguments").beginArray();
      for (const std::uint64_t argument : violation.arguments) json.string(hex(argument));
      json.end();
      json.key("pid").number(violation.pid).key("program").string(violation.program);
      json.key("errno").string(errnoName(violation.error));
    }
    json.end();
  }
  json.end();
}

std::string renderResult(const RunResult& result) {
  JsonWriter json;
  json.beginObject();
  json.key("version").number(kResultVersion);
  json.key("sandbox_id").string(result.sandbox_id);
  json.key("outcome").string(name(result.outcome));
  json.key("exit_code");
  const bool by_itself = result.outcome == OutcomeKind::limit && result.exit_code != 0;
  result.outcome == OutcomeKind::exited || by_itself ? json.number(result.exit_code) : json.null();
  json.key("signal");
  result.signal != 0 ? json.number(result.signal) : json.null();
  json.key("signal_name");
  const char* abbreviation = result.signal != 0 ? sigabbrev_np(result.signal) : nullptr;
  abbreviation != nullptr ? json.string(std::string("SIG") + abbreviation) : json.null();
  json.key("limit");
  result.limit != Limit::none ? json.string(name(result.limit)) : json.null();
  writeStream(json, "stdout", result.out);
  writeStream(json, "stderr", result.err);
  writeTruncated(json, result);
  json.key("duration_ms").number(result.usage.wall_ms);
  writeUsage(json, result.usage);
  writeDenials(json, result.denials);
  writeViolations(json, result.violations);
  if (result.escape) writeEscape(json, *result.escape);
  if (!result.files.empty()) writeFiles(json, result.files);
  json.key("layers").beginObject();
  for (const auto& [layer, state] : result.layers) json.key(layer).string(state);
  json.end();
  writeStrings(json, "warnings", result.warnings);
  writeStrings(json, "notices", result.notices);
  json.key("lifecycle").beginArray();
  for (const StateChange& step : result.lifecycle)
    json.beginObject().key("state").string(name(step.state)).key("at_ms").number(step.at_ms).end();
  json.end();
  if (result.error) writeError(json, *result.error);
  json.end();
  return json.text();
}

RunResult refusedResult(const Error& error) {
  RunResult result;
  result.outcome = OutcomeKind::setup_failed;
  result.error = error;
  return result;
}

}  // namespace caisson
