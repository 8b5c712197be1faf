// A private workspace, and helpers to run commands on it through the command line.
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

/// Skips where `full` does not work. caisson is started in the workspace.
class SandboxTest : public testing::Test {
 protected:
  void SetUp() override;

  /// `caisson run OPTIONS -- COMMAND`, started in the workspace.
  [[nodiscard]] RunOutput run(const std::vector<std::string>& options, const std::vector<std::string>& command,
                              RunOptions how = {}) const;
  /// The same for a shell script.
  [[nodiscard]] RunOutput script(const std::string& text, const std::vector<std::string>& options = {},
                                 const RunOptions& how = {}) const;
  /// A script for the host's bash, started in the workspace; $CAISSON is the binary under test.
  [[nodiscard]] RunOutput onHost(const std::string& text, RunOptions how = {}) const;

  const TempDir workspace;
};

/// Whether the sandbox can see this program: below /usr, after resolving links.
bool systemHas(const std::string& program);

/// The pids of all processes on this machine with `marker` in their command line, except our own.
std::vector<pid_t> processesNaming(const std::string& marker);

/// A string that is unique on this machine.
std::string uniqueMarker();

bool contains(const std::string& text, const std::string& part);

}  // namespace caisson::test
