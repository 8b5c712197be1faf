// A look at another process that waits for us: its memory, its directories, what it sees of the file tree.
//
// For advice only. All of it can change while we look and after, so nothing may be decided by it; whoever asks must
// afterwards make sure that the process still is the one that was meant.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sys/fd.h"

namespace caisson::sys {

/// Copies memory of the process; false unless all of it could be read.
bool readMemory(pid_t process, std::uint64_t address, std::span<char> room);

/// The text that ends with a zero byte at `address`; nothing if it can't be read or is longer than a path can be.
std::optional<std::string> readText(pid_t process, std::uint64_t address);

/// The directory behind one of its descriptors, or its working directory with AT_FDCWD, as the process itself would
/// call it; empty if that can't be told.
std::string directoryOf(pid_t process, int descriptor);

/// Its root directory (O_PATH).
Fd rootOf(pid_t process);

struct Glance {
  int error = 0;  ///< ENOENT, ...: why nothing could be found
  bool regular = false, directory = false;
  bool read_only = false, noexec = false;  ///< of the mount it is on
};

/// Where this host mounts by being asked for a name (autofs): a look there reaches for other machines.
std::vector<std::string> automountPoints();

/// What lies at `path` below `root`, links followed, without leaving that root, opening or waking anything.
Glance glance(int root, const std::string& path);

}  // namespace caisson::sys
