#include "cli/agent/hook.h"

#include <gtest/gtest.h>

#include "base/json_value.h"
#include "cli/agent/project_session.h"

namespace caisson::cli {
namespace {

JsonValue answerTo(const std::string& input, const std::string& host) {
  const auto answer =
      wrapShellCall(input, "/src/app", {.program = "/usr/bin/caisson", .host = host, .flags = {"--net=none"}});
  EXPECT_TRUE(answer) << answer.error().message();
  return JsonValue::parse(answer.value_or("{}"))->find("hookSpecificOutput").value();
}

std::string shellCall(const std::string& tool) {
  return R"({"hook_event_name":"PreToolUse","session_id":"a;b","tool_name":")" + tool +
         R"(","tool_input":{"command":"echo 'x'","dir":"/"}})";
}

TEST(AgentHook, QuotesTheCommandAsOneArgument) {
  EXPECT_EQ(answerTo(shellCall("Bash"), "claude-code").find("updatedInput")->textAt("command"),
            "/usr/bin/caisson agent exec --project=/src/app --remember=ab --net=none -- 'echo '\\''x'\\'''");
}

TEST(AgentHook, AnswersInTheFormOfTheAgent) {
  EXPECT_FALSE(answerTo(shellCall("Bash"), "claude-code").find("permissionDecision"));
  EXPECT_EQ(answerTo(shellCall("Bash"), "codex").textAt("permissionDecision"), "allow");
  EXPECT_EQ(answerTo(shellCall("run_shell_command"), "gemini").find("tool_input")->textAt("dir"), "/");
}

TEST(AgentHook, CallWithoutCommandIsAnError) {
  for (const char* input :
       {"", "{}", R"({"tool_name":"Bash","tool_input":{}})", R"({"tool_name":"Bash","tool_input":{"command":["ls"]}})",
        R"({"tool_input":{"command":"ls"}})"})
    EXPECT_FALSE(wrapShellCall(input, "/src/app", {.program = "caisson", .host = "codex"})) << input;
}

TEST(AgentHook, ToolOfAnotherShellIsAnError) {
  for (const char* tool : {"PowerShell", "bash", "", "run_shell_command"})
    EXPECT_FALSE(wrapShellCall(shellCall(tool), "/src/app", {.program = "caisson", .host = "claude-code"})) << tool;
}

TEST(AgentSession, NameDiffersForProjectsOfTheSameName) {
  const std::string name = projectSessionName("/a/my app");
  EXPECT_TRUE(name.starts_with("agent-my-app-")) << name;
  EXPECT_NE(name, projectSessionName("/b/my app"));
  EXPECT_EQ(name, projectSessionName("/a/my app"));
}

}  // namespace
}  // namespace caisson::cli
