// A second thread of pid 1, for the two steps of a launch that mostly wait inside the kernel.
//
// Making a network namespace and detaching the old root take a third of a launch, and neither needs anything from
// what happens meanwhile. They are done beside the rest; the payload's program is not executed before it is in the one
// and the other is out of reach.
// A failure in the thread is reported like any other and ends pid 1, and everything with it.
#pragma once

#include <cstdint>

#include "isolation/block.h"

namespace caisson::isolation {

class Helper {
 public:
  explicit Helper(const Block& block) : block_(block) {}
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  /// Begins to make the network namespace. Where no thread can be had (a tight limit on processes), does it here.
  void start();
  /// Enters the network namespace. Waits for it.
  void joinNetwork();
  /// Has the old root detached, which pivot_root left on top of the new one.
  void detachOldRoot();
  /// For the payload's process: returns when no path leads to the old root any more.
  void waitUntilOldRootIsGone() const;
  /// Returns when the thread has run its last instruction; from then on its stack and this object are free.
  void waitForEnd() const;

 private:
  static int entry(void* self);
  void makeNetwork();
  void detach() const;

  const Block& block_;
  bool threaded_ = false;
  int settings_ = -1;  ///< /proc/sys of the host's proc; what is below `net` is of the namespace that looks
  mutable std::int32_t thread_ = 0;   ///< its id; the kernel clears it at its end and wakes who waits
  std::int32_t network_ = kPending;   ///< descriptor of the namespace
  std::int32_t old_root_ = kPending;  ///< anything else: pivot_root is done

  static constexpr std::int32_t kPending = -1;
};

}  // namespace caisson::isolation
