// The audit log: who ran what, how it ended, what was denied. Append-only, hash-chained JSON lines in
// CAISSON_HOME/audit.
//
//   auto log = audit::Log::open();
//   if (!log) return fail(log.error());        // never run without a log: exit 125
//   const Event event{EventType::syscall_blocked, Severity::warn, id, Fields().text("syscall", "ptrace")};
//   if (auto done = log->append(event); !done) ...
//   log->handOver();                           // when the caller is idle: makes it durable within a second
//
// Guarantees: when append() succeeds, the event is in the file, survives the death of every process (also by SIGKILL),
// and is chained to all earlier events of all processes. A CRITICAL event is on disk by then. Other events are on disk
// within a second after the next handOver(), or after the Log is destroyed. Any number of processes may write at once;
// each thread must open its own Log.
// Not guaranteed: that the last second survives a power failure; that a process of the same uid cannot destroy the log
// (`caisson audit verify` detects that, see docs/audit.md).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "audit/event.h"
#include "audit/head.h"
#include "audit/metrics.h"
#include "base/error.h"
#include "sys/fd.h"

namespace caisson::audit {

struct Settings {
  std::uint64_t rotate_bytes = 16ULL << 20U;  ///< a file that would exceed this is followed by a new one
  std::uint64_t total_bytes = 256ULL << 20U;  ///< of all files; the oldest are removed beyond this
};

class Log {
 public:
  /// Opens CAISSON_HOME/audit; creates it if missing.
  static Result<Log> open();
  static Result<Log> open(const std::string& directory, Settings settings = {});
  Log(Log&& other) noexcept = default;
  Log& operator=(Log&&) = delete;
  ~Log();

  /// Appends all events contiguously and in this order, or none.
  Result<void> append(std::span<const Event> events);
  Result<void> append(const Event& event) { return append(std::span(&event, 1)); }

  /// Like append(), but returns EWOULDBLOCK if another writer holds the log. Writes deferred events first.
  Result<void> tryAppend(std::span<const Event> events);

  /// From now on, append() queues events instead of waiting for other writers; flush() writes them. For processes that
  /// must not block. CRITICAL events, and events beyond kMaxDeferred, still wait.
  void deferWhenBusy() { defer_ = true; }
  [[nodiscard]] bool hasDeferred() const { return !deferred_.empty(); }
  /// Writes deferred events; if another writer holds the log, waits only if `wait`.
  void flush(bool wait = false);

  /// Makes everything appended so far durable within a second, without waiting: one separate process syncs for all
  /// writers. Cheap if it is already running.
  void handOver();

 private:
  Log() = default;

  static constexpr std::size_t kMaxDeferred = 10'000;

  Result<void> lock(bool wait);
  Result<void> appendWithDeferred(std::span<const Event> events);
  Result<void> appendLocked(std::span<const Event> events);
  Result<void> readHead();
  Result<void> writeHead(bool durable);
  Result<void> writeLines(std::span<const Event> events, bool durable);

  // log_files.cc: switching files
  Result<void> startChain(std::string_view why);
  void noteBeginning();
  Result<void> openCurrent();
  Result<void> openNext(std::uint32_t number);
  Result<void> recover(std::uint64_t size);
  void planPruning();
  void removePruned() const;

  void note(EventType type, Severity severity, Fields fields);
  [[nodiscard]] Error failed(std::string_view call, std::string_view name, int sys_errno) const;

  std::string path_;
  Settings settings_;
  sys::Fd directory_;
  sys::Fd head_file_;
  sys::Fd current_;
  std::uint32_t current_number_ = 0;
  Head head_;
  std::string chain_reason_;  ///< why a chain was started although files existed
  std::vector<Event> first_;  ///< about the log itself; written before the caller's events
  bool defer_ = false;
  std::vector<Event> deferred_;       ///< appended while another writer held the log
  bool owes_sync_ = false;            ///< some of our events may not be on disk
  std::unique_ptr<Metrics> counted_;  ///< not yet added to the file
};

}  // namespace caisson::audit
