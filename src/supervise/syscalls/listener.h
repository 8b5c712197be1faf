// The supervisor's end of a filter's notifications about blocked calls.
//
// Everything in an Attempt was copied by the kernel when the call was made. No decision to continue a call reads the
// payload's memory, which could change before or after; records (Observer, ProcessLog) and calls that the supervisor
// makes itself (finishCall) do. It is written only to answer a call (answer). Only calls that the filter allows anyway
// and just reports may continue (continueCall).
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "sys/fd.h"

namespace caisson::supervise {

struct Attempt {
  std::uint64_t id = 0;
  pid_t pid = 0;                   ///< of the thread, on the host
  std::uint32_t architecture = 0;  ///< AUDIT_ARCH_*
  int number = 0;
  std::uint64_t arguments[6] = {};
  bool foreign_program = false;  ///< the whole executable is of another architecture, not only this call
};

class Listener {
 public:
  Listener() = default;
  explicit Listener(sys::Fd descriptor) : descriptor_(std::move(descriptor)) {}

  /// For poll; -1 while paused (see resumeAt).
  [[nodiscard]] int descriptor() const { return paused_until_ ? -1 : descriptor_.get(); }
  /// When to resume, if paused.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> resumeAt() const { return paused_until_; }
  /// Call before poll: ends an expired pause.
  void keepPace(std::chrono::steady_clock::time_point now);

  /// Receives the next attempt after poll reported one; nothing if its process died meanwhile. Slows down a flood: the
  /// caller waits, and we use at most a few percent of a processor.
  std::optional<Attempt> next(std::chrono::steady_clock::time_point now);

  /// Leaves further callers waiting for this long.
  void pause(std::chrono::steady_clock::duration duration);

  /// Answers the attempt with an errno.
  void refuse(const Attempt& attempt, int error) const;

  /// Continues a call that the filter allows from the kernel's copy of the arguments and only reports
  /// (plan/observation.h). In a learning run such calls are many, and have a separate rate limit.
  void continueCall(const Attempt& attempt);
  /// The same under the rate limit of blocked calls: what a payload causes us to do costs a few percent of a processor.
  void continueCallRateLimited(const Attempt& attempt) const;

  /// Writes `bytes` to `address` of the calling process and answers the call with success, or EFAULT if that fails.
  /// Where the process is closed to us (undumpable, or of another user) the kernel executes the call instead.
  void answer(const Attempt& attempt, std::uint64_t address, std::span<const std::byte> bytes);

  /// Answers a call that we made for the process: success, or its errno. Under a separate rate limit, since archives
  /// and builds make many such calls.
  void finishCall(const Attempt& attempt, int error);

  /// Puts a copy of our `descriptor` in place of the process's descriptor `number`. Returns an errno, 0 after success.
  [[nodiscard]] int replaceDescriptor(const Attempt& attempt, int number, int descriptor, bool close_on_exec) const;

  /// Whether the thread that made the attempt still waits. Check it after each use of Attempt::pid: if false, that pid
  /// may be another thread's by now.
  [[nodiscard]] bool isValid(const Attempt& attempt) const;

  /// Path of the program that made the attempt, as seen inside; "" if it is no longer known.
  [[nodiscard]] std::string programOf(const Attempt& attempt) const;

  /// Whether the executable that made the attempt is a 32-bit one. `ldd` starts the 32-bit loader where there is one:
  /// that is not an attack.
  [[nodiscard]] bool isForeignProgram(const Attempt& attempt) const;

  /// Kills the process that made the attempt; if that fails, denies the call.
  void endProcess(const Attempt& attempt) const;

  /// No process with this filter is left.
  void close() { descriptor_.reset(); }

 private:
  /// Makes the call return `error`, or 0; flag CONTINUE: the kernel executes it. Nothing if the process died.
  void respond(const Attempt& attempt, int error, std::uint32_t flags) const;
  /// Counts an attempt that was let through, which has its own rate limit, instead of as a blocked one.
  void countShown();
  /// Counts the attempt under another limit than that of blocked calls.
  void countSeparately(unsigned& count, unsigned most);

  sys::Fd descriptor_;
  std::chrono::steady_clock::time_point slot_begin_;
  unsigned in_slot_ = 0, shown_in_slot_ = 0, made_in_slot_ = 0;
  std::optional<std::chrono::steady_clock::time_point> paused_until_;
};

}  // namespace caisson::supervise
