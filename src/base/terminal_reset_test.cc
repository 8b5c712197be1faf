#include "base/terminal_reset.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(TerminalReset, UndoesModesThatCouldHideAPrompt) {
  const std::string_view reset = terminalReset("xterm-256color");
  for (const std::string_view part : {"\x1b]110\x1b\\", "\x1b]111\x1b\\", "\x1b]104\x1b\\", "\x1b[r", "\x1b[?1047l",
                                      "\x1b[0m", "\x1b[?1003l", "\x1b(B"}) {
    EXPECT_NE(reset.find(part), std::string_view::npos) << part.substr(1);
  }
  EXPECT_TRUE(reset.starts_with("\x18")) << "a sequence half sent would swallow the rest";
  EXPECT_LT(reset.find("\x1b[r"), reset.find("\x1b[999;1H")) << "setting the scroll region moves the cursor";
}

TEST(TerminalReset, SendsNoSequencesToTerminalsWithoutThem) {
  EXPECT_EQ(terminalReset(nullptr), "\r\n");
  EXPECT_EQ(terminalReset(""), "\r\n");
  EXPECT_EQ(terminalReset("dumb"), "\r\n");
}

}  // namespace
}  // namespace caisson
