// Files that wait in the queues of other processes' Unix sockets (SCM_RIGHTS): no descriptor table shows them.
//
// The sockets are copied with pidfd_getfd and read with MSG_PEEK, which changes nothing for their owners. A process of
// its own does that and closes the copies by exiting: a close() of a hostile socket can block for as long as its
// SO_LINGER says, an exit cannot.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace caisson::sys {

/// A socket by its owner and its number there.
struct SocketOf {
  pid_t pid = -1;
  int number = -1;
};

struct InFlightFile {
  enum class Kind : std::uint8_t { memfd, socket, pipe, other };
  Kind kind = Kind::other;
  dev_t device = 0;
  ino_t inode = 0;
  std::uint64_t bytes = 0;  ///< in memory, of a memfd
};

struct InFlight {
  std::vector<InFlightFile> files;  ///< each as often as it was sent, at most 8192
  /// Whether those are all. Not after a file was received meanwhile, and not where a datagram without bytes was peeked
  /// at before: the kernel shows such a one once.
  bool complete = true;
};

/// What waits in `sockets`, and in the sockets that wait there. One that cannot be copied any more is empty.
InFlight filesInFlight(std::span<const SocketOf> sockets);

/// Descriptors that wait in a socket's queue, by its fdinfo; 0 where that does not say.
std::uint64_t parseQueued(std::string_view fdinfo);

}  // namespace caisson::sys
