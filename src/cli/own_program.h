// What verbs create with the running program as the program of supervisors, workers and the egress.
#pragma once

#include "caisson/session.h"
#include "cli/output.h"
#include "sys/helper_process.h"

namespace caisson::cli {

/// For verbs that run commands: a notice comes with the result of a command.
inline Result<SessionStore> openSessionsForCommands() { return SessionStore::open(sys::kOwnProgram); }

inline Result<SessionStore> openSessions() {
  auto store = SessionStore::open(sys::kOwnProgram);
  if (store) store->onNotice([](const std::string& notice) { printNotice(notice); });
  return store;
}

inline Request requestWith(Policy policy) { return {.policy = std::move(policy), .program = sys::kOwnProgram}; }

}  // namespace caisson::cli
