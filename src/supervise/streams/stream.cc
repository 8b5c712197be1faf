#include "supervise/streams/stream.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/reopen_terminal.h"

namespace caisson::supervise {
namespace {

constexpr std::size_t kChunk = 64 * 1024;
constexpr std::size_t kTail = 4096;
constexpr std::size_t kPipeRoom = 4096;  // POLLOUT on a pipe guarantees room for PIPE_BUF bytes

}  // namespace

OutputStream::OutputStream(sys::Fd source, StreamMode mode, int sink, std::uint64_t limit, std::uint64_t flood)
    : source_(std::move(source)), mode_(mode), sink_(sink), limit_(limit), flood_(flood) {
  if (mode != StreamMode::relay) return;
  struct stat status;
  const bool known = ::fstat(sink, &status) == 0;
  sink_regular_ = known && S_ISREG(status.st_mode);
  most_ = kPipeRoom;
  if (!known || !S_ISCHR(status.st_mode) || ::isatty(sink) != 1) return;
  // A write to a terminal waits until all is taken: the limits of the run would wait for a user who reads nothing.
  own_terminal_ = sys::reopenTerminal(sink);
  if (own_terminal_) sink_ = own_terminal_.get();
  if (!own_terminal_) most_ = 1;
}

void OutputStream::addPolls(std::vector<pollfd>& polls) const {
  if (!pending_.empty()) {
    polls.push_back({sink_, POLLOUT, 0});
  } else if (source_) {
    polls.push_back({source_.get(), POLLIN, 0});
  }
}

void OutputStream::accept(const char* data, std::size_t count) {
  const std::uint64_t room = limit_ > seen_ ? limit_ - seen_ : 0;
  const std::size_t kept = static_cast<std::size_t>(std::min<std::uint64_t>(room, count));
  seen_ += count;
  if (kept < count) {
    result_.truncated = true;
    result_.dropped += count - kept;
  }
  const std::size_t last = std::min(count, kTail);
  if (tail_.size() + last > 2 * kTail) tail_.erase(0, tail_.size() - kTail);
  tail_.append(data + count - last, last);
  if (observer_ && kept > 0) observer_({data, kept});
  if (mode_ == StreamMode::capture) result_.data.append(data, kept);
  if (mode_ == StreamMode::relay) pending_.append(data, kept);
}

void OutputStream::readSome() {
  char buffer[kChunk];
  const ssize_t got = ::read(source_.get(), buffer, sizeof(buffer));
  if (got > 0) return accept(buffer, static_cast<std::size_t>(got));
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  source_.reset();  // end of file; a pty returns EIO when its last user exited
}

bool OutputStream::writeSome() {
  const std::size_t left = pending_.size() - written_;
  const std::size_t count = sink_regular_ ? left : std::min(left, most_);
  const ssize_t done = ::write(sink_, pending_.data() + written_, count);
  if (done < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    // The reader has closed (EPIPE) or the disk is full: the payload gets SIGPIPE at its next write.
    if (errno != EPIPE) {
      result_.write_error = errno;
      result_.dropped += left;
    }
    pending_.clear();
    written_ = 0;
    source_.reset();
    return true;
  }
  written_ += static_cast<std::size_t>(done);
  if (written_ == pending_.size()) {
    pending_.clear();
    written_ = 0;
  }
  return true;
}

void OutputStream::pump() {
  if (pending_.empty() && source_) readSome();
  while (!pending_.empty()) {
    pollfd ready{sink_, POLLOUT, 0};
    if (!sink_regular_ && ::poll(&ready, 1, 0) <= 0) return;
    if (!writeSome()) return;
  }
}

void OutputStream::drain(int patience_ms) {
  for (;;) {
    while (!pending_.empty()) {
      pollfd ready{sink_, POLLOUT, 0};
      if (!sink_regular_ && ::poll(&ready, 1, patience_ms) <= 0) {
        result_.truncated = true;
        result_.dropped += pending_.size() - written_;
        pending_.clear();
        source_.reset();
        return;
      }
      writeSome();
    }
    if (!source_) return;
    const std::uint64_t before = seen_;
    readSome();
    if (seen_ == before && source_) {  // nothing there now; all writers have exited
      source_.reset();
      return;
    }
  }
}

bool OutputStream::flooded() const { return seen_ > limit_ && seen_ - limit_ > flood_; }

Stream OutputStream::take() { return std::move(result_); }

}  // namespace caisson::supervise
