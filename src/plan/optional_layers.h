// Layers that a policy may do without on a host that lacks them.
#pragma once

#include <algorithm>

#include "policy/model.h"

namespace caisson::plan {

/// Whether the policy accepts a sandbox without this layer (isolation.may_be_missing).
inline bool mayMiss(const policy::Policy& policy, policy::OptionalLayer layer) {
  const auto& list = policy.isolation.may_be_missing;
  return std::find(list.begin(), list.end(), layer) != list.end();
}

}  // namespace caisson::plan
