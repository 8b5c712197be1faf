// The state of a call that waits for input, as it travels through the client: signed, bound to the request it belongs
// to, and of limited age. The client can neither read sense into it that we did not mean nor change or transplant it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/json.h"

namespace caisson::mcp {

class RequestState {
 public:
  using Clock = std::chrono::steady_clock;
  /// A fresh key: what another process signed is refused.
  RequestState();

  /// A token for `state` of the request `method` with `params`.
  [[nodiscard]] std::string seal(std::string_view state, const std::string& method, const Json& params) const;
  /// The state, if the token is ours, belongs to this request and is not older than kLifetime.
  [[nodiscard]] std::optional<std::string> open(std::string_view token, const std::string& method, const Json& params,
                                                Clock::time_point now = Clock::now()) const;

  /// A person must have time to think; an approval must not be redeemed the next day.
  static constexpr std::chrono::minutes kLifetime{15};

 private:
  [[nodiscard]] std::string sign(std::string_view text) const;

  std::array<std::uint8_t, 64> key_{};
};

}  // namespace caisson::mcp
