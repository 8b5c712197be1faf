#include <gtest/gtest.h>

#include "support/watchdog.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  caisson::test::abortHungTests();
  return RUN_ALL_TESTS();
}
