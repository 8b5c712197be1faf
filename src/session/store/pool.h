// Sessions created in advance, behind the public SessionPool.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "caisson/session_pool.h"
#include "session/client/session_context.h"

namespace caisson::session {

class Pool {
 public:
  /// Creates the first session, so that errors in the options show, and a thread that keeps so many sessions ready.
  /// Ignores the options' name and ttl_seconds, which take() sets; published ports are an error.
  static Result<std::unique_ptr<Pool>> start(std::shared_ptr<Store> store, const SessionOptions& options,
                                             PoolOptions pool_options);
  /// Stops the thread and destroys the sessions that were not handed out.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Hands out a session under this name, which lives `ttl_seconds` from now. Creates one if none is ready. An empty
  /// name: the one it was made with.
  Result<std::shared_ptr<SessionContext>> take(const std::string& name, double ttl_seconds,
                                               const SessionPool::BeforeHandOut& before);
  /// How many sessions are ready.
  [[nodiscard]] std::size_t ready() const;

 private:
  Pool(std::shared_ptr<Store> store, const SessionOptions& options, PoolOptions pool_options);
  /// Creates a pooled session and starts its sandbox. `strict`: a failed warm-up is an error.
  Result<std::shared_ptr<SessionContext>> make(bool strict = false);
  Result<void> warmUp(SessionContext& handle, bool strict) const;
  /// The oldest ready session, or null.
  std::shared_ptr<SessionContext> pop();
  void putBack(std::shared_ptr<SessionContext> handle);
  /// The pool's thread: keeps `size_` sessions ready and replaces those that expire soon.
  void refill();

  std::shared_ptr<Store> store_;
  SessionOptions options_;
  PoolOptions pool_options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<SessionContext>> ready_;
  std::chrono::steady_clock::time_point last_taken_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace caisson::session
