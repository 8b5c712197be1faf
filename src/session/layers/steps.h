// Named moments of the operations that change a session, for the tests that kill the process at each of them.
#pragma once

namespace caisson::session {

/// Called at every step if set. Only tests set it.
inline void (*step_observer)(const char* name) = nullptr;

inline void step(const char* name) {
  if (step_observer != nullptr) step_observer(name);
}

}  // namespace caisson::session
