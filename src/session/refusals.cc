#include "session/refusals.h"

#include <poll.h>

#include "base/error.h"
#include "plan/syscall_filter.h"

namespace caisson::session {

int Refusals::descriptor() {
  listener_.keepPace(Clock::now());
  return listener_.descriptor();
}

bool Refusals::onEvents(short events) {
  if ((events & POLLIN) == 0) {  // nobody is left who could be refused anything
    listener_.close();
    return false;
  }
  auto attempt = listener_.next(Clock::now());
  if (!attempt || escape()) return false;
  if (attempt->architecture != plan::nativeArchitecture()) {
    attempt->foreign_program = listener_.isForeignProgram(*attempt);
  }
  const supervise::Verdict verdict =
      violations_.judge(*attempt, Clock::now(), [&] { return listener_.programOf(*attempt); });
  if (verdict.worth_logging) record_(*verdict.entry);
  if (verdict.end) return true;
  if (verdict.end_process) {
    listener_.endProcess(*attempt);
  } else {
    listener_.refuse(*attempt, verdict.error);
  }
  return false;
}

void Refusals::report(const plan::Plan& plan, RunResult& result) {
  result.escape = violations_.escape();
  violations_.report(result);
  if (!result.escape) return;
  result.outcome = OutcomeKind::denied;
  result.limit = Limit::none;
  result.error =
      plainError(Stage::supervise, "session exec", plan.command.front(), "ended by caisson: " + result.escape->reason,
                 "if the program is to be trusted with such attempts, see syscalls.critical and "
                 "syscalls.high in `caisson policy explain`");
  result.notices.emplace_back("everything that ran in the session was ended");
}

}  // namespace caisson::session
