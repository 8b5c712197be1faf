// Runs the caisson under test on a kernel that lacks a feature, and checks the invariants.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {

inline constexpr const char* kWithoutFlag = "--without";

/// `caisson ARGUMENTS` without the calls that `missing` names (see without.h).
RunOutput caissonWithout(const std::string& missing, const std::vector<std::string>& arguments, RunOptions how = {});

/// How a run of the probe ended, from its JSON result.
struct Ending {
  RunOutput output;
  nlohmann::json result;
  bool ran = false;         ///< the payload wrote to standard output or the workspace
  std::string left_behind;  ///< new files in caisson's state directory or the workspace, without the audit log

  [[nodiscard]] std::string text(const char* key) const;
  [[nodiscard]] std::string layer(const char* name) const;
  [[nodiscard]] bool refused() const;
  [[nodiscard]] std::vector<std::string> warnings() const;
  [[nodiscard]] std::string describe() const { return output.describe(); }
};

/// Skips where `full` does not work even with all features.
class DegradedTest : public testing::Test {
 protected:
  void SetUp() override;

  /// Runs a payload that writes to stdout and a writable workspace, then prints its protections.
  [[nodiscard]] Ending probe(const std::string& missing, std::vector<std::string> options = {}) const;
  /// The same with nothing missing.
  [[nodiscard]] Ending probe(const std::vector<std::string>& options = {}) const { return probe("", options); }

  /// A policy file of the test, for settings without a flag.
  [[nodiscard]] std::string policy(const std::string& text) const { return files.write("policy.toml", text); }

  const TempDir workspace, home, files;
};

/// Not run, exit status 125, nothing left behind, and a message that contains all `words`.
void expectRefusal(const Ending& ending, const std::vector<std::string>& words);
/// Run to its end, with no weaker layer and no additional warning.
void expectSameAs(const Ending& ending, const Ending& whole);

/// Converts "fsopen:EPERM" to a part of a test's name: letters and digits only.
std::string asTestName(std::string_view missing);

bool contains(const std::string& text, const std::string& part);

}  // namespace caisson::test
