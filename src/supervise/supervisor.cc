#include "supervise/supervisor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
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
#include "supervise/denials.h"
#include "supervise/egress.h"
#include "supervise/launch.h"
#include "supervise/limit_watch.h"
#include "supervise/listener.h"
#include "supervise/run_record.h"
#include "supervise/run_store.h"
#include "supervise/signal_relay.h"
#include "supervise/stream.h"
#include "supervise/terminal.h"
#include "supervise/violations.h"
#include "sys/raw_syscall.h"

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

/// Standard input that has nothing to give: the payload gets a null device of its own instead of a pipe.
bool isNullDevice(int descriptor) {
  struct stat status;
  return ::fstat(descriptor, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

class Supervisor {
 public:
  Supervisor(const plan::Plan& plan, const Request& request, RunRecord& record, RunResult& result)
      : plan_(plan),
        request_(request),
        record_(record),
        result_(result),
        signals_(request.forward_signals),
        violations_(plan) {}

  void run();

 private:
  Result<void> makeCgroup();
  Result<void> startEgress(sys::Fd link);
  void onEgress();
  [[nodiscard]] bool streamsBusy() const;
  void watch();
  void onMessage();
  void fetch(const Message& message, int* received);
  void takeSized(std::uint32_t mask, const int* received);
  void onSignal(int signal);
  void onStarted(const Message& message, int listener);
  void onViolation(short events);
  void onOutOfMemory();
  void feedInput();
  void closeInput();
  void kill();
  void sendSignal(int signal);
  void send(MessageKind kind, int value = 0);
  void endFor(Limit limit);
  void collect(Clock::time_point start);
  void classify();
  [[nodiscard]] bool metByItself(Limit& limit) const;
  [[nodiscard]] int timeoutMs() const;
  void checkDeadlines();
  void setupFailed(Error error);

  const plan::Plan& plan_;
  const Request& request_;
  RunRecord& record_;
  RunResult& result_;
  SignalRelay signals_;  // before all that has to be removed again: a signal must not end us in between
  Launched sandbox_;
  TerminalWish terminal_wish_;
  sys::CgroupBase cgroup_base_;
  sys::Cgroup cgroup_;  // removed with this object, after the last process in it is gone
  std::optional<LimitWatch> limits_;
  Limit reached_ = Limit::none;  // that we ended the run for
  Fd out_of_memory_;
  std::optional<RunStore> store_;  // outlives the sandbox, goes with this object
  Fd changes_;                     // the overlay's upper directory
  Fd terminal_;                    // master side of the sandbox's pty
  Listener listener_;              // of the filter: what the payload tries and may not
  Violations violations_;
  std::optional<OutputStream> out_, err_;
  std::string input_;  // bytes on their way in
  std::size_t input_written_ = 0;
  bool input_ended_ = false;
  std::optional<Clock::time_point> deadline_, grace_;
  std::optional<int> wait_status_;
  std::optional<Error> failure_;
  std::optional<egress::Process> egress_;
  std::optional<EgressRecord> egress_record_;
  bool init_gone_ = false;
  bool killed_ = false;
  bool timed_out_ = false;
  bool cancelled_ = false;
  bool abandoned_ = false;  // asked to end while only passing output on
  int terminate_requests_ = 0;
};

void Supervisor::setupFailed(Error error) {
  explainFailure(error, plan_);
  result_.outcome = OutcomeKind::setup_failed;
  result_.error = std::move(error);
}

void Supervisor::run() {
  const auto start = Clock::now();
  if (request_.interactive) terminal_wish_ = observeTerminal(request_);
  const bool feed = (request_.relay_stdin && !isNullDevice(STDIN_FILENO)) || !request_.input.empty();
  if (needsStore(plan_)) {
    auto store = RunStore::create(result_.sandbox_id, plan_.identity);
    if (!store) return setupFailed(store.error());
    store_.emplace(std::move(*store));
  }
  if (auto made = makeCgroup(); !made) return setupFailed(made.error());
  limits_.emplace(plan_, cgroup_, [this](const std::string& what) { record_.limitNear(result_.sandbox_id, what); });
  egress::Link link;
  if (plan_.egress) {
    auto made = egress::makeLink();
    if (!made) return setupFailed(made.error());
    link = std::move(*made);
  }
  auto launched =
      launch(plan_, terminal_wish_, feed, store_ ? store_->path() : std::string(), cgroup_, link.sandbox.get());
  if (!launched) return setupFailed(launched.error());
  sandbox_ = std::move(*launched);
  limits_->begin(sandbox_.init, Clock::now());
  record_.handOver();
  link.sandbox.reset();
  // While the sandbox is being built: its sockets wait for the egress process, not the other way round.
  if (plan_.egress) {
    if (auto started = startEgress(std::move(link.egress)); !started) {
      failure_ = started.error();
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
  input_ = request_.input;
  input_ended_ = !request_.relay_stdin;
  if (plan_.cgroup)
    (void)sys::removeAbandonedCgroups(cgroup_base_);  // of callers that were killed; off the launch's path
  std::optional<RawTerminal> raw_mode;
  if (terminal_wish_.any()) raw_mode.emplace(terminal_wish_);
  watch();
  collect(start);
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
  if (egress_record_->failure() && !failure_) {
    failure_ = *egress_record_->failure();
    return kill();
  }
  if (alive || killed_) return;
  // Nothing gets out any more; a run that asked for a network must not go on as if it had one.
  if (!failure_) {
    failure_ = plainError(Stage::supervise, "egress", "egress process", "it ended before the sandbox",
                          "see the kernel's log; please report it");
  }
  kill();
}

int Supervisor::timeoutMs() const {
  std::optional<Clock::time_point> next = deadline_;
  if (grace_ && (!next || *grace_ < *next)) next = grace_;
  if (limits_->next() && (!next || *limits_->next() < *next)) next = limits_->next();
  if (const auto resume = listener_.resumeAt(); resume && (!next || *resume < *next)) next = resume;
  if (!next || killed_ || init_gone_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(std::min<long long>(left, 1'000'000'000));
}

void Supervisor::checkDeadlines() {
  const auto now = Clock::now();
  if (deadline_ && !killed_ && now >= *deadline_) {
    timed_out_ = true;
    kill();
  } else if (grace_ && !killed_ && now >= *grace_) {
    kill();
  }
  if (killed_ || init_gone_ || !limits_->next() || now < *limits_->next()) return;
  if (const auto reached = limits_->look(now)) endFor(*reached);
  if (limits_->wantsIpcBytes()) send(MessageKind::measure);  // the answer is there before the next look
}

void Supervisor::endFor(Limit limit) {
  if (killed_) return;
  reached_ = limit;
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
    polls.push_back({killed_ ? -1 : request_.cancel_descriptor, POLLIN, 0});
    polls.push_back({killed_ ? -1 : out_of_memory_.get(), POLLIN | POLLPRI, 0});
    const bool wants_more =
        !input_ended_ && input_.empty() && (sandbox_.input || (terminal_ && terminal_wish_.stream[0]));
    polls.push_back({wants_more ? STDIN_FILENO : -1, POLLIN, 0});
    const int input_sink = sandbox_.input ? sandbox_.input.get() : terminal_wish_.stream[0] ? terminal_.get() : -1;
    polls.push_back({input_.empty() ? -1 : input_sink, POLLOUT, 0});
    listener_.keepPace(Clock::now());
    polls.push_back({listener_.descriptor(), POLLIN, 0});
    if (sandbox_.input && input_.empty() && input_ended_) closeInput();
    if (sandbox_.input && input_.empty()) polls.push_back({sandbox_.input.get(), 0, 0});  // tells when nobody reads
    if (out_) out_->addPolls(polls);
    if (err_) err_->addPolls(polls);
    const std::size_t egress_poll = polls.size();
    if (egress_ && !killed_) polls.push_back({egress_->descriptor(), POLLIN, 0});
    const int ready = ::poll(polls.data(), polls.size(), timeoutMs());
    if (ready < 0 && errno != EINTR) return kill();
    checkDeadlines();
    if (ready <= 0) continue;
    if (polls[1].revents != 0) onMessage();
    if (polls[2].revents != 0) {
      while (const int signal = signals_.next()) onSignal(signal);
    }
    if (polls[3].revents != 0 && init_gone_) abandoned_ = true;
    if (polls[3].revents != 0 && !killed_ && !init_gone_) {
      cancelled_ = true;
      kill();
    }
    if (polls[4].revents != 0) onOutOfMemory();
    if (egress_poll < polls.size() && polls[egress_poll].revents != 0) onEgress();
    if (polls[5].revents != 0 || polls[6].revents != 0) feedInput();
    if (polls[7].revents != 0) onViolation(polls[7].revents);
    if (polls.size() > 8 && sandbox_.input && polls[8].fd == sandbox_.input.get() &&
        (polls[8].revents & POLLERR) != 0) {
      closeInput();
    }
    if (out_) out_->pump();
    if (err_) err_->pump();
    if ((out_ && out_->flooded()) || (err_ && err_->flooded())) endFor(Limit::output);
    if (polls[0].revents != 0) {
      onMessage();  // the last word may have come together with the end
      init_gone_ = true;
      deadline_.reset();
      grace_.reset();
    }
  }
}

/// Takes the descriptors a child could not send out of it, while it waits.
void Supervisor::fetch(const Message& message, int* received) {
  int count = 0;
  for (int bit = 0; bit < 2; ++bit) {
    if ((message.descriptors & (1U << bit)) == 0) continue;
    const long got = sys::raw(SYS_pidfd_getfd, sandbox_.pidfd.get(), message.numbers[bit], 0);
    if (got < 0) return kill();
    received[count++] = static_cast<int>(got);
  }
  Message go{};
  go.kind = MessageKind::go;
  ::send(sandbox_.control.get(), &go, sizeof(go), MSG_NOSIGNAL);
}

void Supervisor::onMessage() {
  for (;;) {
    Message message{};
    iovec io{&message, sizeof(message)};
    constexpr std::size_t kMost = 2 + isolation::kMaxSized;
    alignas(cmsghdr) char room[CMSG_SPACE(kMost * sizeof(int))];
    msghdr header{};
    header.msg_iov = &io;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof(room);
    const ssize_t got = ::recvmsg(sandbox_.control.get(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got != static_cast<ssize_t>(sizeof(message))) {
      if (got == 0) sandbox_.control.reset();
      return;
    }
    int received[kMost];
    std::fill_n(received, kMost, -1);
    if (const cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr && part->cmsg_type == SCM_RIGHTS) {
      const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
      std::memcpy(received, CMSG_DATA(part), std::min(count, kMost) * sizeof(int));
    }
    if (message.kind == MessageKind::prepared && (message.descriptors & isolation::kFetch) != 0)
      fetch(message, received);
    int next = 0;
    switch (message.kind) {
      case MessageKind::prepared:
        if (plan_.namespaces.time && message.value != 1) {
          result_.layers["time_namespace"] = "missing";
          result_.warnings.push_back("no time namespace: the host's uptime is visible");
        }
        if ((message.descriptors & 1) != 0) changes_ = Fd(received[next++]);
        if (changes_) limits_->addUpper(changes_.get());
        if ((message.descriptors & 2) != 0) {
          terminal_ = Fd(received[next++]);
          ::fcntl(terminal_.get(), F_SETFL, O_NONBLOCK);
          // What the pty prints goes to the first of our own outputs that is a terminal.
          const int sink = terminal_wish_.stream[1] ? STDOUT_FILENO : STDERR_FILENO;
          auto& stream = terminal_wish_.stream[1] ? out_ : err_;
          stream.emplace(Fd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)), StreamMode::relay, sink, kNoLimit);
        }
        takeSized(message.sized, received + next);
        break;
      case MessageKind::measured: limits_->setIpcBytes(message.ipc_bytes); break;
      case MessageKind::failure:
        message.call[isolation::kCallBytes - 1] = 0;
        message.object[isolation::kObjectBytes - 1] = 0;
        failure_ = sysError(static_cast<Stage>(message.stage), message.call, message.object, message.value);
        break;
      case MessageKind::started: onStarted(message, received[0]); break;
      case MessageKind::finished: wait_status_ = message.value; break;
      default: break;
    }
  }
}

void Supervisor::takeSized(std::uint32_t mask, const int* received) {
  std::vector<Fd> directories;
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) directories.emplace_back(*received++);
  limits_->addSized(mask, std::move(directories));
}

void Supervisor::onStarted(const Message& message, int listener) {
  listener_ = Listener(Fd(listener));
  if (message.value > 0) {
    result_.layers["seccomp_notify"] = "missing: " + errnoName(message.value);
    result_.warnings.push_back(
        "refused system calls are not reported: a filter around caisson listens already, and the kernel has room for "
        "one listener");
  } else if (!failure_ && (message.value < 0 || listener < 0)) {
    failure_ = sysError(Stage::seccomp, "sendmsg", "the filter's listener", -message.value,
                        "too many descriptors of this user are on their way through sockets; try again");
    kill();
  }
}

void Supervisor::onViolation(short events) {
  if ((events & POLLIN) == 0) return listener_.close();  // nobody is left who could be refused anything
  auto attempt = listener_.next(Clock::now());
  if (!attempt || killed_) return;
  if (attempt->architecture != plan::nativeArchitecture()) {
    attempt->foreign_program = listener_.isForeignProgram(*attempt);
  }
  const Verdict verdict = violations_.judge(*attempt, Clock::now(), [&] { return listener_.programOf(*attempt); });
  // An attempt that ends the sandbox is not answered: its thread waits in the kernel until it is killed.
  if (verdict.end) return kill();
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
  if (std::exchange(killed_, true)) return;
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

void Supervisor::closeInput() { sandbox_.input.reset(); }

void Supervisor::feedInput() {
  if (input_.empty() && !input_ended_) {
    char buffer[16 * 1024];
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (got > 0) {
      input_.assign(buffer, static_cast<std::size_t>(got));
      input_written_ = 0;
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
      input_ended_ = true;
    }
  }
  const int sink = sandbox_.input ? sandbox_.input.get() : terminal_.get();
  while (!input_.empty()) {
    const ssize_t done = ::write(sink, input_.data() + input_written_, input_.size() - input_written_);
    if (done < 0) {
      if (errno == EAGAIN || errno == EINTR) return;
      input_.clear();
      input_ended_ = true;
      closeInput();
      return;
    }
    input_written_ += static_cast<std::size_t>(done);
    if (input_written_ == input_.size()) {
      input_.clear();
      input_written_ = 0;
    }
  }
}

void Supervisor::collect(Clock::time_point start) {
  if (out_) out_->drain(kDrainPatienceMs);
  if (err_) err_->drain(kDrainPatienceMs);
  rusage usage{};
  int status = 0;
  while (sys::raw(SYS_wait4, sandbox_.init, &status, __WALL, &usage) == -EINTR) {
  }
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  Usage& u = result_.usage;
  u.wall_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  u.user_cpu_ms = ms(usage.ru_utime);
  u.system_cpu_ms = ms(usage.ru_stime);
  u.peak_memory_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  u.read_bytes = static_cast<std::uint64_t>(usage.ru_inblock) * 512;
  u.written_bytes = static_cast<std::uint64_t>(usage.ru_oublock) * 512;
  if (egress_) {
    egress_->finish(
        [&](const egress::Report& report) { egress_record_->take(report, record_.log(), result_.sandbox_id); });
    egress_record_->fill(result_);
  }
  if (out_) result_.out = out_->take();
  if (err_) result_.err = err_->take();
  limits_->finish(result_);
  classify();
  violations_.report(result_);
  explainLimits(plan_, result_);
  if (changes_ && result_.outcome != OutcomeKind::setup_failed) noteDiscardedChanges(changes_.get(), plan_, result_);
}

/// A limit that the kernel holds by itself and that a program met which then gave up: its own exit status stays, and
/// the result says why.
bool Supervisor::metByItself(Limit& limit) const {
  const bool exited = wait_status_ && WIFEXITED(*wait_status_);
  const int code = exited ? WEXITSTATUS(*wait_status_) : 0;
  if (exited && code == 0) return false;
  if (code == 128 + SIGXFSZ || (!exited && WTERMSIG(*wait_status_) == SIGXFSZ)) {
    // Where the disk is only watched no file may grow beyond its limit either.
    const bool quota = plan_.disk && plan_.disk->bytes && !plan_.max_file_size;
    limit = quota ? Limit::disk : Limit::file_size;
  } else {
    limit = limits_->met();
  }
  return limit != Limit::none;
}

void Supervisor::classify() {
  if (failure_) {
    return setupFailed(std::move(*failure_));
  }
  if (violations_.escape()) {
    result_.outcome = OutcomeKind::denied;
    result_.escape = violations_.escape();
    result_.error =
        plainError(Stage::supervise, "run", plan_.command.front(), "ended by caisson: " + result_.escape->reason,
                   "if the program is to be trusted with such attempts, see syscalls.critical and "
                   "syscalls.high in `caisson policy explain`");
    return;
  }
  if (limits_->ranOutOfMemory() && (!wait_status_ || WIFSIGNALED(*wait_status_) || killed_)) {
    result_.outcome = OutcomeKind::limit;
    result_.limit = Limit::memory;
    result_.signal = SIGKILL;
    return;
  }
  if (timed_out_) {
    result_.outcome = OutcomeKind::limit;
    result_.limit = Limit::time;
    return;
  }
  if (reached_ != Limit::none) {
    result_.outcome = OutcomeKind::limit;
    result_.limit = reached_;
    result_.signal = SIGKILL;
    return;
  }
  if (cancelled_) {
    result_.outcome = OutcomeKind::cancelled;
    return;
  }
  if (!wait_status_) {
    if (killed_) {
      result_.outcome = OutcomeKind::signaled;
      result_.signal = SIGKILL;
      return;
    }
    return setupFailed(plainError(Stage::supervise, "wait", "pid 1 of the sandbox", "it ended without a word",
                                  "the host may be out of memory; see the kernel's log"));
  }
  if (WIFEXITED(*wait_status_)) {
    result_.outcome = metByItself(result_.limit) ? OutcomeKind::limit : OutcomeKind::exited;
    result_.exit_code = WEXITSTATUS(*wait_status_);
    return;
  }
  result_.outcome = OutcomeKind::signaled;
  result_.signal = WTERMSIG(*wait_status_);
  const double cpu_ms = result_.usage.user_cpu_ms + result_.usage.system_cpu_ms;
  if (metByItself(result_.limit)) {
    result_.outcome = OutcomeKind::limit;
  } else if (plan_.cpu_seconds && cpu_ms >= *plan_.cpu_seconds * 1e3 * 0.95 &&
             (result_.signal == SIGXCPU || result_.signal == SIGKILL)) {
    result_.outcome = OutcomeKind::limit;
    result_.limit = Limit::cpu;
  } else if (result_.signal == SIGSYS) {
    noteUnheardForeignCall(result_);
  }
}

}  // namespace

std::string newSandboxId() {
  unsigned char bytes[16];
  std::size_t have = 0;
  while (have < sizeof(bytes)) {
    const ssize_t got = ::getrandom(bytes + have, sizeof(bytes) - have, 0);
    if (got < 0 && errno != EINTR) break;
    if (got > 0) have += static_cast<std::size_t>(got);
  }
  if (have < sizeof(bytes)) {  // a filter around us refuses the call; the device gives the same
    const Fd device(::open("/dev/urandom", O_RDONLY | O_CLOEXEC));
    if (::read(device.get(), bytes, sizeof(bytes)) != static_cast<ssize_t>(sizeof(bytes))) return {};
  }
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string id = "cs-";
  for (const unsigned char byte : bytes) {
    id += kDigits[byte >> 4];
    id += kDigits[byte & 15];
  }
  return id;
}

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
  auto record = RunRecord::begin(plan, request, result.sandbox_id);
  if (!record) {
    result.error = record.error();
    if (record.error().stage == Stage::policy) {  // in quarantine
      result.outcome = OutcomeKind::denied;
      result.denials.push_back({"quarantine", record.error().object, "execute", record.error().hint});
    }
    return result;
  }
  Supervisor(plan, request, *record, result).run();
  record->end(result);
  return result;
}

}  // namespace caisson::supervise
