// Idempotency keys: a repeated request gets the first one's response, also after a crash of the server.
//
// One file per key in CAISSON_HOME/server/idempotency, named by the hash of caller and key, so tenants cannot meet.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"
#include "service/principal.h"
#include "sys/root_dir.h"

namespace caisson::service {

struct StoredResponse {
  int status = 200;
  std::string body;
};

class IdempotencyKeys {
 public:
  static Result<std::unique_ptr<IdempotencyKeys>> open();

  enum class State : std::uint8_t {
    fresh,        ///< carry the request out, then finish()
    replay,       ///< `response` is the first one's
    conflict,     ///< the key was used for another request
    in_progress,  ///< the first request is being carried out
    interrupted,  ///< the first request began, and the server ended before it finished
  };
  struct Begin {
    State state = State::fresh;
    StoredResponse response;
    std::string note;  ///< what begin() of the interrupted request stored
  };
  /// EUSERS if the caller stored too many today. `request` identifies what is asked for: operation, path and body.
  /// `note` is stored with the key.
  Result<Begin> begin(const Principal& caller, const std::string& key, const std::string& request,
                      const std::string& note);
  /// Stores the response. Without one, the key is free again: nothing was done.
  void finish(const Principal& caller, const std::string& key, const std::optional<StoredResponse>& response);

 private:
  explicit IdempotencyKeys(sys::RootDir directory) : directory_(std::move(directory)) {}
  /// Removes keys that are older than a day, at most once in ten minutes.
  void prune();

  std::mutex mutex_;
  sys::RootDir directory_;
  std::set<std::string> running_;
  std::map<std::string, std::size_t> stored_;  ///< by caller, since the last day began
  std::int64_t day_ = 0;
  std::optional<std::int64_t> pruned_;  ///< on the clock since boot
};

}  // namespace caisson::service
