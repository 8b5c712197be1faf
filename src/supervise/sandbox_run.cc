// A run while it runs: everything that its supervisor waits for, and what it does then.
#include "supervise/supervision.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "supervise/terminal.h"
#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

constexpr auto kGraceAfterTerminate = std::chrono::seconds(10);
constexpr auto kTooShortForMemory = std::chrono::milliseconds(5);
constexpr const char* kInFlightHint =
    "other programs of this user keep too many descriptors in flight; raise the hard limit on open files: ulimit -Hn";

}  // namespace

void Supervision::onEgress() {
  const bool alive = egress_->receive([&](const egress::Report& report) {
    egress_record_->take(report, record_.log(), result_.sandbox_id);
    if (questions_ && report.kind == egress::Report::Kind::question) questions_->add(report.request);
  });
  if (egress_record_->failure() && !ending_.failure) {
    onMessage();  // it may have failed only because pid 1 did, which has said why by then
    if (!ending_.failure) ending_.failure = *egress_record_->failure();
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

/// Somebody sits at a keyboard and sees what is written. What a declared tool may reach is its declaration's matter.
bool Supervision::canAskAboutHosts() const {
  const bool* stream = terminal_streams_.stream;
  return request_.tool.empty() && stream[0] && (stream[1] || stream[2]);
}

int Supervision::timeoutMs() const {
  std::optional<Clock::time_point> next = deadline_;
  if (grace_ && (!next || *grace_ < *next)) next = grace_;
  if (listen_for_memory_ && (!next || *listen_for_memory_ < *next)) next = listen_for_memory_;
  if (limits_->next() && (!next || *limits_->next() < *next)) next = limits_->next();
  if (const auto resume = refusals_.resumeAt(); resume && (!next || *resume < *next)) next = resume;
  if (questions_ && questions_->deadline() && (!next || *questions_->deadline() < *next)) next = questions_->deadline();
  if (!next || ending_.killed || init_gone_) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(std::min<long long>(left, 1'000'000'000));
}

void Supervision::checkDeadlines() {
  const auto now = Clock::now();
  if (questions_) questions_->look(now);
  if (deadline_ && !ending_.killed && now >= *deadline_) {
    ending_.timed_out = true;
    kill();
  } else if (grace_ && !ending_.killed && now >= *grace_) {
    kill();
  }
  if (ending_.killed || init_gone_) return;
  if (listen_for_memory_ && now >= *listen_for_memory_) listenForMemory();
  if (!limits_->next() || now < *limits_->next()) return;
  if (const auto reached = limits_->look(now)) endFor(*reached);
  if (limits_->wantsIpcBytes()) send(MessageKind::measure);  // the answer is there before the next look
}

void Supervision::endFor(Limit limit) {
  if (ending_.killed) return;
  ending_.reached = limit;
  kill();
}

/// After the payload's end: what it wrote still has to reach a reader that may be slow, a pager for instance. Nobody is
/// left who could write more, so the pipes end by themselves; without a pid namespace that is not certain.
bool Supervision::streamsBusy() const {
  if (abandoned_ || !sandbox_.pid_namespace) return false;
  return (out_ && out_->busy()) || (err_ && err_->busy());
}

void Supervision::watch() {
  std::vector<pollfd> polls;
  while (!init_gone_ || streamsBusy()) {
    polls.clear();
    polls.push_back({init_gone_ ? -1 : sandbox_.pidfd.get(), POLLIN, 0});
    polls.push_back({sandbox_.control.get(), POLLIN, 0});
    polls.push_back({signals_.descriptor(), POLLIN, 0});
    polls.push_back({ending_.killed ? -1 : request_.cancel_descriptor, POLLIN, 0});
    polls.push_back({ending_.killed ? -1 : out_of_memory_.get(), POLLIN | POLLPRI, 0});
    polls.push_back({refusals_.descriptor(), POLLIN, 0});
    if (questions_ && (ending_.killed || init_gone_)) questions_->withdraw();
    // While a question is on the screen the payload neither draws over it nor gets the answer to read.
    const bool asking = questions_ && questions_->open();
    polls.push_back({asking ? questions_->descriptor() : -1, POLLIN, 0});
    if (!asking) input_.addPolls(polls);
    if (out_ && !asking) out_->addPolls(polls);
    if (err_ && !asking) err_->addPolls(polls);
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
    const bool quiet = asking || (questions_ && questions_->open());  // since this turn, too
    if (!quiet) input_.pump(polls);
    if (polls[5].revents != 0) refusals_.onEvents(polls[5].revents);
    if (out_ && !quiet) out_->pump();
    if (err_ && !quiet) err_->pump();
    if (asking && polls[6].revents != 0 && questions_->open()) questions_->onInput();
    if ((out_ && out_->flooded()) || (err_ && err_->flooded())) endFor(Limit::output);
    if (polls[0].revents != 0) {
      onMessage();  // the last word may have come together with the end
      nobodyLeft();
    }
  }
}

void Supervision::nobodyLeft() {
  init_gone_ = true;
  deadline_.reset();
  grace_.reset();
}

/// Takes the descriptors a child could not send out of it, while it waits.
void Supervision::fetch(Arrival& arrival) {
  std::size_t count = 0;
  for (int bit = 0; bit < 2; ++bit) {
    if ((arrival.message.descriptors & (1U << bit)) == 0) continue;
    const long got = sys::raw(SYS_pidfd_getfd, sandbox_.pidfd.get(), arrival.message.numbers[bit], 0);
    if (got < 0) return kill();
    arrival.descriptors[count++] = Fd(static_cast<int>(got));
  }
  send(MessageKind::go);
}

void Supervision::onMessage() {
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
        if (ending_.killed) break;  // it fails because it is being ended
        ending_.failure = errorOf(message);
        if (message.value == ETOOMANYREFS) ending_.failure->hint = kInFlightHint;
        break;
      case MessageKind::started: onStarted(message, std::move(arrival.descriptors[0])); [[fallthrough]];
      case MessageKind::running:
        // Not before: until its exec the payload's process shows the memory of whoever launched it.
        limits_->begin(sandbox_.init, Clock::now());
        if (cgroup_.enforced().memory) listen_for_memory_ = Clock::now() + kTooShortForMemory;
        life_.reach(RunState::monitoring);
        break;
      case MessageKind::finished: onFinished(message); break;
      default: break;
    }
  }
}

void Supervision::onPrepared(Arrival& arrival) {
  const Message& message = arrival.message;
  if ((message.descriptors & isolation::kFetch) != 0) fetch(arrival);
  life_.reach(RunState::initialized);
  if (plan_.namespaces.time && message.value != 1) {
    result_.layers["time_namespace"] = "missing";
    result_.warnings.push_back("no time namespace: the host's uptime is visible");
  }
  if (message.quota_error != 0) {
    result_.layers["kernel_quotas"] = "missing: " + errnoName(message.quota_error);
    result_.warnings.push_back(
        "kernel quotas cannot be written here (/proc/sys/user: " + errnoName(message.quota_error) +
        "): the program can use up its caller's inotify instances and watches");
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

void Supervision::useTerminal(Fd master) {
  terminal_ = std::move(master);
  ::fcntl(terminal_.get(), F_SETFL, O_NONBLOCK);
  if (terminal_streams_.stream[0]) input_.useTerminal(terminal_.get());
  // What the pty prints goes to the first of our own outputs that is a terminal.
  const int sink = terminal_streams_.stream[1] ? STDOUT_FILENO : STDERR_FILENO;
  auto& stream = terminal_streams_.stream[1] ? out_ : err_;
  stream.emplace(Fd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)), StreamMode::relay, sink, kNoOutputLimit);
}

void Supervision::onFinished(const Message& message) {
  ending_.wait_status = message.value;
  // pid 1 is on its way out too, but that takes the kernel a while: it has the namespaces to take apart.
  if (!message.alone) return;
  usage_known_ = true;
  for (const rusage& used : message.used) addUsage(used, result_.usage);
  nobodyLeft();
}

void Supervision::onStarted(const Message& message, Fd listener) {
  const bool heard = listener.valid();
  refusals_.listen(std::move(listener));
  if (request_.learn) refusals_.show(observer_.emplace(plan_));
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

/// To listen costs more than a short command's share of everything else. What happens before is found at once then, or
/// at the end.
void Supervision::listenForMemory() {
  listen_for_memory_.reset();
  out_of_memory_ = cgroup_.oomEvents();
  onOutOfMemory();
}

/// v1 kills one process and lets the rest go on, broken; a tree that ran out of memory ends as a whole.
void Supervision::onOutOfMemory() {
  std::uint64_t drained = 0;
  if (out_of_memory_) (void)!::read(out_of_memory_.get(), &drained, sizeof(drained));
  if (cgroup_.totals(true).oom_kills.value_or(0) > 0) kill();
}

void Supervision::sendSignal(int signal) { send(MessageKind::signal, signal); }

void Supervision::send(MessageKind kind, int value) {
  Message message{};
  message.kind = kind;
  message.value = value;
  ::send(sandbox_.control.get(), &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Supervision::onSignal(int signal) {
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

void Supervision::kill() {
  if (std::exchange(ending_.killed, true)) return;
  refusals_.stop();
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

}  // namespace caisson::supervise
