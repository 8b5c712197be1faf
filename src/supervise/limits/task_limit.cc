#include "supervise/limits/task_limit.h"

#include <algorithm>
#include <limits>

#include "base/syscall_names.h"
#include "plan/observation.h"

namespace caisson::supervise {
namespace {

using std::chrono::milliseconds;

constexpr auto kUnseenTime = milliseconds(100);
constexpr auto kCountValid = milliseconds(20);  // other commands of a session create tasks too
constexpr auto kMinRefusal = milliseconds(2);
constexpr auto kMaxPause = milliseconds(50);
constexpr int kPausePerCount = 5;

Denial denialOf(std::string_view rule, std::uint64_t count, std::string_view operation, std::string_view hint) {
  return {std::string(rule), std::to_string(count) + " attempts", std::string(operation), std::string(hint)};
}

}  // namespace

bool TaskLedger::allows(pid_t caller, Clock::time_point now, const std::function<std::uint64_t()>& count) {
  if (now < refused_until_) return false;
  // A thread that calls again has returned from its earlier call: its task exists, or has exited.
  std::erase_if(unseen_, [&](const Granted& one) { return one.caller == caller || now - one.at > kUnseenTime; });
  const bool near = counted_ + granted_since_ >= limit_;
  if (near || !valid_until_ || now >= *valid_until_) {
    const auto begin = Clock::now();
    counted_ = count();
    const auto cost = Clock::now() - begin;
    granted_since_ = unseen_.size();
    valid_until_ = now + std::max<Clock::duration>(kCountValid, cost * kPausePerCount);
    if (near) pause_ = std::min<Clock::duration>(cost * kPausePerCount, kMaxPause);
    if (counted_ + granted_since_ >= limit_) {
      refused_until_ = now + std::clamp<Clock::duration>(cost * kPausePerCount, kMinRefusal, kMaxPause);
      return false;
    }
  }
  ++granted_since_;
  unseen_.push_back({caller, now});
  return true;
}

TaskLimit::TaskLimit(const plan::Plan& plan, pid_t init)
    : processes_(plan.task_limits.value_or(plan::TaskLimits{}).processes),
      threads_(plan.task_limits.value_or(plan::TaskLimits{}).threads),
      tree_(init) {}

bool TaskLimit::allows(const Attempt& attempt) {
  const std::string_view call = syscallName(attempt.number);
  if (!plan::createsTask(call)) return true;
  const bool thread = plan::createsThread(call, attempt.arguments);
  const auto count = [&] {
    const TaskCounts counts = tree_.countTasks();
    return thread ? counts.threads : counts.processes;
  };
  if ((thread ? threads_ : processes_).allows(attempt.pid, std::chrono::steady_clock::now(), count)) return true;
  ++(thread ? denied_threads_ : denied_processes_);
  return false;
}

std::vector<Denial> TaskLimit::denials() const {
  std::vector<Denial> denials;
  if (denied_processes_ > 0)
    denials.push_back(denialOf("process.max_processes", denied_processes_, "start a process", "raise it with --pids"));
  if (denied_threads_ > 0)
    denials.push_back(denialOf("resources.threads", denied_threads_, "start a thread", "raise it in the policy"));
  return denials;
}

}  // namespace caisson::supervise
