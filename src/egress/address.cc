#include "egress/address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace caisson::egress {
namespace {

struct V4Range {
  std::uint32_t network;
  int bits;
  std::string_view name;
};

constexpr std::uint32_t quad(unsigned a, unsigned b, unsigned c, unsigned d) {
  return (a << 24) | (b << 16) | (c << 8) | d;
}

// The first match gives the reason, so single hosts come before their networks.
constexpr V4Range kV4Ranges[] = {
    {quad(169, 254, 169, 254), 32, "cloud metadata"},
    {quad(169, 254, 170, 2), 32, "cloud metadata"},
    {quad(100, 100, 100, 200), 32, "cloud metadata"},
    {quad(168, 63, 129, 16), 32, "cloud metadata"},
    {quad(192, 0, 0, 192), 32, "cloud metadata"},
    {quad(0, 0, 0, 0), 8, "reserved"},
    {quad(10, 0, 0, 0), 8, "private"},
    {quad(100, 64, 0, 0), 10, "carrier-grade NAT"},
    {quad(127, 0, 0, 0), 8, "loopback"},
    {quad(169, 254, 0, 0), 16, "link-local"},
    {quad(172, 16, 0, 0), 12, "private"},
    {quad(192, 0, 0, 0), 24, "reserved"},
    {quad(192, 0, 2, 0), 24, "documentation"},
    {quad(192, 88, 99, 0), 24, "reserved"},
    {quad(192, 168, 0, 0), 16, "private"},
    {quad(198, 18, 0, 0), 15, "benchmark"},
    {quad(198, 51, 100, 0), 24, "documentation"},
    {quad(203, 0, 113, 0), 24, "documentation"},
    {quad(224, 0, 0, 0), 4, "multicast"},
    {quad(240, 0, 0, 0), 4, "reserved"},
};

struct V6Range {
  std::array<std::uint8_t, 16> network;
  int bits;
  std::string_view name;
};

constexpr V6Range kV6Ranges[] = {
    {{0xfd, 0x00, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}, 128, "cloud metadata"},
    {{0xfd, 0x20, 0x00, 0xce, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x02, 0x54}, 128, "cloud metadata"},
    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 128, "loopback"},
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, "private"},  // local-use NAT64
    {{0xfc}, 7, "private"},
    {{0xfe, 0x80}, 10, "link-local"},
    {{0xfe, 0xc0}, 10, "private"},
    {{0xff}, 8, "multicast"},
    {{0x20, 0x01, 0x00, 0x00}, 32, "Teredo"},
    {{0x20, 0x01, 0x00, 0x02, 0x00, 0x00}, 48, "benchmark"},
    {{0x20, 0x01, 0x00, 0x00}, 23, "reserved"},  // protocol assignments, including ORCHID
    {{0x20, 0x01, 0x0d, 0xb8}, 32, "documentation"},
    {{0x3f, 0xff, 0x00}, 20, "documentation"},
};

constexpr std::array<std::uint8_t, 16> kNat64{0x00, 0x64, 0xff, 0x9b};

bool within(const std::array<std::uint8_t, 16>& address, const std::array<std::uint8_t, 16>& network, int bits) {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (std::memcmp(address.data(), network.data(), whole) != 0) return false;
  if (bits % 8 == 0) return true;
  const auto mask = static_cast<std::uint8_t>(0xff << (8 - bits % 8));
  return (address[whole] & mask) == (network[whole] & mask);
}

std::string_view blockedV4(std::uint32_t value) {
  for (const V4Range& range : kV4Ranges) {
    const std::uint32_t mask = ~0U << (32 - range.bits);
    if ((value & mask) == range.network) return range.name;
  }
  return {};
}

std::uint32_t embedded(const std::array<std::uint8_t, 16>& bytes, std::size_t at) {
  return quad(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
}

std::string_view blockedV6(const std::array<std::uint8_t, 16>& bytes) {
  for (const V6Range& range : kV6Ranges) {
    if (within(bytes, range.network, range.bits)) return range.name;
  }
  if (within(bytes, kNat64, 96)) return blockedV4(embedded(bytes, 12));
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return blockedV4(embedded(bytes, 2));  // 6to4
  if ((bytes[0] & 0xe0) != 0x20) return "reserved";                                // only 2000::/3 is global unicast
  return {};
}

}  // namespace

Address Address::v4(std::uint32_t host_order) {
  Address address;
  address.bytes_[10] = address.bytes_[11] = 0xff;
  for (std::size_t i = 0; i < 4; ++i) {
    address.bytes_[12 + i] = static_cast<std::uint8_t>(host_order >> (24 - 8 * i));
  }
  return address;
}

Address Address::v6(std::span<const std::uint8_t, 16> bytes) {
  Address address;
  std::copy(bytes.begin(), bytes.end(), address.bytes_.begin());
  return address;
}

std::optional<Address> Address::parse(std::string_view text) {
  if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) return std::nullopt;
  char terminated[INET6_ADDRSTRLEN] = {};
  text.copy(terminated, text.size());
  in_addr four{};
  if (::inet_pton(AF_INET, terminated, &four) == 1) return v4(ntohl(four.s_addr));
  std::array<std::uint8_t, 16> six{};
  if (::inet_pton(AF_INET6, terminated, six.data()) == 1) return v6(six);
  return std::nullopt;
}

bool Address::isV4() const {
  return std::all_of(bytes_.begin(), bytes_.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
         bytes_[10] == 0xff && bytes_[11] == 0xff;
}

std::uint32_t Address::v4Value() const { return embedded(bytes_, 12); }

std::string Address::text() const {
  char room[INET6_ADDRSTRLEN] = {};
  if (isV4()) {
    ::inet_ntop(AF_INET, bytes_.data() + 12, room, sizeof(room));
  } else {
    ::inet_ntop(AF_INET6, bytes_.data(), room, sizeof(room));
  }
  return room;
}

std::string_view blockedRange(const Address& address) {
  return address.isV4() ? blockedV4(address.v4Value()) : blockedV6(address.bytes());
}

std::optional<Address> embeddedV4(const Address& address) {
  const std::array<std::uint8_t, 16>& bytes = address.bytes();
  if (within(bytes, kNat64, 96)) return Address::v4(embedded(bytes, 12));
  if (bytes[0] == 0x20 && bytes[1] == 0x02) return Address::v4(embedded(bytes, 2));
  return std::nullopt;
}

bool mayBeExcepted(std::string_view range) {
  return range == "private" || range == "carrier-grade NAT" || range == "loopback" || range == "link-local" ||
         range == "benchmark" || range == "documentation" || range == "this host";
}

}  // namespace caisson::egress
