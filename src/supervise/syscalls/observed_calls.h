// Tells calls that the filter allows and only reports (plan/observation.h) from those it blocks.
#pragma once

#include <linux/filter.h>

#include <vector>

#include "plan/plan.h"
#include "supervise/syscalls/listener.h"

namespace caisson::supervise {

class ObservedCalls {
 public:
  explicit ObservedCalls(const plan::Plan& plan);

  /// Whether the filter allows this call and only reports it. Decided from the kernel's copy of the arguments.
  [[nodiscard]] bool contains(const Attempt& attempt) const;

 private:
  std::vector<sock_filter> program_;
};

}  // namespace caisson::supervise
