#include "supervise/network/prompt_watch.h"

namespace caisson::supervise {

void PromptWatch::unwatch() {
  loop_.remove(std::exchange(watched_, -1));
  loop_.cancel(std::exchange(timer_, 0));
  deadline_.reset();
}

void PromptWatch::update() {
  streams_.setPaused(questions_.open());
  const int descriptor = questions_.open() ? questions_.descriptor() : -1;
  if (descriptor != watched_) {
    unwatch();
    if (descriptor < 0) return;
    watched_ = descriptor;
    loop_.on(descriptor, POLLIN, [this](short) {
      questions_.onInput();
      update();
    });
  }
  if (questions_.deadline() == deadline_) return;
  loop_.cancel(std::exchange(timer_, 0));
  deadline_ = questions_.deadline();
  if (!deadline_) return;
  timer_ = loop_.at(*deadline_, [this] {
    timer_ = 0;
    deadline_.reset();
    questions_.look(HostPrompter::Clock::now());
    update();
  });
}

}  // namespace caisson::supervise
