// Refused calls of background commands. Nobody waits for such a command, so an attendant listens for as long as
// anything of it lives: it grades, answers and records as the waiting process does for a foreground command, keeps what
// was refused beside the command's logs (N.refused), and has everything in the session ended after an escape attempt.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "caisson/run.h"
#include "session/store.h"
#include "sys/fd.h"
#include "sys/root_dir.h"

namespace caisson::session {

inline constexpr const char* kRefusedEnding = ".refused";

/// What is kept so far; the same again as text, as it is kept.
std::vector<Violation> readRefused(const sys::RootDir& logs, std::uint32_t exec);
std::string encodeRefused(const std::vector<Violation>& violations);

/// Has an attendant listen, and returns when it does. An error: nobody listens, and the command must not go on.
Result<void> listenInBackground(const Place& place, const std::string& id, std::uint32_t exec, const sys::Fd& listener);

/// The attendant's work. `words`: the session's id and the command's number.
int listenUntilOver(const std::shared_ptr<Store>& store, std::span<char* const> words, sys::Fd listener, int say);

}  // namespace caisson::session
