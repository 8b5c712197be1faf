// Sessions created in advance, behind the public SessionPool.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "session/client/session_context.h"

namespace caisson::session {

class Pool {
 public:
  static Result<std::unique_ptr<Pool>> start(std::shared_ptr<Store> store, const SessionOptions& options,
                                             std::size_t size);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  Result<std::shared_ptr<SessionContext>> take(const std::string& name, double ttl_seconds);
  [[nodiscard]] std::size_t ready() const;

 private:
  /// Its metadata belong to the thread that took it: this has copies of what the pool's thread reads.
  struct HandedOut {
    std::shared_ptr<SessionContext> context;
    std::string workspace;
    Moment began;
  };

  Pool(std::shared_ptr<Store> store, const SessionOptions& options, std::size_t size);
  /// Creates another pooled session.
  Result<std::shared_ptr<SessionContext>> make();
  std::shared_ptr<SessionContext> pop();
  void refill();
  void completeHandedOut(std::unique_lock<std::mutex>& held);

  std::shared_ptr<Store> store_;
  SessionOptions options_;
  std::size_t size_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<SessionContext>> ready_;
  std::deque<HandedOut> incomplete_;  ///< handed out, and not yet on disk
  std::chrono::steady_clock::time_point last_taken_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace caisson::session
