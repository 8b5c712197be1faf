// Requests in the audit log: each is recorded with the caller's name before it is carried out.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "audit/log.h"
#include "base/error.h"

namespace caisson::service {

struct RequestRecord {
  std::string caller, caller_id;  ///< the token's name and id; empty: not known
  std::string peer;               ///< address, or "unix"
  std::string method, path;
  std::string operation;  ///< of the route
  std::string sandbox;
  int status = 0;             ///< of a refusal
  std::string reason;         ///< of a refusal
  std::uint64_t further = 0;  ///< so many other requests that are not recorded one by one
};

class Trail {
 public:
  Trail() : writer_([this] { work(); }) {}
  ~Trail();
  Trail(const Trail&) = delete;
  Trail& operator=(const Trail&) = delete;

  /// Writes a record and waits for it. On an error the request must not be carried out.
  Result<void> record(const RequestRecord& request);
  /// record() for requests that need no token. Of those to one sandbox only kVisitsOfPeer of each peer, and kVisits in
  /// all, are recorded in each kVisitWindow; the others are counted, and the count is recorded at the end.
  Result<void> recordVisit(const RequestRecord& request);
  static constexpr std::size_t kVisitsOfPeer = 20, kVisits = 100;
  static constexpr std::chrono::seconds kVisitWindow{60};
  /// Records a refusal without waiting. A flood is summarised: refusals that do not fit into the queue are counted, and
  /// the count is recorded.
  void refuse(RequestRecord request);

 private:
  using Clock = std::chrono::steady_clock;
  /// Recent visits of one sandbox.
  struct Visits {
    Clock::time_point until;
    std::map<std::string, std::size_t> recorded;  ///< by peer
    std::size_t total = 0;                        ///< of `recorded`
    std::uint64_t further = 0;
  };
  void work();
  /// Removes the windows that have ended, or all; adds the records of their counts to `batch`.
  void endVisits(bool all, std::vector<RequestRecord>& batch);
  /// Starts the sync of what was written.
  void handOver();

  std::mutex log_mutex_;  ///< one Log must not be used by two threads
  std::optional<audit::Log> log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RequestRecord> refusals_;
  std::uint64_t dropped_ = 0;
  std::map<std::string, Visits> visits_;  ///< by sandbox
  bool owes_sync_ = false;                ///< records were written that may not be on the disk
  bool ending_ = false;
  std::thread writer_;
};

}  // namespace caisson::service
