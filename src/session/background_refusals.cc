#include "session/background_refusals.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "policy/document.h"
#include "policy/json.h"
#include "session/attendant.h"
#include "session/background_files.h"
#include "session/connection.h"
#include "session/record.h"
#include "session/runner.h"
#include "session/sandbox.h"
#include "supervise/refusals.h"

namespace caisson::session {
namespace {

using Clock = supervise::Refusals::Clock;
using policy::Node;

constexpr int kStartPatienceMs = 30'000;
constexpr std::uint64_t kMaxBytes = 1U << 20;
constexpr std::size_t kLastBytes = 64 * 1024;

/// Of a payload's choice, and no text by itself.
std::string printable(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c < ' ' || c > '~' ? '?' : c;
  return result;
}

std::string encode(const Violation& one) {
  const auto text = [](const char* key, std::string_view value) {
    return ",\"" + std::string(key) + "\":" + policy::jsonString(printable(value));
  };
  std::string json = "{\"number\":" + std::to_string(one.number) + ",\"pid\":" + std::to_string(one.pid) +
                     ",\"errno\":" + std::to_string(one.error) + ",\"count\":" + std::to_string(one.count) +
                     ",\"probe\":" + (one.probe ? "true" : "false") + text("rule", one.rule) +
                     text("object", one.object) + text("operation", one.operation) + text("remedy", one.remedy) +
                     text("syscall", one.syscall) + text("architecture", one.architecture) +
                     text("program", one.program) + text("severity", one.severity) + text("indicator", one.indicator) +
                     ",\"arguments\":[";
  for (int i = 0; i < 6; ++i) json += (i == 0 ? "\"" : ",\"") + std::to_string(one.arguments[i]) + "\"";
  return json + "]}";
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

std::string lastOf(const sys::RootDir& logs, const std::string& name) {
  auto file = logs.openFile(name, {});
  const off_t size = file ? ::lseek(file->get(), 0, SEEK_END) : 0;
  if (size <= 0) return "";
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(size), kLastBytes), '\0');
  const ssize_t got = ::pread(file->get(), text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

class BackgroundListener {
 public:
  BackgroundListener(const Store::Found& found, const sys::RootDir& logs, std::uint32_t exec, const plan::Plan& plan,
                     sys::Fd listener)
      : found_(found),
        logs_(logs),
        exec_(exec),
        plan_(plan),
        refusals_(plan, {.end = [this] { endEverything(); }, .record = [this](const Violation& one) { note(one); }}) {
    refusals_.listen(std::move(listener));
  }
  Result<void> prepare() { return record_.ready(found_.metadata.policy); }
  void listen();

 private:
  void endEverything();
  void note(const Violation& one);
  void keep() { (void)logs_.replaceFile(fileName(exec_, kRefusedEnding), encodeRefused(seen_), 0600); }

  const Store::Found& found_;
  const sys::RootDir& logs_;
  std::uint32_t exec_;
  const plan::Plan& plan_;
  Record record_;
  supervise::Refusals refusals_;
  std::vector<Violation> seen_;
};

/// Without pid 1's help if need be.
void BackgroundListener::endEverything() {
  Request ask;
  ask.ask = Ask::enforce;
  ask.signal = static_cast<std::int32_t>(kEscaped);
  auto connection = Connection::open(found_.directory);
  const bool asked = connection && *connection && (*connection)->ask(ask, "session", found_.metadata.id).has_value();
  if (!asked) (void)endSandbox(found_.directory);
}

void BackgroundListener::note(const Violation& one) {
  const auto known = std::ranges::find_if(seen_, [&](const Violation& old) {
    return old.number == one.number && old.architecture == one.architecture && old.program == one.program &&
           old.rule == one.rule && old.object == one.object;
  });
  known == seen_.end() ? seen_.push_back(one) : static_cast<void>(*known = one);
  record_.callRefused(found_.metadata.id, one);
  keep();
}

void BackgroundListener::listen() {
  while (!refusals_.escape()) {
    pollfd poll{refusals_.descriptor(), POLLIN, 0};
    const auto resume = refusals_.resumeAt();
    if (poll.fd < 0 && !resume) break;  // nobody is left
    int wait = -1;
    if (resume) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*resume - Clock::now()).count();
      wait = static_cast<int>(std::clamp<long long>(left, 0, 60'000));
    }
    const int ready = ::poll(&poll, 1, wait);
    if (ready < 0 && errno != EINTR) break;
    if (ready > 0) refusals_.onEvents(poll.revents);
  }
  RunResult result;
  result.sandbox_id = found_.metadata.id;
  refusals_.report(result);
  if (result.violations.empty()) return;
  seen_ = result.violations;
  keep();
  if (!result.escape) return;
  sigset_t none;  // an alert may start a program, which is not to begin with every signal blocked
  ::sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  explainEscape("session exec", plan_.command.front(), result);
  const supervise::LastOutput last{lastOf(logs_, fileName(exec_, ".out")), lastOf(logs_, fileName(exec_, ".err"))};
  record_.escaped(found_.metadata.policy, plan_, plan_.command, last, result);
  record_.handOver();
}

}  // namespace

std::string encodeRefused(const std::vector<Violation>& violations) {
  std::string json = "{\"violations\":[";
  for (std::size_t i = 0; i < violations.size(); ++i) json += (i == 0 ? "" : ",\n") + encode(violations[i]);
  return json + "]}\n";
}

std::vector<Violation> readRefused(const sys::RootDir& logs, std::uint32_t exec) {
  std::vector<Violation> violations;
  const std::string name = fileName(exec, kRefusedEnding);
  const auto text = logs.readFile(name, kMaxBytes);
  const auto document = text ? policy::readText(*text, policy::Format::json, name) : fail(text.error());
  const Node* list = document ? document->root.find("violations") : nullptr;
  if (list == nullptr) return violations;
  for (const Node& item : list->items) violations.push_back(decode(item));
  return violations;
}

Result<void> listenInBackground(const Place& place, const std::string& id, std::uint32_t exec,
                                const sys::Fd& listener) {
  auto attendant = startAttendant(place, {"refusals", id, std::to_string(exec)}, listener.get());
  if (!attendant) return fail(attendant.error());
  if (awaitLine(*attendant, kStartPatienceMs) == "listening") return {};
  return fail(plainError(Stage::supervise, "session exec", "--background",
                         "the process that listens for its refused calls did not start",
                         "the host may be out of memory or processes; try again"));
}

int listenUntilOver(const std::shared_ptr<Store>& store, std::span<char* const> words, sys::Fd listener, int say) {
  std::uint32_t exec = 0;
  const std::string_view number = words.size() > 1 ? words[1] : "";
  std::from_chars(number.data(), number.data() + number.size(), exec);
  auto found = store->find("session exec", words[0]);
  if (!found || exec == 0) return 1;
  auto logs = found->directory.enter(kLogDirectory);
  if (!logs) return 1;
  const auto command = readCommand(*logs, exec);
  auto planner = Planner::observe(found->directory, found->metadata);
  if (!planner || !command || command->words.empty()) return 1;
  const auto plan = planner->planCommand(found->metadata, {command->words, false});
  if (!plan) return 1;
  BackgroundListener attendant(*found, *logs, exec, *plan, std::move(listener));
  if (!attendant.prepare()) return 1;
  constexpr std::string_view kLine = "listening\n";
  if (::write(say, kLine.data(), kLine.size()) != static_cast<ssize_t>(kLine.size())) return 1;
  ::close(say);
  attendant.listen();
  return 0;
}

}  // namespace caisson::session
