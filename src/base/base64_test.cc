#include "base/base64.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(McpBase64, RoundTrips) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(decodeBase64(encodeBase64(bytes)), bytes);
    bytes += static_cast<char>(i * 37);
  }
  EXPECT_EQ(encodeBase64("Hello"), "SGVsbG8=");
}

TEST(McpBase64, IsStrict) {
  for (const char* text : {"SGVsbG8", "SGVs!!!bG8=", "SGVsbG8=\n", "A===", "====", "SGVsbG9=", "QQ=A", "QR=="})
    EXPECT_EQ(decodeBase64(text), std::nullopt) << text;
}

}  // namespace
}  // namespace caisson
