// The test program is also `without`, so that an ordinary user who runs the suite can always execute it.
#include <string_view>

#include "degraded/degraded.h"
#include "degraded/without.h"
#include "support/test_program.h"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == caisson::test::kWithoutFlag) {
    return caisson::test::runWithout(argc - 1, argv + 1);
  }
  return caisson::test::runTestProgram(argc, argv);
}
