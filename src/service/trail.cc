#include "service/trail.h"

#include <algorithm>
#include <utility>

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
  if (request.further > 0) fields.number("further", request.further);
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

Result<void> Trail::recordVisit(const RequestRecord& request) {
  {
    const std::lock_guard lock(mutex_);
    auto [place, is_new] = visits_.try_emplace(request.sandbox);
    Visits& visits = place->second;
    if (is_new) visits.until = Clock::now() + kVisitWindow;
    const auto peer = visits.recorded.find(request.peer);
    if (visits.total >= kVisits || (peer != visits.recorded.end() && peer->second >= kVisitsOfPeer)) {
      ++visits.further;
      return {};
    }
    ++visits.recorded[request.peer];
    ++visits.total;
    changed_.notify_all();
  }
  return record(request);
}

void Trail::endVisits(bool all, std::vector<RequestRecord>& batch) {
  const auto now = Clock::now();
  std::erase_if(visits_, [&](const auto& entry) {
    const auto& [sandbox, visits] = entry;
    if (!all && now < visits.until) return false;
    if (visits.further > 0)
      batch.push_back({.caller = "preview", .operation = "preview", .sandbox = sandbox, .further = visits.further});
    return true;
  });
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
    const auto due = [this] { return ending_ || owes_sync_ || !refusals_.empty() || dropped_ > 0; };
    if (visits_.empty()) changed_.wait(lock, [&] { return due() || !visits_.empty(); });
    auto next = Clock::now() + kVisitWindow;
    for (const auto& [sandbox, visits] : visits_) next = std::min(next, visits.until);
    changed_.wait_until(lock, next, due);
    // Not in record(): starting the process that syncs takes as long as a short command.
    if (!ending_) changed_.wait_for(lock, kSyncAfter, [this] { return ending_; });
    std::vector<RequestRecord> batch;
    while (!refusals_.empty() && (batch.size() < kPerRound || ending_)) {
      batch.push_back(std::move(refusals_.front()));
      refusals_.pop_front();
    }
    endVisits(ending_, batch);
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
