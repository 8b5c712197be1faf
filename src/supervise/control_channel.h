// Messages of a sandbox's pid 1 on its control socket.
#pragma once

#include "base/error.h"
#include "isolation/block.h"
#include "sys/fd.h"

namespace caisson::supervise {

struct Arrival {
  static constexpr std::size_t kMost = 2 + isolation::kMaxSized;

  isolation::Message message{};
  sys::Fd descriptors[kMost];  ///< received with it, in order
};

enum class Channel { message, empty, closed };

/// Converts a failure message to an error.
Error errorOf(isolation::Message message);

/// Receives the next message, if there is one. Does not block.
Channel receive(int control, Arrival& arrival);

}  // namespace caisson::supervise
