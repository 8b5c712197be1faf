#include "mcp/sandbox/denied_requests.h"

#include <gtest/gtest.h>

namespace caisson::mcp {
namespace {

TEST(McpDeniedRequests, AreForgottenAfterSomeMinutes) {
  DeniedRequests denials;
  const auto now = DeniedRequests::Clock::now();
  EXPECT_FALSE(denials.left("host:a", now));
  denials.add("host:a", now);
  EXPECT_EQ(denials.left("host:a", now), DeniedRequests::kKept);
  EXPECT_EQ(denials.left("host:a", now + DeniedRequests::kKept - std::chrono::seconds(1)), std::chrono::seconds(1));
  EXPECT_FALSE(denials.left("host:a", now + DeniedRequests::kKept));
  EXPECT_FALSE(denials.left("host:b", now));
}

TEST(McpDeniedRequests, OldestIsForgottenBeyondTheLimit) {
  DeniedRequests denials;
  const auto now = DeniedRequests::Clock::now();
  for (std::size_t i = 0; i <= DeniedRequests::kMax; ++i)
    denials.add("host:" + std::to_string(i), now + std::chrono::milliseconds(i));
  const auto later = now + std::chrono::seconds(2);
  EXPECT_FALSE(denials.left("host:0", later));
  EXPECT_TRUE(denials.left("host:1", later));
  EXPECT_TRUE(denials.left("host:" + std::to_string(DeniedRequests::kMax), later));
}

}  // namespace
}  // namespace caisson::mcp
