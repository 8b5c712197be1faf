#include "egress/socks.h"

#include <gtest/gtest.h>

namespace caisson::egress::socks {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes named(std::string_view name, std::uint16_t port, std::uint8_t command = 1) {
  Bytes bytes;
  for (const std::size_t byte : {std::size_t{5}, std::size_t{command}, std::size_t{0}, std::size_t{3}, name.size()}) {
    bytes.push_back(static_cast<std::uint8_t>(byte));
  }
  bytes.insert(bytes.end(), name.begin(), name.end());
  bytes.push_back(static_cast<std::uint8_t>(port >> 8));
  bytes.push_back(static_cast<std::uint8_t>(port));
  return bytes;
}

TEST(Socks, TakesANameOrAnAddress) {
  const Request by_name = parseRequest(named("Example.ORG", 443));
  EXPECT_EQ(by_name.step.kind, Step::Kind::done);
  EXPECT_EQ(by_name.target.host.name, "example.org");
  EXPECT_EQ(by_name.target.port, 443);
  const Request by_address = parseRequest(Bytes{5, 1, 0, 1, 192, 0, 2, 1, 0, 80});
  EXPECT_EQ(by_address.target.host.text(), "192.0.2.1");
  Bytes six{5, 1, 0, 4};
  six.resize(20, 0);
  six[19] = 1;
  six.insert(six.end(), {0, 80});
  EXPECT_EQ(parseRequest(six).target.host.text(), "::1");
}

TEST(Socks, WaitsForTheRest) {
  const Bytes whole = named("example.org", 443);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_EQ(parseRequest(std::span(whole).first(size)).step.kind, Step::Kind::more) << size;
  }
  EXPECT_EQ(parseGreeting(Bytes{5}).kind, Step::Kind::more);
  EXPECT_EQ(parseGreeting(Bytes{5, 2, 2}).kind, Step::Kind::more);
}

TEST(Socks, ANameWithNulIsRefused) {
  using namespace std::string_view_literals;
  const Request request = parseRequest(named("example.org\0.evil.test"sv, 443));
  EXPECT_EQ(request.step.kind, Step::Kind::bad);
  EXPECT_EQ(request.reply, Reply::not_allowed);
}

TEST(Socks, ANameThatIsAnAddressIsTreatedAsOne) {
  EXPECT_TRUE(parseRequest(named("0x7f000001", 80)).target.host.address);
}

TEST(Socks, UdpAssociateBindAndOtherVersionsAreRefused) {
  EXPECT_EQ(parseRequest(named("example.org", 443, 3)).reply, Reply::no_such_command);
  EXPECT_EQ(parseRequest(named("example.org", 443, 2)).reply, Reply::no_such_command);
  EXPECT_EQ(parseGreeting(Bytes{4, 1, 0}).kind, Step::Kind::bad);
  EXPECT_EQ(parseGreeting(Bytes{5, 1, 2}).kind, Step::Kind::bad);  // offers only password authentication
  EXPECT_EQ(parseGreeting(Bytes{5, 2, 2, 0}).kind, Step::Kind::done);
  EXPECT_EQ(parseRequest(named("example.org", 0)).step.kind, Step::Kind::bad);
}

}  // namespace
}  // namespace caisson::egress::socks
