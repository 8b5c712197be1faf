// Inspects another process that is blocked on us: its memory, its directories, its view of the file tree.
//
// Everything can change during and after the inspection, so a decision may depend only on a copy that the caller then
// acts on itself, as the landlock tier does with paths and addresses (readMemory, readText): the process's own call
// must not continue. All else is for advice. Callers must check afterwards that the pid still is the same process.
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

/// Copies memory of the process; false unless all of it was readable.
bool readMemory(pid_t process, std::uint64_t address, std::span<char> room);

/// The NUL-terminated string at `address`; nullopt if it is unreadable or longer than PATH_MAX.
std::optional<std::string> readText(pid_t process, std::uint64_t address);

/// The path, as the process sees it, of the directory behind one of its descriptors, or of its working directory for
/// AT_FDCWD; empty if unknown.
std::string directoryOf(pid_t process, int descriptor);

/// What one of its descriptors refers to (O_PATH), or its working directory for AT_FDCWD; invalid if it is gone.
Fd objectOf(pid_t process, int descriptor);

/// The root directory of the process (O_PATH); invalid if it is gone.
Fd rootOf(pid_t process);

/// What a path leads to, as far as a lookup shows.
struct Glance {
  int error = 0;  ///< errno of a failed lookup; the rest is valid only if it is 0
  bool regular = false, directory = false;
  bool read_only = false, noexec = false;  ///< of its mount
};

/// Mount points of autofs in our own mount namespace, with mountinfo's escapes (\040 for a space): a lookup there may
/// trigger a network mount.
std::vector<std::string> automountPoints();

/// Looks up `path` below `root`, following links inside that root. Opens only an O_PATH descriptor; an automount point
/// on the way, though not at the end, is mounted.
Glance glance(int root, const std::string& path);

}  // namespace caisson::sys
