// The environment of the tests: the binaries under test, and what this host supports.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace caisson::test {

/// The caisson under test: CAISSON_BIN, else the one of this build.
std::string caissonBinary();

/// A command line for the static payload program: payload({"write", "/etc/x"}) -> {".../payload", "write", "/etc/x"}.
std::vector<std::string> payload(std::vector<std::string> verb_and_arguments);
std::string payloadPath();

/// A file of the source tree ("tests/fixtures/x.toml").
std::string sourceFile(const std::string& relative);

/// A program of this build by its absolute path, or, in a bundle that was moved to another machine, beside this
/// program.
std::string builtProgram(const std::string& path);

bool runsAsRoot();

/// ThreadSanitizer adds a thread to every process and writes a file before main: such a program can neither enter a
/// user namespace with unshare nor start under a file size limit.
#if defined(__SANITIZE_THREAD__) || defined(CAISSON_DRIVES_THREAD_SANITIZER)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

/// Whether level `full` works here, tested by running `true` once; otherwise `why` gets the reason.
bool fullIsolationAvailable(std::string* why = nullptr);

/// CAISSON_MUST_RUN is set: a skipped test counts as failed.
bool mustRun();

/// CAISSON_STRESS multiplies the rounds of tests for rare events: 1 unless it is set, as in make test-stress.
int stress();

/// CAISSON_TEST_SLOWNESS multiplies the time limits of tests: 1 unless it is set, as for emulated machines. Never the
/// limits of a policy.
int slowness();

/// Whether a program is on PATH.
bool hasProgram(const std::string& name);

}  // namespace caisson::test

/// Continues if `condition` holds; otherwise skips the test with the reason, or fails it under CAISSON_MUST_RUN=1. A
/// macro, because it must return from the test function: requireOrSkip(hasProgram("node"), "no node here").
#define requireOrSkip(condition, reason)                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      if (::caisson::test::mustRun()) FAIL() << "must run, but: " << (reason); \
      GTEST_SKIP() << (reason);                                                \
    }                                                                          \
  } while (false)
