#include "egress/records.h"

#include <gtest/gtest.h>

#include "egress/settings.h"

namespace caisson::egress {
namespace {

TEST(Records, RoundTrip) {
  Report report;
  report.kind = Report::Kind::request;
  report.request = {.operation = "connect",
                    .host = "example.org",
                    .port = 443,
                    .address = "93.184.0.2",
                    .allowed = true,
                    .rule = "r",
                    .remedy = "",
                    .sent = 7,
                    .received = 9,
                    .milliseconds = 1.5,
                    .count = 10,
                    .category = Category::metadata};
  const auto read = decodeReport(encode(report));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->request.object(), "example.org:443");
  EXPECT_EQ(read->request.received, 9U);
  EXPECT_DOUBLE_EQ(read->request.milliseconds, 1.5);
  EXPECT_EQ(read->request.category, Category::metadata);
  const auto totals = decodeReport(encode({Report::Kind::totals, {}, {}, {1, 2, 3, 4, 5}}));
  ASSERT_TRUE(totals);
  EXPECT_EQ(totals->totals.received, 5U);
  Report question{Report::Kind::question, {}, {}, {}};
  question.request.host = "a.example";
  question.request.port = 443;
  const auto asked = decodeReport(encode(question));
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->kind, Report::Kind::question);
  EXPECT_EQ(asked->request.object(), "a.example:443");
  Report whose{Report::Kind::whose, {}, {}, {}};
  whose.claim = {7, "127.0.0.1:40000", "198.18.0.1:443"};
  EXPECT_EQ(decodeReport(encode(whose)), whose);
}

TEST(Records, RecordedCountRoundTripsAndMalformedOnesAreRejected) {
  EXPECT_EQ(decodeRecorded(encodeRecorded(7)), 7U);
  EXPECT_FALSE(decodeRecorded(pack({"recorded"})));
  EXPECT_FALSE(decodeRecorded(pack({"recorded", "-1"})));
  EXPECT_FALSE(decodeRecorded(pack({"recorded", "1", "2"})));
  EXPECT_FALSE(decodeRecorded(kWantsTotals));
  EXPECT_FALSE(decodeChange(encodeRecorded(7)));
}

TEST(Records, OverflowRoundTripsForEveryCategory) {
  for (std::size_t i = 0; i < kCategories; ++i) {
    Report overflow{Report::Kind::overflow, {}, {}, {}};
    overflow.overflow = {i % 2 == 0, static_cast<Category>(i), 2001, 1'700'000'000'000, 1'700'000'000'999, 5, 6};
    EXPECT_EQ(decodeReport(encode(overflow)), overflow);
  }
}

TEST(Records, MalformedOverflowIsRejected) {
  const auto overflow = [](std::vector<std::string> texts) {
    texts.insert(texts.begin(), "overflow");
    return decodeReport(pack(texts));
  };
  EXPECT_TRUE(overflow({"0", "host", "1", "2", "3", "0", "0"}));
  EXPECT_FALSE(overflow({"no", "host", "1", "2", "3", "0", "0"}));
  EXPECT_FALSE(overflow({"0", "hosts", "1", "2", "3", "0", "0"}));
  EXPECT_FALSE(overflow({"0", "host", "-1", "2", "3", "0", "0"}));
  EXPECT_FALSE(overflow({"0", "host", "1", "9223372036854775807", "3", "0", "0"}));
  EXPECT_FALSE(overflow({"0", "host", "1", "2", "3", "0"}));
  EXPECT_FALSE(overflow({"0", "host", "1", "2", "3", "0", "0", "0"}));
}

TEST(Records, MalformedPacketIsDropped) {
  using namespace std::string_view_literals;
  for (const std::string_view packet :
       {""sv, "\x01"sv, "\xff\xff\xff\xff"sv, "\x05\x00\x00\x00rea"sv, "\x05\x00\x00\x00ready"sv}) {
    EXPECT_FALSE(decodeReport(packet));
  }
  EXPECT_FALSE(unpack(pack({"a", "b", "c"}), 2));
  EXPECT_FALSE(decodeReport(pack({"request", "too", "few"})));
}

TEST(Records, PacketWithAMalformedNumberIsDropped) {
  const auto question = [](const char* port) { return decodeReport(pack({"question", "a.example", port})); };
  EXPECT_TRUE(question("443"));
  for (const char* port : {"", "x", "443x", " 443", "-1", "+1", "0443", "65979", "99999999999999999999"}) {
    EXPECT_FALSE(question(port)) << port;
  }
  const auto request = [](const char* allowed, const char* microseconds) {
    return decodeReport(
        pack({"request", "connect", "a.example", "443", "", allowed, "", "", "0", "0", microseconds, "1", "host"}));
  };
  EXPECT_TRUE(request("1", "1500"));
  EXPECT_FALSE(request("yes", "1500"));
  EXPECT_FALSE(request("1", "18446744073709551615"));
  EXPECT_FALSE(
      decodeReport(pack({"request", "connect", "a.example", "443", "", "1", "", "", "0", "0", "1", "1", "somewhere"})));
  EXPECT_FALSE(decodeReport(pack({"totals", "1", "2", "3", "4", "many"})));
  Report endless{Report::Kind::request, {}, {}, {}};
  endless.request.milliseconds = 1e300;
  EXPECT_TRUE(decodeReport(encode(endless)));
}

TEST(Settings, RoundTrip) {
  Settings settings;
  settings.rules.allowed_hosts = {"a.example", ".b.example"};
  settings.rules.denied_ports = {"1-1023"};
  settings.dns_servers = {"192.0.2.1"};
  settings.upstream_proxy = "proxy.example:3128";
  settings.max_bytes = 1 << 20;
  settings.allow_missing_sni = true;
  settings.become = 70000;
  settings.for_session = settings.ask = settings.handed_connections = true;
  const auto read = decodeSettings(encode(settings));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, settings);
  EXPECT_FALSE(decodeSettings("x"));
  const std::string packet = encode(settings);
  for (const auto& [was, is] :
       {std::pair("70000", "4e9999"), std::pair("1048576", "104857b"), std::pair("120", "0x1")}) {
    std::string lie = packet;
    lie.replace(lie.find(was), std::string_view(was).size(), std::string(is).substr(0, std::string_view(was).size()));
    EXPECT_FALSE(decodeSettings(lie)) << was;
  }
  for (const auto kind : {Change::Kind::allow, Change::Kind::deny, Change::Kind::forget, Change::Kind::permit,
                          Change::Kind::refuse, Change::Kind::mine, Change::Kind::other})
    EXPECT_EQ(decodeChange(encode(Change{kind, "a.example"}))->kind, kind);
  EXPECT_FALSE(decodeChange(pack({"widen", "a"})));
}

}  // namespace
}  // namespace caisson::egress
