// Sessions that contain hostile processes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/environment.h"
#include "support/processes.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {

inline constexpr const char* kStopAll = "while :; do kill -STOP -1; done";

class SupervisorTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
  }
  /// Starts a background process that stops every process it can, and waits until it does.
  void stopEverything(const std::string& id) const {
    cli.start(id, {"sh", "-c", kStopAll, cli.marker()});
    ASSERT_TRUE(eventually([&] { return cpuSeconds() > 0.05; })) << "the loop does not run";
  }
  /// CPU time of all live processes with the marker.
  [[nodiscard]] double cpuSeconds() const {
    double total = 0;
    for (const pid_t pid : liveProcesses(cli.marker())) {
      if (const auto state = processState(pid)) total += state->cpu_seconds;
    }
    return total;
  }
  /// A client that waits for its command, which the attacker stops.
  [[nodiscard]] std::unique_ptr<BackgroundProgram> startClient(const std::string& id) const {
    const std::size_t commands = cli.events("sandbox_execute").size();
    auto client = std::make_unique<BackgroundProgram>(
        std::vector<std::string>{caissonBinary(), "session", "exec", id, "--", "sleep", "60"}, cli.options());
    EXPECT_TRUE(eventually([&] { return cli.events("sandbox_execute").size() > commands; }));
    eventually([&] { return anyStopped(); }, std::chrono::milliseconds(500));  // a supervisor may prevent it
    return client;
  }
  [[nodiscard]] bool anyStopped() const {
    return std::ranges::any_of(processTree(sandboxInit(firstLiveProcess(cli.marker()))), [](pid_t pid) {
      const auto state = processState(pid);
      return state && state->state == 'T';
    });
  }
  [[nodiscard]] bool allGone() const { return liveProcesses(cli.marker()).empty(); }

  const SessionCli cli;
};

}  // namespace caisson::test
