#include "session/runner.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>

#include "policy/model.h"
#include "supervise/changes.h"
#include "supervise/input_feed.h"
#include "supervise/outcome.h"
#include "supervise/refusals.h"
#include "supervise/signal_relay.h"
#include "supervise/stream.h"
#include "supervise/terminal.h"

namespace caisson::session {
namespace {

using Clock = std::chrono::steady_clock;
using isolation::Message;
using supervise::OutputStream;
using sys::Fd;

constexpr int kDrainPatienceMs = 5000;
constexpr auto kGraceAfterTerminate = std::chrono::seconds(10);
constexpr std::uint64_t kNoLimit = ~0ULL;
constexpr std::uint32_t kForeground = 1U << 31;  // background commands have small numbers

std::uint32_t foregroundNumber() {
  std::uint32_t number = 0;
  (void)!::getrandom(&number, sizeof(number), 0);
  return number | kForeground;
}

class Runner {
 public:
  Runner(const plan::Plan& plan, const ExecRequest& request, const Connection& connection, SessionWatch& watch,
         const Recorder& recorder, HostAsker* asker, RunResult& result)
      : plan_(plan),
        request_(request),
        connection_(connection),
        limits_(watch),
        recorder_(recorder),
        asker_(asker),
        result_(result),
        refusals_(plan, {.end = [this] { endEverything(); }, .record = recorder.refused}),
        signals_(request.forward_signals),
        number_(foregroundNumber()),
        input_(request.input, request.relay_stdin) {}

  /// False: pid 1 was gone before the command started. An error: what `record` says, and it did not start.
  Result<bool> run();
  void tellAftermath(Aftermath& aftermath) const {
    aftermath.lives_on = finished_ && finished_->others != 0;
    aftermath.last = last_;
  }

 private:
  Result<void> start(bool held);
  void release(bool may_run);
  void awaitEnd();
  Result<Fd> makeStream(int stream);
  void watch();
  void onSaid();
  void onFailure(Error failure);
  void onStarted(const Reply& reply, Connection::Said& said);
  void endEverything();
  void onSignal(int signal);
  void signalCommand(int signal, bool group_only);
  void kill();
  void classify();
  [[nodiscard]] int timeoutMs() const;
  [[nodiscard]] bool asking() const { return asker_ != nullptr && asker_->questions().open(); }
  /// Somebody's in the session, not necessarily this command's.
  [[nodiscard]] bool endedByEscape() const { return finished_ && finished_->limit == kEscaped; }

  const plan::Plan& plan_;
  const ExecRequest& request_;
  const Connection& connection_;
  SessionWatch& limits_;
  const Recorder& recorder_;
  HostAsker* const asker_;
  RunResult& result_;
  supervise::Refusals refusals_;
  supervise::LastOutput last_;
  supervise::SignalRelay signals_;
  std::uint32_t number_;
  supervise::TerminalWish terminal_wish_;
  supervise::InputFeed input_;
  Fd terminal_;
  std::optional<OutputStream> out_, err_;
  bool started_ = false, ended_ = false, gone_ = false;
  bool late_ = false;  ///< it waited for its record in vain
  bool killed_ = false, timed_out_ = false, cancelled_ = false;
  Limit limit_ = Limit::none;
  int terminate_requests_ = 0;
  std::optional<Clock::time_point> deadline_, grace_;
  std::optional<Reply> finished_;
  std::optional<Error> failure_;
};

/// The command's end of a stream; ours is kept.
Result<Fd> Runner::makeStream(int stream) {
  const bool feed = stream == 0 && supervise::hasInput(request_.relay_stdin, request_.input);
  if (terminal_wish_.stream[stream] || (stream == 0 && !feed)) {
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
  if (plan_.identity.change_user) {  // or the payload could not open its own /dev/stdout
    (void)!::fchown(theirs.get(), plan_.identity.outside_uid, plan_.identity.outside_gid);
  }
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);
  if (stream == 0) {
    input_.usePipe(std::move(ours));
    return theirs;
  }
  const StreamMode mode = stream == 1 ? request_.out : request_.err;
  const bool terminal = mode == StreamMode::relay && ::isatty(stream) == 1;
  auto& kept = stream == 1 ? out_ : err_;
  kept.emplace(std::move(ours), mode, stream, terminal ? kNoLimit : plan_.output_bytes);
  if (request_.on_output) {
    const auto kind = stream == 1 ? OutputStreamKind::out : OutputStreamKind::err;
    kept->observe([this, kind](std::string_view piece) { request_.on_output(kind, piece); });
  }
  return theirs;
}

Result<void> Runner::start(bool held) {
  TerminalSize size;
  if (request_.interactive) {
    terminal_wish_ = supervise::observeTerminal({.policy = Policy(policy::Policy{}),
                                                 .out = request_.out,
                                                 .err = request_.err,
                                                 .relay_stdin = request_.relay_stdin,
                                                 .interactive = true});
    for (int stream = 0; stream < 3; ++stream) size.stream[stream] = terminal_wish_.stream[stream];
    size.rows = terminal_wish_.rows;
    size.columns = terminal_wish_.columns;
  }
  auto compiled = compileCommand(plan_, size, true);
  if (!compiled) return fail(compiled.error());
  Fd ends[3];
  for (int stream = 0; stream < 3; ++stream) {
    auto made = makeStream(stream);
    if (!made) return fail(made.error());
    ends[stream] = std::move(*made);
  }
  session::Request request;
  request.ask = Ask::execute;
  request.address = compiled->address;
  request.bytes = compiled->bytes;
  request.exec = number_;
  request.flags = held ? std::uint32_t{kHeld} : 0;
  request.cpu_ms = plan_.cpu_seconds ? std::max<std::int64_t>(1, std::llround(*plan_.cpu_seconds * 1e3)) : 0;
  const int descriptors[] = {compiled->file.get(), ends[0].get(), ends[1].get(), ends[2].get()};
  gone_ = !connection_.send(request, descriptors);
  return {};
}

void Runner::release(bool may_run) {
  session::Request go;
  go.ask = Ask::go;
  go.signal = may_run ? 0 : 1;
  gone_ = !connection_.send(go) || gone_;
}

/// Of a command that must not run: nothing of it may be left on the connection for the next one.
void Runner::awaitEnd() {
  bool closed = false;
  while (!closed) {
    const auto said = connection_.receive(true, closed);
    const auto* reply = said ? std::get_if<Reply>(&said->what) : nullptr;
    if (reply != nullptr && reply->exec == number_ && reply->say != Say::started) return;
  }
}

Result<bool> Runner::run() {
  const auto begin = Clock::now();
  if (auto started = start(true); !started) {
    result_.error = started.error();
    return true;
  }
  if (gone_) return false;
  limits_.noteFreeRoom();
  const auto recorded = recorder_.starting();
  release(recorded.has_value());
  if (!recorded) {
    awaitEnd();
    return fail(recorded.error());
  }
  const std::optional<double> limit = request_.timeout_seconds ? request_.timeout_seconds : plan_.wall_seconds;
  if (limit) deadline_ = begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*limit));
  std::optional<supervise::RawTerminal> raw_mode;
  if (terminal_wish_.any()) raw_mode.emplace(terminal_wish_);
  watch();
  if (late_ && !gone_ && !killed_) {
    late_ = started_ = ended_ = false;
    finished_.reset();
    number_ = foregroundNumber();
    if (auto started = start(false); !started) {
      result_.error = started.error();
      return true;
    }
    watch();
  }
  if (asker_ != nullptr) asker_->close();  // before our terminal's own settings come back, and before the last output
  if (!started_ && !failure_ && gone_) return false;
  if (limit_ == Limit::none && finished_ && !endedByEscape()) limit_ = static_cast<Limit>(finished_->limit);
  if (limit_ == Limit::none) limit_ = limits_.lookAtTheEnd().value_or(Limit::none);
  if (out_) out_->drain(kDrainPatienceMs);
  if (err_) err_->drain(kDrainPatienceMs);
  result_.usage.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
  last_ = {out_ ? out_->tail() : "", err_ ? err_->tail() : ""};
  if (out_) result_.out = out_->take();
  if (err_) result_.err = err_->take();
  classify();
  refusals_.report(result_);
  if (result_.escape) explainEscape("session exec", plan_.command.front(), result_);
  return true;
}

int Runner::timeoutMs() const {
  std::optional<Clock::time_point> next = deadline_;
  if (grace_ && (!next || *grace_ < *next)) next = grace_;
  if (asking() && (!next || *asker_->questions().deadline() < *next)) next = asker_->questions().deadline();
  if (killed_) next.reset();
  if (const auto look = limits_.next(); look && (!next || *look < *next)) next = look;
  if (const auto resume = refusals_.resumeAt(); resume && (!next || *resume < *next)) next = resume;
  if (!next) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(std::min<long long>(left, 1'000'000'000));
}

void Runner::watch() {
  std::vector<pollfd> polls;
  while (!ended_ && !gone_) {
    polls.clear();
    polls.push_back({connection_.descriptor(), POLLIN, 0});
    polls.push_back({signals_.descriptor(), POLLIN, 0});
    polls.push_back({killed_ ? -1 : request_.cancel_descriptor, POLLIN, 0});
    polls.push_back({refusals_.descriptor(), POLLIN, 0});
    if (asker_ != nullptr && killed_) asker_->close();
    // While a question is on the screen the payload neither draws over it nor gets the answer to read.
    const bool asked = asking();
    polls.push_back({asker_ != nullptr ? asker_->descriptor() : -1, POLLIN, 0});
    polls.push_back({asked ? asker_->questions().descriptor() : -1, POLLIN, 0});
    const bool feeds = started_ && !late_ && !asked;  // not to a process that may have to be started again
    if (feeds) input_.addPolls(polls);
    if (out_ && !asked) out_->addPolls(polls);
    if (err_ && !asked) err_->addPolls(polls);
    const int ready = ::poll(polls.data(), polls.size(), timeoutMs());
    if (ready < 0 && errno != EINTR) return kill();
    const auto now = Clock::now();
    if (deadline_ && !killed_ && now >= *deadline_) {
      timed_out_ = true;
      kill();
    } else if (grace_ && !killed_ && now >= *grace_) {
      kill();
    }
    if (const auto look = limits_.next(); look && now >= *look) {
      if (const auto reached = limits_.look(now)) limit_ = *reached;
    }
    if (asked) asker_->questions().look(now);
    if (ready <= 0) continue;
    if (polls[1].revents != 0) {
      while (const int signal = signals_.next()) onSignal(signal);
    }
    if (polls[2].revents != 0 && !killed_) {
      cancelled_ = true;
      kill();
    }
    if (polls[3].revents != 0) refusals_.onEvents(polls[3].revents);
    if (polls[4].revents != 0) asker_->onEvents();
    const bool quiet = asked || asking();  // since this turn, too
    if (feeds && !quiet) input_.pump(polls);
    if (out_ && !quiet) out_->pump();
    if (err_ && !quiet) err_->pump();
    if (asked && polls[5].revents != 0 && asking()) asker_->questions().onInput();
    if (polls[0].revents != 0) onSaid();
  }
}

void Runner::onSaid() {
  for (;;) {
    bool closed = false;
    auto said = connection_.receive(false, closed);
    if (!said) {
      gone_ = gone_ || closed;
      return;
    }
    if (const auto* message = std::get_if<Message>(&said->what)) {
      if (message->kind == isolation::MessageKind::failure) onFailure(errorOf(*message));
      continue;
    }
    const Reply& reply = std::get<Reply>(said->what);
    if (reply.exec != number_) continue;
    if (reply.say == Say::refused && !started_) {
      failure_ = sysError(Stage::launch, "exec", "session", reply.value,
                          reply.value == EAGAIN ? "too many commands run in this session; stop some" : "");
      ended_ = true;
      return;
    }
    if (reply.say == Say::started) onStarted(reply, *said);
    if (reply.say == Say::finished) {
      finished_ = reply;
      ended_ = true;
    }
  }
}

void Runner::onStarted(const Reply& reply, Connection::Said& said) {
  started_ = true;
  if (asker_ != nullptr) asker_->follow(reply.pid);
  const bool terminal = (reply.value & kTerminal) != 0;
  if ((reply.value & kListener) != 0) refusals_.listen(std::move(terminal ? said.second : said.descriptor));
  if (reply.amount > 0) {
    result_.layers["seccomp_notify"] = "missing: " + errnoName(static_cast<int>(reply.amount));
    result_.warnings.push_back(
        "refused system calls are not reported: a filter around caisson listens already, and the kernel has room for "
        "one listener");
  }
  if (!terminal || !said.descriptor) return;
  terminal_ = std::move(said.descriptor);
  ::fcntl(terminal_.get(), F_SETFL, O_NONBLOCK);
  if (terminal_wish_.stream[0]) input_.useTerminal(terminal_.get());
  auto& stream = terminal_wish_.stream[1] ? out_ : err_;
  stream.emplace(Fd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)), StreamMode::relay,
                 terminal_wish_.stream[1] ? STDOUT_FILENO : STDERR_FILENO, kNoLimit);
}

/// An escape attempt: what the command left behind, and what other commands run, may be part of it.
void Runner::endEverything() {
  killed_ = true;
  session::Request request;
  request.ask = Ask::enforce;
  request.exec = number_;
  request.signal = static_cast<std::int32_t>(kEscaped);
  (void)connection_.send(request);
}

void Runner::onFailure(Error failure) {
  if (failure.sys_errno == ETIMEDOUT && failure.object == kGoObject) {
    late_ = true;
  } else {
    failure_ = std::move(failure);
  }
}

void Runner::signalCommand(int signal, bool group_only) {
  session::Request request;
  request.ask = Ask::signal;
  request.exec = number_;
  request.signal = signal;
  request.flags = group_only ? 1 : 0;
  (void)connection_.send(request);
}

void Runner::kill() {
  if (std::exchange(killed_, true)) return;
  signalCommand(SIGKILL, false);
}

void Runner::onSignal(int signal) {
  if (signal == SIGWINCH) {
    if (terminal_) supervise::copyTerminalSize(terminal_.get());
    return;
  }
  const bool asks_to_end = signal == SIGTERM || signal == SIGHUP || signal == SIGINT || signal == SIGQUIT;
  if (asks_to_end && ++terminate_requests_ >= 3) return kill();
  if ((signal == SIGTERM || signal == SIGHUP) && !grace_) grace_ = Clock::now() + kGraceAfterTerminate;
  signalCommand(signal, true);
}

void Runner::classify() {
  if (finished_) {
    result_.usage.user_cpu_ms = static_cast<double>(finished_->user_us) / 1e3;
    result_.usage.system_cpu_ms = static_cast<double>(finished_->system_us) / 1e3;
    result_.usage.peak_memory_bytes = static_cast<std::uint64_t>(finished_->peak_kib) * 1024;
    result_.usage.read_bytes = static_cast<std::uint64_t>(finished_->in_blocks) * 512;
    result_.usage.written_bytes = static_cast<std::uint64_t>(finished_->out_blocks) * 512;
  }
  if (failure_) {
    supervise::explainFailure(*failure_, plan_);
    result_.error = std::move(failure_);
    return;
  }
  if (endedByEscape()) {  // if it was this command's own attempt, the result will say more
    result_.outcome = OutcomeKind::denied;
    result_.error = plainError(Stage::supervise, "session exec", plan_.command.front(),
                               "ended by caisson: another command of the session tried to escape",
                               "`caisson session ps` and `caisson audit show` tell which");
    return;
  }
  if (timed_out_) {
    result_.outcome = OutcomeKind::limit;
    result_.limit = Limit::time;
    return;
  }
  if (cancelled_) {
    result_.outcome = OutcomeKind::cancelled;
    return;
  }
  const bool killed = !finished_ || (WIFSIGNALED(finished_->value) && WTERMSIG(finished_->value) == SIGKILL);
  if (limit_ == Limit::none && killed && limits_.memoryKills() > 0) limit_ = Limit::memory;
  if (limit_ != Limit::none) {
    result_.outcome = OutcomeKind::limit;
    result_.limit = limit_;
    if (!limits_.why().empty()) result_.notices.push_back(limits_.why());
    if (limit_ != Limit::cpu) result_.notices.emplace_back("everything that ran in the session was ended");
    return;
  }
  if (!finished_) {  // pid 1 itself is gone
    result_.outcome = OutcomeKind::signaled;
    result_.signal = SIGKILL;
    result_.notices.push_back(
        "the session's sandbox ended while the command ran: its time was over, its memory was used up, or somebody "
        "ended it");
    return;
  }
  const int status = finished_->value;
  if (WIFEXITED(status)) {
    result_.outcome = OutcomeKind::exited;
    result_.exit_code = WEXITSTATUS(status);
    return;
  }
  result_.outcome = OutcomeKind::signaled;
  result_.signal = WTERMSIG(status);
  if (result_.signal == SIGXFSZ) {
    result_.outcome = OutcomeKind::limit;
    result_.limit = Limit::file_size;
  } else {
    supervise::classifySignal(plan_, result_);
  }
}

}  // namespace

void explainEscape(std::string_view call, const std::string& program, RunResult& result) {
  supervise::endedForEscape(call, program, result);
  result.notices.emplace_back("everything that ran in the session was ended");
}

Result<std::optional<RunResult>> runCommand(const plan::Plan& plan, const ExecRequest& request,
                                            const std::string& session, const Connection& connection,
                                            SessionWatch& watch, const Recorder& recorder, HostAsker* asker,
                                            Aftermath& aftermath) {
  RunResult result;
  result.sandbox_id = session;
  result.layers = plan.layers;
  result.warnings = plan.warnings;
  result.notices = plan.notices;
  Runner runner(plan, request, connection, watch, recorder, asker, result);
  const auto ran = runner.run();
  if (!ran) return fail(ran.error());
  if (!*ran) return std::nullopt;
  runner.tellAftermath(aftermath);
  return result;
}

}  // namespace caisson::session
