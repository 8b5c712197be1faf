#include "supervise/command_runner.h"

namespace caisson::supervise {

void CommandRunner::limitTime(Clock::time_point began, double seconds) {
  stopClock();
  const auto limit = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  deadline_ = loop_.at(began + limit, [this] {
    deadline_ = 0;
    end(EndedBy::timeout);
  });
}

void CommandRunner::noteCause(EndedBy cause, Limit limit, std::string reason) {
  if (exit_.ended_by != EndedBy::itself || exit_.failure || exit_.killed) return;
  exit_.ended_by = cause;
  exit_.limit = limit;
  exit_.reason = std::move(reason);
}

void CommandRunner::end(EndedBy cause, Limit limit, std::string reason) {
  noteCause(cause, limit, std::move(reason));
  killOnce();
}

void CommandRunner::fail(Error failure) {
  if (exit_.failure || exit_.killed || exit_.ended_by != EndedBy::itself) return;
  exit_.failure = std::move(failure);
}

void CommandRunner::failAndKill(Error failure) {
  fail(std::move(failure));
  killOnce();
}

void CommandRunner::killOnce() {
  if (std::exchange(exit_.killed, true)) return;
  stopClock();
  const std::function<void()> kill = kill_;  // it may destroy this object
  kill();
}

}  // namespace caisson::supervise
