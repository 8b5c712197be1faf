// The question at the end of an agent's run: what the program left on the terminal does not change what is read.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "functional/sandbox.h"
#include "functional/terminal.h"

namespace caisson::test {
namespace {

constexpr const char* kQuestion = "? [y/N] ";

class AgentReview : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    workspace.write("real.txt", "before\n");
  }
  /// `caisson agent` with a shell script as the agent, in a separate environment.
  [[nodiscard]] std::vector<std::string> agent(const std::string& text, const std::string& term = "xterm") const {
    workspace.write("agent.sh", text);
    return {"/usr/bin/env",
            "HOME=" + home.path(),
            "CAISSON_HOME=" + (home / "state"),
            "TERM=" + term,
            caissonBinary(),
            "agent",
            "--",
            "sh",
            workspace / "agent.sh"};
  }
  const TempDir home;
};

const char* const kFalseList =
    "printf 'caisson: changes that the agent made\\n readme.md | 1 +\\n 1 path changed\\n'; ";
const char* const kChange = "echo attack > real.txt; ";

TEST_F(AgentReview, ListAndQuestionAreOnOneFreshScreen) {
  Terminal terminal(agent(std::string(kChange) + kFalseList + "printf '\\033[?1049h\\033[8m\\033[2;2r'"),
                    workspace.path());
  ASSERT_TRUE(terminal.shows(kQuestion)) << terminal.screen();
  const std::string screen = terminal.screen();
  const std::size_t fresh = screen.rfind("\x1b[2J");
  ASSERT_NE(fresh, std::string::npos) << screen;
  const std::string shown = screen.substr(fresh);
  EXPECT_TRUE(contains(shown, "real.txt")) << screen;
  EXPECT_TRUE(contains(shown, kQuestion)) << screen;
  EXPECT_FALSE(contains(shown, "readme.md")) << screen;
  EXPECT_FALSE(contains(screen.substr(0, fresh), "real.txt")) << "no part of the list is written before the reset";
  terminal.type("n\n");
  EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
  EXPECT_EQ(readFile(workspace / "real.txt"), "before\n");
}

TEST_F(AgentReview, AListLongerThanTheScreenIsReadInPagesBeforeTheQuestion) {
  const std::string many = "i=100; while [ $i -lt 160 ]; do echo x > made-$i; i=$((i+1)); done";
  for (const bool reads : {true, false}) {
    Terminal terminal(agent(many), workspace.path());
    for (int page = 1; page <= 2; ++page) {
      ASSERT_TRUE(terminal.shows("page " + std::to_string(page) + " of 3")) << terminal.screen();
      EXPECT_FALSE(contains(terminal.screen(), kQuestion));
      ASSERT_TRUE(terminal.shows("[Enter/n] "));
      if (!reads) break;
      terminal.type("\n");
    }
    if (reads) {
      ASSERT_TRUE(terminal.shows(kQuestion)) << terminal.screen();
      for (int i = 100; i < 160; ++i) EXPECT_TRUE(contains(terminal.screen(), "made-" + std::to_string(i))) << i;
      terminal.type("y\n");
    } else {
      terminal.type("n\n");
    }
    EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
    EXPECT_EQ(exists(workspace / "made-100"), reads);
    runProgram({"sh", "-c", "rm -f " + workspace.path() + "/made-*"});
  }
}

/// What a person sees in tmux, whatever state the program leaves.
TEST_F(AgentReview, IsReadableWhateverTheProgramLeft) {
  const RunOutput version = runProgram({"sh", "-c", "command -v tmux && tmux -V"});
  requireOrSkip(version.exit_status == 0, "tmux is not installed");
  int number = 0;  // each state has a separate server
  const auto tmux = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"tmux", "-f", "/dev/null", "-S", home / ("tmux-" + std::to_string(number))});
    return runProgram(words);
  };
  const char* const states[] = {"[?1049h\\033[8m", "[?47h\\033[30;40m",
                                "[5;5r\\033[?6h",  "(0",
                                "[?25l\\033[7m",   "]0;title\\033\\\\\\033P",
                                "[4h\\033[8m",     "[?7l\\033[24;80H",
                                "[20l\\033[?5h",   "[?2026h",
                                "_hidden",         "[?1049h\\033[3;4r\\033[8m\\033)0\\016"};
  for (const std::string state : states) {
    ++number;
    const std::vector<std::string> words =
        agent(std::string(kChange) + kFalseList + "printf '\\033" + state + "'", "screen");
    std::string line;
    for (const std::string& word : words) line += "'" + word + "' ";
    ASSERT_EQ(
        tmux({"new-session", "-d", "-s", "review", "-x", "80", "-y", "24", "-c", workspace.path(), line}).exit_status,
        0);
    std::string seen;
    for (int i = 0; i < 400 && !contains(seen, "[y/N]"); ++i) {
      sleepFor(std::chrono::milliseconds(50));
      seen = tmux({"capture-pane", "-p", "-t", "review"}).out;
    }
    EXPECT_TRUE(contains(seen, " real.txt | 2 +-")) << state << "\n" << seen;
    EXPECT_TRUE(contains(seen, "[y/N]")) << state << "\n" << seen;
    EXPECT_FALSE(contains(seen, "readme.md")) << state << "\n" << seen;
    const std::string styled = tmux({"capture-pane", "-e", "-p", "-t", "review"}).out;
    EXPECT_FALSE(contains(styled, "\x1b[8m")) << state << "\n" << styled;
    (void)tmux({"send-keys", "-t", "review", "n", "Enter"});
    (void)tmux({"kill-server"});
  }
}

/// ~/.name/bin/name: the directory above `bin` also holds keys and logs.
TEST_F(AgentReview, AProgramInAHiddenDirectoryOfTheHomeShowsNothingElseOfIt) {
  home.write(".grok/bin/grok", "#!/bin/sh\ncat " + home / ".grok/lib/part" + " " + home / ".grok/auth.json", 0755);
  home.write(".grok/lib/part", "needed\n");
  home.write(".grok/auth.json", "canary\n", 0600);
  const RunOutput output = runProgram({"/usr/bin/env", "HOME=" + home.path(), "CAISSON_HOME=" + (home / "state"),
                                       caissonBinary(), "agent", "--", home / ".grok/bin/grok"},
                                      {.cwd = workspace.path()});
  EXPECT_EQ(output.out, "needed\n") << output.describe();
  EXPECT_TRUE(contains(output.err, "shown to the agent, read-only: " + home / ".grok/lib")) << output.describe();
}

/// Programs also lie deeper in hidden directories, beside the logins of the agent.
TEST_F(AgentReview, AProgramDeepInAHiddenDirectoryShowsNothingElseOfIt) {
  const std::string data = ".local/share/opencode/";
  home.write(
      data + "bin/opencode",
      "#!/bin/sh\ncat " + (home / data) + "lib/part " + (home / data) + "auth.json " + (home / data) + "bin/other",
      0755);
  home.write(data + "lib/part", "needed\n");
  home.write(data + "bin/other", "canary\n");
  home.write(data + "auth.json", "canary\n", 0600);
  const RunOutput output = runProgram({"/usr/bin/env", "HOME=" + home.path(), "CAISSON_HOME=" + (home / "state"),
                                       caissonBinary(), "agent", "--", home / (data + "bin/opencode")},
                                      {.cwd = workspace.path()});
  EXPECT_EQ(output.out, "needed\n") << output.describe();
}

TEST_F(AgentReview, AProgramOfAVirtualEnvironmentStarts) {
  requireOrSkip(
      runProgram({"/usr/bin/python3", "-m", "venv", "--without-pip", home / ".local/pipx/venvs/tool"}).exit_status == 0,
      "/usr/bin/python3 has no module venv");
  const std::string tool = home / ".local/pipx/venvs/tool/";
  home.write(".local/pipx/venvs/tool/bin/tool", "#!" + tool + "bin/python3\nimport sys; print(sys.prefix)\n", 0755);
  home.write(".local/pipx/venvs/tool/token", "canary\n", 0600);
  const RunOutput output = runProgram({"/usr/bin/env", "HOME=" + home.path(), "CAISSON_HOME=" + (home / "state"),
                                       caissonBinary(), "agent", "--", tool + "bin/tool"},
                                      {.cwd = workspace.path()});
  EXPECT_EQ(output.out, tool.substr(0, tool.size() - 1) + "\n") << output.describe();
  EXPECT_FALSE(contains(output.err, "read-only: " + tool.substr(0, tool.size() - 1) + "\n")) << output.describe();
}

}  // namespace
}  // namespace caisson::test
