// Runs the example of docs/sessions.md as written there.
#include <filesystem>

#include "functional/session.h"

namespace caisson::test {
namespace {

/// The shell commands of one section of a page, in order.
std::string commandsOf(const std::string& page, const std::string& heading) {
  const std::size_t begin = page.find("\n## " + heading);
  if (begin == std::string::npos) return {};
  const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  std::string commands;
  const std::string fence = "\n```sh\n";
  for (std::size_t at = section.find(fence); at != std::string::npos; at = section.find(fence, at)) {
    at += fence.size();
    const std::size_t end = section.find("\n```", at);
    commands += section.substr(at, end - at) + "\n";
  }
  return commands;
}

TEST_F(SessionTest, ExampleOfTheDocumentationWorks) {
  const std::string commands =
      commandsOf(readFile(std::string(std::getenv("CAISSON_SOURCE_DIR")) + "/docs/sessions.md"), "One story");
  ASSERT_NE(commands.find("session create"), std::string::npos) << commands;
  const std::string program = std::getenv("CAISSON_BIN");
  RunOptions how{.cwd = workspace.path()};
  how.env["PATH"] = std::filesystem::path(program).parent_path().string() + ":" + std::getenv("PATH");
  const RunOutput story = runProgram({"sh", "-exc", commands}, how);
  ASSERT_EQ(story.exit_status, 0) << story.describe();
  EXPECT_EQ(readFile(workspace / "app/server.conf"), "port = 8080\nhost = example.org\n\nlog = on\n");
  EXPECT_EQ(readFile(workspace / "app/login.py"), "def login(user):\n    return user in known\n");
  EXPECT_EQ(readFile(workspace / "app/notes.txt"), "to do: tests\n");
  EXPECT_FALSE(exists(workspace / "app/build"));
  EXPECT_NE(story.err.find("merged: server.conf"), std::string::npos) << story.err;
  EXPECT_NE(story.err.find("kept: notes.txt"), std::string::npos) << story.err;
  EXPECT_NE(story.out.find("something was left"), std::string::npos);
  EXPECT_NE(story.out.find("+    return user in known"), std::string::npos) << "the review shows the change";
  EXPECT_NE(story.err.find("warning: fix-login has uncommitted changes"), std::string::npos) << story.err;
}

}  // namespace
}  // namespace caisson::test
