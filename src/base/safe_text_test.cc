#include "base/safe_text.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace caisson {
namespace {

using namespace std::string_view_literals;

TEST(SafeText, LeavesReadableTextUnchanged) { EXPECT_EQ(safeLine("/home/Zoë/日本語 \\ ok"), "/home/Zoë/日本語 \\ ok"); }

TEST(SafeText, EscapesTerminalControls) {
  EXPECT_EQ(safeLine("\x1b[2Jgone\x07"), "\\x1b[2Jgone\\x07");
  EXPECT_EQ(safeLine("a\0b"sv), "a\\x00b");
  EXPECT_EQ(safeLine("\x7f"), "\\x7f");
  EXPECT_EQ(safeLine("\xc2\x9b"
                     "31m"),
            "\\u{009b}31m");  // C1 CSI
}

TEST(SafeText, ShowsCharactersThatReorderOrHideText) {
  EXPECT_EQ(safeLine("a\xe2\x80\xae"
                     "b"),
            "a\\u{202e}b");  // right-to-left override
  EXPECT_EQ(safeLine("a\xe2\x81\xa6"
                     "b"),
            "a\\u{2066}b");  // isolate
  EXPECT_EQ(safeLine("a\xe2\x80\x8b"
                     "b"),
            "a\\u{200b}b");  // zero-width space
  EXPECT_EQ(safeLine("\xef\xbb\xbf"), "\\u{feff}");
  EXPECT_EQ(safeLine("\xf3\xa0\x81\x81"), "\\u{e0041}");  // tag letter
}

TEST(SafeText, KeepsUntrustedTextOnItsLine) {
  EXPECT_EQ(safeLine("x\ncaisson: approved\r"), "x\\ncaisson: approved\\r");
  EXPECT_EQ(safeLine("x\xe2\x80\xa8y"), "x\\u{2028}y");
  EXPECT_EQ(safeLines("one\n\ttwo\r\n"), "one\n\ttwo\\r\n");
}

TEST(SafeText, ShowsInvalidBytesInHex) {
  EXPECT_EQ(safeLine("a\xff"
                     "b\xc3"),
            "a\\xffb\\xc3");
  EXPECT_EQ(safeLine("\xc0\xaf"), "\\xc0\\xaf");           // overlong slash
  EXPECT_EQ(safeLine("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
}

TEST(Utf8, AcceptsExactlyTheWellFormed) {
  static_assert(isUtf8("") && isUtf8("plain") && isUtf8("\xf4\x8f\xbf\xbf"));
  static_assert(!isUtf8("\xf4\x90\x80\x80") && !isUtf8("\x80") && !isUtf8("\xe2\x82"));
  SUCCEED();
}

}  // namespace
}  // namespace caisson
