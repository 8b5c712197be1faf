#include "session/client/foreground.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>

#include "policy/model.h"
#include "supervise/network/prompt_watch.h"
#include "supervise/processes/signal_relay.h"
#include "supervise/streams/handed_streams.h"
#include "supervise/streams/stream_relay.h"
#include "supervise/streams/terminal.h"
#include "sys/pipe.h"

extern char** environ;

namespace caisson::session {
namespace {

using Clock = std::chrono::steady_clock;
using sys::Fd;

constexpr int kDrainTimeoutMs = 5000;
constexpr auto kGraceAfterTerminate = std::chrono::seconds(4);
/// How long to wait for the supervisor after a kill request.
constexpr auto kKillTimeout = std::chrono::seconds(5);

class ForegroundCommand {
 public:
  ForegroundCommand(const SupervisorConnection& connection, const ExecRequest& request,
                    const ForegroundOptions& options)
      : connection_(connection),
        request_(request),
        options_(options),
        signals_(request.forward_signals),
        hands_input_over_(request.relay_stdin && request.input.empty() &&
                          supervise::inspectStream(STDIN_FILENO).can_hand_over),
        streams_(loop_, request.input, request.relay_stdin && !hands_input_over_) {
    if (options.prompt != nullptr) questions_.emplace(loop_, options.prompt->questions(), streams_);
  }

  Result<std::optional<RunResult>> run();

 private:
  [[nodiscard]] bool handsOver(int stream) const;
  Result<Fd> makeStream(int stream);
  Result<void> start();
  void watch();
  void watchPrompt();
  void onPacket();
  void sendSignal(int signal);
  void kill();

  const SupervisorConnection& connection_;
  const ExecRequest& request_;
  const ForegroundOptions& options_;
  sys::EventLoop loop_;
  supervise::SignalRelay signals_;
  supervise::TerminalStreams terminal_streams_;
  const bool hands_input_over_;
  supervise::KeptFlags kept_flags_;
  supervise::StreamRelay streams_;
  std::optional<supervise::PromptWatch> questions_;
  std::optional<RunResult> result_;
  std::optional<Error> failure_;
  bool gone_ = false, killed_ = false;
};

/// Whether the command gets our own descriptor. Not files as outputs: the session's Landlock domain, which was made
/// before the command, would keep programs from opening /dev/stdout.
bool ForegroundCommand::handsOver(int stream) const {
  if (terminal_streams_.stream[stream]) return false;
  if (stream == 0) return hands_input_over_;
  const StreamMode mode = stream == 1 ? request_.out : request_.err;
  return mode == StreamMode::relay && !request_.on_output && !request_.output_limit &&
         supervise::inspectStream(stream).handedAsOutput(true);
}

/// The command's end of a stream; ours is kept.
Result<Fd> ForegroundCommand::makeStream(int stream) {
  if (handsOver(stream)) {
    kept_flags_.keep(stream);
    Fd copy(::fcntl(stream, F_DUPFD_CLOEXEC, 3));
    if (!copy) return fail(sysError(Stage::launch, "fcntl", "standard stream", errno));
    const std::uint32_t payload = connection_.welcome().payload_id;
    if (payload != 0) supervise::giveTo(stream, payload, payload);
    return copy;
  }
  const bool feed = stream == 0 && supervise::hasInput(request_.relay_stdin, request_.input);
  if (terminal_streams_.stream[stream] || (stream == 0 && !feed)) {
    Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null) return fail(sysError(Stage::launch, "open", "/dev/null", errno));
    return null;
  }
  auto pipe = sys::makePipe(Stage::launch);
  if (!pipe) return fail(pipe.error());
  Fd ours = std::move(stream == 0 ? pipe->write : pipe->read);
  Fd theirs = std::move(stream == 0 ? pipe->read : pipe->write);
  if (connection_.welcome().payload_id != 0) {  // otherwise the payload could not open its own /dev/stdout
    (void)!::fchown(theirs.get(), connection_.welcome().payload_id, connection_.welcome().payload_id);
  }
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  if (stream == 0) {
    streams_.setInput(std::move(ours));
    return theirs;
  }
  std::function<void(std::string_view)> observer;
  if (request_.on_output) {
    const auto kind = stream == 1 ? OutputStreamKind::out : OutputStreamKind::err;
    observer = [this, kind](std::string_view piece) { request_.on_output(kind, piece); };
  }
  const StreamMode mode = stream == 1 ? request_.out : request_.err;
  const std::uint64_t policy_limit =
      mode == StreamMode::relay ? supervise::kNoOutputLimit : connection_.welcome().output_bytes;
  const std::uint64_t limit = request_.output_limit.value_or(policy_limit);
  streams_.setOutput(stream, std::move(ours), mode, limit, std::move(observer));
  return theirs;
}

Result<void> ForegroundCommand::start() {
  CommandOptions command = commandOptionsOf(request_, connection_.welcome());
  command.notice = options_.notice;
  command.wants_started = request_.interactive || options_.prompt != nullptr;
  if (request_.interactive) {
    terminal_streams_ = supervise::observeTerminal({.policy = Policy(policy::Policy{}),
                                                    .out = request_.out,
                                                    .err = request_.err,
                                                    .relay_stdin = request_.relay_stdin,
                                                    .interactive = true});
    for (int stream = 0; stream < 3; ++stream) command.terminal.stream[stream] = terminal_streams_.stream[stream];
    command.terminal.rows = terminal_streams_.rows;
    command.terminal.columns = terminal_streams_.columns;
  }
  Fd ends[3];
  for (int stream = 0; stream < 3; ++stream) {
    auto made = makeStream(stream);
    if (!made) return fail(made.error());
    ends[stream] = std::move(*made);
  }
  const int error =
      connection_.send(MessageType::exec, codec::encode(command), {ends[0].get(), ends[1].get(), ends[2].get()});
  gone_ = error == EPIPE || error == ECONNRESET;
  if (error == 0 || gone_) return {};
  return fail(sysError(Stage::launch, "session exec", options_.session_id, error,
                       error == ETOOMANYREFS ? "too many descriptors of this user are in flight; try again" : ""));
}

Result<std::optional<RunResult>> ForegroundCommand::run() {
  const auto begin = Clock::now();
  if (auto started = start(); !started) {
    RunResult result;
    result.sandbox_id = options_.session_id;
    result.error = started.error();
    return result;
  }
  if (gone_) return std::nullopt;
  std::optional<supervise::RawTerminal> raw_mode;
  if (terminal_streams_.any()) raw_mode.emplace(terminal_streams_);
  watch();
  if (options_.prompt != nullptr) {  // before our terminal settings are restored
    options_.prompt->close();
    questions_->update();
  }
  if (failure_ && isGone(*failure_)) return std::nullopt;
  if (failure_) return fail(*failure_);
  if (!result_ && !killed_) {
    // Do not retry: the command may have run.
    return fail(withCode(plainError(Stage::supervise, "session exec", options_.session_id,
                                    "the session's supervisor was killed, and the command with it",
                                    "the session's files are kept; the next command starts it again"),
                         ErrorCode::command_lost));
  }
  if (!result_) {  // no response
    result_.emplace();
    result_->sandbox_id = options_.session_id;
    result_->outcome = OutcomeKind::cancelled;
    result_->notices.emplace_back(
        "the session's supervisor did not answer; `caisson session destroy` ends the session");
  }
  streams_.drain(kDrainTimeoutMs);
  RunResult& result = *result_;
  result.usage.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  streams_.take(result);
  return std::move(result);
}

void ForegroundCommand::watch() {
  loop_.on(connection_.descriptor(), POLLIN, [this](short) { onPacket(); });
  signals_.attach(loop_, {.forward = [this](int signal) { sendSignal(signal); },
                          .kill = [this] { kill(); },
                          .resize = [this] { streams_.resizeTerminal(); },
                          .grace = kGraceAfterTerminate});
  if (request_.cancel_descriptor >= 0) {
    loop_.on(request_.cancel_descriptor, POLLIN, [this](short) {
      loop_.remove(request_.cancel_descriptor);
      kill();
    });
  }
  streams_.start([this] { kill(); });
  loop_.afterTurn([this] {
    if (result_ || failure_ || gone_) loop_.stop();
  });
  loop_.run();
}

/// Once the command's process is known: the egress prompts for the hosts that it wants to reach.
void ForegroundCommand::watchPrompt() {
  const int descriptor = options_.prompt->descriptor();
  if (descriptor < 0) return;
  loop_.on(descriptor, POLLIN, [this, descriptor](short) {
    options_.prompt->onEvents();
    const auto busy_until = options_.prompt->busyUntil();
    if (options_.prompt->descriptor() < 0) {
      loop_.remove(descriptor);
    } else if (busy_until > Clock::now()) {
      loop_.remove(descriptor);
      loop_.at(busy_until, [this] { watchPrompt(); });
    }
    questions_->update();
  });
}

void ForegroundCommand::onPacket() {
  Packet packet;
  switch (receivePacket(connection_.descriptor(), packet)) {
    case Receipt::nothing: return;
    case Receipt::other_version:
    case Receipt::closed: gone_ = true; return;
    case Receipt::message: break;
  }
  if (packet.type == MessageType::started) {
    const auto started = codec::decode<StartedCommand>(packet.value);
    if (options_.prompt != nullptr && started && !killed_) {
      options_.prompt->follow(started->pid);
      watchPrompt();
    }
    if (!packet.descriptors.empty()) streams_.setTerminal(std::move(packet.descriptors.front()), terminal_streams_);
  } else if (packet.type == MessageType::finished) {
    result_ = codec::decode<RunResult>(packet.value);
    gone_ = !result_;
  } else if (packet.type == MessageType::failed) {
    failure_ = codec::decode<Error>(packet.value);
    gone_ = !failure_;
  }
}

void ForegroundCommand::sendSignal(int signal) {
  (void)connection_.send(MessageType::signal, codec::encode(SignalOptions{.signal = signal}));
}

void ForegroundCommand::kill() {
  if (std::exchange(killed_, true)) return;
  if (options_.prompt != nullptr) {
    loop_.remove(options_.prompt->descriptor());
    options_.prompt->close();
    questions_->update();
  }
  loop_.at(Clock::now() + kKillTimeout, [this] { loop_.stop(); });
  sendSignal(SIGKILL);
}

}  // namespace

CommandOptions commandOptionsOf(const ExecRequest& request, const Welcome& welcome) {
  CommandOptions options;
  options.command = request.command;
  options.environment = request.environment;
  options.working_directory = request.working_directory;
  options.timeout_seconds = request.timeout_seconds;
  options.interactive = request.interactive;
  options.keep_input = request.keep_input;
  if (welcome.passes_whole_environment) {
    for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
      const std::string_view text(*variable);
      const std::size_t equals = text.find('=');
      if (equals != std::string_view::npos && equals > 0) {
        options.caller_environment.emplace(text.substr(0, equals), text.substr(equals + 1));
      }
    }
    return options;
  }
  const auto pass = [&](const std::string& name) {
    if (const char* value = std::getenv(name.c_str())) options.caller_environment.emplace(name, value);
  };
  for (const std::string& name : welcome.pass) pass(name);
  pass("TERM");
  return options;
}

Result<std::optional<RunResult>> runForeground(const SupervisorConnection& connection, const ExecRequest& request,
                                               const ForegroundOptions& options) {
  return ForegroundCommand(connection, request, options).run();
}

}  // namespace caisson::session
