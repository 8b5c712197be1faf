// Random histories of two sessions and the host: nothing that a session did not see is lost, and nothing unshown is
// applied. CAISSON_HISTORIES sets the number; the standard run tries a few.
#include <cstdlib>

#include "functional/session.h"

namespace caisson::test {
namespace {

TEST(CommitHistory, LosesNothingOfTheHostAndAppliesNothingUnshown) {
  std::string why;
  requireOrSkip(fullIsolationAvailable(&why), why);
  const char* const wanted = std::getenv("CAISSON_HISTORIES");
  const RunOutput out =
      runProgram({"python3", sourceFile("tests/session/commit_history.py"), "1", wanted != nullptr ? wanted : "15"});
  EXPECT_EQ(out.exit_status, 0) << out.describe();
}

}  // namespace
}  // namespace caisson::test
