#include "mcp/protocol/uri.h"

#include <gtest/gtest.h>

namespace caisson::mcp {
namespace {

TEST(Percent, WhatIsEncodedDecodesToTheSame) {
  std::string every;
  for (int byte = 1; byte < 256; ++byte) every += static_cast<char>(byte);
  EXPECT_EQ(decodePercent(encodePercent(every)), every);
  EXPECT_EQ(encodePercent("src/a b.txt"), "src/a%20b.txt");
}

TEST(Percent, NonsenseIsNothing) {
  for (const char* text : {"%", "%4", "%zz", "a%0", "%00", "%-1"}) EXPECT_FALSE(decodePercent(text)) << text;
  EXPECT_FALSE(decodePercent(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace caisson::mcp
