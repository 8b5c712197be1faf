// Shows host prompts on the terminal of a running command: pauses its streams, and waits for the answer on the event
// loop.
#pragma once

#include <optional>

#include "supervise/network/host_questions.h"
#include "supervise/streams/stream_relay.h"
#include "sys/event_loop.h"

namespace caisson::supervise {

class QuestionWatch {
 public:
  QuestionWatch(sys::EventLoop& loop, HostQuestions& questions, StreamRelay& streams)
      : loop_(loop), questions_(questions), streams_(streams) {}
  ~QuestionWatch() { unwatch(); }
  QuestionWatch(const QuestionWatch&) = delete;
  QuestionWatch& operator=(const QuestionWatch&) = delete;

  /// Pauses the streams while a prompt is open, and watches its terminal and deadline. Call after anything that may
  /// have opened or closed a prompt.
  void update();

 private:
  void unwatch();

  sys::EventLoop& loop_;
  HostQuestions& questions_;
  StreamRelay& streams_;
  int watched_ = -1;
  std::optional<HostQuestions::Clock::time_point> deadline_;
  sys::EventLoop::TimerId timer_ = 0;
};

}  // namespace caisson::supervise
