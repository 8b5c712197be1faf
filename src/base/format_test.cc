#include "base/format.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(Format, InsertsValuesInOrder) {
  EXPECT_EQ(format("{} of {}: {}", 3, std::string("7"), "x"), "3 of 7: x");
  EXPECT_EQ(format("{}{}", std::uint64_t{18446744073709551615U}, -1), "18446744073709551615-1");
}

TEST(Format, ValueWithBracesIsNotAPattern) { EXPECT_EQ(format("<{}> <{}>", "{}", "end"), "<{}> <end>"); }

TEST(Format, FloatingPointNumbersHaveTheFewestDigits) {
  EXPECT_EQ(format("{} {} {} {}", 2.0, 0.1, 100000.0, 0.0), "2 0.1 100000 0");
  EXPECT_EQ(format("{}", 1e30), "1e+30");
  EXPECT_EQ(format("{}", 1e15), "1000000000000000");
  EXPECT_EQ(format("{} {} {}", 0.1 + 0.2, 1.0 / 3, -0.0001), "0.30000000000000004 0.3333333333333333 -0.0001");
  EXPECT_EQ(format("{} {}", 2.5e-9, -1.7976931348623157e308), "2.5e-09 -1.7976931348623157e+308");
}

TEST(Format, HexAndOctalNumbers) {
  EXPECT_EQ(hex(0), "0x0");
  EXPECT_EQ(hex(0xC00000B7U), "0xc00000b7");
  EXPECT_EQ(octal(0755), "0755");
  EXPECT_EQ(octal(01777), "1777");
  EXPECT_EQ(octal(07), "0007");
}

TEST(Format, PaddedTextIsNeverCut) {
  EXPECT_EQ(padded("ab", 4), "ab  ");
  EXPECT_EQ(padded("abcde", 4), "abcde");
}

}  // namespace
}  // namespace caisson
