// What pid 1 of a sandbox says over its control socket.
#pragma once

#include "base/error.h"
#include "isolation/block.h"
#include "sys/fd.h"

namespace caisson::supervise {

struct Arrival {
  static constexpr std::size_t kMost = 2 + isolation::kMaxSized;

  isolation::Message message{};
  sys::Fd descriptors[kMost];  ///< that came along, in their order
};

enum class Channel { message, empty, closed };

/// What a failure message says, as an error.
Error errorOf(isolation::Message message);

/// Takes the next message, if there is one. Does not wait.
Channel receive(int control, Arrival& arrival);

}  // namespace caisson::supervise
