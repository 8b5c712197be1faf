// One session in which an older background process attacks everything else that runs there. The attacks are the modes
// of `payload sibling` (tests/payloads/siblings.cc); each test runs once for each.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/environment.h"
#include "support/processes.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {

struct Attack {
  std::string kind;
  /// A failure must contain one of these. Empty: commands beside this attack must work.
  std::vector<std::string> causes;
  /// Whether the attacker itself uses CPU time constantly.
  bool burns = false;
};

/// All of them; also the names of the test instances.
std::vector<Attack> allAttacks();
void PrintTo(const Attack& attack, std::ostream* out);
std::string attackName(const testing::TestParamInfo<Attack>& info);

class HostileSibling : public testing::TestWithParam<Attack> {
 protected:
  static constexpr int kMaxProcesses = 60;

  void SetUp() override;

  /// Creates the session with further TOML lines; `resources` go to the table of that name.
  void createSession(const std::string& resources = {}, const std::string& tables = {},
                     const std::vector<std::string>& flags = {});
  enum class Clients { none, waiting };
  /// Starts the attacker and waits until its attack is in full effect. If commands may fail beside it, also starts
  /// clients that wait for one: whether a client is hit at the right moment is random.
  void startAttack(Clients clients = Clients::waiting);
  /// Both.
  void createAttackedSession() {
    createSession();
    startAttack();
  }

  /// Whether a command beside this attack may fail, if it names the cause.
  [[nodiscard]] bool mayFail() const { return !GetParam().causes.empty(); }
  /// Whether a failure is expected, with its cause in the message.
  [[nodiscard]] bool failedWithCause(const RunOutput& output) const;
  [[nodiscard]] pid_t attacker() const { return firstLiveProcess(cli.marker()); }
  [[nodiscard]] bool attackEnded() const { return liveProcesses(cli.marker()).empty(); }

  const SessionCli cli;
  std::string id;

 private:
  std::vector<std::unique_ptr<BackgroundProgram>> clients_;
};

/// Whether the process runs: not exited, and not stopped by a sibling.
bool goesOn(const std::string& marker);

}  // namespace caisson::test
