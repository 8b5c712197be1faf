// Behaviour for programs that link the library, beyond the command line.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "caisson/run.h"
#include "support/environment.h"
#include "support/temp_dir.h"

namespace caisson::test {
namespace {

class Library : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    ::setenv("CAISSON_HOME", home.path().c_str(), 1);
  }
  const TempDir home;
};

/// Until its exec the payload is a copy of the launching program. A poll sees that only at the right moment, so there
/// are many runs.
TEST_F(Library, ALargeCallerIsNotHeldAgainstThePayload) {
  const std::vector<char> ballast(300U << 20, 'x');
  auto policy = Policy::profile("strict");
  ASSERT_TRUE(policy);
  ASSERT_TRUE(policy->set("resources.memory", "32M"));
  for (int i = 0; i < 40; ++i) {
    const auto result = run({.policy = *policy, .command = {"true"}, .program = caissonBinary()});
    ASSERT_TRUE(result) << result.error().message();
    ASSERT_EQ(name(result->outcome), name(OutcomeKind::exited)) << i << ": " << name(result->limit);
    EXPECT_LT(result->usage.peak_memory_bytes, 32U << 20);
    for (const std::string& warning : result->warnings)
      EXPECT_EQ(warning.find("memory came"), std::string::npos) << warning;
  }
  EXPECT_EQ(ballast.back(), 'x');
}

}  // namespace
}  // namespace caisson::test
