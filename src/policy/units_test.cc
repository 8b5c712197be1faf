#include "policy/units.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "policy/model.h"

namespace caisson::policy {

TEST(Units, ReadSizes) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"0", 0},
      {"1024", 1024},
      {"1B", 1},
      {"100k", 102400},
      {"100K", 102400},
      {"512M", 536870912},
      {"512MiB", 536870912},
      {"512 MiB", 536870912},
      {"1.5G", 1610612736},
      {"1.50G", 1610612736},
      {"0.5k", 512},
      {"2T", 2199023255552},
      {"9223372036854775807", 9223372036854775807U},
  };
  for (const auto& [text, bytes] : cases) {
    const auto size = parseSize(text);
    ASSERT_TRUE(size) << text << ": " << size.error();
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(Units, InvalidSizesAreRejected) {
  for (const char* text : {"",
                           "-1",
                           "-1M",
                           "M",
                           " 1",
                           "1 ",
                           "1  M",
                           "1MB",
                           "1X",
                           "1.5",
                           "1.0001k",
                           "1.2.3M",
                           "1.",
                           ".5M",
                           "9223372036854775808",
                           "99999999999999999999",
                           "8388608T",
                           "8388607.9999999999999999T",
                           "1e3",
                           "0x10",
                           "1,5G",
                           "\xC3\xA9",
                           "1MiBx",
                           "0.0000000000000000001G"}) {
    EXPECT_FALSE(parseSize(text)) << text;
  }
}

TEST(Units, ReadDurations) {
  const std::pair<const char*, double> cases[] = {{"90", 90},   {"90s", 90},    {"2m", 120},   {"2min", 120},
                                                  {"1h", 3600}, {"500ms", 0.5}, {"1.5s", 1.5}, {"0", 0}};
  for (const auto& [text, seconds] : cases) {
    const auto parsed = parseSeconds(text);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error();
    EXPECT_EQ(*parsed, seconds) << text;
  }
}

TEST(Units, InvalidDurationsAreRejected) {
  for (const char* text : {"", "-1s", "s", "1x", "1..2s", "inf", "nan", "1e9", "99999999999", "1 h x", "0x1p3"}) {
    EXPECT_FALSE(parseSeconds(text)) << text;
  }
}

TEST(Units, PrintInTheUsualNotation) {
  EXPECT_EQ(formatSize(0), "0 bytes");
  EXPECT_EQ(formatSize(512ULL << 20), "512 MiB");
  EXPECT_EQ(formatSize(1000), "1000 bytes");
  EXPECT_EQ(formatSeconds(0.5), "500 ms");
  EXPECT_EQ(formatSeconds(90), "90 s");
  EXPECT_EQ(formatNumber(1.5), "1.5");
  EXPECT_EQ(formatNumber(100000), "100000");
  EXPECT_EQ(formatNumber(0.001), "0.001");
  EXPECT_EQ(std::strtod(formatNumber(0.1 + 0.2).c_str(), nullptr), 0.1 + 0.2);
}

TEST(Units, SharesOfMemory) {
  EXPECT_EQ(parseShare("50%"), shareOfMemory(50));
  EXPECT_EQ(parseShare("100%"), shareOfMemory(100));
  for (const std::string_view wrong : {"0%", "101%", "%", "50", "5%0", "50%%", "-1%", "1.5%", ""}) {
    EXPECT_FALSE(parseShare(wrong)) << wrong;
  }
  EXPECT_EQ(resolveShare(shareOfMemory(50), 8 * kGiB / 100 * 100), 8 * kGiB / 100 * 50);
  EXPECT_EQ(resolveShare(4096, 8 * kGiB), 4096U);
  EXPECT_EQ(resolveShare(shareOfMemory(50), 0), shareOfMemory(50)) << "the whole is unknown";
  EXPECT_EQ(formatSize(shareOfMemory(50)), "50% of the host's");
}

}  // namespace caisson::policy
