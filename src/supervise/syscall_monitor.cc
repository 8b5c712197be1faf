#include "supervise/refusals.h"

#include <poll.h>

#include "plan/syscall_filter.h"

namespace caisson::supervise {

int Refusals::descriptor() {
  listener_.keepPace(Clock::now());
  return listener_.descriptor();
}

void Refusals::onEvents(short events) {
  if ((events & POLLIN) == 0) return listener_.close();  // nobody is left who could be refused anything
  auto attempt = listener_.next(Clock::now());
  if (!attempt || stopped_) return;
  if (observer_ != nullptr && observer_->isShown(*attempt)) {
    observer_->note(*attempt, listener_);
    return listener_.letGoOn(*attempt);
  }
  if (attempt->architecture != plan::nativeArchitecture()) {
    attempt->foreign_program = listener_.isForeignProgram(*attempt);
  }
  const Verdict verdict = violations_.judge(*attempt, Clock::now(), [&] { return listener_.programOf(*attempt); });
  if (verdict.end) {
    stop();
    response_.end();
  }
  if (verdict.worth_logging) response_.record(*verdict.entry);
  if (verdict.end) return;
  if (verdict.end_process) return listener_.endProcess(*attempt);
  listener_.refuse(*attempt, verdict.error);
}

void Refusals::report(RunResult& result) {
  result.escape = violations_.escape();
  violations_.report(result);
}

}  // namespace caisson::supervise
