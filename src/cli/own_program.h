// What verbs create with the running program as the program of supervisors, workers and the egress.
#pragma once

#include "caisson/session.h"
#include "sys/helper_process.h"

namespace caisson::cli {

inline Result<SessionStore> openSessions() { return SessionStore::open(sys::kOwnProgram); }

inline Request requestWith(Policy policy) { return {.policy = std::move(policy), .program = sys::kOwnProgram}; }

}  // namespace caisson::cli
