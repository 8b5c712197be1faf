#include "service/events.h"

#include <gtest/gtest.h>

namespace caisson::service {
namespace {

bool everyone(const std::string& /*owner*/) { return true; }

TEST(Events, LargeDataIsReplacedByItsSize) {
  Events events;
  events.publish("network.changed", "cs-1", "alice", {{"host", std::string(std::size_t{1} << 20U, 'a')}});
  Events::Position position;
  const auto found = events.next(position, std::size_t{32} << 10U, everyone);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_LT(writeJson(describeEvent(found[0])).size(), Events::kMaxData);
  EXPECT_GT(integerAt(found[0].data, "omitted_bytes").value_or(0), 1 << 20);
}

TEST(Events, PieceEndsAtItsSizeAndNothingIsLost) {
  constexpr std::size_t kPiece = std::size_t{32} << 10U;
  Events events;
  for (int i = 0; i < 100; ++i)
    events.publish("network.changed", "cs-1", i % 2 == 0 ? "alice" : "bob", {{"host", std::string(8000, 'a')}});
  Events::Position position;
  std::uint64_t last = 0;
  while (last < 100) {
    const auto found = events.next(position, kPiece, everyone);
    ASSERT_FALSE(found.empty());
    std::size_t bytes = 0;
    for (const LifecycleEvent& event : found) {
      EXPECT_EQ(event.id, ++last);
      bytes += writeJson(describeEvent(event)).size();
    }
    EXPECT_LE(bytes, kPiece);
  }
  EXPECT_EQ(events.next(position, 1, everyone).size(), 0U);
}

TEST(Events, OneIsReturnedHoweverSmallThePiece) {
  Events events;
  events.publish("sandbox.created", "cs-1", "alice", Json::object());
  events.publish("sandbox.ended", "cs-1", "alice", Json::object());
  Events::Position position;
  EXPECT_EQ(events.next(position, 1, everyone).size(), 1U);
  EXPECT_EQ(events.next(position, 1, everyone).size(), 1U);
}

}  // namespace
}  // namespace caisson::service
