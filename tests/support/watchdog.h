// Ends a test program whose test hangs, and prints which test it was and what its processes wait for.
#pragma once

#include <chrono>

namespace caisson::test {

/// From now on each test may take `limit`. A test that takes longer aborts the program.
/// Uses a timer instead of a thread: some tests unshare namespaces, which a process with threads can't.
void abortHungTests(std::chrono::seconds limit);

/// As above, with the limit of this build (longer under a sanitizer) or the one in CAISSON_TEST_SECONDS.
void abortHungTests();

}  // namespace caisson::test
