#include "base/deceptive_text.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(DeceptiveText, IsNotReadable) {
  for (const char* text :
       {"a\x1b[2J", "a\nb", "\xc2\x9b", "soft\xc2\xadhyphen",
        "a\xe2\x80\xae"
        "b",
        "\xef\xb8\x8f", "\xe3\x85\xa4", "\xcd\x8f", "\xe1\x85\x9f", "\xef\xbe\xa0", "\xf3\xa0\x84\x80", "\xff",
        "\u00a0", "\u1680", "\u2003", "\u202f", "\u205f", "\u2800", "\u3000"}) {
    EXPECT_FALSE(isReadable(text)) << text;
  }
  EXPECT_TRUE(isReadable("/home/Zo\xc3\xab/\xe6\x97\xa5\xe6\x9c\xac ok"));
}

}  // namespace
}  // namespace caisson
