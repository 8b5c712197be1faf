// Gives up privileges of the calling thread. Raw system calls: the C library would change all threads of the process.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace caisson::sys {

struct CapabilityDrop {
  std::uint64_t keep = 0;   ///< a bit per capability that stays permitted and effective, if the thread has it
  bool bounding = false;    ///< shrink the bounding set to `keep`, as far as the thread may do that
  bool ambient = true;      ///< clear the ambient set by itself, before the last step, which clears it as well
  std::string_view object;  ///< whose capabilities they are, for errors
};

/// Drops capabilities in this order: bounding set, ambient set, then permitted, effective and inheritable. The
/// inheritable set and with it the ambient set are empty afterwards. Cannot be undone; after an error some steps may be
/// done, so the caller must not go on.
Result<void> dropCapabilities(const CapabilityDrop& drop);

/// Sets no_new_privs: no exec gives this thread or its children more privileges. `object`: for errors.
Result<void> forbidNewPrivileges(std::string_view object = "PR_SET_NO_NEW_PRIVS");

}  // namespace caisson::sys
