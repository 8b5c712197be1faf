// Background commands, client side. background_files.h describes their files.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "session/client/foreground.h"
#include "session/client/session_context.h"
#include "session/store/background_files.h"
#include "session/tier/tier_command.h"
#include "session/tier/tier_files.h"
#include "supervise/processes/signal_relay.h"
#include "sys/deadline.h"

namespace caisson::session {
namespace {

using Clock = std::chrono::steady_clock;

/// How long feed() waits in all for a command to read its input.
constexpr auto kFeedTimeout = std::chrono::seconds(30);
/// A supervisor that was killed writes no end.
constexpr std::chrono::milliseconds kLookAgain(200);

/// Writes all of `data` into the pipe of the command's standard input.
Result<void> writeInput(int pipe, std::uint32_t exec, std::string_view data) {
  const supervise::SignalRelay no_broken_pipes(false);
  ::fcntl(pipe, F_SETFL, O_NONBLOCK);
  const auto deadline = Clock::now() + kFeedTimeout;
  while (!data.empty()) {
    const ssize_t wrote = ::write(pipe, data.data(), data.size());
    if (wrote >= 0) {
      data.remove_prefix(static_cast<std::size_t>(wrote));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return fail(sysError(Stage::state, "write", "standard input", errno));
    if (Clock::now() >= deadline) {
      return fail(sysError(Stage::state, "session feed", std::to_string(exec), ETIMEDOUT,
                           "the command does not read its standard input"));
    }
    pollfd wait{pipe, POLLOUT, 0};
    ::poll(&wait, 1, 100);
  }
  return {};
}

}  // namespace

Result<sys::RootDir> SessionContext::logDirectory() { return directory_.enter(kLogDirectory); }

Result<std::uint32_t> SessionContext::start(const ExecRequest& request) {
  if (inLandlockTier(metadata_.policy)) {
    return fail(notInTier("session exec", metadata_,
                          "a background command needs a pid namespace, whose processes the kernel kills together",
                          "run it in the foreground"));
  }
  if (auto checked = checkExec(request, metadata_.policy); !checked) return fail(checked.error());
  if (request.interactive || request.relay_stdin) {
    return fail(plainError(Stage::usage, "session exec", "--background", "a background command has no terminal",
                           "give its input beforehand, or keep it open and feed it"));
  }
  if (auto reviewed = reviewHosts(); !reviewed) return fail(reviewed.error());
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto connection = connect();
    if (!connection) return fail(connection.error());
    CommandOptions options = commandOptionsOf(request, (*connection)->welcome());
    options.background = true;
    options.default_timeout = request.default_timeout;
    options.input = request.input;
    auto answer = (*connection)->ask(MessageType::exec, codec::encode(options), "session exec", id());
    if (!answer && isGone(answer.error())) {
      disconnect();
      continue;
    }
    if (!answer) return fail(answer.error());
    const auto started = codec::decode<StartedCommand>(answer->value);
    if (!started) return fail(goneError("session exec", id()));
    return started->number;
  }
  return fail(goneError("session exec", id()));
}

Result<std::vector<ExecInfo>> SessionContext::processes() {
  auto logs = logDirectory();
  if (!logs) return fail(logs.error());
  const bool alive = isSupervised(directory_);
  auto numbers = listCommands(*logs);
  if (!numbers) return fail(numbers.error());
  std::vector<ExecInfo> infos;
  for (const std::uint32_t number : *numbers) {
    if (auto info = describeCommand(*logs, number, alive)) infos.push_back(*std::move(info));
  }
  return infos;
}

Result<ExecInfo> SessionContext::status(std::uint32_t exec) {
  auto logs = logDirectory();
  if (!logs) return fail(logs.error());
  const bool alive = isSupervised(directory_);  // before: the supervisor writes the end while this is true
  return describeCommand(*logs, exec, alive);
}

Result<ExecInfo> SessionContext::wait(std::uint32_t exec, double timeout_seconds) {
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
  // The end is a file of that directory. Without a watch (a user has few), look again and again.
  const sys::Fd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  bool watched = false;
  (void)useLogs([&](int directory) {
    const std::string path = "/proc/self/fd/" + std::to_string(directory);
    watched = watch && ::inotify_add_watch(watch.get(), path.c_str(), IN_CREATE | IN_MOVED_TO) >= 0;
  });
  auto pause = watched ? kLookAgain : std::chrono::milliseconds(1);
  for (;;) {
    auto info = status(exec);
    if (!info || !info->running || Clock::now() >= deadline) return info;
    pollfd changed{watched ? watch.get() : -1, POLLIN, 0};
    ::poll(&changed, 1, std::min<int>(static_cast<int>(pause.count()), sys::millisecondsUntil(deadline)));
    char events[4096];
    while (watched && ::read(watch.get(), events, sizeof(events)) > 0) {
    }
    if (!watched) pause = std::min(pause * 2, std::chrono::milliseconds(50));
  }
}

Result<LogPiece> SessionContext::logs(std::uint32_t exec, OutputStreamKind stream, std::uint64_t offset,
                                      std::size_t max_bytes) {
  auto logs = logDirectory();
  if (!logs) return fail(logs.error());
  auto info = status(exec);  // before reading the log: the end is written after all output
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

Result<void> SessionContext::useLogs(const std::function<void(int)>& use) {
  auto logs = logDirectory();
  if (!logs) return fail(logs.error());
  use(logs->descriptor());
  return {};
}

Result<void> SessionContext::feed(std::uint32_t exec, std::string_view data, bool close) {
  if (auto info = status(exec); !info) return fail(info.error());
  auto connection = connect();
  if (!connection) return fail(connection.error());
  const std::string number = codec::encode(CommandNumber{exec});
  if (!data.empty()) {
    auto taken = (*connection)->ask(MessageType::take_input, number, "session feed", std::to_string(exec));
    if (!taken) return fail(taken.error());
    if (taken->descriptors.empty()) return fail(goneError("session feed", std::to_string(exec)));
    if (auto written = writeInput(taken->descriptors.front().get(), exec, data); !written) return written;
  }
  if (!close) return {};
  auto closed = (*connection)->ask(MessageType::close_input, number, "session feed", std::to_string(exec));
  if (closed) return {};
  // A command that has all its input may end before its input is closed: nothing is left to close.
  if (!data.empty() && closed.error().sys_errno == ESRCH) return {};
  return fail(closed.error());
}

Result<void> SessionContext::stop(std::uint32_t exec, double grace_seconds) {
  auto info = status(exec);
  if (!info) return fail(info.error());
  if (!info->running) return {};
  auto logs = logDirectory();
  if (!logs) return fail(logs.error());
  // Before the signal: a command that was stopped must never look like one that died by itself.
  if (auto marked = markStopped(*logs, exec); !marked) return marked;
  auto connection = connect();
  if (!connection) return fail(connection.error());
  for (const int signal : {SIGTERM, SIGKILL}) {
    const SignalOptions options{.command = exec, .signal = signal, .whole_tree = true};
    auto sent = (*connection)->ask(MessageType::signal, codec::encode(options), "session stop", std::to_string(exec));
    if (!sent && sent.error().sys_errno != ESRCH) return fail(sent.error());
    info = wait(exec, signal == SIGTERM ? grace_seconds : 5);
    if (!info) return fail(info.error());
    // SIGKILL is sent even if SIGTERM ended the command; the supervisor replies ESRCH once it has its result.
  }
  if (!info->running) return {};
  return fail(plainError(Stage::supervise, "session stop", std::to_string(exec), "it survives SIGKILL",
                         "it hangs in the kernel; destroy the session"));
}

Result<void> SessionContext::signal(std::uint32_t exec, int number) {
  auto info = status(exec);
  if (!info) return fail(info.error());
  if (!info->running) return fail(sysError(Stage::state, "session signal", std::to_string(exec), ESRCH));
  auto connection = connect();
  if (!connection) return fail(connection.error());
  const SignalOptions options{.command = exec, .signal = number, .whole_tree = true};
  auto sent = (*connection)->ask(MessageType::signal, codec::encode(options), "session signal", std::to_string(exec));
  if (!sent) return fail(sent.error());
  return {};
}

Result<void> SessionContext::dropEnded(std::size_t keep) {
  auto logs = logDirectory();
  if (!logs) return fail(logs.error());
  return removeEnded(*logs, std::max<std::size_t>(1, keep), isSupervised(directory_));
}

Result<std::vector<LeftBehind>> SessionContext::askAboutLeft(MessageType type, int signal) {
  std::vector<LeftBehind> found;
  auto opened = SupervisorConnection::open(directory_);
  if (!opened) return fail(opened.error());
  if (!*opened) return found;
  const SignalOptions options{.command = 0, .signal = signal, .whole_tree = true};
  auto answer = (*opened)->ask(type, type == MessageType::signal_left ? codec::encode(options) : std::string(),
                               "session ps", id());
  if (!answer) return fail(answer.error());
  const auto list = codec::decode<ProcessList>(answer->value);
  if (!list) return fail(goneError("session ps", id()));
  for (const LeftProcess& one : list->processes) found.push_back({one.pid, one.program});
  return found;
}

Result<std::vector<LeftBehind>> SessionContext::leftBehind() { return askAboutLeft(MessageType::processes, 0); }

Result<std::vector<LeftBehind>> SessionContext::stopLeftBehind(double grace_seconds) {
  constexpr double kKillSeconds = 5;
  const auto before = askAboutLeft(MessageType::signal_left, SIGTERM);
  if (!before || before->empty()) return before;
  const auto began = Clock::now();
  for (;;) {
    const double waited = std::chrono::duration<double>(Clock::now() - began).count();
    const bool kill = waited >= grace_seconds;
    const auto left = kill ? askAboutLeft(MessageType::signal_left, SIGKILL) : leftBehind();
    if (!left) return left;
    if (left->empty()) return before;
    if (waited > grace_seconds + kKillSeconds) {
      return fail(plainError(Stage::supervise, "session stop", left->front().program, "it survives SIGKILL",
                             "it hangs in the kernel; destroy the session"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

}  // namespace caisson::session
