#include "supervise/streams/stream_relay.h"

#include <fcntl.h>
#include <unistd.h>

#include "supervise/streams/terminal.h"

namespace caisson::supervise {

void StreamRelay::setInput(sys::Fd pipe) {
  input_.usePipe(std::move(pipe));
  update();
}

void StreamRelay::setOutput(int stream, sys::Fd source, StreamMode mode, std::uint64_t limit,
                            std::function<void(std::string_view)> observer) {
  const bool terminal = mode == StreamMode::relay && ::isatty(stream) == 1;
  auto& output = stream == STDOUT_FILENO ? out_ : err_;
  output.emplace(std::move(source), mode, stream, terminal ? kNoOutputLimit : limit);
  if (observer) output->observe(std::move(observer));
  update();
}

void StreamRelay::setTerminal(sys::Fd master, const TerminalStreams& streams) {
  terminal_ = std::move(master);
  ::fcntl(terminal_.get(), F_SETFL, O_NONBLOCK);
  if (streams.stream[0]) input_.useTerminal(terminal_.get());
  const int sink = streams.stream[1] ? STDOUT_FILENO : STDERR_FILENO;
  setOutput(sink, sys::Fd(::fcntl(terminal_.get(), F_DUPFD_CLOEXEC, 3)), StreamMode::relay, kNoOutputLimit);
}

void StreamRelay::resizeTerminal() const {
  if (terminal_) copyTerminalSize(terminal_.get());
}

void StreamRelay::start(std::function<void()> on_flood) {
  on_flood_ = std::move(on_flood);
  started_ = true;
  update();
}

void StreamRelay::setPaused(bool paused) {
  if (std::exchange(paused_, paused) != paused) update();
}

/// Updates the descriptors that the loop watches.
void StreamRelay::update() {
  polls_.clear();
  parts_.clear();
  if (started_ && !paused_) {
    input_.addPolls(polls_);
    parts_.resize(polls_.size(), Part::input);
    if (out_) out_->addPolls(polls_);
    parts_.resize(polls_.size(), Part::out);
    if (err_) err_->addPolls(polls_);
    parts_.resize(polls_.size(), Part::err);
  }
  std::map<int, short> wanted;
  for (const pollfd& poll : polls_) {
    if (poll.fd >= 0) wanted[poll.fd] = poll.events;
  }
  for (const auto& [descriptor, events] : watched_) {
    if (!wanted.contains(descriptor)) loop_.remove(descriptor);
  }
  for (const auto& [descriptor, events] : wanted) {
    const auto before = watched_.find(descriptor);
    if (before != watched_.end() && before->second == events) continue;
    loop_.on(descriptor, events, [this, descriptor = descriptor](short ready) { onEvents(descriptor, ready); });
  }
  watched_ = std::move(wanted);
}

void StreamRelay::unwatchAll() {
  for (const auto& [descriptor, events] : watched_) loop_.remove(descriptor);
  watched_.clear();
}

void StreamRelay::onEvents(int descriptor, short events) {
  bool is_ready[3] = {};
  for (std::size_t i = 0; i < polls_.size(); ++i) {
    const bool same = polls_[i].fd == descriptor;
    polls_[i].revents = static_cast<short>(same ? events : 0);
    if (same) is_ready[static_cast<int>(parts_[i])] = true;
  }
  if (is_ready[static_cast<int>(Part::input)]) {
    // SIGWINCH may still be pending, and what was typed after a resize must find the new size.
    resizeTerminal();
    input_.pump(polls_);
  }
  if (is_ready[static_cast<int>(Part::out)]) out_->pump();
  if (is_ready[static_cast<int>(Part::err)]) err_->pump();
  update();
  if ((out_ && out_->flooded()) || (err_ && err_->flooded())) on_flood_();
}

void StreamRelay::drain(int timeout_ms) {
  unwatchAll();
  started_ = false;
  if (out_) out_->drain(timeout_ms);
  if (err_) err_->drain(timeout_ms);
}

std::string StreamRelay::tail(int stream) const {
  const auto& output = stream == STDOUT_FILENO ? out_ : err_;
  return output ? output->tail() : "";
}

void StreamRelay::take(RunResult& result) {
  if (out_) result.out = out_->take();
  if (err_) result.err = err_->take();
}

}  // namespace caisson::supervise
