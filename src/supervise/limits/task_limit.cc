#include "supervise/limits/task_limit.h"

#include "base/syscall_names.h"
#include "plan/observation.h"

namespace caisson::supervise {
namespace {

Denial denialOf(std::string_view rule, std::uint64_t count, std::string_view operation, std::string_view hint) {
  return {std::string(rule), std::to_string(count) + " attempts", std::string(operation), std::string(hint)};
}

}  // namespace

TaskLimit::TaskLimit(const plan::Plan& plan, pid_t init)
    : limits_(plan.task_limits.value_or(plan::TaskLimits{})), tree_(init) {}

bool TaskLimit::allows(const Attempt& attempt) {
  const std::string_view call = syscallName(attempt.number);
  if (!plan::createsTask(call)) return true;
  const bool thread = plan::createsThread(call, attempt.arguments);
  const TaskCounts counts = tree_.countTasks();
  if (thread ? counts.threads < limits_.threads : counts.processes < limits_.processes) return true;
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
