#include "egress/relay.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace caisson::egress {
namespace {

constexpr std::uint64_t kTurnBytes = 4 * 1024 * 1024;  // per turn, then others run
constexpr unsigned kFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;

}  // namespace

Flow::State Flow::pump(PipePool& pipes, int from, int to, std::uint64_t allowance) {
  if (ended_) return State::ended;
  const std::uint64_t start = bytes_;
  for (;;) {
    bool moved = false;
    if (!sender_ended_ && readable_ && inside_ < PipePool::kBytes && allowance > 0) {
      if (!pipe_.valid()) pipe_ = pipes.lend();
      if (!pipe_.valid()) return State::broken;
      const std::size_t most = std::min<std::uint64_t>(PipePool::kBytes, allowance);
      const ssize_t got = ::splice(from, nullptr, pipe_.write.get(), nullptr, most, kFlags);
      if (got > 0) {
        allowance -= static_cast<std::uint64_t>(got);
        inside_ += static_cast<std::size_t>(got);
        moved = true;
      } else if (got == 0) {
        sender_ended_ = true;
      } else if (errno != EAGAIN && errno != EINTR) {
        return State::broken;
      } else if (errno == EAGAIN && inside_ == 0) {  // otherwise the pipe may be full
        readable_ = false;
      }
    }
    if (inside_ > 0) {
      const ssize_t sent = ::splice(pipe_.read.get(), nullptr, to, nullptr, inside_, kFlags);
      if (sent > 0) {
        inside_ -= static_cast<std::size_t>(sent);
        bytes_ += static_cast<std::uint64_t>(sent);
        moved = true;
      } else if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        return State::broken;
      }
    }
    if (inside_ == 0 && sender_ended_) {
      ::shutdown(to, SHUT_WR);
      ended_ = true;
      release(pipes);
      return State::ended;
    }
    if (!moved) break;
    if (bytes_ - start >= kTurnBytes) return State::more;
  }
  if (inside_ == 0) release(pipes);
  return State::waiting;
}

void Flow::release(PipePool& pipes) {
  if (pipe_.valid() && inside_ == 0) pipes.giveBack(std::move(pipe_));
  pipe_ = {};
}

}  // namespace caisson::egress
