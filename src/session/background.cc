// Commands that live on in the session: what is kept of them (background_files.h), and how they are reached again. pid
// 1 gets these files open; it knows none of their names.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

#include "policy/document.h"
#include "policy/json.h"
#include "session/attendant.h"
#include "session/background_files.h"
#include "session/background_refusals.h"
#include "session/handle.h"
#include "session/runner.h"
#include "supervise/changes.h"
#include "supervise/signal_relay.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::RootDir;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kMaxNumber = 1U << 30;
constexpr std::size_t kMaxStarted = 10'000;  // records kept in one session

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

/// The next free number; its file is made, so nobody else gets it.
Result<std::uint32_t> takeNumber(const RootDir& logs) {
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

std::string describeCommand(const ExecRequest& request) {
  std::string text = "{\"started\":" + std::to_string(std::time(nullptr)) + ",\"command\":[";
  for (std::size_t i = 0; i < request.command.size(); ++i) {
    text += (i == 0 ? "" : ",") + policy::jsonString(request.command[i]);
  }
  return text + "]}\n";
}

/// Standard input of a background command: what was given, as a file.
Result<Fd> inputFile(const std::string& input) {
  if (input.empty()) {
    Fd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null) return fail(sysError(Stage::launch, "open", "/dev/null", errno));
    return null;
  }
  Fd file(::memfd_create("input", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  for (std::size_t done = 0; file && done < input.size();) {
    const ssize_t wrote = ::write(file.get(), input.data() + done, input.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return fail(sysError(Stage::launch, "write", "input", errno));
    done += static_cast<std::size_t>(wrote);
  }
  if (!file || ::lseek(file.get(), 0, SEEK_SET) != 0) return fail(sysError(Stage::launch, "memfd", "input", errno));
  ::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
  return file;
}

std::optional<EndRecord> readEnd(const RootDir& logs, std::uint32_t exec) {
  auto text = logs.readFile(fileName(exec, ".end"), 4096);
  EndRecord record;
  if (!text || text->size() != sizeof(record)) return std::nullopt;
  std::copy(text->begin(), text->end(), reinterpret_cast<char*>(&record));
  if (record.mark != kRecordMark) return std::nullopt;
  return record;
}

void describeEnd(const EndRecord& record, ExecInfo& info) {
  info.out_dropped = record.dropped[0];
  info.err_dropped = record.dropped[1];
  info.usage.wall_ms = static_cast<double>(record.elapsed_ms);
  info.usage.user_cpu_ms = static_cast<double>(record.user_us) / 1e3;
  info.usage.system_cpu_ms = static_cast<double>(record.system_us) / 1e3;
  info.usage.peak_memory_bytes = static_cast<std::uint64_t>(record.peak_kib) * 1024;
  if (record.limit == kEscaped) {
    info.outcome = OutcomeKind::denied;
  } else if (record.timed_out != 0 || record.limit != 0) {
    info.outcome = OutcomeKind::limit;
    info.limit = record.timed_out != 0 ? Limit::time : static_cast<Limit>(record.limit);
  } else if (WIFEXITED(record.status)) {
    info.outcome = OutcomeKind::exited;
    info.exit_code = WEXITSTATUS(record.status);
  } else {
    info.outcome = OutcomeKind::signaled;
    info.signal = WTERMSIG(record.status);
  }
}

Result<ExecInfo> describe(const RootDir& directory, const RootDir& logs, std::uint32_t exec) {
  auto command = readCommand(logs, exec);
  if (!command) return fail(command.error().sys_errno == ENOENT ? noSuchCommand(exec) : command.error());
  ExecInfo info;
  info.exec = exec;
  info.started = command->started;
  info.command = std::move(command->words);
  info.violations = readRefused(logs, exec);
  if (const auto size = logs.stat(fileName(exec, ".out"))) info.out_bytes = size->size;
  if (const auto size = logs.stat(fileName(exec, ".err"))) info.err_bytes = size->size;
  // In this order: pid 1 writes the record before it can end.
  const bool alive = isAlive(directory);
  const auto end = readEnd(logs, exec);
  info.running = !end && alive;
  if (end) {
    describeEnd(*end, info);
  } else if (!info.running) {  // it ended together with the sandbox
    info.outcome = OutcomeKind::signaled;
    info.signal = SIGKILL;
  }
  return info;
}

}  // namespace

Result<StartedCommand> readCommand(const RootDir& logs, std::uint32_t exec) {
  auto text = logs.readFile(fileName(exec, ".json"), policy::kMaxDocumentBytes);
  if (!text) return fail(text.error());
  StartedCommand command;
  const auto document = policy::readText(*text, policy::Format::json, fileName(exec, ".json"));
  if (!document) return command;
  if (const auto* started = document->root.find("started")) command.started = started->integer;
  if (const auto* words = document->root.find("command")) {
    for (const policy::Node& word : words->items) command.words.push_back(word.text);
  }
  return command;
}

Result<RootDir> Handle::logDirectory() { return directory_.enter(kLogDirectory); }

void Handle::recordEndedCommands() {
  auto logs = logDirectory();
  auto entries = logs ? logs->list("") : fail(logs.error());
  if (!entries) return;
  for (const sys::DirectoryEntry& entry : *entries) {
    const auto number = numberOf(entry.name, ".json");
    if (!number || readEnd(*logs, *number)) continue;
    // Somebody may be about to start it in the next sandbox: that empties this record again.
    EndRecord record;
    record.status = SIGKILL;
    record.ended = std::time(nullptr);
    const std::string_view bytes(reinterpret_cast<const char*>(&record), sizeof(record));
    (void)logs->writeFileAtomic(fileName(*number, ".end"), bytes, 0600);
  }
}

Result<std::uint32_t> Handle::start(const ExecRequest& request) {
  if (auto checked = checkExec(request, metadata_.policy); !checked) return fail(checked.error());
  if (request.interactive || request.relay_stdin) {
    return fail(plainError(Stage::usage, "session exec", "--background", "a background command has no terminal",
                           "give its input beforehand, or keep it open and feed it"));
  }
  if (auto reviewed = reviewHosts(); !reviewed) return fail(reviewed.error());
  if (metadata_.auto_checkpoint) {
    if (auto made = checkpointIfChanged(); !made) return fail(made.error());
  }
  auto logs = logDirectory();
  if (!logs) return fail(logs.error());
  auto number = takeNumber(*logs);
  if (!number) return fail(number.error());
  const auto forget = [&] {
    for (const char* ending : {kRefusedEnding, ".end", ".err", ".out", ".json"})
      (void)logs->remove(fileName(*number, ending));
  };
  const auto begin = [&]() -> Result<bool> {
    auto connection = connect();
    if (!connection) return fail(connection.error());
    auto plan = planFor(request);
    if (!plan) return fail(plan.error());
    if (auto recorded = record_.starting(id(), metadata_.policy, *plan, request.command, true); !recorded) {
      return fail(recorded.error());
    }
    // Without a process that listens, calls are refused all the same, and nobody hears of it.
    auto compiled = compileCommand(*plan, {}, hasAttendants());
    if (!compiled) return fail(compiled.error());
    auto input = inputFile(request.input);
    if (!input) return fail(input.error());
    Fd files[3];
    const char* const endings[] = {".out", ".err", ".end"};
    for (int i = 0; i < 3; ++i) {
      auto file = logs->openFile(fileName(*number, endings[i]), {.flags = O_WRONLY | O_CREAT | O_TRUNC});
      if (!file) return fail(file.error());
      files[i] = std::move(*file);
    }
    Request ask;
    ask.ask = Ask::background;
    ask.address = compiled->address;
    ask.bytes = compiled->bytes;
    ask.exec = *number;
    ask.limit = plan->output_bytes;
    ask.cpu_ms = plan->cpu_seconds ? std::max<std::int64_t>(1, std::llround(*plan->cpu_seconds * 1e3)) : 0;
    ask.milliseconds = request.timeout_seconds ? static_cast<std::int64_t>(*request.timeout_seconds * 1e3) : 0;
    if (request.keep_input) ask.flags = kKeepInput;
    const int descriptors[] = {compiled->file.get(), input->get(), files[0].get(), files[1].get(), files[2].get()};
    bool closed = false;
    std::optional<Connection::Said> said;
    if (!(*connection)->send(ask, descriptors) || !(said = (*connection)->receive(true, closed))) return false;
    if (const auto* message = std::get_if<isolation::Message>(&said->what)) {
      (void)(*connection)->receive(true, closed);  // that it started, which it did to say this
      Error error = errorOf(*message);
      supervise::explainFailure(error, *plan);
      return fail(error);
    }
    const Reply& reply = std::get<Reply>(said->what);
    if (reply.say == Say::started) {
      if ((reply.value & kListener) != 0) {
        if (auto heard = listenInBackground(store_->place(), id(), *number, said->descriptor); !heard) {
          Request end;
          end.ask = Ask::signal;
          end.exec = *number;
          end.signal = SIGKILL;
          (void)(*connection)->ask(end, "session exec", id());
          return fail(heard.error());
        }
      }
      record_.handOver();
      if (SessionWatch::needed(*plan)) watchWhatLivesOn(store_->place(), directory_, id());
      return true;
    }
    return fail(sysError(Stage::launch, "session exec", id(), reply.value,
                         reply.value == EAGAIN ? "too many commands run in this session; stop some" : ""));
  };
  if (auto written = logs->writeFileAtomic(fileName(*number, ".json"), describeCommand(request), 0600); !written) {
    forget();
    return fail(written.error());
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto begun = begin();
    if (!begun) {
      forget();
      return fail(begun.error());
    }
    if (*begun) return *number;
    disconnect();
  }
  forget();
  return fail(goneError("session exec", id()));
}

Result<std::vector<ExecInfo>> Handle::processes() {
  auto logs = logDirectory();
  if (!logs) return fail(logs.error());
  auto entries = logs->list("");
  if (!entries) return fail(entries.error());
  std::vector<ExecInfo> infos;
  for (const sys::DirectoryEntry& entry : *entries) {
    const auto number = numberOf(entry.name, ".json");
    if (!number) continue;
    if (auto info = describe(directory_, *logs, *number)) infos.push_back(*std::move(info));
  }
  std::sort(infos.begin(), infos.end(), [](const ExecInfo& a, const ExecInfo& b) { return a.exec < b.exec; });
  return infos;
}

Result<ExecInfo> Handle::status(std::uint32_t exec) {
  auto logs = logDirectory();
  if (!logs) return fail(logs.error());
  return describe(directory_, *logs, exec);
}

Result<ExecInfo> Handle::wait(std::uint32_t exec, double timeout_seconds) {
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
  auto pause = std::chrono::milliseconds(1);
  for (;;) {
    auto info = status(exec);
    if (!info || !info->running || Clock::now() >= deadline) return info;
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, deadline - Clock::now()));
    pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
}

Result<LogPiece> Handle::logs(std::uint32_t exec, OutputStreamKind stream, std::uint64_t offset,
                              std::size_t max_bytes) {
  auto logs = logDirectory();
  if (!logs) return fail(logs.error());
  // Before the log is read: what it ended with is in the log by then.
  auto info = describe(directory_, *logs, exec);
  if (!info) return fail(info.error());
  auto file = logs->openFile(fileName(exec, stream == OutputStreamKind::out ? ".out" : ".err"), {.flags = O_RDONLY});
  if (!file) return fail(file.error());
  struct stat status;
  if (::fstat(file->get(), &status) != 0) return fail(sysError(Stage::state, "fstat", "log", errno));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  LogPiece piece;
  piece.data.resize(std::min<std::uint64_t>(size > offset ? size - offset : 0, max_bytes));
  const ssize_t got = ::pread(file->get(), piece.data.data(), piece.data.size(), static_cast<off_t>(offset));
  if (got < 0) return fail(sysError(Stage::state, "read", "log", errno));
  piece.data.resize(static_cast<std::size_t>(got));
  piece.next = offset + static_cast<std::uint64_t>(got);
  piece.end = !info->running && piece.next >= size;
  return piece;
}

Result<void> Handle::feed(std::uint32_t exec, std::string_view data, bool close) {
  if (auto info = status(exec); !info) return fail(info.error());
  auto connection = connect();
  if (!connection) return fail(connection.error());
  Request ask;
  ask.ask = Ask::take_input;
  ask.exec = exec;
  if (!data.empty()) {
    const supervise::SignalRelay no_broken_pipes(false);
    auto taken = (*connection)->ask(ask, "session feed", std::to_string(exec));
    if (!taken) return fail(taken.error());
    for (std::size_t done = 0; done < data.size();) {
      const ssize_t wrote = ::write(taken->descriptor.get(), data.data() + done, data.size() - done);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) return fail(sysError(Stage::state, "write", "standard input", errno));
      done += static_cast<std::size_t>(wrote);
    }
  }
  if (!close) return {};
  ask.ask = Ask::close_input;
  auto closed = (*connection)->ask(ask, "session feed", std::to_string(exec));
  if (!closed) return fail(closed.error());
  return {};
}

Result<void> Handle::stop(std::uint32_t exec, double grace_seconds) {
  auto info = status(exec);
  if (!info) return fail(info.error());
  if (!info->running) return {};
  auto connection = connect();
  if (!connection) return fail(connection.error());
  Request ask;
  ask.ask = Ask::signal;
  ask.exec = exec;
  for (const int signal : {SIGTERM, SIGKILL}) {
    ask.signal = signal;
    auto sent = (*connection)->ask(ask, "session stop", std::to_string(exec));
    if (!sent && sent.error().sys_errno != ESRCH) return fail(sent.error());
    info = wait(exec, signal == SIGTERM ? grace_seconds : 5);
    if (!info) return fail(info.error());
    // What it started may live on: also that is ended, unless nothing of it is known any more.
  }
  if (!info->running) return {};
  return fail(plainError(Stage::supervise, "session stop", std::to_string(exec), "it survives SIGKILL",
                         "it hangs in the kernel; destroy the session"));
}

}  // namespace caisson::session
