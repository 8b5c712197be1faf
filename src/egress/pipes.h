// A pool of pipes for splice, lent to a flow while it has bytes in transit: an idle connection holds none.
#pragma once

#include <vector>

#include "sys/fd.h"

namespace caisson::egress {

struct Pipe {
  sys::Fd read, write;
  [[nodiscard]] bool valid() const { return read.valid(); }
};

class PipePool {
 public:
  /// Returns an empty pipe; invalid if none is available.
  Pipe lend();
  /// Keeps the pipe, which must be empty, for lend(); closes it if enough are idle.
  void giveBack(Pipe pipe);

  /// Requested capacity of each pipe; the kernel may refuse it.
  static constexpr int kBytes = 256 * 1024;

 private:
  std::vector<Pipe> idle_;
};

}  // namespace caisson::egress
