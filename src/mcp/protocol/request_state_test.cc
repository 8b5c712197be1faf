#include "mcp/protocol/request_state.h"

#include <gtest/gtest.h>

namespace caisson::mcp {
namespace {

const Json kParams{{"name", "t"}, {"arguments", {{"a", 1}}}};

TEST(McpRequestState, RoundTripsThroughTheClient) {
  const RequestState states;
  const std::string token = states.seal("step 2", "tools/call", kParams);
  Json again = kParams;
  again["requestState"] = token;
  again["inputResponses"] = {{"x", {{"action", "accept"}}}};
  again["_meta"] = {{"progressToken", 5}};
  EXPECT_EQ(states.open(token, "tools/call", again), "step 2");
}

TEST(McpRequestState, AnyChangedByteIsNoticed) {
  const RequestState states;
  const std::string token = states.seal("allow", "tools/call", kParams);
  for (std::size_t at = 0; at < token.size(); ++at) {
    std::string changed = token;
    changed[at] = changed[at] == 'a' ? 'b' : 'a';
    EXPECT_EQ(states.open(changed, "tools/call", kParams), std::nullopt) << at;
  }
  EXPECT_EQ(states.open(token + "-TAMPERED", "tools/call", kParams), std::nullopt);
  EXPECT_EQ(states.open("", "tools/call", kParams), std::nullopt);
  EXPECT_EQ(states.open(".", "tools/call", kParams), std::nullopt);
}

TEST(McpRequestState, IsValidForOneRequestAndProcessAndFifteenMinutes) {
  const RequestState states;
  const std::string token = states.seal("allow", "tools/call", kParams);
  EXPECT_EQ(states.open(token, "prompts/get", kParams), std::nullopt);
  EXPECT_EQ(states.open(token, "tools/call", {{"name", "t"}, {"arguments", {{"a", 2}}}}), std::nullopt);
  EXPECT_EQ(RequestState().open(token, "tools/call", kParams), std::nullopt);
  const auto later = RequestState::Clock::now() + RequestState::kLifetime + std::chrono::minutes(1);
  EXPECT_EQ(states.open(token, "tools/call", kParams, later), std::nullopt);
}

}  // namespace
}  // namespace caisson::mcp
