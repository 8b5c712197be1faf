// A second thread of pid 1, for the two steps of a launch that mostly wait in the kernel.
//
// Making a network namespace and detaching the old root take a third of a launch, and depend on nothing else, so they
// run in parallel. The payload is not executed before it is in the new network namespace and the old root is
// unreachable. A failure in the thread is reported like any other and ends pid 1, and thus the sandbox.
#pragma once

#include <cstdint>

#include "isolation/block.h"

namespace caisson::isolation {

/// /proc/sys of the host's proc, as a descriptor; negative: there is none.
int openHostSettings();

class Helper {
 public:
  explicit Helper(const Block& block) : block_(block) {}
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;

  /// Starts the thread, which makes the network namespace. Makes it synchronously if no thread can be created (a low
  /// process limit).
  void start();
  /// Waits for the network namespace and its limits, and enters it.
  void joinNetwork();
  /// Whether useSettings() must be called, once, before joinNetwork().
  [[nodiscard]] bool needsSettings() const { return block_.own_network && settings_ == kPending; }
  /// Makes the thread set limits of the network namespace below this /proc/sys, where `net` shows the reader's
  /// namespace. joinNetwork() closes the descriptor. Negative: there is none.
  void useSettings(int settings);
  /// Makes the thread detach the old root, which pivot_root left on top of the new one; without a thread, detaches it.
  void detachOldRoot();
  /// For the payload's process: returns when no path leads to the old root; exits if the thread ended without that.
  void waitUntilOldRootIsGone() const;
  /// Returns when the thread has exited; after that its stack and this object may be reused.
  void waitForEnd() const;

 private:
  static int entry(void* self);
  /// Makes the namespace with its loopback and sockets, and publishes it in network_.
  void makeNetwork();
  /// Unmounts the old root.
  void detach() const;

  const Block& block_;
  bool threaded_ = false;                  ///< the thread was created
  mutable std::int32_t thread_ = 0;        ///< its id; on exit the kernel clears it and wakes waiters
  std::int32_t network_ = kPending;        ///< descriptor of the namespace
  std::int32_t settings_ = kPending;       ///< descriptor of /proc/sys, or kNoSettings
  std::int32_t settings_used_ = kPending;  ///< any other value: the limits are set
  std::int32_t old_root_ = kPending;       ///< any other value: pivot_root is done

  static constexpr std::int32_t kPending = -1;
  static constexpr std::int32_t kNoSettings = -2;
};

}  // namespace caisson::isolation
