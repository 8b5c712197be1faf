#include "service/idempotency.h"

#include <cerrno>
#include <memory>
#include <utility>
#include <vector>

#include "base/json_document.h"
#include "base/sha256.h"
#include "service/clock.h"
#include "sys/state_home.h"

namespace caisson::service {
namespace {

constexpr std::int64_t kKeptSeconds = 24 * 3600;
constexpr std::size_t kMaxStored = 20'000;                       ///< of one caller
constexpr std::uint64_t kMaxKeyFile = std::uint64_t{64} << 20U;  ///< of an earlier version; ours are smaller
constexpr std::uint64_t kMaxResponse = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMaxKeptBytes = std::uint64_t{64} << 20U;  ///< of all responses of one caller

std::string keyFile(const Principal& caller, const std::string& key) {
  return hex(Sha256().add(caller.id).add(std::uint8_t{0}).add(key).finish()) + ".json";
}

}  // namespace

Result<std::unique_ptr<IdempotencyKeys>> IdempotencyKeys::open() {
  auto opened = sys::openStateDirectory("server/idempotency");
  if (!opened) return std::unexpected(opened.error());
  auto directory = sys::RootDir::adopt(std::move(*opened), {});
  if (!directory) return std::unexpected(directory.error());
  std::unique_ptr<IdempotencyKeys> keys(new IdempotencyKeys(*std::move(directory)));
  keys->load();
  return keys;
}

void IdempotencyKeys::load() {
  prune();
  const auto files = directory_.list("");
  if (!files) return;
  for (const sys::DirectoryEntry& file : *files) {
    const auto text = directory_.readFile(file.name, kMaxKeyFile);
    const auto stored = text ? parseJson(*text, {.bytes = kMaxKeyFile}) : std::unexpected(std::string());
    if (!stored) continue;
    const Entry entry{.caller = textAt(*stored, "caller").value_or(""),
                      .sandbox = textAt(*stored, "sandbox").value_or(""),
                      .bytes = text->size()};
    Usage& usage = usage_[entry.caller];
    ++usage.keys;
    usage.bytes += entry.bytes;
    entries_[file.name] = entry;
  }
}

Result<void> IdempotencyKeys::write(const std::string& file, const std::string& text) {
  if (auto written = directory_.replaceFile(file, text, 0600); !written) return written;
  Entry& entry = entries_[file];
  usage_[entry.caller].bytes += text.size() - entry.bytes;
  entry.bytes = text.size();
  return {};
}

void IdempotencyKeys::remove(const std::string& file) {
  (void)directory_.remove(file);
  const auto entry = entries_.find(file);
  if (entry == entries_.end()) return;
  const auto usage = usage_.find(entry->second.caller);
  if (usage != usage_.end()) {
    usage->second.bytes -= entry->second.bytes;
    if (--usage->second.keys == 0) usage_.erase(usage);
  }
  entries_.erase(entry);
}

void IdempotencyKeys::forget(const std::string& sandbox) {
  forgetUnless([&](const std::string& other) { return other != sandbox; });
}

void IdempotencyKeys::forgetUnless(const std::function<bool(const std::string& sandbox)>& exists) {
  const std::lock_guard lock(mutex_);
  std::map<std::string, bool> known;
  std::vector<std::string> gone;
  for (auto& [file, entry] : entries_) {
    if (entry.sandbox.empty()) continue;
    const auto [place, is_new] = known.try_emplace(entry.sandbox, true);
    if (is_new) place->second = exists(entry.sandbox);
    if (place->second) continue;
    if (entry.running) {
      entry.forgotten = true;
    } else {
      gone.push_back(file);
    }
  }
  for (const std::string& file : gone) remove(file);
}

Result<IdempotencyKeys::Begin> IdempotencyKeys::begin(const Principal& caller, const std::string& key,
                                                      const Request& request) {
  const std::string file = keyFile(caller, key);
  const std::string hash = hex(Sha256().add(request.text).finish());
  const std::lock_guard lock(mutex_);
  prune();
  const auto text = directory_.readFile(file, kMaxKeyFile);
  if (!text && text.error().sys_errno != ENOENT) return std::unexpected(text.error());
  const auto stored = text ? parseJson(*text, {.bytes = kMaxKeyFile}) : std::unexpected(std::string());
  const Instant now = Instant::now();
  if (stored && now.since(readInstant(find(*stored, "begun"))) < kKeptSeconds) {
    if (textAt(*stored, "request") != hash) return Begin{State::conflict, {}, {}};
    const auto status = integerAt(*stored, "status").value_or(0);
    if (status != 0) return Begin{State::replay, {static_cast<int>(status), textAt(*stored, "body").value_or("")}, {}};
    const auto [place, is_new] = entries_.try_emplace(file);
    if (is_new) ++usage_[place->second.caller].keys;  // the file was not there when the server started
    if (std::exchange(place->second.running, true)) return Begin{State::in_progress, {}, {}};
    return Begin{State::interrupted, {}, textAt(*stored, "note").value_or("")};
  }
  remove(file);  // expired
  Usage& usage = usage_[caller.id];
  if (usage.keys >= kMaxStored)
    return std::unexpected(Error{.stage = Stage::limits,
                                 .call = "idempotency",
                                 .sys_errno = EUSERS,
                                 .reason = "too many idempotency keys today",
                                 .hint = "send the request without a key"});
  ++usage.keys;
  entries_[file] = {.caller = caller.id, .sandbox = request.sandbox, .running = true};
  const Json begun{{"request", hash},
                   {"begun", describeInstant(now)},
                   {"caller", caller.id},
                   {"sandbox", request.sandbox},
                   {"note", request.note}};
  if (auto written = write(file, writeJson(begun)); !written) {
    remove(file);
    return std::unexpected(written.error());
  }
  return Begin{State::fresh, {}, request.note};
}

void IdempotencyKeys::finish(const Principal& caller, const std::string& key,
                             const std::optional<StoredResponse>& response) {
  const std::string file = keyFile(caller, key);
  const std::lock_guard lock(mutex_);
  const auto entry = entries_.find(file);
  if (entry == entries_.end()) return;
  entry->second.running = false;
  const auto text = directory_.readFile(file, kMaxKeyFile);
  auto stored = text ? parseJson(*text) : std::unexpected(std::string());
  if (!response || !stored || !stored->is_object() || entry->second.forgotten) return remove(file);
  (*stored)["status"] = response->status;
  (*stored)["body"] = response->body.substr(0, kMaxResponse + 1);
  std::string whole = writeJson(*stored);
  if (whole.size() > kMaxResponse || usage_[caller.id].bytes + whole.size() > kMaxKeptBytes) {
    (*stored)["status"] = 409;
    (*stored)["body"] = R"({"code":"too_large_to_replay","status":409})";
    whole = writeJson(*stored);
  }
  (void)write(file, whole);
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
    const auto text = directory_.readFile(file.name, kMaxKeyFile);
    const auto stored = text ? parseJson(*text, {.bytes = kMaxKeyFile}) : std::unexpected(std::string());
    if (stored && now.since(readInstant(find(*stored, "begun"))) < kKeptSeconds) continue;
    if (const auto entry = entries_.find(file.name); entry != entries_.end() && entry->second.running) continue;
    remove(file.name);
  }
}

}  // namespace caisson::service
