#include "base/terminal_reset.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(TerminalReset, UndoesModesThatCouldHideAPrompt) {
  const std::string reset = terminalReset("xterm-256color");
  for (const std::string_view part : {"\x1b]110\x1b\\", "\x1b]111\x1b\\", "\x1b]104\x1b\\", "\x1b[r", "\x1b[?1047l",
                                      "\x1b[0m", "\x1b[?1003l", "\x1b(B", "\x1b[?2026l", "\x1b[0$}", "\x1b[?2004l"}) {
    EXPECT_NE(reset.find(part), std::string_view::npos) << part.substr(1);
  }
  EXPECT_LT(reset.find("\x18"), reset.find("\x1b[")) << "a sequence half sent would swallow the rest";
  EXPECT_LT(reset.find("\x1b[r"), reset.find("\x1b[999;1H")) << "setting the scroll region moves the cursor";
}

TEST(TerminalReset, SendsNoSequencesToTerminalsWithoutThem) {
  EXPECT_EQ(terminalReset(nullptr), "\r\n");
  EXPECT_EQ(terminalReset(""), "\r\n");
  EXPECT_EQ(terminalReset("dumb"), "\r\n");
}

TEST(TerminalReset, ResetsThePaletteOnlyOfTheLinuxConsoleInItsOwnWay) {
  EXPECT_NE(terminalReset("linux").find("\x1b]R"), std::string::npos);
  EXPECT_EQ(terminalReset("xterm").find("\x1b]R"), std::string::npos) << "it would swallow the prompt";
}

TEST(FreshScreen, ScrollsEverythingOutOfSightBeforeItErases) {
  const std::string text = freshScreen("xterm", 24);
  EXPECT_TRUE(text.starts_with(terminalReset("xterm")));
  EXPECT_TRUE(text.ends_with(std::string(24, '\n') + "\x1b[H\x1b[2J"));
  EXPECT_EQ(freshScreen("dumb", 3), "\r\n\n\n\n\r");
}

TEST(ScreenPages, HoldNoMoreLinesThanFit) {
  using Pages = std::vector<std::string>;
  EXPECT_EQ(screenPages("", 3, 10), Pages{""});
  EXPECT_EQ(screenPages("a\nb\nc", 3, 10), Pages{"a\nb\nc\n"});
  EXPECT_EQ(screenPages("a\nb\nc\nd\n", 3, 10), (Pages{"a\nb\nc\n", "d\n"}));
  EXPECT_EQ(screenPages("0123456789x\nb\nc\n", 3, 10), (Pages{"0123456789x\nb\n", "c\n"})) << "it is wrapped";
  EXPECT_EQ(screenPages("\xe4\xb8\x96\xe7\x95\x8c\nb\n", 1, 4), (Pages{"\xe4\xb8\x96\xe7\x95\x8c\n", "b\n"}));
}

}  // namespace
}  // namespace caisson
