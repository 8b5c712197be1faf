// Messages of a sandbox's pid 1 on its control socket.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "isolation/block.h"
#include "sys/fd.h"

namespace caisson::supervise {

struct Arrival {
  static constexpr std::size_t kMaxDescriptors =
      std::max<std::size_t>(2 + isolation::kMaxSized, 2 * isolation::kMaxHostPorts);

  isolation::Message message{};
  sys::Fd descriptors[kMaxDescriptors];  ///< received with it, in order
  pid_t sender = -1;                     ///< on the control socket of a container: the pid of its pid 1
};

/// What receive() found: a message, none now (or one of a wrong size, or an error), or the end of the connection.
enum class Channel { message, empty, closed };

/// Converts a failure message to an error.
Error errorOf(isolation::Message message);

/// Receives the next message, if there is one. Does not block.
Channel receive(int control, Arrival& arrival);

/// The failure that pid 1 has reported, if any, else `error`: EPIPE and ESRCH only say that it exited.
Error causeOf(Error error, int control);

}  // namespace caisson::supervise
