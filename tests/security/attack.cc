#include "security/attack.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>

namespace caisson::test {
namespace {

/// Flags and command, the same for both programs.
std::vector<std::string> commandLine(std::vector<std::string> words, const Attack& attack) {
  words.insert(words.end(), {"--workspace", attack.workspace, "--ro", payloadPath()});
  words.insert(words.end(), attack.options.begin(), attack.options.end());
  words.insert(words.end(), {"--", payloadPath()});
  words.insert(words.end(), attack.verb.begin(), attack.verb.end());
  return words;
}

/// A caught command goes into quarantine: the next attack must not find it there.
RunOptions withState(RunOptions how, const TempDir& state) {
  if (!how.env.contains("HOME") && !how.env.contains("CAISSON_HOME")) how.env["CAISSON_HOME"] = state.path();
  return how;
}

}  // namespace

Attack atLevelProcess(Attack attack) {
  attack.workspace = payloadPath().substr(0, payloadPath().rfind('/')) + ":ro";
  attack.options.insert(attack.options.end(), {"--level", "process"});
  return attack;
}

std::string weakenedPath() {
  const char* configured = std::getenv("CAISSON_WEAKENED");
  return configured != nullptr && *configured != '\0' ? configured : CAISSON_WEAKENED_BINARY;
}

RunOutput inSandbox(const Attack& attack) {
  const TempDir state;
  return runCaisson(commandLine({"run", "--quiet"}, attack), withState(attack.how, state));
}

RunOutput weakened(const std::string& protections, const Attack& attack) {
  const TempDir state;
  return runProgram(commandLine({weakenedPath(), protections}, attack), withState(attack.how, state));
}

RunOutput unprotected(const Attack& attack) { return runProgram(payload(attack.verb), attack.how); }

bool mayWeaken() {
  std::string reason;
  if (runsAsRoot()) reason = "a weakened sandbox is never given to root";
  if (reason.empty() && access(weakenedPath().c_str(), X_OK) != 0)
    reason = weakenedPath() + " is out of this user's reach";
  if (reason.empty()) return true;
  std::cout << "[   NOTE   ] not tried without its protection: " << reason << '\n';
  testing::Test::RecordProperty("not_weakened", reason);
  if (!runsAsRoot() && mustRun()) ADD_FAILURE() << "must run, but: " << reason;
  return false;
}

bool endedByCaisson(const RunOutput& output) {
  return output.exit_status == 125 && output.out.empty() && output.err.find("ended by caisson: ") != std::string::npos;
}

testing::AssertionResult contained(const RunOutput& output) {
  if (output.exit_status == 1 && output.out.starts_with("refused")) return testing::AssertionSuccess();
  if (endedByCaisson(output)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "not contained: " << output.describe();
}

testing::AssertionResult succeeded(const RunOutput& output) {
  if (output.exit_status == 0 && output.out.starts_with("done")) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "the attack failed although its protection was taken away: "
                                     << output.describe();
}

void expectOnlyStoppedBy(const std::string& protections, const Attack& attack) {
  EXPECT_TRUE(contained(inSandbox(attack)));
  if (!mayWeaken()) return;
  EXPECT_TRUE(succeeded(weakened(protections, attack))) << "without " << protections;
}

std::string uniqueWord(const std::string& prefix) {
  static std::atomic<int> count = 0;
  return prefix + "-" + std::to_string(getpid()) + "-" + std::to_string(++count);
}

}  // namespace caisson::test
