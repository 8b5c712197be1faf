// What the user denied in the last minutes. A model that repeats a denied request gets the same answer without another
// question: otherwise it could ask until the user gives in.
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace caisson::mcp {

class DeniedRequests {
 public:
  using Clock = std::chrono::steady_clock;

  /// How long a request is not asked about again.
  static constexpr std::chrono::seconds kKept{180};
  /// Beyond this the oldest is forgotten.
  static constexpr std::size_t kMax = 1024;

  void add(const std::string& request, Clock::time_point now = Clock::now());
  /// How long the user is not asked about this request again; nothing if they may be.
  std::optional<std::chrono::seconds> left(const std::string& request, Clock::time_point now = Clock::now());

 private:
  std::mutex mutex_;
  std::map<std::string, Clock::time_point> until_;  ///< by request
};

}  // namespace caisson::mcp
