// The state of a call that waits for input, sent through the client: signed, bound to its request, and of limited age.
// The client can neither change it nor use it for another request.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/protocol/json.h"

namespace caisson::mcp {

class RequestState {
 public:
  using Clock = std::chrono::steady_clock;
  /// Creates a new key: tokens of other processes are rejected.
  RequestState();

  /// Creates a token for `state` of the request `method` with `params`.
  [[nodiscard]] std::string seal(std::string_view state, const std::string& method, const Json& params) const;
  /// Returns the state if the token is ours, belongs to this request and is not older than kLifetime.
  [[nodiscard]] std::optional<std::string> open(std::string_view token, const std::string& method, const Json& params,
                                                Clock::time_point now = Clock::now()) const;

  /// Long enough for a user to decide, short enough that an approval cannot be used the next day.
  static constexpr std::chrono::minutes kLifetime{15};

 private:
  [[nodiscard]] std::string sign(std::string_view text) const;

  std::array<std::uint8_t, 64> key_{};
};

}  // namespace caisson::mcp
