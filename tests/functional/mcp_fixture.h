// A separate server for each test, with a private state and workspace.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "mcp_client.h"
#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {

using Json = nlohmann::json;

class Mcp : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    home.openToAll();
    workspace.write("a.txt", "from the host\n");
    workspace.openToAll();
  }
  [[nodiscard]] std::map<std::string, std::string> environment() const {
    return {{"CAISSON_HOME", home / "state"}, {"CAISSON_LOG", "off"}, {"CLAUDE_PROJECT_DIR", workspace.path()}};
  }
  /// Without flags the operator decides nothing: the workspace is only the default.
  std::unique_ptr<McpClient> start(Json capabilities = Json::object(), std::vector<std::string> flags = {}) const {
    return std::make_unique<McpClient>(std::move(flags), environment(), std::move(capabilities));
  }
  /// Answers a prompt of the server: repeats the request with the server's state and the user's decision.
  static Json reply(McpClient& client, Json params, const Json& asked, const std::string& decision) {
    params["requestState"] = asked["requestState"];
    params["inputResponses"] = {{"approval", {{"action", "accept"}, {"content", {{"decision", decision}}}}}};
    return client.request("tools/call", std::move(params));
  }
  static std::string create(McpClient& client, Json arguments = Json::object()) {
    const Json made = client.tool("sandbox_create", std::move(arguments));
    EXPECT_TRUE(made.contains("sandbox_id")) << made;
    return made.value("sandbox_id", "");
  }
  [[nodiscard]] std::string sessions() const { return runCaisson({"session", "list"}, {.env = environment()}).out; }

  const TempDir home, workspace;
};

}  // namespace caisson::test
