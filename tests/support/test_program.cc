#include "support/test_program.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "support/temp_dir.h"
#include "support/watchdog.h"

namespace caisson::test {

int runTestProgram(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const TempDir data;
  if (::setenv("XDG_DATA_HOME", data.path().c_str(), 1) != 0) return 1;
  abortHungTests();
  return RUN_ALL_TESTS();
}

}  // namespace caisson::test
