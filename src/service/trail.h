// Requests in the audit log: each is recorded with the caller's name before it is carried out.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "audit/log.h"
#include "base/error.h"

namespace caisson::service {

struct RequestRecord {
  std::string caller, caller_id;  ///< the token's name and id; empty: not known
  std::string peer;               ///< address, or "unix"
  std::string method, path;
  std::string operation;  ///< of the route
  std::string sandbox;
  int status = 0;      ///< of a refusal
  std::string reason;  ///< of a refusal
};

class Trail {
 public:
  Trail() : writer_([this] { work(); }) {}
  ~Trail();
  Trail(const Trail&) = delete;
  Trail& operator=(const Trail&) = delete;

  /// Writes a record and waits for it. On an error the request must not be carried out.
  Result<void> record(const RequestRecord& request);
  /// Records a refusal without waiting. A flood is summarised: refusals that do not fit into the queue are counted, and
  /// the count is recorded.
  void refuse(RequestRecord request);

 private:
  void work();
  /// Starts the sync of what was written.
  void handOver();

  std::mutex log_mutex_;  ///< one Log must not be used by two threads
  std::optional<audit::Log> log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RequestRecord> refusals_;
  std::uint64_t dropped_ = 0;
  bool owes_sync_ = false;  ///< records were written that may not be on the disk
  bool ending_ = false;
  std::thread writer_;
};

}  // namespace caisson::service
