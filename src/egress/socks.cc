#include "egress/socks.h"

#include <algorithm>
#include <string_view>

namespace caisson::egress::socks {
namespace {

constexpr std::uint8_t kVersion = 5, kConnect = 1, kV4 = 1, kName = 3, kV6 = 4;

Request refuse(Reply reply, std::string why) {
  Request request;
  request.step.kind = Step::Kind::bad;
  request.reply = reply;
  request.why = std::move(why);
  return request;
}

}  // namespace

Step parseGreeting(std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return {};
  if (bytes[0] != kVersion) return {Step::Kind::bad, 0};
  if (bytes.size() < 2) return {};
  const std::size_t count = bytes[1];
  if (bytes.size() < 2 + count) return {};
  const auto methods = bytes.subspan(2, count);
  const bool open = std::ranges::find(methods, 0) != methods.end();
  return {open ? Step::Kind::done : Step::Kind::bad, 2 + count};
}

Request parseRequest(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 5) return {};
  if (bytes[0] != kVersion || bytes[2] != 0) return refuse(Reply::failure, "it is not a SOCKS 5 request");
  std::size_t size = 0;
  switch (bytes[3]) {
    case kV4: size = 4 + 4 + 2; break;
    case kV6: size = 4 + 16 + 2; break;
    case kName: size = 4 + 1 + bytes[4] + std::size_t{2}; break;
    default: return refuse(Reply::no_such_address_type, "unknown type of address");
  }
  if (bytes.size() < size) return {};
  Request request;
  request.step = {Step::Kind::done, size};
  request.target.port = static_cast<std::uint16_t>((bytes[size - 2] << 8) | bytes[size - 1]);
  if (bytes[3] == kV4) {
    std::uint32_t value = 0;
    for (std::size_t i = 4; i < 8; ++i) value = value << 8 | bytes[i];
    request.target.host.address = Address::v4(value);
  } else if (bytes[3] == kV6) {
    request.target.host.address = Address::v6(bytes.subspan(4).first<16>());
  } else {
    const std::string_view name(reinterpret_cast<const char*>(bytes.data()) + 5, bytes[4]);
    auto host = canonicalHost(name);
    if (!host) return refuse(Reply::not_allowed, "the host name is refused: " + std::string(host.error()));
    request.target.host = std::move(*host);
  }
  if (bytes[1] != kConnect) {
    Request refused = refuse(Reply::no_such_command, bytes[1] == 3 ? "UDP ASSOCIATE" : "only CONNECT is served");
    refused.target = request.target;
    return refused;
  }
  if (request.target.port == 0) return refuse(Reply::not_allowed, "port 0");
  return request;
}

std::vector<std::uint8_t> buildReply(Reply reply) {
  return {kVersion, static_cast<std::uint8_t>(reply), 0, kV4, 0, 0, 0, 0, 0, 0};
}

}  // namespace caisson::egress::socks
