// The events of a run: messages of pid 1, signals, limits, egress reports, exit.
#include "supervise/sandbox_run.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "plan/denied_paths.h"
#include "plan/hidden_names.h"
#include "plan/workspace.h"
#include "supervise/weaker_rungs.h"
#include "sys/raw_syscall.h"

namespace caisson::supervise {
namespace {

constexpr auto kRuntimeStart = std::chrono::seconds(30);
constexpr auto kTooShortForMemory = std::chrono::milliseconds(5);
constexpr const char* kInFlightHint =
    "other programs of this user keep too many descriptors in flight; raise the hard limit on open files: ulimit -Hn";

}  // namespace

void SandboxRun::onEgress() {
  const bool alive = egress_->receive([&](const egress::Report& report) {
    egress_record_->take(report, record_.log(), result_.sandbox_id);
    if (questions_ && report.kind == egress::Report::Kind::question) questions_->add(report.request);
  });
  if (egress_record_->recordedAll()) egress_->confirmRecorded();
  if (prompt_watch_) prompt_watch_->update();
  if (egress_record_->failure()) {
    onMessage();  // if pid 1 failed first, its message has the cause
    return runner_.failAndKill(*egress_record_->failure());
  }
  if (alive || runner_.killed()) return;
  // A run with a network must not continue without one.
  runner_.failAndKill(plainError(Stage::supervise, "egress", "egress process", "it exited before the sandbox",
                                 "see the kernel's log; please report it"));
}

bool SandboxRun::canAskAboutHosts() const {
  const bool* stream = terminal_streams_.stream;
  return request_.tool.empty() && stream[0] && (stream[1] || stream[2]);
}

void SandboxRun::armLimits() {
  if (const auto next = limits_->next()) loop_.at(*next, [this] { checkLimits(); });
}

void SandboxRun::checkLimits() {
  if (runner_.killed() || sandbox_empty_) return;
  if (const auto reached = limits_->look(Clock::now())) return runner_.end(EndedBy::limit, *reached);
  if (limits_->wantsIpcBytes()) send(MessageKind::measure);  // the answer arrives before the next look
  armLimits();
}

/// No process is left that could write more, so the pipes reach end of file; without a pid namespace that is not
/// certain.
bool SandboxRun::streamsBusy() const { return !abandoned_ && sandbox_.pid_namespace && streams_.busy(); }

void SandboxRun::watch() {
  loop_.on(sandbox_.pidfd.get(), POLLIN, [this](short) {
    onMessage();  // the last message may have arrived together with the exit
    if (sandbox_.container) onContainerMessage();
    sandboxEmpty();
  });
  loop_.on(sandbox_.control.get(), POLLIN, [this](short) { onMessage(); });
  if (sandbox_.container) {
    loop_.on(sandbox_.container.get(), POLLIN, [this](short) { onContainerMessage(); });
    limitRuntime(kRuntimeStart);
  }
  signals_.attach(loop_, {.forward = [this](int signal) { forwardSignal(signal); },
                          .kill = [this] { sandbox_empty_ ? void(abandoned_ = true) : runner_.end(EndedBy::itself); },
                          .resize = [this] { streams_.resizeTerminal(); }});
  if (request_.cancel_descriptor >= 0) loop_.on(request_.cancel_descriptor, POLLIN, [this](short) { cancel(); });
  if (egress_) loop_.on(egress_->descriptor(), POLLIN, [this](short) { onEgress(); });
  streams_.start([this] { runner_.end(EndedBy::limit, Limit::output); });
  loop_.afterTurn([this] { onTurn(); });
  loop_.run();
}

void SandboxRun::onTurn() {
  if (questions_ && (runner_.killed() || sandbox_empty_)) {
    questions_->withdraw();
    prompt_watch_->update();
  }
  if (sandbox_empty_ && !streamsBusy() && (abandoned_ || runner_.killed() || !ports_.busy())) loop_.stop();
}

void SandboxRun::cancel() {
  loop_.remove(request_.cancel_descriptor);
  if (sandbox_empty_) {
    abandoned_ = true;
  } else {
    runner_.end(EndedBy::client);
  }
}

void SandboxRun::sandboxEmpty() {
  if (!sandbox_empty_) ports_.drain();
  sandbox_empty_ = true;
  sandbox_.mask_mount_namespace.reset();  // or pid 1 would leave the unmounting to us
  runner_.stopClock();
  loop_.remove(sandbox_.pidfd.get());
}

void SandboxRun::fetch(Arrival& arrival) {
  std::size_t count = 0;
  for (int bit = 0; bit < 2; ++bit) {
    if ((arrival.message.descriptors & (1U << bit)) == 0) continue;
    const long got = sys::raw(SYS_pidfd_getfd, sandbox_.pidfd.get(), arrival.message.to_fetch[bit], 0);
    if (got < 0) return runner_.end(EndedBy::itself);
    arrival.descriptors[count++] = Fd(static_cast<int>(got));
  }
  send(MessageKind::go);
}

void SandboxRun::onMessage() {
  for (;;) {
    Arrival arrival;
    const Channel state = receive(sandbox_.control.get(), arrival);
    if (state == Channel::closed) {
      loop_.remove(sandbox_.control.get());
      sandbox_.control.reset();
    }
    if (state != Channel::message) return;
    Message& message = arrival.message;
    switch (message.kind) {
      case MessageKind::prepared: onPrepared(arrival); break;
      case MessageKind::measured: limits_->setIpcBytes(message.ipc_bytes); break;
      case MessageKind::host_ports:
        ports_.serveHostPorts(arrival.descriptors, message.listeners_per_port == 2 ? 2 : 1);
        break;
      case MessageKind::socket: ports_.onSocket(message.request, std::move(arrival.descriptors[0])); break;
      case MessageKind::failure: {
        Error failure = errorOf(message);
        if (message.error == ETOOMANYREFS) failure.hint = kInFlightHint;
        runner_.fail(std::move(failure));
        break;
      }
      case MessageKind::started: onStarted(message, std::move(arrival.descriptors[0])); [[fallthrough]];
      case MessageKind::running:
        if (!inContainer()) onRunning();  // else this was the runtime
        break;
      case MessageKind::finished: inContainer() ? onRuntimeExit(message) : onFinished(message); break;
      default: break;
    }
  }
}

void SandboxRun::onPrepared(Arrival& arrival) {
  const Message& message = arrival.message;
  if ((message.descriptors & isolation::kFetch) != 0) fetch(arrival);
  life_.reach(RunState::initialized);
  noteRungs(plan_, message, result_.layers, result_.warnings);
  Fd* next = arrival.descriptors;
  if ((message.descriptors & 1) != 0) changes_ = std::move(*next++);
  if (changes_) limits_->addUpper(changes_.get());
  if ((message.descriptors & 2) != 0) streams_.setTerminal(std::move(*next++), terminal_streams_);
  std::vector<Fd> directories;
  for (std::uint32_t bits = message.sized; bits != 0 && next != std::end(arrival.descriptors); bits &= bits - 1) {
    directories.push_back(std::move(*next++));
  }
  limits_->addSized(message.sized, std::move(directories));
}

void SandboxRun::onRunning() {
  limits_->begin(payloadInit(), Clock::now());
  armLimits();
  if (cgroup_.enforced().memory) {
    loop_.at(Clock::now() + kTooShortForMemory, [this] { listenForMemory(); });
  }
  if (plan_.watched) watchSecrets();
  ports_.startPublished();
  life_.reach(RunState::monitoring);
}

void SandboxRun::watchSecrets() {
  // A layer hides a name, also when another file gets that name; a mask hides one file.
  const bool by_layer = plan_.workspace_overlay || plan_.workspace_masked;
  const plan::HiddenNames hidden(plan_.watched->hidden);
  SecretWatch::Options options;
  options.workspace = plan_.watched->path;
  options.directory = plan_.watched->opened;
  options.scan.secrets = !request_.policy.model().filesystem.workspace.show_secrets;
  options.scan.around = request_.policy.model().filesystem.workspace.around;
  options.scan.shown = plan::shownFiles(request_.policy.model().filesystem.workspace, plan_.watched->path);
  options.scan.denied = plan::deniedPatterns(request_.policy.model());
  options.scan.denied_paths = plan::deniedInWorkspace(request_.policy.model(), plan_.watched->path);
  options.scan.index = request_.policy.model().filesystem.workspace.protected_files;
  const DirectParts direct(plan_);
  for (const std::string& path : plan_.watched->hidden) {
    if (!by_layer || direct.holds(path)) options.masked.push_back(path);
  }
  options.exposes = [this, by_layer, hidden, direct](const std::string& path) {
    if (direct.holds(path)) return true;
    if (by_layer && hidden.hides(path)) return false;
    return !changes_ || !layerHides(changes_.get(), path);
  };
  options.keeps_names = [by_layer, direct](const std::string& path) { return by_layer && !direct.holds(path); };
  options.writes = [direct](const std::string& path) { return direct.writes(path); };
  options.mask = [this, direct](const std::vector<std::string>& paths) {
    if (sandbox_empty_) return Result<LiveMask>(fail(sysError(Stage::mounts, "setns", paths.front(), ESRCH)));
    return LiveMask::start({.init = container_pidfd_.get(),
                            .user = sandbox_.mask_user_namespace.get(),
                            .mount = sandbox_.mask_mount_namespace.get()},
                           direct.maskTarget(plan_, paths));
  };
  secret_watch_.emplace(loop_, scan_cache_, std::move(options)).beginSoon();
}

void SandboxRun::onFinished(const Message& message) {
  if (message.tasks_full) limits_->noteFullOfProcesses();
  runner_.exited(message.wait_status);
  // `alone`: only pid 1 is left, and it exits. Do not wait for that: the kernel takes some time to remove the
  // namespaces.
  if (!message.alone) return;
  usage_known_ = true;
  for (const rusage& used : message.used) addUsage(used, result_.usage);
  sandboxEmpty();
}

bool SandboxRun::requestSocket(std::uint32_t number, int family) {
  if (sandbox_empty_ || !sandbox_.control) return false;
  Message message{};
  message.kind = MessageKind::make_socket;
  message.family = family;
  message.request = number;
  return ::send(sandbox_.control.get(), &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

void SandboxRun::onStarted(const Message& message, Fd listener) {
  const bool has_listener = listener.valid();
  auto monitor = std::make_shared<SyscallMonitor>(
      loop_, plan_,
      SyscallMonitor::Response{
          .end = [this] { runner_.end(EndedBy::itself); },
          .record = [this](const Violation& one) { recordViolation(record_.log(), result_.sandbox_id, one); }});
  if (request_.learn) monitor->learn(observer_.emplace(plan_));
  if (plan_.log_processes) {
    monitor->logProcesses([this](audit::EventType type, audit::Fields fields) {
      record_.note(result_.sandbox_id, type, std::move(fields));
    });
  }
  if (plan_.task_limits) monitor->limitTasks(payloadInit());
  if (attributes_) monitor->changeAttributes(*attributes_);
  if (sandbox_.user_namespace) {
    monitor->changeForeignModes(
        [this](int object, mode_t mode) { return changeModeInside(sandbox_.user_namespace.get(), object, mode); });
  }
  if (connector_) {
    monitor->makeConnections(
        [this](const Attempt& attempt, const Listener& caller) { return connector_->connect(attempt, caller); });
  }
  monitor->listen(std::move(listener));
  runner_.useMonitor(std::move(monitor));
  if (message.error > 0) {
    result_.layers["seccomp_notify"] = "missing: " + errnoName(message.error);
    std::string lost = "blocked system calls are not reported";
    if (plan_.tier == policy::Tier::landlock) {
      lost += plan_.egress ? ", and chmod, chown, changes of file times and connections are denied"
                           : ", and chmod, chown and changes of file times are denied";
    }
    result_.warnings.push_back(lost +
                               ": a filter around caisson listens already, and the kernel has room for one listener");
    result_.notices.push_back(result_.warnings.back());
  } else if (message.error < 0 || !has_listener) {
    runner_.failAndKill(sysError(Stage::seccomp, "sendmsg", "the filter's listener", -message.error,
                                 "too many descriptors of this user are in flight; try again"));
  }
}

void SandboxRun::listenForMemory() {
  if (runner_.killed() || sandbox_empty_) return;
  out_of_memory_ = cgroup_.oomEvents();
  if (out_of_memory_) loop_.on(out_of_memory_.get(), POLLIN | POLLPRI, [this](short) { onOutOfMemory(); });
  onOutOfMemory();
}

void SandboxRun::onOutOfMemory() {
  std::uint64_t drained = 0;
  if (out_of_memory_) (void)!::read(out_of_memory_.get(), &drained, sizeof(drained));
  if (cgroup_.totals(true).oom_kills.value_or(0) > 0) runner_.end(EndedBy::itself);
}

void SandboxRun::send(MessageKind kind, int signal) {
  Message message{};
  message.kind = kind;
  message.signal = signal;
  const sys::Fd& pid1 = inContainer() ? sandbox_.container : sandbox_.control;
  ::send(pid1.get(), &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void SandboxRun::forwardSignal(int signal) {
  if (!sandbox_empty_) {
    send(MessageKind::signal, signal);
    return record_.signalForwarded(result_.sandbox_id, signal);
  }
  abandoned_ = abandoned_ || requestsEnd(signal);
}

void SandboxRun::kill() {
  if (runner_.monitor()) runner_.monitor()->stop();
  if (out_of_memory_) loop_.remove(out_of_memory_.get());
  if (egress_) loop_.remove(egress_->descriptor());
  limits_->beforeTheEnd();
  if (sandbox_.pid_namespace) {
    // The kernel kills the whole namespace with its pid 1, daemons included.
    if (sys::raw(SYS_pidfd_send_signal, sandbox_.pidfd.get(), SIGKILL, nullptr, 0) < 0) {
      ::kill(sandbox_.init, SIGKILL);  // our own child, not yet waited for: its pid cannot be reused
    }
  } else {
    send(MessageKind::signal, SIGKILL);  // the collector kills the payload, then the orphans reparented to it
  }
}

}  // namespace caisson::supervise
