// The audit log: who ran what, how it ended, what was denied. Append-only, hash-chained JSON lines in
// CAISSON_HOME/audit.
//
//   auto log = audit::Log::open();
//   if (!log) return fail(log.error());        // never run without a log: exit 125
//   const Event event{EventType::syscall_blocked, Severity::warn, id, Fields().text("syscall", "ptrace")};
//   if (auto done = log->append(event); !done) ...
//   log->handOver();                           // when the caller is idle: makes it durable within a second
//
// Guarantees: when append() succeeds and has not deferred the event (deferWhenBusy()), the event is in the file,
// survives the death of every process (also by SIGKILL), and is chained to all earlier events of all processes. A
// CRITICAL event is on disk by then. Other events are on disk within a second after the next handOver(), or after the
// Log is destroyed. Any number of processes may write at once; each thread must open its own Log.
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
  std::uint64_t rotate_bytes = 16ULL << 20U;  ///< a file that has reached this size is followed by a new one
  std::uint64_t total_bytes = 256ULL << 20U;  ///< of all files; beyond it, a new file removes the oldest ones
};

class Log {
 public:
  /// Opens CAISSON_HOME/audit; creates it if missing.
  static Result<Log> open();
  /// The same for another directory.
  static Result<Log> open(const std::string& directory, Settings settings = {});
  Log(Log&& other) noexcept = default;
  Log& operator=(Log&&) = delete;
  /// Calls handOver() and adds the metrics. Drops deferred events: call flush(true) before.
  ~Log();

  /// Appends all events contiguously and in this order, or none. Waits up to ten seconds for another writer, then
  /// fails.
  Result<void> append(std::span<const Event> events);
  Result<void> append(const Event& event) { return append(std::span(&event, 1)); }

  /// Like append(), but returns EWOULDBLOCK if another writer holds the log. Writes deferred events first.
  Result<void> tryAppend(std::span<const Event> events);

  /// From now on, append() queues events instead of waiting for other writers, or if the write fails; flush() or the
  /// next append writes them. For processes that must not block; they must call flush(true) before they exit, since the
  /// destructor drops queued events. CRITICAL events, and events beyond kMaxDeferred, still wait.
  void deferWhenBusy() { defer_ = true; }
  [[nodiscard]] bool hasDeferred() const { return !deferred_.empty(); }
  /// Writes deferred events; if another writer holds the log, waits only if `wait`. On failure they stay queued.
  void flush(bool wait = false);

  /// Makes everything appended so far durable within a second, without waiting: one separate process syncs for all
  /// writers. Cheap if it is already running. If it cannot be started, syncs here and waits for the disk. Also adds the
  /// metrics to their file, unless a run is still going on.
  void handOver();

 private:
  Log() = default;

  static constexpr std::size_t kMaxDeferred = 10'000;

  /// Locks the head file; waits ten seconds at most. EWOULDBLOCK if it is held and not `wait`. An error if the log was
  /// removed or replaced.
  Result<void> lock(bool wait);
  /// Writes deferred events and then these. Call with the lock held; releases it.
  Result<void> appendWithDeferred(std::span<const Event> events);
  /// Writes events: reads the head, continues or rotates the file, prunes old files.
  Result<void> appendLocked(std::span<const Event> events);
  /// Reads head_ from the file. Starts a new chain if there is no valid head.
  Result<void> readHead();
  /// Writes head_ to the slot that is not the newest. `durable`: with fdatasync.
  Result<void> writeHead(bool durable);
  /// Writes first_ and `events` as lines, then the head. A writer that dies in between leaves complete lines beyond the
  /// head's end, which the next writer adopts, or a partial line, which it truncates.
  Result<void> writeLines(std::span<const Event> events, bool durable);

  // log_files.cc: switching files
  /// Starts a chain: the first run of this user, or a lost head. In the second case old files stay, and the new chain
  /// records `why`.
  Result<void> startChain(std::string_view why);
  /// Adds the first line of an empty file, which names what it continues. Any writer adds it, since the file's creator
  /// may have died.
  void noteBeginning();
  /// Opens the file that the head names. Recovers what a dead writer left beyond its end; if the file is gone or too
  /// short, starts a new one and records the loss.
  Result<void> openCurrent();
  /// Creates an empty file with the first free number from `number` on and makes it current, in the head too.
  Result<void> openNext(std::uint32_t number);
  /// Handles data beyond the head's end, in a file of `size` bytes. Adopts lines with a valid MAC, whose writer died
  /// before it updated the head. Truncates and records the rest: a partial line or foreign data.
  Result<void> recover(std::uint64_t size);
  /// Selects the oldest files to remove and queues the record of that; removePruned() removes them once it is written.
  void planPruning();
  /// If this append recorded a pruning, removes every file older than the oldest kept one.
  void removePruned() const;

  /// Queues an event about the log itself; it is written before the caller's events.
  void note(EventType type, Severity severity, Fields fields);
  /// An error of a failed call on the file `name` of the log.
  [[nodiscard]] Error failed(std::string_view call, std::string_view name, int sys_errno) const;

  std::string path_;
  Settings settings_;
  sys::Fd directory_;
  sys::Fd head_file_;
  sys::Fd current_;  ///< the log file that is written to; current_number_ is its number
  std::uint32_t current_number_ = 0;
  Head head_;
  std::string chain_reason_;          ///< why a chain was started although files existed
  std::vector<Event> first_;          ///< about the log itself; written before the caller's events
  bool defer_ = false;                ///< see deferWhenBusy()
  std::vector<Event> deferred_;       ///< appended while another writer held the log
  bool owes_sync_ = false;            ///< some of our events may not be on disk
  std::unique_ptr<Metrics> counted_;  ///< not yet added to the file
};

}  // namespace caisson::audit
