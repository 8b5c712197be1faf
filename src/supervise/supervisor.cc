#include "supervise/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>

#include "egress/process.h"
#include "isolation/block.h"
#include "supervise/changes.h"
#include "supervise/control_channel.h"
#include "supervise/denials.h"
#include "supervise/egress.h"
#include "supervise/escape.h"
#include "supervise/input_feed.h"
#include "supervise/launch.h"
#include "supervise/lifecycle.h"
#include "supervise/limit_watch.h"
#include "supervise/listener.h"
#include "supervise/outcome.h"
#include "supervise/run_record.h"
#include "supervise/run_store.h"
#include "supervise/sandbox_id.h"
#include "supervise/signal_relay.h"
#include "supervise/stream.h"
#include "supervise/terminal.h"
#include "supervise/violations.h"
#include "sys/raw_syscall.h"
#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

using isolation::Message;
using isolation::MessageKind;
using sys::Fd;
using Clock = std::chrono::steady_clock;

constexpr int kDrainPatienceMs = 5000;
constexpr auto kGraceAfterTerminate = std::chrono::seconds(10);
constexpr std::uint64_t kNoLimit = ~0ULL;

/// An overlay whose changes the kernel cannot keep in memory.
bool needsStore(const plan::Plan& plan) {
  return std::any_of(plan.steps.begin(), plan.steps.end(), [](const plan::Step& step) {
    const auto* overlay = std::get_if<plan::MountOverlay>(&step);
    return overlay != nullptr && overlay->on_disk;
  });
}

void addUsage(const rusage& used, Usage& sum) {
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  sum.user_cpu_ms += ms(used.ru_utime);
  sum.system_cpu_ms += ms(used.ru_stime);
  sum.peak_memory_bytes = std::max(sum.peak_memory_bytes, static_cast<std::uint64_t>(used.ru_maxrss) * 1024);
  sum.read_bytes += static_cast<std::uint64_t>(used.ru_inblock) * 512;
  sum.written_bytes += static_cast<std::uint64_t>(used.ru_oublock) * 512;
}

class Supervisor {
 public:
  Supervisor(const plan::Plan& plan, const Request& request, RunRecord& record, Lifecycle& life, RunResult& result)
      : plan_(plan),
        request_(request),
        record_(record),
        life_(life),
        result_(result),
        signals_(request.forward_signals),
        violations_(plan),
        input_(request.input, request.relay_stdin) {}
  ~Supervisor();  ///< waits until the kernel has taken the sandbox apart
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  void run();

 private:
  Result<void> launchHeld();
  void abandon();
  Result<void> makeCgroup();
  Result<void> startEgress(sys::Fd link);
  void onEgress();
  [[nodiscard]] bool streamsBusy() const;
  void watch();
  void onMessage();
  void onPrepared(Arrival& arrival);
  void onStarted(const Message& message, Fd listener);
  void onFinished(const Message& message);
  void fetch(Arrival& arrival);
  void useTerminal(Fd master);
  void nobodyLeft();
  void reap(rusage* usage);
  void onSignal(int signal);
  void onViolation(short events);
  void onOutOfMemory();
  void kill();
  void sendSignal(int signal);
  void send(MessageKind kind, int value = 0);
  void endFor(Limit limit);
  void collect(Clock::time_point start);
  [[nodiscard]] int timeoutMs() const;
  void checkDeadlines();

  const plan::Plan& plan_;
  const Request& request_;
  RunRecord& record_;
  Lifecycle& life_;
  RunResult& result_;
  SignalRelay signals_;  // before all that has to be removed again: a signal must not end us in between
  Launched sandbox_;
  egress::Link link_;
  TerminalWish terminal_wish_;
  sys::CgroupBase cgroup_base_;
  sys::Cgroup cgroup_;  // removed with this object, after the last process in it is gone
  std::optional<LimitWatch> limits_;
  Fd out_of_memory_;
  std::optional<RunStore> store_;  // outlives the sandbox, goes with this object
  Fd changes_;                     // the overlay's upper directory
  Fd terminal_;                    // master side of the sandbox's pty
  Listener listener_;              // of the filter: what the payload tries and may not
  Violations violations_;
  std::optional<OutputStream> out_, err_;
  InputFeed input_;
  std::optional<Clock::time_point> deadline_, grace_;
  Ending ending_;
  std::optional<egress::Process> egress_;
  std::optional<EgressRecord> egress_record_;
  bool init_gone_ = false;    // or as good as: nothing runs in the sandbox any more
  bool usage_known_ = false;  // from pid 1 itself; otherwise its end tells
  bool abandoned_ = false;    // asked to end while only passing output on
  int terminate_requests_ = 0;
};

void Supervisor::run() {
  const auto start = Clock::now();
  const auto started = launchHeld();
  // While the sandbox is being built: it waits before its payload starts until this is on record.
  if (auto recorded = record_.begin(plan_, request_, result_.sandbox_id); !recorded) {
    if (started) abandon();
    result_.error = recorded.error();
    if (recorded.error().stage == Stage::policy) {  // in quarantine
      result_.outcome = OutcomeKind::denied;
      result_.denials.push_back({"quarantine", recorded.error().object, "execute", recorded.error().hint});
    }
    return;
  }
  life_.reach(RunState::created);
  if (!started) return setupFailed(started.error(), plan_, result_);
  release(sandbox_);
  limits_->begin(sandbox_.init, Clock::now());
  record_.handOver();
  // Its sockets wait for the egress process, not the other way round.
  if (plan_.egress) {
    if (auto served = startEgress(std::move(link_.egress)); !served) {
      ending_.failure = served.error();
      kill();
    }
  }
  if (plan_.wall_seconds) {
    deadline_ = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(*plan_.wall_seconds));
  }
  const auto limitOf = [&](int descriptor) { return ::isatty(descriptor) == 1 ? kNoLimit : plan_.output_bytes; };
  if (sandbox_.output) {
    out_.emplace(std::move(sandbox_.output), request_.out, STDOUT_FILENO,
                 request_.out == StreamMode::relay ? limitOf(STDOUT_FILENO) : plan_.output_bytes);
  }
  if (sandbox_.errors) {
    err_.emplace(std::move(sandbox_.errors), request_.err, STDERR_FILENO,
                 request_.err == StreamMode::relay ? limitOf(STDERR_FILENO) : plan_.output_bytes);
  }
  input_.usePipe(std::move(sandbox_.input));
  if (plan_.cgroup)
    (void)sys::removeAbandonedCgroups(cgroup_base_);  // of callers that were killed; off the launch's path
  std::optional<RawTerminal> raw_mode;
  if (terminal_wish_.any()) raw_mode.emplace(terminal_wish_);
  watch();
  collect(start);
}

Result<void> Supervisor::launchHeld() {
  if (request_.interactive) terminal_wish_ = observeTerminal(request_);
  if (needsStore(plan_)) {
    auto store = RunStore::create(result_.sandbox_id, plan_.identity);
    if (!store) return fail(store.error());
    store_.emplace(std::move(*store));
  }
  if (auto made = makeCgroup(); !made) return fail(made.error());
  limits_.emplace(plan_, cgroup_, [this](const std::string& what) { record_.limitNear(result_.sandbox_id, what); });
  if (plan_.egress) {
    auto made = egress::makeLink();
    if (!made) return fail(made.error());
    link_ = std::move(*made);
  }
  auto launched = launch(plan_, cgroup_,
                         {.terminal = terminal_wish_,
                          .feed_input = hasInput(request_.relay_stdin, request_.input),
                          .store = store_ ? store_->path() : std::string(),
                          .egress_link = link_.sandbox.get(),
                          .held = true});
  link_.sandbox.reset();
  if (!launched) return fail(launched.error());
  sandbox_ = std::move(*launched);
  return {};
}

/// Ends a sandbox whose payload was never let start.
void Supervisor::abandon() {
  kill();
  sandbox_.control.reset();  // for a pid 1 without a namespace of its own: it ends with this socket
  reap(nullptr);
}

void Supervisor::reap(rusage* usage) {
  const pid_t init = std::exchange(sandbox_.init, -1);
  while (sys::raw(SYS_wait4, init, nullptr, __WALL, usage) == -EINTR) {
  }
}

Supervisor::~Supervisor() {
  if (sandbox_.init > 0) reap(nullptr);
}

Result<void> Supervisor::makeCgroup() {
  if (!plan_.cgroup) return {};
  cgroup_base_ = sys::CgroupBase::find();
  const plan::CgroupPlan& wish = *plan_.cgroup;
  auto made = sys::Cgroup::create(cgroup_base_, result_.sandbox_id,
                                  {.memory = wish.memory,
                                   .memory_low = wish.memory_low,
                                   .swap = wish.swap,
                                   .pids = wish.pids,
                                   .cpus = wish.cpus,
                                   .cpuset = wish.cpuset,
                                   .io_disks = wish.io_disks,
                                   .io_rbps = wish.io_rbps,
                                   .io_wbps = wish.io_wbps,
                                   .io_riops = wish.io_riops,
                                   .io_wiops = wish.io_wiops,
                                   .account_cpu = plan_.cpu_seconds.has_value()});
  if (!made) return fail(made.error());
  cgroup_ = std::move(*made);
  out_of_memory_ = cgroup_.oomEvents();
  return {};
}

Result<void> Supervisor::startEgress(Fd link) {
  auto started = egress::Process::start(egressSettings(plan_), std::move(link));
  if (!started) return fail(started.error());
  egress_.emplace(std::move(*started));
  egress_record_.emplace();
  return {};
}

void Supervisor::onEgress() {
  const bool alive = egress_->receive(
      [&](const egress::Report& report) { egress_record_->take(report, record_.log(), result_.sandbox_id); });
  if (egress_record_->failure() && !ending_.failure) {
    ending_.failure = *egress_record_->failure();
    return kill();
  }
  if (alive || ending_.killed) return;
  // Nothing gets out any more; a run that asked for a network must not go on as if it had one.
  if (!ending_.failure) {
    ending_.failure = plainError(Stage::supervise, "egress", "egress process", "it ended before the sandbox",
                                 "see the kernel's log; please report it");
  }
  kill();
}

int Supervisor::timeoutMs() const {
  std::optional<Clock::time_point> next = deadline_;
  if (grace_ && (!next || *grace_ < *next)) next = grace_;
  if (limits_->next() && (!next || *limits_->next() < *next)) next = limits_->next();
  if (const auto resume = listener_.resumeAt(); resume && (!next || *resume < *next)) next = resume;
  if (!next || ending_.killed || init_gone_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(std::min<long long>(left, 1'000'000'000));
}

void Supervisor::checkDeadlines() {
  const auto now = Clock::now();
  if (deadline_ && !ending_.killed && now >= *deadline_) {
    ending_.timed_out = true;
    kill();
  } else if (grace_ && !ending_.killed && now >= *grace_) {
    kill();
  }
  if (ending_.killed || init_gone_ || !limits_->next() || now < *limits_->next()) return;
  if (const auto reached = limits_->look(now)) endFor(*reached);
  if (limits_->wantsIpcBytes()) send(MessageKind::measure);  // the answer is there before the next look
}

void Supervisor::endFor(Limit limit) {
  if (ending_.killed) return;
  ending_.reached = limit;
  kill();
}

/// After the payload's end: what it wrote still has to reach a reader that may be slow, a pager for instance. Nobody is
/// left who could write more, so the pipes end by themselves; without a pid namespace that is not certain.
bool Supervisor::streamsBusy() const {
  if (abandoned_ || !sandbox_.pid_namespace) return false;
  return (out_ && out_->busy()) || (err_ && err_->busy());
}

void Supervisor::watch() {
  std::vector<pollfd> polls;
  while (!init_gone_ || streamsBusy()) {
    polls.clear();
    polls.push_back({init_gone_ ? -1 : sandbox_.pidfd.get(), POLLIN, 0});
    polls.push_back({sandbox_.control.get(), POLLIN, 0});
    polls.push_back({signals_.descriptor(), POLLIN, 0});
    polls.push_back({ending_.killed ? -1 : request_.cancel_descriptor, POLLIN, 0});
    polls.push_back({ending_.killed ? -1 : out_of_memory_.get(), POLLIN | POLLPRI, 0});
    listener_.keepPace(Clock::now());
    polls.push_back({listener_.descriptor(), POLLIN, 0});
    input_.addPolls(polls);
    if (out_) out_->addPolls(polls);
    if (err_) err_->addPolls(polls);
    const std::size_t egress_poll = polls.size();
    if (egress_ && !ending_.killed) polls.push_back({egress_->descriptor(), POLLIN, 0});
    const int ready = ::poll(polls.data(), polls.size(), timeoutMs());
    if (ready < 0 && errno != EINTR) return kill();
    checkDeadlines();
    if (ready <= 0) continue;
    if (polls[1].revents != 0) onMessage();
    if (polls[2].revents != 0) {
      while (const int signal = signals_.next()) onSignal(signal);
    }
    if (polls[3].revents != 0 && init_gone_) abandoned_ = true;
    if (polls[3].revents != 0 && !ending_.killed && !init_gone_) {
      ending_.cancelled = true;
      kill();
    }
    if (polls[4].revents != 0) onOutOfMemory();
    if (egress_poll < polls.size() && polls[egress_poll].revents != 0) onEgress();
    input_.pump(polls);
    if (polls[5].revents != 0) onViolation(polls[5].revents);
    if (out_) out_->pump();
    if (err_) err_->pump();
    if ((out_ && out_->flooded()) || (err_ && err_->flooded())) endFor(Limit::output);
    if (polls[0].revents != 0) {
      onMessage();  // the last word may have come together with the end
      nobodyLeft();
    }
  }
}

void Supervisor::nobodyLeft() {
  init_gone_ = true;
  deadline_.reset();
  grace_.reset();
}

/// Takes the descriptors a child could not send out of it, while it waits.
void Supervisor::fetch(Arrival& arrival) {
  std::size_t count = 0;
  for (int bit = 0; bit < 2; ++bit) {
    if ((arrival.message.descriptors & (1U << bit)) == 0) continue;
    const long got = sys::raw(SYS_pidfd_getfd, sandbox_.pidfd.get(), arrival.message.numbers[bit], 0);
    if (got < 0) return kill();
    arrival.descriptors[count++] = Fd(static_cast<int>(got));
  }
  send(MessageKind::go);
}

void Supervisor::onMessage() {
  for (;;) {
    Arrival arrival;
    const Channel state = receive(sandbox_.control.get(), arrival);
    if (state == Channel::closed) sandbox_.control.reset();
    if (state != Channel::message) return;
    Message& message = arrival.message;
    switch (message.kind) {
      case MessageKind::prepared: onPrepared(arrival); break;
      case MessageKind::measured: limits_->setIpcBytes(message.ipc_bytes); break;
      case MessageKind::failure:
        message.call[isolation::kCallBytes - 1] = 0;
        message.object[isolation::kObjectBytes - 1] = 0;
        ending_.failure = sysError(static_cast<Stage>(message.stage), message.call, message.object, message.value);
        break;
      case MessageKind::started:
        onStarted(message, std::move(arrival.descriptors[0]));
        life_.reach(RunState::monitoring);
        break;
      case MessageKind::finished: onFinished(message); break;
      default: break;
    }
  }
}

void Supervisor::onPrepared(Arrival& arrival) {
  const Message& message = arrival.message;
  if ((message.descriptors & isolation::kFetch) != 0) fetch(arrival);
  life_.reach(RunState::initialized);
  if (plan_.namespaces.time && message.value != 1) {
    result_.layers["time_namespace"] = "missing";
    result_.warnings.push_back("no time namespace: the host's uptime is visible");
  }
  Fd* next = arrival.descriptors;
  if ((message.descriptors & 1) != 0) changes_ = std::move(*next++);
  if (changes_) limits_->addUpper(changes_.get());
  if ((message.descriptors & 2) != 0) useTerminal(std::move(*next++));
  std::vector<Fd> directories;
  for (std::uint32_t bits = message.sized; bits != 0 && next != std::end(arrival.descriptors); bits &= bits - 1) {
    directories.push_back(std::move(*next++));
  }
  limits_->addSized(message.sized, std::move(directories));
}

void Supervisor::useTerminal(Fd master) {
  terminal_ = std::move(master);
  ::fcntl(terminal_.get(), F_SETFL, O_NONBLOCK);
  if (terminal_wish_.stream[0]) input_.useTerminal(terminal_.get());
  // What the pty prints goes to the first of our own outputs that is a terminal.
  const int sink = terminal_wish_.stream[1] ? STDOUT_FILENO : STDERR_FILENO;
  auto& stream = terminal_wish_.stream[1] ? out_ : err_;
  stream.emplace(Fd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)), StreamMode::relay, sink, kNoLimit);
}

void Supervisor::onFinished(const Message& message) {
  ending_.wait_status = message.value;
  // pid 1 is on its way out too, but that takes the kernel a while: it has the namespaces to take apart.
  if (!message.alone) return;
  usage_known_ = true;
  for (const rusage& used : message.used) addUsage(used, result_.usage);
  nobodyLeft();
}

void Supervisor::onStarted(const Message& message, Fd listener) {
  const bool heard = listener.valid();
  listener_ = Listener(std::move(listener));
  if (message.value > 0) {
    result_.layers["seccomp_notify"] = "missing: " + errnoName(message.value);
    result_.warnings.push_back(
        "refused system calls are not reported: a filter around caisson listens already, and the kernel has room for "
        "one listener");
  } else if (!ending_.failure && (message.value < 0 || !heard)) {
    ending_.failure = sysError(Stage::seccomp, "sendmsg", "the filter's listener", -message.value,
                               "too many descriptors of this user are on their way through sockets; try again");
    kill();
  }
}

void Supervisor::onViolation(short events) {
  if ((events & POLLIN) == 0) return listener_.close();  // nobody is left who could be refused anything
  auto attempt = listener_.next(Clock::now());
  if (!attempt || ending_.killed) return;
  if (attempt->architecture != plan::nativeArchitecture()) {
    attempt->foreign_program = listener_.isForeignProgram(*attempt);
  }
  const Verdict verdict = violations_.judge(*attempt, Clock::now(), [&] { return listener_.programOf(*attempt); });
  if (verdict.end) kill();
  if (verdict.worth_logging) recordViolation(record_.log(), result_.sandbox_id, *verdict.entry);
  // An attempt that ends the sandbox is not answered: its thread waits in the kernel until it is killed.
  if (verdict.end) return;
  if (verdict.end_process) return listener_.endProcess(*attempt);
  listener_.refuse(*attempt, verdict.error);
}

/// v1 kills one process and lets the rest go on, broken; a tree that ran out of memory ends as a whole.
void Supervisor::onOutOfMemory() {
  std::uint64_t drained = 0;
  (void)!::read(out_of_memory_.get(), &drained, sizeof(drained));
  if (cgroup_.usage().oom_kills.value_or(0) > 0) kill();
}

void Supervisor::sendSignal(int signal) { send(MessageKind::signal, signal); }

void Supervisor::send(MessageKind kind, int value) {
  Message message{};
  message.kind = kind;
  message.value = value;
  ::send(sandbox_.control.get(), &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Supervisor::onSignal(int signal) {
  if (signal == SIGWINCH) {
    if (terminal_) copyTerminalSize(terminal_.get());
    return;
  }
  const bool asks_to_end = signal == SIGTERM || signal == SIGHUP || signal == SIGINT || signal == SIGQUIT;
  if (init_gone_) {
    abandoned_ = abandoned_ || asks_to_end;
    return;
  }
  if (asks_to_end && ++terminate_requests_ >= 3) return kill();  // somebody means it
  if ((signal == SIGTERM || signal == SIGHUP) && !grace_) grace_ = Clock::now() + kGraceAfterTerminate;
  sendSignal(signal);
}

void Supervisor::kill() {
  if (std::exchange(ending_.killed, true)) return;
  limits_->beforeTheEnd();
  if (sandbox_.pid_namespace) {
    // pid 1 takes the whole namespace with it, however the payload daemonised.
    if (sys::raw(SYS_pidfd_send_signal, sandbox_.pidfd.get(), SIGKILL, nullptr, 0) < 0) {
      ::kill(sandbox_.init, SIGKILL);  // our own child, not yet waited for: its number is nobody else's
    }
  } else {
    sendSignal(SIGKILL);  // the collector ends the payload, then the orphans it was handed
  }
}

void Supervisor::collect(Clock::time_point start) {
  if (out_) out_->drain(kDrainPatienceMs);
  if (err_) err_->drain(kDrainPatienceMs);
  if (!usage_known_) {
    rusage usage{};
    reap(&usage);
    addUsage(usage, result_.usage);
  }
  result_.usage.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  if (egress_) {
    egress_->finish(
        [&](const egress::Report& report) { egress_record_->take(report, record_.log(), result_.sandbox_id); });
    egress_record_->fill(result_);
  }
  const LastOutput last{out_ ? out_->tail() : "", err_ ? err_->tail() : ""};
  if (out_) result_.out = out_->take();
  if (err_) result_.err = err_->take();
  limits_->finish(result_);
  result_.escape = violations_.escape();
  classify(std::move(ending_), plan_, *limits_, result_);
  violations_.report(result_);
  explainLimits(plan_, result_);
  if (result_.escape) respondToEscape(plan_, request_, last, record_.log(), result_);
  if (changes_ && result_.outcome != OutcomeKind::setup_failed) noteDiscardedChanges(changes_.get(), plan_, result_);
}

}  // namespace

RunResult supervise(const plan::Plan& plan, const Request& request) {
  RunResult result;
  result.sandbox_id = newSandboxId();
  if (result.sandbox_id.empty()) {
    result.error = sysError(Stage::launch, "getrandom", "sandbox id", ENOSYS, "run `caisson doctor`");
    return result;
  }
  result.layers = plan.layers;
  result.warnings = plan.warnings;
  result.notices = plan.notices;
  // Where a tree that is shown holds it, it is masked only if it is there when the mounts are made, beside which the
  // log is opened for the first time.
  if (const std::string home = sys::stateHome(); ::access(home.c_str(), F_OK) != 0) (void)sys::makePrivatePath(home);
  RunRecord record;
  Lifecycle life(result.lifecycle, Clock::now());
  life.tell([&](const StateChange& step) { record.entered(result.sandbox_id, step); });
  // Lives until the end is on record: the kernel takes the sandbox apart meanwhile.
  Supervisor supervisor(plan, request, record, life, result);
  supervisor.run();
  if (!result.lifecycle.empty()) {
    life.end(result);
    life.reach(RunState::cleanup);
  }
  record.end(result);
  return result;
}

}  // namespace caisson::supervise
