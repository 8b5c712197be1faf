// An attack, tried twice: under caisson, where it must fail, and with the protection disabled, where it must succeed.
// The second half proves that the first one tests something.
//
//   expectOnlyStoppedBy("seccomp", {.verb = {"unshare", "user"}});
//
// Root never runs a weakened sandbox, so the second half runs only as an ordinary user.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {

/// The dynamic loader, which runs a program given as a file.
#if defined(__x86_64__)
inline constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";
#else
inline constexpr const char* kLoader = "/lib/ld-linux-aarch64.so.1";
#endif

struct Attack {
  std::vector<std::string> verb;     ///< of the payload program, with its arguments
  std::string workspace = ":none";   ///< DIR:MODE
  std::vector<std::string> options;  ///< further flags for both `caisson run` and caisson-weakened
  RunOptions how;
};

/// Runs the attack under the caisson under test.
RunOutput inSandbox(const Attack& attack);

/// Runs it with these protections disabled (comma-separated names of weakened.cc). Only if mayWeaken().
RunOutput weakened(const std::string& protections, const Attack& attack);

/// Runs it with no sandbox at all, as the caller. Only if mayWeaken().
RunOutput unprotected(const Attack& attack);

/// The same attack at level `process`, which has no private root: the payload program is shown as its workspace.
Attack atLevelProcess(Attack attack);

/// The program that weakened() runs.
std::string weakenedPath();

/// Whether the second half of a test can run here; if not, the reason is in the test's log.
bool mayWeaken();

/// The attempt was severe enough for caisson to kill the sandbox before the call returned.
bool endedByCaisson(const RunOutput& output);
/// The payload ran, and its attempt was denied.
testing::AssertionResult contained(const RunOutput& output);
/// The payload's attempt succeeded.
testing::AssertionResult succeeded(const RunOutput& output);

/// contained() under caisson, succeeded() without `protections`.
void expectOnlyStoppedBy(const std::string& protections, const Attack& attack);

/// A unique string.
std::string uniqueWord(const std::string& prefix);

}  // namespace caisson::test
