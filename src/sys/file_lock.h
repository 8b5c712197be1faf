// flock(2) with a time limit.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace caisson::sys {

/// How long callers wait whose holders need the lock for a moment only.
inline constexpr std::chrono::milliseconds kLockTimeout{10'000};

enum class LockKind : std::uint8_t { shared, exclusive };

/// Locks the open file; closing it releases the lock. Does not block in flock, since a stopped holder would block every
/// caisson process of this user: tries again until the timeout. The error then names `path` and says that another
/// process holds it; without a timeout (0) it is EWOULDBLOCK.
Result<void> lockFile(int file, LockKind kind, std::chrono::milliseconds timeout, std::string_view path);

}  // namespace caisson::sys
