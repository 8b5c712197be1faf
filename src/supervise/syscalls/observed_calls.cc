#include "supervise/syscalls/observed_calls.h"

#include <linux/seccomp.h>

#include "plan/syscall_filter.h"

namespace caisson::supervise {

ObservedCalls::ObservedCalls(const plan::Plan& plan) {
  if (!plan.syscalls) return;
  if (auto compiled = plan::compile(*plan.syscalls)) program_ = std::move(*compiled);
}

bool ObservedCalls::contains(const Attempt& attempt) const {
  if (program_.empty()) return false;
  const std::uint32_t answer = plan::evaluate(program_, attempt.architecture, attempt.number, attempt.arguments);
  return answer == (SECCOMP_RET_USER_NOTIF | plan::kObserve.error);
}

}  // namespace caisson::supervise
