// Pipes for splice, lent to a flow while it has bytes on their way: an idle connection holds none.
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
  /// An empty pipe; invalid when there is none to be had.
  Pipe lend();
  /// Only an empty one.
  void giveBack(Pipe pipe);

  static constexpr int kBytes = 256 * 1024;

 private:
  std::vector<Pipe> idle_;
};

}  // namespace caisson::egress
