// Wakes readers when something changes in a directory (inotify), so that they need not look again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "sys/fd.h"

namespace caisson::service {

/// One inotify instance for all: a user has few of them. Thread-safe. Each watch reports one change and is gone then,
/// so a program that changes its files in a loop cannot keep the server busy: the reader decides when it watches again.
class ChangeWatcher {
 public:
  ChangeWatcher();
  ~ChangeWatcher();
  ChangeWatcher(const ChangeWatcher&) = delete;
  ChangeWatcher& operator=(const ChangeWatcher&) = delete;

  /// Calls `wake` from a thread, once, after the next change of an entry of this directory. Replaces an earlier watch
  /// of the same reader on it. False if it cannot be watched, for example if the user has too many watches.
  bool watch(const void* reader, int directory, const std::function<void()>& wake);
  /// Ends all watches of this reader.
  void forget(const void* reader);

 private:
  using Readers = std::map<const void*, std::function<void()>>;

  void work();
  void dispatch(int number);

  sys::Fd inotify_, stop_;
  std::mutex mutex_;
  std::map<int, Readers> watches_;  ///< by their number
  std::thread thread_;
};

}  // namespace caisson::service
