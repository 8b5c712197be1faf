#include "service/trail.h"

#include <chrono>
#include <utility>
#include <vector>

namespace caisson::service {
namespace {

constexpr std::size_t kMaxQueued = 256;
/// Refusals need no token, so their rate in the log is bounded: it has a size limit, and old records must survive.
constexpr std::size_t kPerRound = 32;
constexpr std::chrono::milliseconds kRound{500};
constexpr std::chrono::milliseconds kSyncAfter{50};

audit::Event eventOf(const RequestRecord& request) {
  audit::Fields fields;
  fields.text("caller", request.caller).text("caller_id", request.caller_id).text("peer", request.peer);
  fields.text("method", request.method).text("path", request.path).text("operation", request.operation);
  if (request.status == 0) return {audit::EventType::http_request, audit::Severity::info, request.sandbox, fields};
  fields.number("status", request.status).text("reason", request.reason);
  return {audit::EventType::http_refused, audit::Severity::warn, request.sandbox, fields};
}

}  // namespace

Trail::~Trail() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  writer_.join();
}

Result<void> Trail::record(const RequestRecord& request) {
  const std::lock_guard lock(log_mutex_);
  if (!log_) {
    auto opened = audit::Log::open();
    if (!opened) return std::unexpected(opened.error());
    log_.emplace(*std::move(opened));
  }
  auto appended = log_->append(eventOf(request));
  if (!appended) log_.reset();  // it may have been replaced: open it again next time
  if (!appended) return appended;
  const std::lock_guard queue(mutex_);
  if (!std::exchange(owes_sync_, true)) changed_.notify_all();
  return appended;
}

void Trail::refuse(RequestRecord request) {
  const std::lock_guard lock(mutex_);
  if (refusals_.size() < kMaxQueued) {
    refusals_.push_back(std::move(request));
  } else {
    ++dropped_;
  }
  changed_.notify_all();
}

void Trail::handOver() {
  {
    const std::lock_guard lock(mutex_);
    owes_sync_ = false;
  }
  const std::lock_guard lock(log_mutex_);
  if (log_) log_->handOver();
}

void Trail::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || owes_sync_ || !refusals_.empty() || dropped_ > 0; });
    // Not in record(): starting the process that syncs takes as long as a short command.
    if (!ending_) changed_.wait_for(lock, kSyncAfter, [this] { return ending_; });
    std::vector<RequestRecord> batch;
    while (!refusals_.empty() && (batch.size() < kPerRound || ending_)) {
      batch.push_back(std::move(refusals_.front()));
      refusals_.pop_front();
    }
    const std::uint64_t dropped = refusals_.empty() ? std::exchange(dropped_, 0) : 0;
    const bool last = ending_;
    lock.unlock();
    for (const RequestRecord& one : batch) (void)record(one);
    if (dropped > 0)
      (void)record({.status = 429, .reason = std::to_string(dropped) + " further refusals without a record of each"});
    handOver();
    if (last) return;
    lock.lock();
    if (!batch.empty()) changed_.wait_for(lock, kRound, [this] { return ending_; });
  }
}

}  // namespace caisson::service
