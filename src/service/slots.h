// Limits how much of something one caller may have at a time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace caisson::service {

class Slots {
 public:
  /// A slot that is freed with the last copy of the result; null if the caller has `most` already.
  std::shared_ptr<void> take(const std::string& caller, std::size_t most) {
    const std::lock_guard lock(state_->mutex);
    std::size_t& used = state_->used[caller];
    if (used >= most) return nullptr;
    ++used;
    return {&used, [state = state_, caller](void*) {
              const std::lock_guard guard(state->mutex);
              if (--state->used[caller] == 0) state->used.erase(caller);
            }};
  }

 private:
  struct State {
    std::mutex mutex;
    std::map<std::string, std::size_t> used;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace caisson::service
