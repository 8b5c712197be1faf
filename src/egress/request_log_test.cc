#include "egress/request_log.h"

#include <gtest/gtest.h>

namespace caisson::egress {
namespace {

using Time = RequestLog::WallClock::time_point;
using std::chrono::milliseconds;

Request refusal(std::string host, std::uint16_t port = 80) {
  Request request;
  request.operation = "connect";
  request.host = std::move(host);
  request.port = port;
  request.category = categoryOf(request, {});
  return request;
}

std::string nameOf(int i) { return "n" + std::to_string(i) + ".test"; }

TEST(RequestLog, RecordsAndOverflowAddUpToAllRefusals) {
  RequestLog log;
  std::uint64_t records = 0;
  for (int i = 0; i < 3000; ++i) records += log.add(refusal(nameOf(i)), Time(milliseconds(1000 + i))) ? 1 : 0;
  EXPECT_EQ(records, RequestLog::kMaxKinds);
  ASSERT_TRUE(log.hasOverflow());
  const auto overflows = log.takeOverflows();
  ASSERT_EQ(overflows.size(), 1U);
  EXPECT_EQ(overflows[0].category, Category::host);
  EXPECT_FALSE(overflows[0].allowed);
  EXPECT_EQ(overflows[0].count + records, 3000U);
  EXPECT_EQ(overflows[0].first_ms, 2000U);
  EXPECT_EQ(overflows[0].last_ms, 3999U);
  EXPECT_FALSE(log.hasOverflow());
  EXPECT_TRUE(log.takeOverflows().empty());
}

TEST(RequestLog, OverflowsTakenInStepsAddUp) {
  RequestLog log;
  std::uint64_t total = 0;
  for (int i = 0; i < 5000; ++i) {
    total += log.add(refusal(nameOf(i)), Time()) ? 1 : 0;
    if (i % 700 == 0) {
      for (const Overflow& overflow : log.takeOverflows()) total += overflow.count;
    }
  }
  for (const Overflow& overflow : log.takeOverflows()) total += overflow.count;
  EXPECT_EQ(total, 5000U);
}

TEST(RequestLog, RefusedNamesDoNotHideAddressesInside) {
  RequestLog log;
  for (int i = 0; i < 3000; ++i) (void)log.add(refusal(nameOf(i)), Time());
  for (const char* host : {"169.254.169.254", "127.0.0.1", "10.1.2.3", "fd00:ec2::254", "metadata.google.internal"}) {
    EXPECT_TRUE(log.add(refusal(host), Time())) << host;
  }
}

TEST(RequestLog, ScanOfAPrivateNetworkDoesNotHideTheMetadataService) {
  RequestLog log;
  for (int i = 0; i < 3000; ++i) {
    (void)log.add(refusal("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250)), Time());
  }
  EXPECT_TRUE(log.add(refusal("169.254.169.254"), Time()));
  const auto overflows = log.takeOverflows();
  ASSERT_EQ(overflows.size(), 1U);
  EXPECT_EQ(overflows[0].category, Category::private_network);
  EXPECT_EQ(overflows[0].count, 2000U);
}

TEST(RequestLog, LastRecordOfARepeatedRefusalHasTheTotal) {
  RequestLog log;
  std::uint64_t last = 0;
  int records = 0;
  for (int i = 0; i < 57; ++i) {
    if (const auto record = log.add(refusal("evil.test"), Time())) ++records, last = record->count;
  }
  EXPECT_EQ(records, 2) << "the first and the tenth";
  EXPECT_EQ(last, 10U);
  const auto rest = log.takeRepetitions();
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].host, "evil.test");
  EXPECT_EQ(rest[0].count, 57U);
  EXPECT_TRUE(log.takeRepetitions().empty());
  EXPECT_FALSE(log.hasOverflow());
}

TEST(RequestLog, AllowedRequestsBeyondTheLimitAreCountedWithTheirBytes) {
  RequestLog log;
  std::uint64_t records = 0;
  for (int i = 0; i < static_cast<int>(RequestLog::kMaxAllowed) + 2000; ++i) {
    Request request = refusal(nameOf(i));
    request.allowed = true;
    request.sent = 3;
    records += log.add(std::move(request), Time()) ? 1 : 0;
  }
  EXPECT_EQ(records, RequestLog::kMaxAllowed + RequestLog::kMaxKinds);
  const auto overflows = log.takeOverflows();
  ASSERT_EQ(overflows.size(), 1U);
  EXPECT_TRUE(overflows[0].allowed);
  EXPECT_EQ(overflows[0].count, 1000U);
  EXPECT_EQ(overflows[0].sent, 3000U);
  EXPECT_TRUE(log.add(refusal("evil.test"), Time())) << "allowed requests do not use up what refusals have";
}

TEST(RequestLog, RefusalsWithoutDetailsAreCountedApart) {
  RequestLog log;
  log.addUnknown(5, Time(milliseconds(10)));
  log.addUnknown(2, Time(milliseconds(30)));
  const auto overflows = log.takeOverflows();
  ASSERT_EQ(overflows.size(), 1U);
  EXPECT_EQ(overflows[0], (Overflow{false, Category::unknown, 7, 10, 30, 0, 0}));
}

TEST(RequestLog, WithoutRoomEveryRequestIsCounted) {
  RequestLog log;
  EXPECT_TRUE(log.add(refusal("a.test"), Time()));
  EXPECT_FALSE(log.add(refusal("a.test"), Time(), false));
  EXPECT_FALSE(log.add(refusal("b.test"), Time(), false));
  const auto overflows = log.takeOverflows();
  ASSERT_EQ(overflows.size(), 1U);
  EXPECT_EQ(overflows[0].count, 1U);
  const auto rest = log.takeRepetitions();
  ASSERT_EQ(rest.size(), 1U);
  EXPECT_EQ(rest[0].count, 2U);
}

TEST(Category, FollowsTheRangeThatRefusedOrTheHost) {
  const auto of = [](const char* host, std::string_view range = {}) {
    Request request;
    request.host = host;
    return categoryOf(request, range);
  };
  EXPECT_EQ(of("evil.test"), Category::host);
  EXPECT_EQ(of("93.184.0.4"), Category::host);
  EXPECT_EQ(of("evil.test", "cloud metadata"), Category::metadata);
  EXPECT_EQ(of("evil.test", "private"), Category::private_network);
  EXPECT_EQ(of("93.184.0.1", "this host"), Category::loopback);
  EXPECT_EQ(of("::1"), Category::loopback);
  EXPECT_EQ(of("169.254.1.1"), Category::private_network);
  EXPECT_EQ(of("printer.local"), Category::local_name);
  EXPECT_EQ(of("224.0.0.1"), Category::reserved);
}

}  // namespace
}  // namespace caisson::egress
