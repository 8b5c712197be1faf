#include "base/version.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(UnknownFormat, NamesFoundAndKnownFormatsAndTheWriter) {
  const FormatVersion newer{.found = 3, .oldest = 1, .newest = 2};
  EXPECT_FALSE(newer.isKnown());
  const Error error = unknownFormat("x.json", newer, "use it");
  EXPECT_TRUE(isOtherVersion(error));
  EXPECT_EQ(error.reason, "it has format 3, written by a newer caisson; this caisson (" + std::string(ownVersion()) +
                              ") reads formats 1 to 2");
  EXPECT_EQ(error.hint, "use it");
  const Error older = unknownFormat("x.json", {.found = 0, .written_by = "0.0.9"}, "");
  EXPECT_NE(older.reason.find("it has format 0, written by caisson 0.0.9;"), std::string::npos) << older.reason;
  EXPECT_TRUE((FormatVersion{.found = 1}).isKnown());
}

}  // namespace
}  // namespace caisson
