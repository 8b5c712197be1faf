// Random work, committed by caisson and by an independent implementation.
#include "functional/session.h"

namespace caisson::test {
namespace {

class CommitModel : public testing::TestWithParam<int> {};

TEST_P(CommitModel, ResultMatchesAnIndependentImplementation) {
  std::string why;
  requireOrSkip(fullIsolationAvailable(&why), why);
  const RunOutput out =
      runProgram({"python3", sourceFile("tests/session/commit_model.py"), std::to_string(GetParam())});
  EXPECT_EQ(out.exit_status, 0) << out.describe();
}

INSTANTIATE_TEST_SUITE_P(Seeds, CommitModel, testing::Range(1, 25));

}  // namespace
}  // namespace caisson::test
