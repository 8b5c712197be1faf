// SOCKS version 5 (RFC 1928): CONNECT without authentication, by name or address. Anything else gets the protocol's
// error reply.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <vector>

#include "egress/host_name.h"

namespace caisson::egress::socks {

enum class Reply : std::uint8_t {
  granted = 0,
  failure = 1,
  not_allowed = 2,
  network_unreachable = 3,
  host_unreachable = 4,
  refused = 5,
  no_such_command = 7,
  no_such_address_type = 8,
};

struct Step {
  enum class Kind : std::uint8_t { more, done, bad };

  Kind kind = Kind::more;
  std::size_t used = 0;  ///< bytes of the input consumed by this step
};

/// The client's greeting; `done` if it offers "no authentication".
Step parseGreeting(std::span<const std::uint8_t> bytes);

struct Request {
  Step step;
  Reply reply = Reply::granted;  ///< the protocol's error code if it is bad
  HostPort target;
  std::string why;  ///< the reason as text
};

/// The request that follows the greeting.
Request parseRequest(std::span<const std::uint8_t> bytes);

std::vector<std::uint8_t> buildReply(Reply reply);

}  // namespace caisson::egress::socks
