#include "base/error.h"

#include <gtest/gtest.h>
#include <cerrno>

namespace caisson {
namespace {

TEST(Error, SaysWhatWasTriedOnWhatWhyAndWhatToDo) {
  const Error error = sysError(Stage::mounts, "mount_setattr", "/workspace", EPERM, "run caisson doctor");
  EXPECT_EQ(error.message(),
            "mount_setattr(\"/workspace\"): EPERM: Operation not permitted (stage mounts)\n  try: run caisson doctor");
}

TEST(Error, NamesAnUnknownErrnoByNumber) { EXPECT_EQ(errnoName(9999), "errno 9999"); }

}  // namespace
}  // namespace caisson
