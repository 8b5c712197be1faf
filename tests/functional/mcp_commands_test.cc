// Commands over `caisson mcp`: handed over, cancelled, in the background, with long output.
#include <algorithm>
#include <csignal>
#include <filesystem>

#include "functional/sandbox.h"
#include "mcp_fixture.h"
#include "support/conforms.h"
#include "support/scripts.h"

namespace caisson::test {
namespace {

TEST_F(Mcp, LongCommandMovesToTheBackgroundAndCanBeKilled) {
  const auto client = start();
  const std::string id = create(*client);
  const Json running = client->tool(
      "sandbox_execute", {{"sandbox_id", id}, {"command", "echo begin; sleep 300 & wait"}, {"wait_ms", 300}});
  EXPECT_EQ(running["status"], "running") << running;
  EXPECT_EQ(running["stdout"], "begin\n");
  const Json ended =
      client->tool("sandbox_process", {{"sandbox_id", id}, {"exec_id", running["exec_id"]}, {"action", "kill"}});
  EXPECT_EQ(ended["status"], "cancelled") << ended;
  // A killed process stays listed for some milliseconds until the kernel has removed it.
  const std::string wait_for_end =
      "for i in 1 2 3 4 5 6 7 8 9; do pgrep sleep >&2 || break; timeout 0.1 tail -f /dev/null; done; "
      "pgrep sleep || echo none";
  EXPECT_EQ(client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", wait_for_end}})["stdout"], "none\n");
}

TEST_F(Mcp, CancelledCallKillsItsWholeTreeAndIsNotAnswered) {
  const auto client = start();
  const std::string id = create(*client);
  const int call = client->send(
      "tools/call",
      {{"name", "sandbox_execute"}, {"arguments", {{"sandbox_id", id}, {"command", "setsid sleep 300 & sleep 300"}}}});
  ASSERT_TRUE(eventually(
      [&] {
        return client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "pgrep -c sleep"}})["stdout"] == "2\n";
      },
      std::chrono::seconds(20)));
  client->notify("notifications/cancelled", {{"requestId", call}});
  EXPECT_TRUE(eventually(
      [&] {
        return client->tool("sandbox_execute",
                            {{"sandbox_id", id}, {"command", "pgrep sleep || echo none"}})["stdout"] == "none\n";
      },
      std::chrono::seconds(20)));
  EXPECT_TRUE(client->answer(call, std::chrono::seconds(1)).is_null());
}

TEST_F(Mcp, CancelledCallKillsADaemonOfItsCommand) {
  const auto client = start();
  const std::string id = create(*client);
  const std::string daemonise = "(setsid sh -c 'touch ready; sleep 2; touch survived; sleep 300' &); sleep 300";
  const int call = client->send(
      "tools/call", {{"name", "sandbox_execute"}, {"arguments", {{"sandbox_id", id}, {"command", daemonise}}}});
  const Json ready{{"sandbox_id", id}, {"path", "ready"}};
  ASSERT_TRUE(eventually([&] { return !client->call("sandbox_read_file", ready).value("isError", false); },
                         std::chrono::seconds(20)));
  client->notify("notifications/cancelled", {{"requestId", call}});
  // Another command at the same time could have started the daemon.
  ASSERT_TRUE(
      eventually([&] { return client->tool("sandbox_info", {{"sandbox_id", id}})["commands"][0]["running"] == false; },
                 std::chrono::seconds(20)));
  const Json left = client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "sleep 3; ls; pgrep -l sh"}});
  EXPECT_EQ(left["stdout"].get<std::string>().find("survived"), std::string::npos) << left;
}

/// Without a cgroup it is not known which command started it.
TEST_F(Mcp, CancelledCallLeavesADaemonOfAnEarlierCommand) {
  const auto client = start();
  const std::string id = create(*client);
  client->tool("sandbox_execute",
               {{"sandbox_id", id}, {"command", "(setsid sleep 300 >/dev/null 2>&1 </dev/null &); sleep 0.1"}});
  const int call = client->send(
      "tools/call",
      {{"name", "sandbox_execute"}, {"arguments", {{"sandbox_id", id}, {"command", "touch ready; sleep 301"}}}});
  const Json ready{{"sandbox_id", id}, {"path", "ready"}};
  ASSERT_TRUE(eventually([&] { return !client->call("sandbox_read_file", ready).value("isError", false); },
                         std::chrono::seconds(20)));
  client->notify("notifications/cancelled", {{"requestId", call}});
  const Json processes{{"sandbox_id", id}, {"command", "pgrep -fx 'sleep 30.'; pgrep -fx 'sleep 301' || echo gone"}};
  EXPECT_TRUE(eventually(
      [&] {
        const std::string left = client->tool("sandbox_execute", processes)["stdout"];
        return left.ends_with("gone\n") && left != "gone\n";
      },
      std::chrono::seconds(20)));
}

TEST_F(Mcp, CancelledCallKillsItsBackgroundCommand) {
  const auto client = start();
  const std::string id = create(*client);
  const auto count = [&](const std::string& name) {
    return client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "pgrep -cfx '" + name + "'"}})["stdout"];
  };
  client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "exec sleep 300"}, {"background", true}});
  const int call = client->send(
      "tools/call",
      {{"name", "sandbox_execute"},
       {"arguments",
        {{"sandbox_id", id}, {"command", "sleep 301 & exec sleep 301"}, {"background", true}, {"wait_ms", 60000}}}});
  ASSERT_TRUE(eventually([&] { return count("sleep 301") == "2\n"; }, std::chrono::seconds(20)));
  client->notify("notifications/cancelled", {{"requestId", call}});
  EXPECT_TRUE(eventually([&] { return count("sleep 301") == "0\n"; }, std::chrono::seconds(20)));
  EXPECT_EQ(count("sleep 300"), "1\n") << "a background command of another call";
  EXPECT_TRUE(client->answer(call, std::chrono::seconds(1)).is_null());
}

TEST_F(Mcp, InfoListsBackgroundCommands) {
  const auto client = start();
  const std::string id = create(*client);
  client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "true"}});
  const Json started =
      client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "exec sleep 300"}, {"background", true}});
  const auto commands = [&] { return client->tool("sandbox_info", {{"sandbox_id", id}})["commands"]; };
  ASSERT_EQ(commands().size(), 2U) << commands();
  EXPECT_EQ(commands()[0]["command"], "true") << commands();
  const Json expected{
      {"exec_id", started["exec_id"]}, {"command", "exec sleep 300"}, {"running", true}, {"background", true}};
  EXPECT_EQ(commands()[1], expected);
  client->tool("sandbox_process", {{"sandbox_id", id}, {"exec_id", commands()[1]["exec_id"]}, {"action", "kill"}});
  EXPECT_EQ(commands()[1]["running"], false) << commands();
}

TEST_F(Mcp, ABackgroundCommandTakesInputAndOutlivesTheCall) {
  const auto client = start();
  const std::string id = create(*client);
  const Json started = client->tool(
      "sandbox_execute",
      {{"sandbox_id", id}, {"command", "cat"}, {"stdin", "first\n"}, {"background", true}, {"keep_stdin", true}});
  ASSERT_EQ(started["status"], "running") << started;
  const Json process{{"sandbox_id", id}, {"exec_id", started["exec_id"]}};
  Json input = process;
  input.update({{"action", "input"}, {"data", "hello\n"}, {"close", true}});
  client->tool("sandbox_process", input);
  const Json ended = client->tool("sandbox_process", process);
  EXPECT_EQ(ended["status"], "exited") << ended;
  EXPECT_EQ(ended["stdout"], "first\nhello\n");
}

TEST_F(Mcp, DenialsOfABackgroundCommandAreInTheReplies) {
  CONFORMS("R-SYSCALL-5");
  const auto client = start();
  const std::string id = create(*client);
  const auto refused = [](const Json& answer) {
    const Json denials = answer.value("denials", Json::array());
    return std::ranges::any_of(denials, [](const Json& one) { return one["object"] == "unshare"; });
  };
  const Json started = client->tool(
      "sandbox_execute", {{"sandbox_id", id}, {"command", "unshare -r true; sleep 100"}, {"background", true}});
  ASSERT_EQ(started["status"], "running") << started;
  const Json look{{"sandbox_id", id}, {"exec_id", started["exec_id"]}, {"wait_ms", 0}};
  EXPECT_TRUE(eventually([&] { return refused(client->tool("sandbox_process", look)); }))
      << client->tool("sandbox_process", look);
  EXPECT_TRUE(refused(client->tool("sandbox_info", {{"sandbox_id", id}})))
      << client->tool("sandbox_info", {{"sandbox_id", id}});
  const Json attempt = client->tool(
      "sandbox_execute",
      {{"sandbox_id", id}, {"command", "while :; do unshare -r true; done"}, {"background", true}, {"wait_ms", 20000}});
  EXPECT_EQ(attempt["status"], "denied") << attempt;
  EXPECT_TRUE(refused(attempt)) << attempt;
}

TEST_F(Mcp, TruncatedOutputIsMarkedAndCompleteAsAResource) {
  const auto client = start();
  const std::string id = create(*client);
  const Json ran = client->tool("sandbox_execute", {{"sandbox_id", id}, {"command", "seq 1 20000; printf '\\377'"}});
  EXPECT_EQ(ran["truncated"], true);
  EXPECT_EQ(ran["binary"], true);
  EXPECT_EQ(ran["stdout_bytes"], 108895);
  EXPECT_NE(ran["stdout"].get<std::string>().find("bytes left out here"), std::string::npos);
  const Json whole = client->request("resources/read", {{"uri", ran["full_output_uri"]}});
  EXPECT_EQ(whole["result"]["contents"][0]["mimeType"], "application/octet-stream") << whole.dump().substr(0, 500);
}

}  // namespace
}  // namespace caisson::test
