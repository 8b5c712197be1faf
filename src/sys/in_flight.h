// Files queued in other processes' Unix sockets (SCM_RIGHTS), which appear in no descriptor table.
//
// Copies the sockets with pidfd_getfd and reads them with MSG_PEEK, which does not affect their owners. A separate
// process does this and closes the copies by exiting: close() of a hostile socket can block for its SO_LINGER time,
// exit cannot.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace caisson::sys {

/// A socket, identified by its owner and its descriptor number there.
struct SocketOf {
  pid_t pid = -1;
  int number = -1;
};

struct InFlightFile {
  enum class Kind : std::uint8_t { memfd, socket, pipe, other };
  Kind kind = Kind::other;
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t bytes = 0;  ///< memory used, for a memfd
};

struct InFlight {
  std::vector<InFlightFile> files;  ///< one entry per sent copy, at most 8192
  /// False if the kernel counts more queued descriptors than were found: one was received meanwhile, there are too
  /// many, or one is in an empty datagram that was peeked at before, which the kernel shows only once. Also if the
  /// inspecting process could not be started. Otherwise always true where the kernel does not count them.
  bool complete = true;
};

/// The files queued in `sockets` and, recursively, in queued sockets. A socket that can no longer be copied counts as
/// empty.
InFlight filesInFlight(std::span<const SocketOf> sockets);

/// The number of descriptors in a socket's queue, from its fdinfo; 0 if the kernel does not report it.
std::uint64_t parseQueued(std::string_view fdinfo);

}  // namespace caisson::sys
