#include "supervise/network/question_watch.h"

namespace caisson::supervise {

void QuestionWatch::unwatch() {
  loop_.remove(std::exchange(watched_, -1));
  loop_.cancel(std::exchange(timer_, 0));
  deadline_.reset();
}

void QuestionWatch::update() {
  streams_.setPaused(questions_.open());
  const int descriptor = questions_.open() ? questions_.descriptor() : -1;
  if (descriptor == watched_ && questions_.deadline() == deadline_) return;
  unwatch();
  if (descriptor < 0) return;
  watched_ = descriptor;
  loop_.on(descriptor, POLLIN, [this](short) {
    questions_.onInput();
    update();
  });
  deadline_ = questions_.deadline();
  if (!deadline_) return;
  timer_ = loop_.at(*deadline_, [this] {
    questions_.look(HostQuestions::Clock::now());
    update();
  });
}

}  // namespace caisson::supervise
