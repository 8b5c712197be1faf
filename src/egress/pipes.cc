#include "egress/pipes.h"

#include <fcntl.h>
#include <unistd.h>

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxIdle = 16;

}  // namespace

Pipe PipePool::lend() {
  if (!idle_.empty()) {
    Pipe pipe = std::move(idle_.back());
    idle_.pop_back();
    return pipe;
  }
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return {};
  ::fcntl(ends[1], F_SETPIPE_SZ, kBytes);
  return {sys::Fd(ends[0]), sys::Fd(ends[1])};
}

void PipePool::giveBack(Pipe pipe) {
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(pipe));
}

}  // namespace caisson::egress
