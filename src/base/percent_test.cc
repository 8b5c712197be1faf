#include "base/percent.h"

#include <gtest/gtest.h>

#include "base/hex.h"

namespace caisson {
namespace {

TEST(Percent, EncodedTextDecodesToTheOriginal) {
  std::string every;
  for (int byte = 1; byte < 256; ++byte) every += static_cast<char>(byte);
  EXPECT_EQ(decodePercent(encodePercent(every)), every);
  EXPECT_EQ(decodePercent(encodePercent(every, "/")), every);
  EXPECT_EQ(encodePercent("src/a b.txt", "/"), "src/a%20b.txt");
  EXPECT_EQ(encodePercent("src/a~b-c_d.txt"), "src%2Fa~b-c_d.txt");
}

TEST(Percent, PlusIsASpaceOnlyOnRequest) {
  EXPECT_EQ(decodePercent("a+b%2B", true), "a b+");
  EXPECT_EQ(decodePercent("a+b%2b"), "a+b+");
}

TEST(Percent, InvalidTextIsNullopt) {
  for (const char* text : {"%", "%4", "%zz", "a%0", "%00", "%-1", "%4g", "%g4"}) {
    EXPECT_FALSE(decodePercent(text)) << text;
    EXPECT_FALSE(decodePercent(text, true)) << text;
  }
  EXPECT_FALSE(decodePercent(std::string_view("a\0b", 3)));
}

TEST(Hex, DigitsOfEitherCaseAreRead) {
  EXPECT_EQ(hexText(std::string_view("\x00\x7f\xff", 3)), "007fff");
  EXPECT_EQ(hexDigit('0') + hexDigit('9') + hexDigit('a') + hexDigit('F'), 9 + 10 + 15);
  for (const char c : {'g', 'G', '/', ':', '@', '`', '\0'}) EXPECT_EQ(hexDigit(c), -1) << c;
}

}  // namespace
}  // namespace caisson
