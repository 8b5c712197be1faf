// The audit log: who ran what, how it ended, what was refused. Append-only, hash-chained JSON lines in
// CAISSON_HOME/audit.
//
//   auto log = audit::Log::open();
//   if (!log) return fail(log.error());        // nothing may run unseen: exit 125
//   if (auto done = log->append({EventType::syscall_blocked, Severity::warn, id, Fields().text("syscall", "ptrace")});
//   !done) ... log->handOver();                           // once the caller has time: makes it durable within a second
//
// Guarantees: when append() returns without an error, the event is in the file, survives the death of every process
// (kill -9 included), and is chained to all events before it, whichever process wrote them. A CRITICAL event is on the
// disk by then. Other events are on the disk within a second of the next handOver(), or of the end of the Log.
// Any number of processes may write at once; threads of one process each open a Log of their own.
// Not guaranteed: that the last second survives a power failure; that a process under the same uid can't destroy the
// log (it is found by `caisson audit verify`, see docs/audit.md).
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
  std::uint64_t rotate_bytes = 16ULL << 20U;  ///< a file that would grow beyond this is followed by a new one
  std::uint64_t total_bytes = 256ULL << 20U;  ///< of all files: the oldest are removed
};

class Log {
 public:
  /// CAISSON_HOME/audit, made if missing.
  static Result<Log> open();
  static Result<Log> open(const std::string& directory, Settings settings = {});
  Log(Log&& other) noexcept = default;
  Log& operator=(Log&&) = delete;
  ~Log();

  /// All of the events, in this order and with nothing between them, or none.
  Result<void> append(std::span<const Event> events);
  Result<void> append(const Event& event) { return append(std::span(&event, 1)); }

  /// The same without waiting for other writers: EWOULDBLOCK while one holds the log. Events that were deferred are
  /// written first.
  Result<void> tryAppend(std::span<const Event> events);

  /// From now on append() does not wait for other writers but keeps the events and returns; flush() writes them. For
  /// processes that must not be held up. CRITICAL events, and those beyond kMaxDeferred, still wait.
  void deferWhenBusy() { defer_ = true; }
  [[nodiscard]] bool hasDeferred() const { return !deferred_.empty(); }
  /// Writes deferred events, if no other writer holds the log or `wait`.
  void flush(bool wait = false);

  /// Sees to it that everything appended so far reaches the disk within a second, without waiting for it: a process of
  /// its own does that, one for all writers. Cheap when one is already at work.
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

  // log_files.cc: what happens between files
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
  std::string chain_reason_;  ///< why a chain was begun although there were files
  std::vector<Event> first_;  ///< about the log itself; written before the caller's events
  bool defer_ = false;
  std::vector<Event> deferred_;       ///< appended while another writer held the log
  bool owes_sync_ = false;            ///< something of ours may not be on the disk yet
  std::unique_ptr<Metrics> counted_;  ///< and not added to the file yet
};

}  // namespace caisson::audit
