#include "base/path_text.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(DisplayedPath, ShowsBlanksThatLookLikeAnotherLine) {
  EXPECT_EQ(displayedPath("a b c"), "a b c");
  EXPECT_EQ(displayedPath(" a"), "$'\\040a'");
  EXPECT_EQ(displayedPath("a "), "$'a\\040'");
  EXPECT_EQ(displayedPath("a   A README.md"), "$'a \\040\\040A README.md'");
  EXPECT_EQ(displayedPath("x\u00a0y\u2800\u3000"), "$'x\\302\\240y\\342\\240\\200\\343\\200\\200'");
}

TEST(DisplayedPath, QuotesWhatLooksLikeAMarkOfAList) {
  EXPECT_EQ(displayedPath("run.sh (mode 0755 -> 0644)"), "$'run.sh (mode 0755 -> 0644)'");
  for (const std::string path : {"y | 3 +++", "a -> b", "a => b", "z (held back", "app/(group)", "a, b", "a/ b"})
    EXPECT_EQ(displayedPath(path), "$'" + path + "'");
  for (const char* path : {"a(1).txt", "a|b", "a->b", "a,b", "a - b"}) EXPECT_EQ(displayedPath(path), path);
}

TEST(PathText, ReadablePathIsUnchanged) {
  for (const char* path : {"", "a/b", "with space", "it's", "back\\slash", "a\\377", "Zo\xc3\xab", "$HOME"})
    EXPECT_EQ(displayedPath(path), path);
}

TEST(DisplayedPath, EscapesLettersThatLookLikeOthers) {
  EXPECT_EQ(displayedPath("src/m\u0430in.cc"), "$'src/m\\320\\260in.cc'");
  EXPECT_EQ(displayedPath("Zoe\u0308"), "$'Zoe\\314\\210'");
  EXPECT_EQ(displayedPath("\u0434\u043e\u043c/\u0441\u043e\u0440.py"),
            "$'\u0434\\320\\276\u043c/\\321\\201\\320\\276\\321\\200.py'");
}

TEST(PathText, OtherBytesAreEscapedInShellNotation) {
  EXPECT_EQ(displayedPath("a\xff\nb"), "$'a\\377\\nb'");
  EXPECT_EQ(displayedPath("\x1b[31m\t'\\"), "$'\\033[31m\\t\\'\\\\'");
  EXPECT_EQ(displayedPath("bidi\u202etxt"), "$'bidi\\342\\200\\256txt'");
  EXPECT_EQ(displayedPath("\xc3\xab\xc3"), "$'\xc3\xab\\303'");
  EXPECT_EQ(displayedPath("\xff"
                          "7"),
            "$'\\3777'");
}

TEST(PathText, DifferentPathsGiveDifferentText) {
  EXPECT_EQ(displayedPath("$'a\\377'"), "$'$\\'a\\\\377\\''");
  EXPECT_NE(displayedPath("$'a\\377'"), displayedPath("a\xff"));
  EXPECT_NE(displayedPath("a\\nb\xff"), displayedPath("a\nb\xff"));
}

TEST(PathText, DecodesBase64OnlyIfNamedAndWithoutNul) {
  EXPECT_EQ(decodePath("Yf8=", "base64"), "a\xff");
  EXPECT_EQ(decodePath("Yf8=", "utf-8"), "Yf8=");
  EXPECT_EQ(decodePath("Yf8=", ""), "Yf8=");
  EXPECT_EQ(decodePath("YQA=", "base64"), std::nullopt);
  EXPECT_EQ(decodePath("Y!", "base64"), std::nullopt);
}

}  // namespace
}  // namespace caisson
