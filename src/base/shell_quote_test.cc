#include "base/shell_quote.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(ShellQuote, PlainTextIsUnchanged) {
  EXPECT_EQ(shellQuoted("a/b-c=d"), "a/b-c=d");
  EXPECT_EQ(shellQuoted("--ro=/srv/x_1.0:y,z@h+%"), "--ro=/srv/x_1.0:y,z@h+%");
}

TEST(ShellQuote, OtherTextIsInSingleQuotes) {
  EXPECT_EQ(shellQuoted(""), "''");
  for (const char* text : {" ", "a b", "$HOME", "`id`", "a;b",  "a|b", "a&b", "*",  "?",     "[a]",     "~",
                           "#", "!",   "\\",    "\"",   "a\nb", "(a)", "<a",  ">a", "{a,b}", "\xC3\xA9"}) {
    EXPECT_EQ(shellQuoted(text), "'" + std::string(text) + "'");
  }
}

TEST(ShellQuote, SingleQuoteIsEscaped) {
  EXPECT_EQ(shellQuoted("'"), "''\\'''");
  EXPECT_EQ(shellQuoted("it's"), "'it'\\''s'");
  EXPECT_EQ(shellQuoted("$(x)\n'"), "'$(x)\n'\\'''");
}

TEST(ShellQuote, AlsoPlainCharactersNeedNoQuotes) {
  EXPECT_EQ(shellQuoted("[a]", "[]"), "[a]");
  EXPECT_EQ(shellQuoted("[a b]", "[]"), "'[a b]'");
}

}  // namespace
}  // namespace caisson
