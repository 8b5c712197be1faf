// Random trees, shown through each interface: what is readable is what the documents say. CAISSON_SHAPES sets the
// number of trees; the standard run tries four. `make test-shapes` runs 500.
#include <chrono>
#include <cstdlib>
#include <string>

#include "support/environment.h"
#include "support/run.h"

namespace caisson::test {
namespace {

class Shapes : public testing::TestWithParam<const char*> {};

TEST_P(Shapes, ShowWhatTheDocumentsSay) {
  std::string why;
  requireOrSkip(fullIsolationAvailable(&why), why);
  requireOrSkip(hasProgram("git"), "no git here");
  const char* const wanted = std::getenv("CAISSON_SHAPES");
  const std::string seeds = wanted != nullptr ? "1" : "1,2,7,9";
  RunOptions options;
  options.env["CAISSON_BIN"] = caissonBinary();
  options.timeout = std::chrono::minutes(wanted != nullptr ? 60 : 3);
  const RunOutput out =
      runProgram({"python3", "-B", sourceFile("tests/security/shapes/differential.py"), "--interfaces", GetParam(),
                  "--seed", seeds, "--trees", wanted != nullptr ? wanted : "1"},
                 options);
  EXPECT_EQ(out.exit_status, 0) << out.describe();
}

INSTANTIATE_TEST_SUITE_P(Interface, Shapes, testing::Values("run", "session", "mcp", "http"),
                         [](const testing::TestParamInfo<const char*>& interface) {
                           return std::string(interface.param);
                         });

}  // namespace
}  // namespace caisson::test
