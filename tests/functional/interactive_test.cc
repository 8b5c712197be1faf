// A user at a terminal: the program gets a separate terminal, and the user's is restored.
#include <gtest/gtest.h>

#include <csignal>

#include "functional/sandbox.h"
#include "functional/terminal.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using std::chrono::seconds;

class Interactive : public SandboxTest {
 protected:
  [[nodiscard]] std::vector<std::string> command(const std::vector<std::string>& options,
                                                 const std::string& text) const {
    std::vector<std::string> words{caissonBinary(), "run"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "bash", "-c", text});
    return words;
  }
};

TEST_F(Interactive, ProgramHasAPrivateTerminal) {
  Terminal terminal(command({},
                            "tty; test -t 0 && test -t 1 && test -t 2 && echo all; ls /dev/pts | tr '\\n' ' '; "
                            "echo direct > /dev/tty; ps -o tty= $$"),
                    workspace.path());
  EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "/dev/pts/0\r\nall\r\n")) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "direct\r\n")) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "0 ptmx")) << terminal.screen();
}

TEST_F(Interactive, TheCallersTerminalIsOutOfReach) {
  CONFORMS("R-PROCESS-12");
  Terminal terminal({caissonBinary(), "run", "--", "bash", "-c",
                     "read name; test -e \"$name\" && [ \"$name\" != /dev/pts/0 ] && echo REACHED; "
                     "for f in /proc/*/fd/*; do readlink $f; done 2>/dev/null | sort -u | tr '\\n' ' '; echo checked"},
                    workspace.path());
  terminal.type(terminal.name() + "\n");
  EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "checked")) << terminal.screen();
  EXPECT_FALSE(contains(terminal.screen(), "REACHED")) << terminal.screen();
}

TEST_F(Interactive, LinesTypedAreReadAndEchoedOnce) {
  Terminal terminal(command({}, "echo ready; read line; echo \"<$line>\""), workspace.path());
  ASSERT_TRUE(terminal.shows("ready")) << terminal.screen();
  terminal.type("hello\n");
  EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "ready\r\nhello\r\n<hello>\r\n")) << terminal.screen();
}

TEST_F(Interactive, EndOfFileKeyEndsInput) {
  Terminal terminal(command({}, "echo ready; cat; echo after"), workspace.path());
  ASSERT_TRUE(terminal.shows("ready")) << terminal.screen();
  terminal.type("x\n\x04");
  EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "after")) << terminal.screen();
}

TEST_F(Interactive, TheInterruptKeyReachesTheProgram) {
  Terminal terminal(command({}, "trap 'echo got it; exit 7' INT; echo ready; while :; do sleep 0.05; done"),
                    workspace.path());
  ASSERT_TRUE(terminal.shows("ready")) << terminal.screen();
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 7) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "got it")) << terminal.screen();
}

TEST_F(Interactive, TheInterruptKeyEndsAnOrdinaryProgram) {
  Terminal terminal(command({}, "echo ready; exec sleep 60"), workspace.path());
  ASSERT_TRUE(terminal.shows("ready")) << terminal.screen();
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 128 + SIGINT) << terminal.screen();
}

TEST_F(Interactive, TheQuitKeyAndRawModeWork) {
  Terminal terminal(command({}, "stty raw -echo; echo ready; head -c 1 | od -An -tx1; stty sane"), workspace.path());
  ASSERT_TRUE(terminal.shows("ready")) << terminal.screen();
  terminal.type("\x03");
  EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "03")) << terminal.screen();
}

TEST_F(Interactive, AnInteractiveShellHasJobControl) {
  Terminal terminal({caissonBinary(), "run", "--", "bash", "--norc", "-i"}, workspace.path());
  terminal.type("PS1='%''ready '\n");
  ASSERT_TRUE(terminal.shows("%ready ")) << terminal.screen();
  terminal.type("sleep 60\n");
  sleepFor(std::chrono::milliseconds(300));
  terminal.type("\x1a");
  ASSERT_TRUE(terminal.shows("Stopped")) << terminal.screen();
  terminal.type("kill -KILL %1; sleep 0.2; echo $((40+2)); exit 3; exit 3\n");
  EXPECT_EQ(terminal.wait(), 3) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "42\r\n")) << terminal.screen();
  EXPECT_FALSE(contains(terminal.screen(), "no job control")) << terminal.screen();
}

TEST_F(Interactive, TheWindowSizePassesAndFollows) {
  Terminal terminal(command({}, "stty size; trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done"),
                    workspace.path(), {.rows = 33, .columns = 101});
  ASSERT_TRUE(terminal.shows("ready")) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "33 101\r\n")) << terminal.screen();
  terminal.resize({.rows = 44, .columns = 122});
  EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "44 122\r\n")) << terminal.screen();
}

TEST_F(Interactive, TerminalIsRestored) {
  for (const std::string text :
       {"echo ready; read x; exit 0", "stty raw -echo; echo ready; read x; exit 4", "echo ready; read x; kill -9 $$"}) {
    Terminal terminal(command({}, text), workspace.path());
    ASSERT_TRUE(terminal.shows("ready")) << terminal.screen();
    terminal.type("\n");
    if (contains(text, "raw")) terminal.type("\n");
    ASSERT_TRUE(terminal.wait().has_value()) << terminal.screen();
    Terminal fresh({"true"}, "/");
    EXPECT_TRUE(sameSettings(terminal.settings(), fresh.settings())) << text;
  }
}

TEST_F(Interactive, TerminalIsRestoredWhenCaissonIsTerminated) {
  for (const int number : {SIGTERM, SIGHUP, SIGINT}) {
    Terminal terminal(command({}, "stty raw -echo; echo ready; exec sleep 60"), workspace.path());
    ASSERT_TRUE(terminal.shows("ready")) << terminal.screen();
    terminal.signal(number);
    EXPECT_EQ(terminal.wait(), 128 + number) << terminal.screen();
    Terminal fresh({"true"}, "/");
    EXPECT_TRUE(sameSettings(terminal.settings(), fresh.settings())) << "signal " << number;
  }
}

TEST_F(Interactive, ATimeoutEndsItWhenAskedFor) {
  Terminal terminal(command({"--timeout", "500ms"}, "echo ready; exec sleep 60"), workspace.path());
  EXPECT_EQ(terminal.wait(), 124) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "time")) << terminal.screen();
}

TEST_F(Interactive, RedirectedOutputIsNotTouchedByTheTerminal) {
  Terminal terminal(
      {"bash", "-c",
       "\"$0\" run -- bash -c 'echo ready >&2; printf \"a\\nb\\n\"; test -t 1 || echo plain' > out; echo status $?",
       caissonBinary()},
      workspace.path());
  EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "status 0")) << terminal.screen();
  EXPECT_EQ(readFile(workspace / "out"), "a\nb\nplain\n");
}

TEST_F(Interactive, OutputIsNotCutOnATerminal) {
  Terminal terminal(command({"--output-limit", "1K"}, "seq 1 3000; echo the end"), workspace.path());
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_TRUE(contains(terminal.screen(), "\r\n2999\r\n3000\r\nthe end\r\n")) << terminal.screen().substr(0, 300);
}

TEST_F(Interactive, LevelNoneIsApprovedOnATerminal) {
  CONFORMS("R-LEVEL-7");
  Terminal terminal({caissonBinary(), "run", "--level", "none", "--approve", "level:none", "--workspace", ".:rw", "--",
                     "bash", "-c", "echo ran"},
                    workspace.path());
  EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "ran\r\n")) << terminal.screen();
}

TEST_F(Interactive, LevelNonePromptsOnATerminalAndNoDenies) {
  CONFORMS("R-LEVEL-7");
  Terminal terminal(
      {caissonBinary(), "run", "--level", "none", "--workspace", ".:rw", "--", "bash", "-c", "echo ran-anyway"},
      workspace.path());
  ASSERT_TRUE(terminal.shows("[y/N] ")) << terminal.screen();  // input before the prompt is not an answer
  terminal.type("no\n");
  EXPECT_EQ(terminal.wait(), 125) << terminal.screen();
  EXPECT_FALSE(contains(terminal.screen(), "ran-anyway\r\n")) << terminal.screen();
}

/// A terminal answers some sequences by itself, as if they were typed: its bytes make an answer unclear.
TEST_F(Interactive, UnclearAnswerToApprovalDeniesWithoutASecondPrompt) {
  for (const std::string reply : {"maybe\n", "\x1b[24;80Ry\n", "\x1b]10;rgb:ffff/ffff/ffff\x1b\\\n"}) {
    Terminal terminal(
        {caissonBinary(), "run", "--level", "none", "--workspace", ".:rw", "--", "bash", "-c", "echo ran-anyway"},
        workspace.path());
    ASSERT_TRUE(terminal.shows("[y/N] ")) << terminal.screen();
    terminal.type(reply + "y\ny\n");
    EXPECT_EQ(terminal.wait(), 125) << terminal.screen();
    EXPECT_FALSE(contains(terminal.screen(), "ran-anyway\r\n")) << terminal.screen();
    EXPECT_EQ(terminal.screen().find("[y/N] "), terminal.screen().rfind("[y/N] ")) << terminal.screen();
  }
}

TEST_F(Interactive, TerminalIsResetBeforeApproval) {
  Terminal terminal(
      {"env", "TERM=xterm-256color", caissonBinary(), "run", "--level", "none", "--workspace", ".:rw", "--", "true"},
      workspace.path());
  ASSERT_TRUE(terminal.shows("[y/N] ")) << terminal.screen();
  const std::string before = terminal.screen().substr(0, terminal.screen().find("[y/N] "));
  for (const char* part : {"\x18", "\x1b]110\x1b\\", "\x1b]111\x1b\\", "\x1b[r", "\x1b[?1047l"})
    EXPECT_TRUE(contains(before, part)) << part + 1;
  terminal.type("n\n");
  EXPECT_EQ(terminal.wait(), 125);
}

}  // namespace
}  // namespace caisson::test
