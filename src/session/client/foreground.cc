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
#include "supervise/input_feed.h"
#include "supervise/signal_relay.h"
#include "supervise/stream.h"
#include "supervise/terminal.h"

extern char** environ;

namespace caisson::session {
namespace {

using Clock = std::chrono::steady_clock;
using supervise::OutputStream;
using sys::Fd;

constexpr int kDrainTimeoutMs = 5000;
constexpr auto kGraceAfterTerminate = std::chrono::seconds(4);
/// For the supervisor to answer after it was told to kill the command.
constexpr auto kKillTimeout = std::chrono::seconds(5);
constexpr std::uint64_t kNoLimit = ~0ULL;

class ForegroundCommand {
 public:
  ForegroundCommand(const SupervisorConnection& connection, const ExecRequest& request,
                    const ForegroundOptions& options)
      : connection_(connection),
        request_(request),
        options_(options),
        signals_(request.forward_signals),
        input_(request.input, request.relay_stdin) {}

  Result<std::optional<RunResult>> run();

 private:
  Result<Fd> makeStream(int stream);
  Result<void> start();
  void watch();
  void onPacket();
  void onSignal(int signal);
  void sendSignal(int signal);
  void kill();
  [[nodiscard]] int timeoutMs() const;
  [[nodiscard]] bool asking() const { return options_.prompt != nullptr && options_.prompt->questions().open(); }
  void useTerminal(Fd master);

  const SupervisorConnection& connection_;
  const ExecRequest& request_;
  const ForegroundOptions& options_;
  supervise::SignalRelay signals_;
  supervise::TerminalStreams terminal_options_;
  supervise::InputFeed input_;
  Fd terminal_;
  std::optional<OutputStream> out_, err_;
  std::optional<RunResult> result_;
  std::optional<Error> failure_;
  bool gone_ = false, killed_ = false;
  int terminate_requests_ = 0;
  std::optional<Clock::time_point> grace_, give_up_;
};

/// The command's end of a stream; ours is kept.
Result<Fd> ForegroundCommand::makeStream(int stream) {
  const bool feed = stream == 0 && supervise::hasInput(request_.relay_stdin, request_.input);
  if (terminal_options_.stream[stream] || (stream == 0 && !feed)) {
    Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    if (!null) return fail(sysError(Stage::launch, "open", "/dev/null", errno));
    return null;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(sysError(Stage::launch, "pipe2", "", errno, "raise the limit on open files"));
  }
  Fd ours(stream == 0 ? ends[1] : ends[0]);
  Fd theirs(stream == 0 ? ends[0] : ends[1]);
  if (connection_.welcome().payload_id != 0) {  // or the payload could not open its own /dev/stdout
    (void)!::fchown(theirs.get(), connection_.welcome().payload_id, connection_.welcome().payload_id);
  }
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  if (stream == 0) {
    input_.usePipe(std::move(ours));
    return theirs;
  }
  const StreamMode mode = stream == 1 ? request_.out : request_.err;
  const bool terminal = mode == StreamMode::relay && ::isatty(stream) == 1;
  auto& kept = stream == 1 ? out_ : err_;
  kept.emplace(std::move(ours), mode, stream, terminal ? kNoLimit : connection_.welcome().output_bytes);
  if (request_.on_output) {
    const auto kind = stream == 1 ? OutputStreamKind::out : OutputStreamKind::err;
    kept->observe([this, kind](std::string_view piece) { request_.on_output(kind, piece); });
  }
  return theirs;
}

Result<void> ForegroundCommand::start() {
  CommandOptions command = commandOptionsOf(request_, connection_.welcome());
  command.notice = options_.notice;
  command.wants_started = request_.interactive || options_.prompt != nullptr;
  if (request_.interactive) {
    terminal_options_ = supervise::observeTerminal({.policy = Policy(policy::Policy{}),
                                                    .out = request_.out,
                                                    .err = request_.err,
                                                    .relay_stdin = request_.relay_stdin,
                                                    .interactive = true});
    for (int stream = 0; stream < 3; ++stream) command.terminal.stream[stream] = terminal_options_.stream[stream];
    command.terminal.rows = terminal_options_.rows;
    command.terminal.columns = terminal_options_.columns;
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
  return fail(sysError(Stage::launch, "session exec", options_.session, error,
                       error == ETOOMANYREFS ? "too many descriptors of this user are in flight; try again" : ""));
}

Result<std::optional<RunResult>> ForegroundCommand::run() {
  const auto begin = Clock::now();
  if (auto started = start(); !started) {
    RunResult result;
    result.sandbox_id = options_.session;
    result.error = started.error();
    return result;
  }
  if (gone_) return std::nullopt;
  std::optional<supervise::RawTerminal> raw_mode;
  if (terminal_options_.any()) raw_mode.emplace(terminal_options_);
  watch();
  if (options_.prompt != nullptr) options_.prompt->close();  // before our terminal's own settings come back
  if (failure_ && isGone(*failure_)) return std::nullopt;
  if (failure_) return fail(*failure_);
  if (!result_ && !killed_) {
    // Not to be tried again: the command may have run.
    return fail(plainError(Stage::supervise, "session exec", options_.session,
                           "the session's supervisor was killed, and the command with it",
                           "the session's files are kept; the next command starts it again"));
  }
  if (!result_) {  // it does not answer
    result_.emplace();
    result_->sandbox_id = options_.session;
    result_->outcome = OutcomeKind::cancelled;
    result_->notices.emplace_back(
        "the session's supervisor did not answer; `caisson session destroy` ends the session");
  }
  if (out_) out_->drain(kDrainTimeoutMs);
  if (err_) err_->drain(kDrainTimeoutMs);
  RunResult& result = *result_;
  result.usage.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  if (out_) result.out = out_->take();
  if (err_) result.err = err_->take();
  return std::move(result);
}

int ForegroundCommand::timeoutMs() const {
  std::optional<Clock::time_point> next = killed_ ? give_up_ : grace_;
  if (!killed_ && asking()) {
    const auto deadline = options_.prompt->questions().deadline();
    if (!next || *deadline < *next) next = deadline;
  }
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(std::min<long long>(left, 1'000'000'000));
}

void ForegroundCommand::watch() {
  std::vector<pollfd> polls;
  HostPrompt* const prompt = options_.prompt;
  while (!result_ && !failure_ && !gone_) {
    polls.clear();
    polls.push_back({connection_.descriptor(), POLLIN, 0});
    polls.push_back({signals_.descriptor(), POLLIN, 0});
    polls.push_back({killed_ ? -1 : request_.cancel_descriptor, POLLIN, 0});
    if (prompt != nullptr && killed_) prompt->close();
    // While a question is on the screen the payload neither draws over it nor reads the answer.
    const bool asked = asking();
    polls.push_back({prompt != nullptr ? prompt->descriptor() : -1, POLLIN, 0});
    polls.push_back({asked ? prompt->questions().descriptor() : -1, POLLIN, 0});
    if (!asked) input_.addPolls(polls);
    if (out_ && !asked) out_->addPolls(polls);
    if (err_ && !asked) err_->addPolls(polls);
    const int ready = ::poll(polls.data(), polls.size(), timeoutMs());
    if (ready < 0 && errno != EINTR) return kill();
    const auto now = Clock::now();
    if (grace_ && !killed_ && now >= *grace_) kill();
    if (killed_ && now >= *give_up_) return;
    if (asked) prompt->questions().look(now);
    if (ready <= 0) continue;
    if (polls[1].revents != 0) {
      while (const int signal = signals_.next()) onSignal(signal);
    }
    if (polls[2].revents != 0 && !killed_) kill();
    if (polls[3].revents != 0) prompt->onEvents();
    const bool quiet = asked || asking();  // since this turn, too
    if (!asked && !quiet) input_.pump(polls);
    if (out_ && !quiet) out_->pump();
    if (err_ && !quiet) err_->pump();
    if (asked && polls[4].revents != 0 && asking()) prompt->questions().onInput();
    if ((out_ && out_->flooded()) || (err_ && err_->flooded())) kill();
    if (polls[0].revents != 0) onPacket();
  }
}

void ForegroundCommand::onPacket() {
  Packet packet;
  switch (receivePacket(connection_.descriptor(), packet)) {
    case Receipt::nothing: return;
    case Receipt::closed: gone_ = true; return;
    case Receipt::message: break;
  }
  if (packet.type == MessageType::started) {
    const auto started = codec::decode<StartedCommand>(packet.value);
    if (options_.prompt != nullptr && started) options_.prompt->follow(started->pid);
    if (!packet.descriptors.empty()) useTerminal(std::move(packet.descriptors.front()));
  } else if (packet.type == MessageType::finished) {
    result_ = codec::decode<RunResult>(packet.value);
    gone_ = !result_;
  } else if (packet.type == MessageType::failed) {
    failure_ = codec::decode<Error>(packet.value);
    gone_ = !failure_;
  }
}

void ForegroundCommand::useTerminal(Fd master) {
  terminal_ = std::move(master);
  ::fcntl(terminal_.get(), F_SETFL, O_NONBLOCK);
  if (terminal_options_.stream[0]) input_.useTerminal(terminal_.get());
  auto& stream = terminal_options_.stream[1] ? out_ : err_;
  stream.emplace(Fd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)), StreamMode::relay,
                 terminal_options_.stream[1] ? STDOUT_FILENO : STDERR_FILENO, kNoLimit);
}

void ForegroundCommand::sendSignal(int signal) {
  (void)connection_.send(MessageType::signal, codec::encode(SignalOptions{.signal = signal}));
}

void ForegroundCommand::kill() {
  if (std::exchange(killed_, true)) return;
  give_up_ = Clock::now() + kKillTimeout;
  sendSignal(SIGKILL);
}

void ForegroundCommand::onSignal(int signal) {
  if (signal == SIGWINCH) {
    if (terminal_) supervise::copyTerminalSize(terminal_.get());
    return;
  }
  const bool terminates = signal == SIGTERM || signal == SIGHUP || signal == SIGINT || signal == SIGQUIT;
  if (terminates && ++terminate_requests_ >= 3) return kill();
  if ((signal == SIGTERM || signal == SIGHUP) && !grace_) grace_ = Clock::now() + kGraceAfterTerminate;
  sendSignal(signal);
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
