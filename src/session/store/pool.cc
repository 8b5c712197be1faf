#include "session/store/pool.h"

#include <chrono>

#include "base/text.h"
#include "session/store/ttl.h"
#include "session/tier/tier_files.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMaxReady = 64;
// Pooled sessions of a dead server expire after this long, and the next clean-up removes them.
constexpr double kWaitingSeconds = 900;
constexpr double kWarmUpSeconds = 30;
constexpr double kTooLittleLeft = 60;  // seconds; ready sessions that expire sooner are replaced
constexpr auto kPauseAfterFailure = std::chrono::seconds(1);
constexpr auto kLookEvery = std::chrono::seconds(30);
// Creating a session would slow down the one that was just handed out. While more than half of the pool is ready, wait
// until this long after the last hand-out.
constexpr auto kQuietTime = std::chrono::milliseconds(20);

}  // namespace

Result<std::unique_ptr<Pool>> Pool::start(std::shared_ptr<Store> store, const SessionOptions& options,
                                          PoolOptions pool_options) {
  const std::size_t size = pool_options.size;
  if (size == 0 || size > kMaxReady) {
    return fail(plainError(Stage::usage, "session pool", std::to_string(size), "not a usable size",
                           "keep 1 to " + std::to_string(kMaxReady) + " ready"));
  }
  if (inLandlockTier(options.policy.model())) {
    return fail(plainError(Stage::usage, "session pool", "isolation.tier",
                           "a session in the landlock tier has no sandbox that could be started in advance",
                           "create each session when it is needed"));
  }
  if (!options.policy.model().network.published_ports.empty()) {
    return fail(plainError(Stage::usage, "session pool", "network.published_ports",
                           "only one session at a time can publish a port",
                           "leave it out, and use `caisson session expose`"));
  }
  std::unique_ptr<Pool> pool(new Pool(std::move(store), options, std::move(pool_options)));
  // Create the first one synchronously, so that errors in the options show at once.
  auto first = pool->make(pool->pool_options_.require_warm_up);
  if (!first) return fail(first.error());
  pool->ready_.push_back(std::move(*first));
  pool->thread_ = std::thread([raw = pool.get()] { raw->refill(); });
  return pool;
}

Pool::Pool(std::shared_ptr<Store> store, const SessionOptions& options, PoolOptions pool_options)
    : store_(std::move(store)), options_(options), pool_options_(std::move(pool_options)) {
  options_.ttl_seconds = kWaitingSeconds;
}

Pool::~Pool() {
  {
    const std::lock_guard held(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const auto& handle : ready_) {
    handle->disconnect();
    (void)store_->destroy(handle->id());
  }
}

Result<void> Pool::warmUp(SessionContext& handle, bool strict) const {
  if (pool_options_.warm_up.empty()) return {};
  const auto ran = handle.exec({.command = pool_options_.warm_up, .timeout_seconds = kWarmUpSeconds});
  if (!strict || (ran && ran->outcome == OutcomeKind::exited && ran->exit_code == 0)) return {};
  if (!ran) return fail(ran.error());
  std::string said = ran->err.data.substr(0, 500);
  said.erase(said.find_last_not_of('\n') + 1);
  return fail(plainError(Stage::usage, "session pool", pool_options_.warm_up.front(),
                         "the warm-up command failed" + (said.empty() ? "" : ": " + printable(said)),
                         "try it with `caisson run`, or leave it out"));
}

Result<std::shared_ptr<SessionContext>> Pool::make(bool strict) {
  store_->cleanSometimes();
  SessionOptions options = options_;
  options.name = pool_options_.new_name ? pool_options_.new_name() : "";
  auto made = store_->make(options, true);
  if (!made) return fail(made.error());
  auto handle = std::make_shared<SessionContext>(store_, std::move(*made));
  Result<void> prepared = handle->note("prepared");
  if (prepared) {
    if (auto connected = handle->connect(); !connected) prepared = fail(connected.error());
  }
  if (prepared) prepared = warmUp(*handle, strict);
  if (prepared) return handle;
  (void)store_->destroy(handle->id());
  return fail(prepared.error());
}

void Pool::refill() {
  std::unique_lock held(mutex_);
  while (!ending_) {
    // The oldest is in front; drop it if it expires soon.
    if (!ready_.empty() && ready_.front()->metadata().secondsLeft(Moment::now()) < kTooLittleLeft) {
      const auto old = std::move(ready_.front());
      ready_.pop_front();
      held.unlock();
      old->disconnect();
      (void)store_->destroy(old->id());
      held.lock();
      continue;
    }
    if (ready_.size() >= pool_options_.size) {
      changed_.wait_for(held, kLookEvery);
      continue;
    }
    const auto calm = last_taken_ + kQuietTime;
    if (2 * ready_.size() > pool_options_.size && std::chrono::steady_clock::now() < calm) {
      changed_.wait_until(held, calm);
      continue;
    }
    held.unlock();
    auto made = make();
    held.lock();
    if (made) {
      ready_.push_back(std::move(*made));
    } else {
      changed_.wait_for(held, kPauseAfterFailure);
    }
  }
}

std::shared_ptr<SessionContext> Pool::pop() {
  const std::lock_guard held(mutex_);
  if (ready_.empty()) return nullptr;
  auto handle = std::move(ready_.front());
  ready_.pop_front();
  last_taken_ = std::chrono::steady_clock::now();
  changed_.notify_all();
  return handle;
}

void Pool::putBack(std::shared_ptr<SessionContext> handle) {
  {
    const std::lock_guard held(mutex_);
    if (ready_.size() < pool_options_.size) return ready_.push_front(std::move(handle));
  }
  handle->disconnect();  // it was replaced meanwhile, or made for this caller
  (void)store_->destroy(handle->id());
}

Result<std::shared_ptr<SessionContext>> Pool::take(const std::string& name, double ttl_seconds,
                                                   const SessionPool::BeforeHandOut& before) {
  if (!name.empty()) {
    if (auto checked = checkName("session create", name); !checked) return fail(checked.error());
  }
  if (auto checked = checkTtl("session create", "ttl", ttl_seconds); !checked) return fail(checked.error());
  auto handle = pop();
  if (!handle || !isAlive(handle->directory())) {
    if (handle) (void)store_->destroy(handle->id());
    auto made = make();
    if (!made) return made;
    handle = std::move(*made);
  }
  const std::string handed_name = name.empty() ? handle->metadata().name : name;
  if (auto agreed = before ? before(handed_name) : Result<void>(); !agreed) {
    putBack(std::move(handle));
    return fail(agreed.error());
  }
  auto replaced = handle->handOut(handed_name, ttl_seconds);
  if (!replaced) {
    handle->disconnect();
    (void)store_->destroy(handle->id());  // used or not, it is never handed out again
    return fail(replaced.error());
  }
  // Waiting for the disk would be most of the cost, and a session's content is not synced either.
  store_->completeLater(handle->metadata(), *std::move(replaced));
  return handle;
}

std::size_t Pool::ready() const {
  const std::lock_guard held(mutex_);
  return ready_.size();
}

}  // namespace caisson::session
