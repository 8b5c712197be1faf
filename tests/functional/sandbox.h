// A workspace of the test's own and short ways to run something on it through the public door.
//
//   using Workspace = SandboxTest;
//   TEST_F(Workspace, IsWritable) { EXPECT_EQ(script("echo x > f; cat f").out, "x\n"); }
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {

/// Skips where `full` does not work at all. The workspace is the directory that caisson is started in.
class SandboxTest : public testing::Test {
 protected:
  void SetUp() override;

  /// `caisson run OPTIONS -- COMMAND`, started in the workspace.
  [[nodiscard]] RunOutput run(const std::vector<std::string>& options, const std::vector<std::string>& command,
                              RunOptions how = {}) const;
  /// The same for a shell script.
  [[nodiscard]] RunOutput script(const std::string& text, const std::vector<std::string>& options = {},
                                 const RunOptions& how = {}) const;
  /// A script of the host's bash, started in the workspace, in which $CAISSON is the binary under test.
  [[nodiscard]] RunOutput onHost(const std::string& text, RunOptions how = {}) const;

  const TempDir workspace;
};

/// A program that the sandbox can see as well: below /usr, wherever its links lead.
bool systemHas(const std::string& program);

/// The pids of all processes on this machine with `marker` in their command line, but not our own.
std::vector<pid_t> processesNaming(const std::string& marker);

/// A word that occurs nowhere else on this machine.
std::string uniqueMarker();

bool contains(const std::string& text, const std::string& part);

}  // namespace caisson::test
