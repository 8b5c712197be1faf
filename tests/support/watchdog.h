// Aborts a test program whose test hangs, and prints the test and what its processes wait for.
#pragma once

#include <chrono>

namespace caisson::test {

/// From now on each test may take `limit`; a longer test aborts the program. Uses a timer instead of a thread: some
/// tests unshare namespaces, which a threaded process cannot.
void abortHungTests(std::chrono::seconds limit);

/// Same, with the limit of this build (longer under a sanitizer) or of CAISSON_TEST_SECONDS.
void abortHungTests();

}  // namespace caisson::test
