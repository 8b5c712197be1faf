// SOCKS version 5 (RFC 1928): CONNECT without authentication, by name or address. Anything else is answered with the
// protocol's own refusal.
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
  std::size_t used = 0;  ///< bytes of the input that belong to this step
};

/// The client's greeting; `done` when "no authentication" is among its methods.
Step parseGreeting(std::span<const std::uint8_t> bytes);

struct Request {
  Step step;
  Reply reply = Reply::granted;  ///< why it is bad, as the protocol says it
  HostPort target;
  std::string why;  ///< the same for people
};

Request parseRequest(std::span<const std::uint8_t> bytes);

std::vector<std::uint8_t> buildReply(Reply reply);

}  // namespace caisson::egress::socks
