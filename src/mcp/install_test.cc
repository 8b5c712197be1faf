#include "mcp/install.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace caisson::mcp {
namespace {

using nlohmann::json;

TEST(McpInstall, EveryHostGetsAnEntryAndASecondTimeChangesNothing) {
  for (const AgentHost& host : agentHosts()) {
    const auto fresh = withEntry(host, "", {"/usr/bin/caisson", "mcp"});
    ASSERT_TRUE(fresh) << host.name;
    EXPECT_NE(fresh->find("/usr/bin/caisson"), std::string::npos) << host.name;
    const auto again = withEntry(host, *fresh, {"/usr/bin/caisson", "mcp"});
    ASSERT_TRUE(again) << host.name;
    EXPECT_EQ(*again, *fresh) << host.name;
    EXPECT_FALSE(withEntry(host, *fresh, {"/usr/bin/caisson", "mcp", "--read-only"})) << host.name;
  }
}

TEST(McpInstall, OtherEntriesAreKept) {
  const AgentHost& cursor = *findAgentHost("cursor");
  const std::string before = R"({"zeta": 1, "mcpServers": {"other": {"command": "x"}}, "alpha": [1, 2]})";
  const auto after = withEntry(cursor, before, {"/c", "mcp"});
  ASSERT_TRUE(after);
  const json value = json::parse(*after);
  EXPECT_EQ(value["mcpServers"]["other"]["command"], "x");
  EXPECT_EQ(value["mcpServers"]["caisson"]["command"], "/c");
  EXPECT_EQ(value["alpha"], json({1, 2}));
  EXPECT_LT(after->find("zeta"), after->find("alpha"));
  const auto toml = withEntry(*findAgentHost("codex"), "model = \"x\"", {"/a \"b\"", "mcp", "--env=A=\n"});
  ASSERT_TRUE(toml);
  EXPECT_TRUE(
      toml->starts_with("model = \"x\"\n\n[mcp_servers.caisson]\ncommand = \"/a \\\"b\\\"\"\n"
                        "args = [\"mcp\", \"--env=A=\\u000A\"]\n"))
      << *toml;
}

TEST(McpInstall, UnparsableFileIsRefusedAndTheEntryIsShown) {
  for (const char* text : {"// a comment\n{}", "[]", "{\"mcpServers\": 5}", "{"}) {
    const auto after = withEntry(*findAgentHost("cursor"), text, {"/c", "mcp"});
    ASSERT_FALSE(after) << text;
    EXPECT_NE(after.error().hint.find("/c"), std::string::npos);
  }
  EXPECT_EQ(findAgentHost("notepad"), nullptr);
}

}  // namespace
}  // namespace caisson::mcp
