// The canonical form in which host names and addresses are compared.
//
// A hostile program chooses the bytes of a name: in a DNS query, a CONNECT target, a SOCKS request, a Host field, a TLS
// server name. All go through canonicalHost first, so that two parsers cannot disagree. It handles case, a trailing
// dot, addresses in octal, hexadecimal or as one number, invalid internationalised names, NUL and control characters.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "egress/address.h"

namespace caisson::egress {

struct Host {
  std::string name;                ///< lower case, no trailing dot; empty for an address
  std::optional<Address> address;  ///< set if the text was an address in any notation

  [[nodiscard]] std::string text() const { return address ? address->text() : name; }
  bool operator==(const Host&) const = default;
};

/// The canonical form, or the reason why there is none.
std::expected<Host, std::string_view> canonicalHost(std::string_view raw);

struct HostPort {
  Host host;
  std::uint16_t port = 0;

  /// "name:port" or "[v6]:port": a pattern that matches exactly this.
  [[nodiscard]] std::string text() const;
  bool operator==(const HostPort&) const = default;
};

/// "host", "host:port", "[v6]" or "[v6]:port". `default_port` applies without a port; 0: a port is required.
std::expected<HostPort, std::string_view> canonicalAuthority(std::string_view raw, std::uint16_t default_port);

/// A decimal port, 1 to 65535, without sign, blanks or leading zeros.
std::optional<std::uint16_t> parsePort(std::string_view text);

/// Names that refer to this machine or its local network: localhost, *.local, *.internal.
bool isLocalName(std::string_view canonical);

/// Whether a cloud provider offers its metadata service under this name.
bool isMetadataName(std::string_view canonical);

}  // namespace caisson::egress
