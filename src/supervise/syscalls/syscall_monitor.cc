#include "supervise/syscalls/syscall_monitor.h"

#include <poll.h>
#include <sys/syscall.h>

#include <cerrno>
#include <utility>

#include "plan/syscall_filter.h"
#include "supervise/syscalls/sandbox_sysinfo.h"
#include "supervise/syscalls/set_id_bits.h"

namespace caisson::supervise {

void SyscallMonitor::listen(sys::Fd listener) {
  unwatch();
  listener_ = Listener(std::move(listener));
  watch();
}

void SyscallMonitor::unwatch() {
  loop_.remove(std::exchange(watched_, -1));
  loop_.cancel(std::exchange(resume_, 0));
}

/// Watches the listener, or waits until the rate limit allows it.
void SyscallMonitor::watch() {
  listener_.keepPace(Clock::now());
  const int descriptor = listener_.descriptor();
  if (descriptor >= 0 && descriptor == watched_) return;
  unwatch();
  if (descriptor >= 0) {
    watched_ = descriptor;
    loop_.on(descriptor, POLLIN, [this](short events) { onEvents(events); });
  } else if (const auto resume = listener_.resumeAt()) {
    resume_ = loop_.at(*resume, [this] { watch(); });
  }
}

void SyscallMonitor::onEvents(short events) {
  if ((events & POLLIN) == 0) {  // the last process with this filter has exited
    unwatch();
    listener_.close();
    if (processes_) processes_->finish();
    response_.closed();
    return;
  }
  if (auto attempt = listener_.next(Clock::now()); attempt && !stopped_) judge(*attempt);
  watch();
}

/// The filter allows the call; only the limits on processes and threads can refuse it.
void SyscallMonitor::judgeObserved(const Attempt& attempt) {
  if (tasks_) {
    const bool allowed = tasks_->allows(attempt);
    listener_.pause(tasks_->takePause());
    if (!allowed) return listener_.refuse(attempt, EAGAIN);
  }
  if (observer_ != nullptr) observer_->note(attempt, listener_);
  if (processes_) processes_->note(attempt, listener_);
  return observer_ != nullptr ? listener_.continueCall(attempt) : listener_.continueCallRateLimited(attempt);
}

void SyscallMonitor::judge(Attempt attempt) {
  if (observed_ && observed_->contains(attempt)) return judgeObserved(attempt);
  if (attempt.architecture != plan::nativeArchitecture()) {
    attempt.foreign_program = listener_.isForeignProgram(attempt);
  }
  if (violations_.isAnswered(attempt)) {
    const struct sysinfo shown = sandboxSysinfo(plan_, attempt.pid);
    return listener_.answer(attempt, attempt.arguments[0], std::as_bytes(std::span(&shown, 1)));
  }
  if (violations_.isServed(attempt)) return serve(attempt);
  const Verdict verdict = violations_.judge(attempt, Clock::now(), [&] { return listener_.programOf(attempt); });
  if (verdict.end) {
    stop();
    response_.end();
  }
  if (verdict.worth_logging) response_.record(*verdict.entry);
  if (verdict.end) return;
  if (verdict.end_process) return listener_.endProcess(attempt);
  listener_.refuse(attempt, verdict.error);
}

void SyscallMonitor::serve(const Attempt& attempt) {
  int error = EPERM;
  if (attempt.number == SYS_connect) {
    if (connect_) error = connect_(attempt, listener_);
  } else if (attributes_ != nullptr) {
    error = attributes_->change(attempt, listener_);
  } else if (plan_.identity.inside_uid == 0) {
    error = setModeWithoutSetIds(attempt, listener_, plan_.identity, change_foreign_);
  }
  listener_.finishCall(attempt, error);
}

void SyscallMonitor::report(RunResult& result) {
  if (processes_) processes_->finish();
  result.escape = violations_.escape();
  if (tasks_) {
    for (Denial& denial : tasks_->denials()) result.denials.push_back(std::move(denial));
  }
  violations_.report(result);
}

}  // namespace caisson::supervise
