// Limits how much memory the requests and responses of one caller, and of all callers, use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace caisson::service {

class ByteBudget {
 private:
  struct State {
    std::uint64_t per_caller, total;
    std::mutex mutex;
    std::map<std::string, std::uint64_t> used = {};
    std::uint64_t all = 0;
  };

 public:
  ByteBudget(std::uint64_t per_caller, std::uint64_t total) : state_(std::make_shared<State>(per_caller, total)) {}

  /// What one request uses; freed with this object.
  class Hold {
   public:
    Hold(std::shared_ptr<State> state, std::string caller) : state_(std::move(state)), caller_(std::move(caller)) {}
    ~Hold() {
      if (used_ == 0) return;
      const std::lock_guard lock(state_->mutex);
      state_->all -= used_;
      if ((state_->used[caller_] -= used_) == 0) state_->used.erase(caller_);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

    /// False, and nothing is added, if there is not enough left.
    bool add(std::uint64_t bytes) {
      const std::lock_guard lock(state_->mutex);
      const auto place = state_->used.find(caller_);
      const std::uint64_t own = place == state_->used.end() ? 0 : place->second;
      if (own + bytes > state_->per_caller || state_->all + bytes > state_->total) return false;
      if (bytes > 0) state_->used[caller_] = own + bytes;
      state_->all += bytes;
      used_ += bytes;
      return true;
    }

   private:
    std::shared_ptr<State> state_;
    std::string caller_;
    std::uint64_t used_ = 0;
  };
  std::shared_ptr<Hold> hold(const std::string& caller) { return std::make_shared<Hold>(state_, caller); }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace caisson::service
