// Idempotency keys: a repeated request gets the first one's response, also after a crash of the server.
//
// One file per key in CAISSON_HOME/server/idempotency, named by the hash of caller and key, so tenants cannot meet.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
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
  struct Request {
    std::string text;     ///< identifies what is asked for: operation, path and body
    std::string sandbox;  ///< the response is removed with it; empty: none
    std::string note;     ///< stored with the key
  };
  /// EUSERS if the caller has too many stored.
  Result<Begin> begin(const Principal& caller, const std::string& key, const Request& request);
  /// Stores the response; only that there was one if it is too large. Without one, the key is free again: nothing was
  /// done.
  void finish(const Principal& caller, const std::string& key, const std::optional<StoredResponse>& response);
  /// A sandbox has ended: removes the responses about it.
  void forget(const std::string& sandbox);
  /// Removes the responses about all sandboxes that do not exist.
  void forgetUnless(const std::function<bool(const std::string& sandbox)>& exists);

 private:
  struct Entry {
    std::string caller, sandbox;
    std::uint64_t bytes = 0;
    bool running = false;
    bool forgotten = false;  ///< while it ran
  };
  struct Usage {
    std::size_t keys = 0;
    std::uint64_t bytes = 0;
  };
  explicit IdempotencyKeys(sys::RootDir directory) : directory_(std::move(directory)) {}
  /// Finds the keys of an earlier server.
  void load();
  /// Writes the file of a key, and counts it.
  Result<void> write(const std::string& file, const std::string& text);
  void remove(const std::string& file);
  /// Removes keys that are older than a day, at most once in ten minutes.
  void prune();

  std::mutex mutex_;
  sys::RootDir directory_;
  std::map<std::string, Entry> entries_;  ///< by file
  std::map<std::string, Usage> usage_;    ///< by caller
  std::optional<std::int64_t> pruned_;    ///< on the clock since boot
};

}  // namespace caisson::service
