// The process at the other end of a unix socket: whether it is the owner's.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <optional>

namespace caisson::sys {

struct UnixPeer {
  uid_t uid = 0;
  /// It has our user id and is in our user namespace. A payload has our id, too, if it can reach the socket, but its
  /// sandbox is another namespace.
  bool is_owner = false;
  /// It has our user id, but its namespace is another one or cannot be read.
  [[nodiscard]] bool isInOtherNamespace() const { return uid == ::geteuid() && !is_owner; }
};

/// The process that connected to `socket`; nothing if it is not a connected unix socket. A process that exited
/// meanwhile does not count as the owner. Before Linux 6.5 a process that got the pid of an exited peer is taken for
/// it.
std::optional<UnixPeer> identifyPeer(int socket);

}  // namespace caisson::sys
