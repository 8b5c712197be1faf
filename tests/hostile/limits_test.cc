// Timeouts, limits, the escape response and the audit log hold while a sibling attacks.
#include <atomic>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "hostile/sibling.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

TEST_P(HostileSibling, CommandTimeoutEndsCommand) {
  createAttackedSession();
  const RunOutput output = cli.exec(id, {"sleep", "60"}, {"--timeout", "2s"}, seconds(7));
  EXPECT_FALSE(output.timed_out) << "runs 5 s longer than its timeout";
  EXPECT_TRUE(output.exit_status == 124 || (GetParam().kind == "kill-all" && output.exit_status == 137) ||
              failedWithCause(output))
      << output.describe();
}

TEST_P(HostileSibling, TtlEndsSandbox) {
  CONFORMS("R-SESSION-3");
  createSession("", "", {"--ttl", "3s"});
  startAttack(Clients::none);  // requests of clients may extend the TTL
  EXPECT_TRUE(eventually([&] { return attackEnded(); }, seconds(8))) << "the sandbox lives 5 s longer than its TTL";
}

/// CPU time of all live processes with the marker.
double cpuSeconds(const std::string& marker) {
  double total = 0;
  for (const pid_t pid : liveProcesses(marker)) {
    if (const auto state = processState(pid)) total += state->cpu_seconds;
  }
  return total;
}

TEST_P(HostileSibling, CpuLimitEndsBurners) {
  constexpr double kAllowed = 2;
  constexpr double kOvershoot = 3;
  createSession("cpu_seconds = \"2s\"\n");
  startAttack();
  const std::string burner = "burner-" + cli.marker();
  const RunOutput started = cli.exec(id, {"./payload", "sibling", "burn", burner}, {"--background"});
  EXPECT_TRUE(started.exit_status == 0 || failedWithCause(started)) << started.describe();
  // A burner that was stopped, or gets no CPU, is harmless.
  eventually([&] { return !goesOn(burner) || cpuSeconds(burner) > kAllowed + kOvershoot; }, seconds(15));
  EXPECT_LE(cpuSeconds(burner), kAllowed + kOvershoot) << "the burner still runs";
  if (!GetParam().burns) return;
  eventually([&] { return !goesOn(cli.marker()) || cpuSeconds(cli.marker()) > 2 * (kAllowed + kOvershoot); },
             seconds(15));
  EXPECT_LE(cpuSeconds(cli.marker()), 2 * (kAllowed + kOvershoot)) << "the attacker or the burner still runs";
}

TEST_P(HostileSibling, MemoryLimitEndsHog) {
  createSession("memory = \"128M\"\n");
  startAttack();
  const RunOutput output =
      cli.exec(id, {"./payload", "take-anonymous", "400"}, {"--json", "--timeout", "3s"}, seconds(8));
  EXPECT_FALSE(output.timed_out) << output.describe();
  EXPECT_NE(output.exit_status, 0) << "it has 400 MiB, 128 MiB are allowed: " << output.describe();
  if (mayFail()) return;
  const json result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  // A command that shares its CPU may be too slow to reach the limit.
  EXPECT_TRUE(result["limit"] == "memory" || (GetParam().burns && result["limit"] == "time")) << result;
}

TEST_P(HostileSibling, DiskQuotaEndsWriter) {
  createSession("", "[filesystem]\nmax_total_size = \"20M\"\n");
  startAttack();
  const std::string writer = "writer-" + cli.marker();
  const RunOutput started = cli.exec(id,
                                     {"sh", "-c",
                                      "i=0; while [ $i -lt 250 ]; do head -c 1000000 /dev/zero > fill$i; "
                                      "i=$((i+1)); done; sleep 600; :",
                                      writer},
                                     {"--background"});
  EXPECT_TRUE(started.exit_status == 0 || failedWithCause(started)) << started.describe();
  const bool ended = eventually([&] { return !goesOn(writer); }, seconds(10));
  EXPECT_TRUE(ended || cli.storedKib() < 20 * 1024) << cli.storedKib() << " KiB are stored, 20 MiB are allowed";
  EXPECT_LT(cli.storedKib(), 150 * 1024) << "20 MiB are allowed";
}

TEST_P(HostileSibling, ProcessLimitHolds) {
  createAttackedSession();
  const pid_t init = sandboxInit(attacker());
  ASSERT_GT(init, 1);
  std::atomic<bool> over = false;
  std::size_t most = 0;
  std::thread sampler([&] {
    while (!over) most = std::max(most, processTree(init).size());
  });
  const RunOutput output = cli.exec(id, {"./payload", "take-processes", "300"}, {"--timeout", "3s"}, seconds(8));
  over = true;
  sampler.join();
  EXPECT_FALSE(output.timed_out) << output.describe();
  EXPECT_NE(output.exit_status, 0) << output.describe();
  EXPECT_LE(most, static_cast<std::size_t>(kMaxProcesses) + 5);
}

TEST_P(HostileSibling, EscapeAttemptEndsSandboxAndIsRecorded) {
  createAttackedSession();
  ASSERT_TRUE(signalProcess(attacker(), SIGUSR1));
  EXPECT_TRUE(eventually([&] { return attackEnded(); })) << "the sandbox lives 5 s longer than its escape attempt";
  EXPECT_TRUE(eventually([&] { return !cli.events("escape_attempt").empty(); })) << "the attempt is not recorded";
}

TEST_P(HostileSibling, CommandIsAudited) {
  createAttackedSession();
  const std::string word = "audited-" + cli.marker();
  const RunOutput output = cli.exec(id, {"true", word}, {"--timeout", "2s"}, seconds(7));
  EXPECT_FALSE(output.timed_out) << output.describe();
  EXPECT_TRUE(eventually([&] {
    const auto events = cli.events();
    return std::ranges::any_of(events, [&](const json& event) { return event.dump().find(word) != std::string::npos; });
  }));
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(Attacked, HostileSibling, testing::ValuesIn(allAttacks()), attackName);

}  // namespace caisson::test
