#include "broker/settings.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/broker_messages.h"

namespace caisson::broker {
namespace {

Settings example() {
  Settings settings;
  settings.lifetime_seconds = 90;
  settings.max_connections = 7;
  settings.become = 0x70010001;
  settings.landlock_abi = 4;
  settings.authorities = "PEM";
  settings.credentials.push_back({"api", "api.example.org:443", "Authorization", "Bearer {secret}", "s3cr3t", ""});
  return settings;
}

TEST(BrokerSettings, RoundTrip) {
  const SecretBytes packet = encode(example());
  const auto settings = decodeSettings(packet.text());
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->lifetime_seconds, 90U);
  EXPECT_EQ(settings->become, 0x70010001U);
  ASSERT_EQ(settings->credentials.size(), 1U);
  EXPECT_EQ(settings->credentials[0].secret, "s3cr3t");
  EXPECT_EQ(settings->credentials[0].target, "api.example.org:443");
}

TEST(BrokerSettings, TruncatedSettingsAreRejected) {
  const SecretBytes packet = encode(example());
  for (std::size_t size = 0; size < packet.size(); ++size) {
    const auto settings = decodeSettings(packet.text().substr(0, size));
    EXPECT_TRUE(!settings || settings->credentials.empty()) << size;
  }
}

TEST(BrokerSettings, MessagesAreLengthPrefixed) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_TRUE(sendCounted(ends[0], encode(Answer{true, "certificate"})));
  const auto bytes = receiveCounted(ends[1]);
  ASSERT_TRUE(bytes);
  const auto answer = decodeAnswer(bytes->text());
  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->ready);
  EXPECT_EQ(answer->text, "certificate");
  ::close(ends[0]);
  EXPECT_FALSE(receiveCounted(ends[1]));
  ::close(ends[1]);
}

TEST(BrokerMessages, RoundTrip) {
  EXPECT_EQ(egress::decodeHandOver(egress::encodeHandOver("api.example.org:443")), "api.example.org:443");
  const auto report = egress::decodeBrokerReport(egress::encode(egress::BrokerReport{true, "a:443", "http", "api"}));
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->used);
  EXPECT_EQ(report->text, "api");
  EXPECT_FALSE(egress::decodeBrokerReport("nonsense"));
}

}  // namespace
}  // namespace caisson::broker
