#include "session/store/background_files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <ctime>
#include <optional>

#include "base/json_writer.h"
#include "base/text.h"
#include "policy/document/document.h"

namespace caisson::session {
namespace {

using policy::Node;
using sys::RootDir;

constexpr std::uint32_t kMaxNumber = 1U << 30;
constexpr std::size_t kMaxStarted = 10'000;  // records kept in one session
constexpr std::uint64_t kMaxBlockedBytes = 1U << 20;
constexpr std::int64_t kReadSeconds = 10;  // after its end, clients read a command's output
constexpr const char* kBlocked = ".blocked";
constexpr const char* kStopped = ".stopped";
constexpr const char* kEndings[] = {kBlocked, kStopped, ".end", ".err", ".out", ".json"};

std::optional<std::uint32_t> numberOf(std::string_view name, std::string_view ending) {
  if (!name.ends_with(ending)) return std::nullopt;
  name.remove_suffix(ending.size());
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size() || number == 0) return std::nullopt;
  return number;
}

Error noSuchCommand(std::uint32_t exec) {
  return plainError(Stage::state, "session", std::to_string(exec), "there is no such background command in the session",
                    "`caisson session ps ID` lists them");
}

std::string encode(const Violation& one) {
  JsonWriter json;
  // Printable: clients may show it on a terminal.
  constexpr std::size_t kMaxCharacters = 4096;
  const auto text = [&](const char* key, std::string_view value) {
    json.key(key).string(printable(value, kMaxCharacters));
  };
  json.beginObject().key("number").number(one.number).key("pid").number(one.pid).key("errno").number(one.error);
  json.key("count").number(one.count).key("probe").boolean(one.probe);
  text("rule", one.rule);
  text("object", one.object);
  text("operation", one.operation);
  text("remedy", one.remedy);
  text("syscall", one.syscall);
  text("architecture", one.architecture);
  text("program", one.program);
  text("severity", one.severity);
  text("indicator", one.indicator);
  json.key("arguments").beginArray();
  for (const std::uint64_t argument : one.arguments) json.string(std::to_string(argument));
  return json.end().end().text();
}

Violation decode(const Node& node) {
  const auto text = [&](const char* key) {
    const Node* found = node.find(key);
    return found != nullptr ? found->text : "";
  };
  const auto number = [&](const char* key) {
    const Node* found = node.find(key);
    return found != nullptr ? found->integer : 0;
  };
  Violation one;
  one.number = static_cast<int>(number("number"));
  one.pid = static_cast<int>(number("pid"));
  one.error = static_cast<int>(number("errno"));
  one.count = static_cast<std::uint64_t>(number("count"));
  const Node* probe = node.find("probe");
  one.probe = probe != nullptr && probe->boolean;
  one.rule = text("rule");
  one.object = text("object");
  one.operation = text("operation");
  one.remedy = text("remedy");
  one.syscall = text("syscall");
  one.architecture = text("architecture");
  one.program = text("program");
  one.severity = text("severity");
  one.indicator = text("indicator");
  if (const Node* arguments = node.find("arguments")) {
    for (std::size_t i = 0; i < std::min<std::size_t>(6, arguments->items.size()); ++i) {
      const std::string& value = arguments->items[i].text;
      std::from_chars(value.data(), value.data() + value.size(), one.arguments[i]);
    }
  }
  return one;
}

std::vector<Violation> readBlocked(const RootDir& logs, std::uint32_t exec) {
  std::vector<Violation> violations;
  const std::string name = fileName(exec, kBlocked);
  const auto text = logs.readFile(name, kMaxBlockedBytes);
  const auto document = text ? policy::readText(*text, policy::Format::json, name) : fail(text.error());
  const Node* list = document ? document->root.find("violations") : nullptr;
  if (list == nullptr) return violations;
  for (const Node& item : list->items) violations.push_back(decode(item));
  return violations;
}

std::optional<EndRecord> readEnd(const RootDir& logs, std::uint32_t exec) {
  auto text = logs.readFile(fileName(exec, ".end"), 4096);
  EndRecord record;
  // A newer caisson may append members.
  if (!text || text->size() < sizeof(record)) return std::nullopt;
  std::memcpy(&record, text->data(), sizeof(record));
  if (record.mark != kEndRecordMark) return std::nullopt;
  return record;
}

void describeEnd(const EndRecord& record, ExecInfo& info) {
  info.out_dropped = record.dropped[0];
  info.err_dropped = record.dropped[1];
  info.usage.wall_ms = std::abs(record.wall_ms);
  info.ended_with_sandbox = record.wall_ms < 0;
  info.usage.user_cpu_ms = record.user_ms;
  info.usage.system_cpu_ms = record.system_ms;
  info.usage.peak_memory_bytes = record.peak_bytes;
  info.outcome = static_cast<OutcomeKind>(record.outcome);
  info.limit = static_cast<Limit>(record.limit);
  info.stopped = record.stopped != 0;
  if (WIFEXITED(record.status)) info.exit_code = WEXITSTATUS(record.status);
  if (WIFSIGNALED(record.status)) info.signal = WTERMSIG(record.status);
}

}  // namespace

Result<std::uint32_t> claimNumber(const RootDir& logs) {
  auto entries = logs.list("");
  if (!entries) return fail(entries.error());
  std::uint32_t last = 0;
  std::size_t count = 0;
  for (const sys::DirectoryEntry& entry : *entries) {
    const auto number = numberOf(entry.name, ".json");
    if (!number) continue;
    last = std::max(last, *number);
    ++count;
  }
  if (count >= kMaxStarted || last >= kMaxNumber) {
    return fail(plainError(Stage::state, "session exec", "--background", "too many background commands in this session",
                           "make a new session, or fork this one"));
  }
  for (std::uint32_t number = last + 1;; ++number) {
    auto made = logs.openFile(fileName(number, ".json"), {.flags = O_WRONLY | O_CREAT | O_EXCL});
    if (made) return number;
    if (made.error().sys_errno != EEXIST) return fail(made.error());
  }
}

Result<void> writeCommandFile(const RootDir& logs, std::uint32_t exec, const std::vector<std::string>& command) {
  JsonWriter json;
  json.beginObject().key("started").number(std::time(nullptr)).key("command").strings(command).end();
  if (json.text().size() >= policy::kMaxDocumentBytes) {
    return fail(plainError(Stage::usage, "session exec", "--background", "the command is longer than 1 MiB",
                           "put the script into a file of the workspace"));
  }
  return logs.replaceFile(fileName(exec, ".json"), json.text() + "\n", 0600);
}

void removeCommandFiles(const RootDir& logs, std::uint32_t exec) {
  for (const char* ending : kEndings) (void)logs.remove(fileName(exec, ending));
}

Result<void> markStopped(const RootDir& logs, std::uint32_t exec) {
  return logs.replaceFile(fileName(exec, kStopped), "", 0600);
}

Result<void> removeEnded(const RootDir& logs, std::size_t keep, bool sandbox_alive) {
  const auto numbers = listCommands(logs);
  if (!numbers) return fail(numbers.error());
  for (std::size_t at = 0; at + keep < numbers->size(); ++at) {
    const std::uint32_t number = (*numbers)[at];
    if (sandbox_alive && !readEnd(logs, number)) continue;
    removeCommandFiles(logs, number);
  }
  return {};
}

std::uint64_t freeOutput(const RootDir& logs, std::uint32_t exec, std::uint64_t spare) {
  const std::string name = fileName(exec, ".end"), streams[2] = {fileName(exec, ".out"), fileName(exec, ".err")};
  std::uint64_t sizes[2] = {0, 0}, freed = 0;
  for (int stream = 0; stream < 2; ++stream) {
    if (const auto info = logs.stat(streams[stream])) sizes[stream] = info->size;
  }
  if (sizes[0] + sizes[1] == 0) return 0;
  auto text = logs.readFile(name, 4096);
  auto record = readEnd(logs, exec);
  if (!text || !record) return 0;
  const std::int64_t age = std::time(nullptr) - record->ended;
  if (sizes[0] + sizes[1] <= spare && age >= 0 && age < kReadSeconds) return 0;
  for (int stream = 0; stream < 2; ++stream) {
    if (sizes[stream] == 0 || !logs.openFile(streams[stream], {.flags = O_WRONLY | O_TRUNC})) continue;
    record->dropped[stream] += sizes[stream];
    freed += sizes[stream];
  }
  std::memcpy(text->data(), &*record, sizeof(*record));  // a newer caisson may have appended members
  (void)logs.replaceFile(name, *text, 0600);
  return freed;
}

std::uint64_t freeRecord(const RootDir& logs, std::uint32_t exec) {
  if (!readEnd(logs, exec)) return 0;
  std::uint64_t freed = 0;
  for (const char* ending : kEndings) {
    if (const auto info = logs.stat(fileName(exec, ending))) freed += info->size;
  }
  removeCommandFiles(logs, exec);
  return freed;
}

Result<void> writeEnd(const RootDir& logs, std::uint32_t exec, EndRecord record) {
  // In the same file as the end: a stop that comes later must not change how an ended command looks.
  record.stopped = logs.stat(fileName(exec, kStopped)).has_value() ? 1 : 0;
  return logs.replaceFile(fileName(exec, ".end"), {reinterpret_cast<const char*>(&record), sizeof(record)}, 0600);
}

void writeMissingEnds(const RootDir& logs) {
  const auto numbers = listCommands(logs);
  for (const std::uint32_t number : numbers ? *numbers : std::vector<std::uint32_t>{}) {
    if (readEnd(logs, number)) continue;
    EndRecord record;
    record.status = SIGKILL;
    record.outcome = static_cast<std::uint32_t>(OutcomeKind::signaled);
    record.wall_ms = -1;
    record.ended = std::time(nullptr);
    (void)writeEnd(logs, number, record);
  }
}

Result<void> writeBlocked(const RootDir& logs, std::uint32_t exec, const std::vector<Violation>& violations) {
  std::string json = "{\"violations\":[";
  for (std::size_t i = 0; i < violations.size(); ++i) json += (i == 0 ? "" : ",\n") + encode(violations[i]);
  return logs.replaceFile(fileName(exec, kBlocked), json + "]}\n", 0600);
}

Result<std::vector<std::uint32_t>> listCommands(const RootDir& logs) {
  auto entries = logs.list("");
  if (!entries) return fail(entries.error());
  std::vector<std::uint32_t> numbers;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (const auto number = numberOf(entry.name, ".json")) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Result<ExecInfo> describeCommand(const RootDir& logs, std::uint32_t exec, bool sandbox_alive) {
  const std::string name = fileName(exec, ".json");
  auto text = logs.readFile(name, policy::kMaxDocumentBytes);
  if (!text) return fail(text.error().sys_errno == ENOENT ? noSuchCommand(exec) : text.error());
  ExecInfo info;
  info.exec = exec;
  if (const auto document = policy::readText(*text, policy::Format::json, name)) {
    if (const auto* started = document->root.find("started")) info.started = started->integer;
    if (const auto* words = document->root.find("command")) {
      for (const Node& word : words->items) info.command.push_back(word.text);
    }
  }
  info.violations = readBlocked(logs, exec);
  if (const auto size = logs.stat(fileName(exec, ".out"))) info.out_bytes = size->size;
  if (const auto size = logs.stat(fileName(exec, ".err"))) info.err_bytes = size->size;
  const auto end = readEnd(logs, exec);
  info.running = !end && sandbox_alive;
  if (end) {
    describeEnd(*end, info);
  } else if (!info.running) {  // it ended together with the sandbox
    info.stopped = logs.stat(fileName(exec, kStopped)).has_value();
    info.outcome = OutcomeKind::signaled;
    info.signal = SIGKILL;
    info.ended_with_sandbox = true;
  }
  return info;
}

}  // namespace caisson::session
