#include "supervise/streams/input_feed.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

namespace caisson::supervise {
namespace {

constexpr std::size_t kInputChunk = 16 * 1024;

bool isNullDevice(int descriptor) {
  struct stat status;
  return ::fstat(descriptor, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

}  // namespace

bool hasInput(bool relay, const std::string& first) { return (relay && !isNullDevice(STDIN_FILENO)) || !first.empty(); }

void InputFeed::addPolls(std::vector<pollfd>& polls) {
  if (pending_.empty() && ended_) pipe_.reset();
  first_poll_ = polls.size();
  const bool wants_more = !ended_ && pending_.empty() && sink() >= 0;
  polls.push_back({wants_more ? STDIN_FILENO : -1, POLLIN, 0});
  // An idle pipe is watched for POLLERR only, which reports that the reader closed it.
  const bool watch_sink = !pending_.empty() || pipe_;
  polls.push_back({watch_sink ? sink() : -1, static_cast<short>(pending_.empty() ? 0 : POLLOUT), 0});
}

void InputFeed::pump(const std::vector<pollfd>& polls) {
  const pollfd& source = polls[first_poll_];
  const pollfd& target = polls[first_poll_ + 1];
  if (pipe_ && pending_.empty() && (target.revents & POLLERR) != 0) return pipe_.reset();
  if (source.revents != 0) readSome();
  if (source.revents != 0 || target.revents != 0) writeSome();
}

void InputFeed::readSome() {
  char buffer[kInputChunk];
  const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof(buffer));
  if (got > 0) {
    pending_.assign(buffer, static_cast<std::size_t>(got));
    written_ = 0;
  } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
    ended_ = true;
  }
}

void InputFeed::writeSome() {
  while (!pending_.empty()) {
    const ssize_t done = ::write(sink(), pending_.data() + written_, pending_.size() - written_);
    if (done < 0) {
      if (errno != EAGAIN && errno != EINTR) giveUp();
      return;
    }
    written_ += static_cast<std::size_t>(done);
    if (written_ < pending_.size()) continue;
    pending_.clear();
    written_ = 0;
  }
}

void InputFeed::giveUp() {
  pending_.clear();
  written_ = 0;
  ended_ = true;
  pipe_.reset();
}

}  // namespace caisson::supervise
