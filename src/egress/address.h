// An internet address as a value, and the address ranges that no sandbox may reach.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace caisson::egress {

/// Sixteen bytes. IPv4 is stored in mapped form (::ffff:a.b.c.d), so each address has exactly one representation and
/// the mapped notation cannot bypass a rule.
class Address {
 public:
  Address() = default;
  static Address v4(std::uint32_t host_order);
  static Address v6(std::span<const std::uint8_t, 16> bytes);
  /// Parses a dotted quad or RFC 4291 text only: no zone, no brackets, no octal.
  static std::optional<Address> parse(std::string_view text);

  [[nodiscard]] bool isV4() const;
  [[nodiscard]] std::uint32_t v4Value() const;  ///< host order; only if isV4()
  [[nodiscard]] const std::array<std::uint8_t, 16>& bytes() const { return bytes_; }
  [[nodiscard]] std::string text() const;

  auto operator<=>(const Address&) const = default;

 private:
  std::array<std::uint8_t, 16> bytes_{};
};

/// The blocked range that holds this address: "private", "loopback", "cloud metadata" ...; empty for a public address,
/// also if it is one of this host. IPv6 forms that embed an IPv4 address are checked by that one as well.
std::string_view blockedRange(const Address& address);

/// The IPv4 address that a NAT64 or 6to4 address leads to.
std::optional<Address> embeddedV4(const Address& address);

/// Whether the owner may allow hosts in this blocked range by network.private_hosts: private networks, loopback,
/// link-local, this host and similar; never cloud metadata, multicast or reserved space.
bool mayBeExcepted(std::string_view range);

}  // namespace caisson::egress
