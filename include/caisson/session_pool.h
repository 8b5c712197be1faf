// Sessions that are created in advance. A program that needs many of one kind takes them from a pool.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "caisson/session.h"

namespace caisson {

namespace session {
class Pool;
}

struct PoolOptions {
  std::size_t size = 1;  ///< 1 to 64
  /// Run once in each session before it is ready, so that the first command finds its libraries loaded. What it changes
  /// stays. Only the first session's must succeed. Empty: none.
  std::vector<std::string> warm_up;
  bool require_warm_up = true;            ///< false: a failed warm-up is ignored in the first session, too
  std::function<std::string()> new_name;  ///< names of the sessions; claiming one in advance makes take() faster
};

/// A thread of the pool keeps so many sessions ready: running sandboxes in which no command ever ran but the pool's own
/// warm-up. Each is handed out once and never reused, so no state leaks from one user to the next.
class SessionPool {
 public:
  /// Called with the name of the session that will be handed out, before it is. An error keeps it from that.
  using BeforeHandOut = std::function<Result<void>(const std::string& name)>;

  /// Returns a ready session, as if created now; creates one if none is ready. `name` as in SessionOptions; empty: the
  /// one from PoolOptions::new_name, or none.
  Result<Session> take(const std::string& name = {}, double ttl_seconds = 3600, const BeforeHandOut& before = {});
  /// How many sessions wait to be handed out.
  [[nodiscard]] std::size_t ready() const;

  /// Destroys the sessions that were not handed out.
  ~SessionPool();
  SessionPool(SessionPool&&) noexcept;
  SessionPool& operator=(SessionPool&&) noexcept;
  explicit SessionPool(std::unique_ptr<session::Pool> pool);

 private:
  std::unique_ptr<session::Pool> pool_;
};

}  // namespace caisson
