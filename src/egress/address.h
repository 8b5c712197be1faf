// An internet address as a value, and which addresses no sandbox ever reaches (SPEC N4).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace caisson::egress {

/// Sixteen bytes; IPv4 is kept in its mapped form (::ffff:a.b.c.d), so an address has exactly one representation and
/// the mapped notation can't be a second way to the same host.
class Address {
 public:
  Address() = default;
  static Address v4(std::uint32_t host_order);
  static Address v6(std::span<const std::uint8_t, 16> bytes);
  /// Dotted quad or RFC 4291 text, nothing else: no zone, no brackets, no octal.
  static std::optional<Address> parse(std::string_view text);

  [[nodiscard]] bool isV4() const;
  [[nodiscard]] std::uint32_t v4Value() const;  ///< host order; only if isV4()
  [[nodiscard]] const std::array<std::uint8_t, 16>& bytes() const { return bytes_; }
  [[nodiscard]] std::string text() const;

  auto operator<=>(const Address&) const = default;

 private:
  std::array<std::uint8_t, 16> bytes_{};
};

/// Why nothing may connect there, whatever a policy allows: "private", "loopback", "cloud metadata" ... or empty for
/// an ordinary public address. Forms that carry an IPv4 address inside are judged by that one as well.
std::string_view blockedRange(const Address& address);

/// Of the blocked ones, those that an owner may open for a named host: private networks and loopback, never cloud
/// metadata, multicast or reserved space.
bool mayBeExcepted(std::string_view range);

}  // namespace caisson::egress
