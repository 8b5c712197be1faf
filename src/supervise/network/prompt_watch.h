// Shows host prompts on the terminal of a running command: pauses its streams, and waits for the answer on the event
// loop.
#pragma once

#include <optional>

#include "supervise/network/host_prompter.h"
#include "supervise/streams/stream_relay.h"
#include "sys/event_loop.h"

namespace caisson::supervise {

class PromptWatch {
 public:
  PromptWatch(sys::EventLoop& loop, HostPrompter& questions, StreamRelay& streams)
      : loop_(loop), questions_(questions), streams_(streams) {}
  ~PromptWatch() { unwatch(); }
  PromptWatch(const PromptWatch&) = delete;
  PromptWatch& operator=(const PromptWatch&) = delete;

  /// Pauses the streams while a prompt is open, and watches its terminal and deadline. Call after anything that may
  /// have opened or closed a prompt.
  void update();

 private:
  void unwatch();

  sys::EventLoop& loop_;
  HostPrompter& questions_;
  StreamRelay& streams_;
  int watched_ = -1;
  std::optional<HostPrompter::Clock::time_point> deadline_;
  sys::EventLoop::TimerId timer_ = 0;
};

}  // namespace caisson::supervise
