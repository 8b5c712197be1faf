// Parses a TLS client hello: the server name it requests. Reassembles any number of records, since splitting the name
// over two records is an old way to bypass such checks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace caisson::egress {

struct ClientHello {
  enum class Kind : std::uint8_t {
    more,  ///< incomplete; wait for more bytes
    tls,   ///< complete
    none,  ///< not TLS at all
    bad,   ///< begins like TLS, but is malformed or too large
  };

  Kind kind = Kind::more;
  bool has_name = false;   ///< it names a server
  std::string name;        ///< raw bytes of the server name, not canonical yet
  bool encrypted = false;  ///< has an encrypted inner hello, whose name is not visible
  std::string_view flaw;   ///< why it is bad
};

/// Maximum size of a hello.
inline constexpr std::size_t kHelloBytes = 16 * 1024;

/// `bytes`: all that the client has sent so far.
ClientHello parseClientHello(std::span<const std::uint8_t> bytes);

}  // namespace caisson::egress
