#include "service/idempotency.h"

#include <cerrno>
#include <memory>

#include "base/json_document.h"
#include "base/sha256.h"
#include "service/clock.h"
#include "sys/state_home.h"

namespace caisson::service {
namespace {

constexpr std::int64_t kKeptSeconds = 24 * 3600;
constexpr std::size_t kMaxStored = 20'000;  ///< of one caller in a day
constexpr std::size_t kMaxResponse = std::size_t{1} << 20U;

std::string keyFile(const Principal& caller, const std::string& key) {
  return hex(Sha256().add(caller.id).add(std::uint8_t{0}).add(key).finish()) + ".json";
}

}  // namespace

Result<std::unique_ptr<IdempotencyKeys>> IdempotencyKeys::open() {
  auto opened = sys::openStateDirectory("server/idempotency");
  if (!opened) return std::unexpected(opened.error());
  auto directory = sys::RootDir::adopt(std::move(*opened), {});
  if (!directory) return std::unexpected(directory.error());
  return std::unique_ptr<IdempotencyKeys>(new IdempotencyKeys(*std::move(directory)));
}

Result<IdempotencyKeys::Begin> IdempotencyKeys::begin(const Principal& caller, const std::string& key,
                                                      const std::string& request, const std::string& note) {
  const std::string file = keyFile(caller, key);
  const std::string hash = hex(Sha256().add(request).finish());
  const std::lock_guard lock(mutex_);
  prune();
  const auto text = directory_.readFile(file, std::uint64_t{64} << 20U);
  if (!text && text.error().sys_errno != ENOENT) return std::unexpected(text.error());
  const auto stored = text ? parseJson(*text, {.bytes = std::size_t{64} << 20U}) : std::unexpected(std::string());
  const Instant now = Instant::now();
  if (stored && now.since(readInstant(find(*stored, "begun"))) < kKeptSeconds) {
    if (textAt(*stored, "request") != hash) return Begin{State::conflict, {}, {}};
    const auto status = integerAt(*stored, "status").value_or(0);
    if (status != 0) return Begin{State::replay, {static_cast<int>(status), textAt(*stored, "body").value_or("")}, {}};
    if (running_.contains(file)) return Begin{State::in_progress, {}, {}};
    running_.insert(file);
    return Begin{State::interrupted, {}, textAt(*stored, "note").value_or("")};
  }
  if (day_ != now.boot / kKeptSeconds) stored_.clear();
  day_ = now.boot / kKeptSeconds;
  if (++stored_[caller.id] > kMaxStored)
    return std::unexpected(Error{.stage = Stage::limits,
                                 .call = "idempotency",
                                 .sys_errno = EUSERS,
                                 .reason = "too many idempotency keys today",
                                 .hint = "send the request without a key"});
  const Json begun{{"request", hash}, {"begun", describeInstant(now)}, {"note", note}};
  if (auto written = directory_.replaceFile(file, writeJson(begun), 0600); !written)
    return std::unexpected(written.error());
  running_.insert(file);
  return Begin{State::fresh, {}, note};
}

void IdempotencyKeys::finish(const Principal& caller, const std::string& key,
                             const std::optional<StoredResponse>& response) {
  const std::string file = keyFile(caller, key);
  const std::lock_guard lock(mutex_);
  running_.erase(file);
  const auto text = directory_.readFile(file, std::uint64_t{64} << 20U);
  auto stored = text ? parseJson(*text) : std::unexpected(std::string());
  if (!response || !stored || !stored->is_object()) {
    (void)directory_.remove(file);
    return;
  }
  const bool large = response->body.size() > kMaxResponse;
  (*stored)["status"] = large ? 409 : response->status;
  (*stored)["body"] = large ? R"({"code":"too_large_to_replay","status":409})" : response->body;
  (void)directory_.replaceFile(file, writeJson(*stored), 0600);
}

void IdempotencyKeys::prune() {
  const Instant now = Instant::now();
  if (pruned_ && now.boot - *pruned_ < 600) return;
  pruned_ = now.boot;
  const auto files = directory_.list("");
  if (!files) return;
  for (const sys::DirectoryEntry& file : *files) {
    // The file's time is of the wall clock, which may have been set: it only saves reading new files.
    const auto info = directory_.stat(file.name);
    if (!info || info->modified_ns / 1'000'000'000 > now.wall - kKeptSeconds) continue;
    const auto text = directory_.readFile(file.name, std::uint64_t{64} << 20U);
    const auto stored = text ? parseJson(*text, {.bytes = std::size_t{64} << 20U}) : std::unexpected(std::string());
    if (stored && now.since(readInstant(find(*stored, "begun"))) < kKeptSeconds) continue;
    (void)directory_.remove(file.name);
  }
}

}  // namespace caisson::service
