// What the suite runs on: the binaries under test, and what this host can do.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace caisson::test {

/// The caisson under test: CAISSON_BIN, else the one this build made.
std::string caissonBinary();

/// A command line for the static helper: payload({"write", "/etc/x"}) -> {".../payload", "write", "/etc/x"}.
std::vector<std::string> payload(std::vector<std::string> verb_and_arguments);
std::string payloadPath();

/// A file of the source tree ("tests/fixtures/x.toml").
std::string sourceFile(const std::string& relative);

bool runsAsRoot();

/// ThreadSanitizer gives every process a thread and writes a file of its own before main: such a program can neither
/// enter a user namespace by unshare nor start under a limit on file sizes.
#if defined(__SANITIZE_THREAD__) || defined(CAISSON_DRIVES_THREAD_SANITIZER)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

/// Whether `full` works here, found by running `true` in it once; `why` gets the reason if not.
bool fullIsolationAvailable(std::string* why = nullptr);

/// CAISSON_MUST_RUN is set: a test that can't run is a failed test.
bool mustRun();

/// CAISSON_STRESS multiplies the rounds of tests that look for rare events: 1 unless it is set, as make test-stress
/// does.
int stress();

/// CAISSON_TEST_SLOWNESS multiplies the time limits of tests: 1 unless it is set, as for emulated machines. Never the
/// limits of a policy.
int slowness();

/// Whether a program is on PATH.
bool hasProgram(const std::string& name);

}  // namespace caisson::test

/// Goes on if `condition` holds; otherwise skips the test with the reason, or fails it under CAISSON_MUST_RUN=1.
/// A macro because only the test's own function can be left: requireOrSkip(hasProgram("node"), "no node here").
#define requireOrSkip(condition, reason)                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      if (::caisson::test::mustRun()) FAIL() << "must run, but: " << (reason); \
      GTEST_SKIP() << (reason);                                                \
    }                                                                          \
  } while (false)
