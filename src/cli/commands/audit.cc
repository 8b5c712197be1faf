// `caisson audit show|verify`: prints the audit log and checks it for tampering.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <deque>

#include "audit/chain.h"
#include "audit/check.h"
#include "audit/reader.h"
#include "base/json_value.h"
#include "base/json_writer.h"
#include "base/shell_quote.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/safe_text.h"
#include "cli/verb.h"
#include "policy/document/document.h"
#include "policy/units.h"

namespace caisson::cli {
namespace {

constexpr Option kSince{
    .name = "since", .value = "TIME", .help = "From this time on: 2026-01-31T12:00, or 90s, 15m, 2h ago."};
constexpr Option kUntil{.name = "until", .value = "TIME", .help = "Up to this time, written the same way."};
constexpr Option kSandbox{
    .name = "sandbox", .value = "ID", .help = "Only this sandbox; the start of its id is enough."};
constexpr Option kEvent{.name = "event", .value = "EVENT", .help = "Only this kind of event.", .repeatable = true};
constexpr Option kSeverity{
    .name = "severity", .value = "INFO|WARN|ERROR|CRITICAL", .help = "Only events at least as severe as this."};
constexpr Option kLast{.name = "last", .letter = 'n', .value = "N", .help = "Only the last N matching events."};
constexpr Option kFollow{.name = "follow", .letter = 'f', .help = "Go on with what is added, until interrupted."};
constexpr Option kJson{.name = "json", .help = "Print the lines as they are on record."};
constexpr Option kShowFilters[] = {kSince, kUntil, kSandbox, kEvent, kSeverity, kLast};
constexpr Option kShowOutput[] = {kFollow, kJson};
constexpr OptionGroup kShowGroups[] = {{"What", kShowFilters}, {"Output", kShowOutput}};

constexpr Option kAnchor{
    .name = "anchor",
    .value = "ANCHOR",
    .help =
        "A head (SEQ:HASH) that an earlier `audit verify` printed, or a file with it: that line must "
        "still be in the log."};
constexpr Option kKey{.name = "key", .value = "FILE", .help = "The chain's first key, if it is kept elsewhere."};
constexpr Option kVerifyJson{.name = "json", .help = "Print the findings as JSON."};
constexpr Option kVerifyOptions[] = {kAnchor, kKey, kVerifyJson};
constexpr OptionGroup kVerifyGroups[] = {{"Options", kVerifyOptions}};

struct Filter {
  std::string since, until, sandbox;
  std::vector<std::string> events;
  audit::Severity severity = audit::Severity::info;

  [[nodiscard]] bool takes(const audit::Entry& entry) const {
    if (!since.empty() && entry.time < since) return false;
    if (!until.empty() && entry.time > until) return false;
    if (!entry.sandbox.starts_with(sandbox)) return false;
    if (entry.severity < severity) return false;
    return events.empty() || std::find(events.begin(), events.end(), entry.event) != events.end();
  }
};

bool looksLikeDate(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-dd";
  if (text.size() < kShape.size()) return false;
  for (std::size_t at = 0; at < kShape.size(); ++at) {
    const bool digit = text[at] >= '0' && text[at] <= '9';
    if (kShape[at] == 'd' ? !digit : text[at] != '-') return false;
  }
  return text.size() == kShape.size() || text[kShape.size()] == 'T' || text[kShape.size()] == ' ';
}

/// Converts a time to the log's format, so that both compare as text. Recorded times are UTC.
Result<std::string> timeFrom(std::string_view option, std::string_view text) {
  if (looksLikeDate(text)) {
    std::string time(text);
    if (time.size() > 10) time[10] = 'T';
    return time;
  }
  const auto ago = policy::parseSeconds(text);
  if (!ago)
    return fail(usageError(option, "invalid time " + inQuotes(text) +
                                       ": expected 2026-01-31, 2026-01-31T12:00 (UTC) or an age such as 15m"));
  return audit::timeText((static_cast<std::int64_t>(::time(nullptr)) - static_cast<std::int64_t>(*ago)) *
                         1'000'000'000);
}

Result<Filter> filterFrom(const Arguments& arguments) {
  Filter filter;
  if (const auto text = arguments.value(kSince)) {
    auto time = timeFrom("--since", *text);
    if (!time) return fail(time.error());
    filter.since = *std::move(time);
  }
  if (const auto text = arguments.value(kUntil)) {
    auto time = timeFrom("--until", *text);
    if (!time) return fail(time.error());
    filter.until = *std::move(time) + "~";  // includes fractions of that second
  }
  filter.sandbox = arguments.value(kSandbox).value_or("");
  for (const Given& given : arguments.given) {
    if (given.option->name != kEvent.name) continue;
    if (!audit::eventNamed(given.value))
      return fail(usageError(given.value, "no event is called that", "one of these: " + audit::eventNames()));
    filter.events.emplace_back(given.value);
  }
  if (const auto text = arguments.value(kSeverity)) filter.severity = *audit::severityNamed(*text);
  return filter;
}

std::string_view colourOf(audit::Severity severity) {
  switch (severity) {
    case audit::Severity::info: return "";
    case audit::Severity::warn: return "\033[33m";
    case audit::Severity::error: return "\033[31m";
    case audit::Severity::critical: return "\033[1;31m";
  }
  return "";
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

/// {"limit":"time","n":3} as `limit=time n=3`.
std::string plainDetails(const std::string& data) {
  const auto object = JsonValue::parse(data);
  std::string text;
  if (!object) return text;
  for (const auto& [key, value] : object->members()) {
    // Text that a payload chose cannot end its quotes and go on as another pair, also not after a space of another
    // script, which is quoted like all that is not ASCII.
    const std::string word = shellQuoted(value.text().value_or(value.written()), "!\"#$&()*;<>?[]^`{|}~");
    text += (text.empty() ? "  " : " ") + key + "=" + word;
  }
  return text;
}

std::string tableRow(const audit::Entry& entry, bool colour) {
  const std::string_view paint = colour ? colourOf(entry.severity) : "";
  std::string row = entry.time.substr(0, 23) + "Z  ";
  row += std::string(paint) + padded(std::string(name(entry.severity)), 8) + (paint.empty() ? "" : "\033[0m") + "  ";
  row += padded(safeLine(entry.event), 18) + "  " + padded(safeLine(entry.sandbox.substr(0, 15)), 15);
  row += safeLine(plainDetails(entry.data));
  while (row.ends_with(' ')) row.pop_back();
  return row + "\n";
}

Result<std::string> directory() {
  std::string path = audit::logDirectory();
  if (path.empty())
    return fail(plainError(Stage::state, "audit", "", "neither CAISSON_HOME nor HOME is set", "set CAISSON_HOME"));
  return path;
}

int show(const Arguments& arguments) {
  const auto filter = filterFrom(arguments);
  if (!filter) return printError(filter.error());
  std::uint64_t last = 0;
  if (const auto text = arguments.value(kLast)) {
    const auto number = policy::parseSize(*text);
    if (!number || *number == 0) return printError(usageError(*text, "--last takes a number above 0"));
    last = *number;
  }
  const auto path = directory();
  if (!path) return printError(path.error());
  auto reader = audit::Reader::open(*path);
  if (!reader) return printError(reader.error());

  const bool json = arguments.has(kJson);
  const bool colour = wantsColour(1);
  std::deque<std::string> kept;
  std::string batch;
  int status = 0;
  const auto flush = [&] {
    if (!batch.empty() && status == 0) status = colour && !json ? printBytes(batch) : print(batch);
    batch.clear();
  };
  bool first_pass = true;
  const auto take = [&](audit::Entry&& entry, std::string_view line) {
    if (!filter->takes(entry)) return;
    std::string text = json ? std::string(line) : tableRow(entry, colour);
    if (last != 0 && first_pass) {
      kept.push_back(std::move(text));
      if (kept.size() > last) kept.pop_front();
      return;
    }
    batch += text;
    if (batch.size() > 64 * 1024) flush();
  };
  for (;;) {
    if (const auto read = reader->read(take); !read) return printError(read.error());
    for (const std::string& text : kept) batch += text;
    kept.clear();
    flush();
    first_pass = false;
    if (!arguments.has(kFollow) || status != 0) break;
    const timespec pause{0, 200'000'000};
    ::nanosleep(&pause, nullptr);
  }
  if (reader->foreign() > 0)
    printNotice(std::to_string(reader->foreign()) + " lines are not the log's own; see `caisson audit verify`");
  return status;
}

/// The text of a file that an option names, without the line end. `form`: of what should be in it.
Result<std::string> fileText(std::string_view path, std::string_view form) {
  auto text = policy::readRegularFile(std::string(path));
  if (!text && text.error().sys_errno != 0)
    return fail(sysError(Stage::usage, text.error().call, path, text.error().sys_errno, form));
  if (!text) return fail(usageError(path, "not a regular file, or too large", form));
  while (!text->empty() && (text->back() == '\n' || text->back() == ' ')) text->pop_back();
  return text;
}

Result<std::string> anchorFrom(std::string_view given) {
  constexpr std::string_view kForm =
      "an anchor is SEQ:HASH, the number of a line and 64 hexadecimal digits, as `caisson audit verify` prints it";
  std::uint64_t seq = 0;
  Digest hash;
  if (audit::parseAnchor(given, seq, hash)) return std::string(given);
  auto text = fileText(given, kForm);
  if (!text && text.error().sys_errno == ENOENT)
    return fail(usageError(given, "malformed anchor, and no file has this name", kForm));
  if (text && !audit::parseAnchor(*text, seq, hash)) return fail(usageError(given, "the file holds no anchor", kForm));
  return text;
}

Result<audit::CheckOptions> checkOptionsFrom(const Arguments& arguments) {
  audit::CheckOptions options;
  if (const auto given = arguments.value(kAnchor)) {
    auto anchor = anchorFrom(*given);
    if (!anchor) return fail(anchor.error());
    options.anchor = *std::move(anchor);
  }
  if (const auto file = arguments.value(kKey)) {
    const auto text = fileText(*file, "--key takes a file with 64 hexadecimal digits on one line");
    if (!text) return fail(text.error());
    Digest key;
    if (!readHex(*text, key)) return fail(usageError(*file, "a key is 64 hexadecimal digits on one line"));
    options.first_key = key;
  }
  return options;
}

std::string reportAsJson(const audit::CheckReport& report) {
  JsonWriter json;
  json.beginObject().key("whole").boolean(report.whole());
  json.key("files").number(report.files).key("lines").number(report.lines);
  json.key("first_seq").number(report.first_seq).key("last_seq").number(report.last_seq);
  json.key("head").string(report.head).key("macs_checked").boolean(report.macs_checked);
  json.key("findings").beginArray();
  for (const audit::Finding& finding : report.findings) {
    json.beginObject().key("file").string(finding.file).key("line").number(finding.line);
    json.key("what").string(finding.what).end();
  }
  json.end().key("notes").beginArray();
  for (const std::string& note : report.notes) json.string(note);
  json.end().end();
  return json.text() + "\n";
}

std::string reportAsText(const audit::CheckReport& report) {
  std::string text;
  for (const audit::Finding& finding : report.findings) {
    text += safeLine(finding.file) + (finding.line == 0 ? "" : ":" + std::to_string(finding.line)) + ": " +
            safeLine(finding.what) + "\n";
  }
  for (const std::string& note : report.notes) text += "note: " + safeLine(note) + "\n";
  text += std::to_string(report.lines) + " lines in " + std::to_string(report.files) + " files, ";
  text += report.whole() ? "whole" : std::to_string(report.findings.size()) + " findings";
  if (!report.head.empty()) text += "\nhead: " + report.head;
  return text + "\n";
}

int verify(const Arguments& arguments) {
  const auto options = checkOptionsFrom(arguments);
  if (!options) return printError(options.error());
  const auto path = directory();
  if (!path) return printError(path.error());
  const auto report = audit::checkLog(*path, *options);
  if (!report) return printError(report.error());
  const int failed = print(arguments.has(kVerifyJson) ? reportAsJson(*report) : reportAsText(*report));
  return failed != 0 ? failed : report->whole() ? 0 : 1;
}

constinit const Verb kAuditShow{
    .path = "audit show",
    .summary = "Show the audit log: runs, denials, limits",
    .description = "Prints the audit log, oldest first. Times are UTC.",
    .examples =
        "caisson audit show --since 1h --severity WARN\n"
        "caisson audit show --follow --json",
    .topic = Topic::machine,
    .syntax = {.groups = kShowGroups},
    .perform = show,
};

constinit const Verb kAuditVerify{
    .path = "audit verify",
    .summary = "Find edits, gaps and cuts in the audit log",
    .description =
        "Checks every line's hash and MAC, the order of lines and files, and that the log ends where it was last "
        "written. "
        "Prints the head; kept elsewhere and given back with --anchor, it shows even that the whole log was replaced "
        "by an "
        "older copy. The exit status is 1 if anything was found.",
    .examples =
        "caisson audit verify\n"
        "caisson audit verify --anchor 1234:9f86d081...",
    .topic = Topic::machine,
    .syntax = {.groups = kVerifyGroups},
    .perform = verify,
};

constexpr const Verb* kVerbs[] = {&kAuditShow, &kAuditVerify};

}  // namespace

constinit const Verb kAudit{
    .path = "audit",
    .summary = "Show or check the audit log",
    .topic = Topic::machine,
    .verbs = kVerbs,
};

}  // namespace caisson::cli
