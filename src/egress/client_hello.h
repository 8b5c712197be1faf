// The first message of a TLS client: which server it asks for by name. Reassembled over any number of records, since a
// name cut in two is the oldest way around such a check.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace caisson::egress {

struct ClientHello {
  enum class Kind : std::uint8_t {
    more,  ///< a beginning of one; wait for further bytes
    tls,   ///< complete
    none,  ///< not TLS at all
    bad,   ///< begins like TLS, but is malformed or too large
  };

  Kind kind = Kind::more;
  bool has_name = false;
  std::string name;        ///< raw bytes of the server name: still to be made canonical
  bool encrypted = false;  ///< carries an encrypted inner hello, whose name nobody can see
  std::string_view flaw;   ///< what is bad
};

/// The most bytes a hello may take before it is refused.
inline constexpr std::size_t kHelloBytes = 16 * 1024;

ClientHello parseClientHello(std::span<const std::uint8_t> bytes);

}  // namespace caisson::egress
