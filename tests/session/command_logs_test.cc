// The output of background commands is kept within a bound for the whole session: a quarter of its disk limit.
#include <gtest/gtest.h>

#include <filesystem>

#include "support/environment.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr const char* kDisk = "[filesystem]\nmax_total_size = \"20M\"\n";
constexpr std::uint64_t kLimit = 5U << 20;

class CommandLogs : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    id = cli.create(kDisk);
  }
  [[nodiscard]] fs::path logs() const { return cli.home / ("state/sessions/" + id + "/logs"); }
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t sum = 0;
    for (const auto& entry : fs::directory_iterator(logs())) {
      std::error_code removed;
      if (const auto bytes = fs::file_size(entry.path(), removed); !removed) sum += bytes;
    }
    return sum;
  }
  /// Starts a command that writes 4 MiB to each stream.
  void flood(const std::string& then = "true") const {
    cli.start(
        id, {"sh", "-c", "head -c 4194304 /dev/zero; head -c 4194304 /dev/zero >&2; echo end; " + then, cli.marker()});
  }
  [[nodiscard]] nlohmann::json command(int number) const {
    const RunOutput listed = cli.caisson({"session", "ps", "--json", id});
    const auto all = nlohmann::json::parse(listed.out, nullptr, false);
    EXPECT_TRUE(all.contains("commands")) << listed.describe();
    for (const auto& one : all["commands"]) {
      if (one.value("exec", 0) == number) return one;
    }
    return nlohmann::json::object();
  }
  [[nodiscard]] bool hasEnded(int number) const {
    return eventually([&] { return exists(logs() / (std::to_string(number) + ".end")); }, seconds(30));
  }

  const SessionCli cli;
  std::string id;
};

TEST_F(CommandLogs, OfManyCommandsAreBounded) {
  constexpr int kCommands = 8;
  for (int number = 1; number <= kCommands; ++number) flood();
  for (int number = 1; number <= kCommands; ++number) {
    ASSERT_TRUE(hasEnded(number)) << number;
    EXPECT_LE(size(), kLimit);
  }
  for (int number = 1; number <= kCommands; ++number) {
    EXPECT_EQ(command(number).value("exit_code", -1), 0) << "the result of " << number << " was lost";
  }
}

TEST_F(CommandLogs, OldestEndedCommandLosesItsOutput) {
  cli.start(id, {"sh", "-c", "head -c 1048576 /dev/zero"});
  ASSERT_TRUE(hasEnded(1));
  EXPECT_EQ(fs::file_size(logs() / "1.out"), 1U << 20);
  for (int number = 2; number <= 5; ++number) {
    flood();
    ASSERT_TRUE(hasEnded(number));
  }
  EXPECT_EQ(fs::file_size(logs() / "1.out"), 0U);
  EXPECT_EQ(command(1).value("stdout_dropped", 0), 1 << 20) << command(1).dump();
  EXPECT_GE(fs::file_size(logs() / "5.out"), kLimit / 64);
  EXPECT_LE(size(), kLimit);
}

TEST_F(CommandLogs, FloodDoesNotTakeTheOutputOfOtherLiveCommands) {
  cli.start(id, {"sh", "-c", "echo first; sleep 100; echo last", cli.marker()});
  for (int number = 2; number <= 4; ++number) flood("sleep 100");
  ASSERT_TRUE(eventually([&] { return size() > kLimit / 2; }, seconds(30)));
  EXPECT_EQ(cli.caisson({"session", "logs", id, "1"}).out, "first\n");
  // A new command still runs and has its output.
  cli.start(id, {"echo", "second"});
  ASSERT_TRUE(hasEnded(5));
  EXPECT_EQ(cli.caisson({"session", "logs", id, "5"}).out, "second\n");
  EXPECT_LE(size(), kLimit);
}

TEST_F(CommandLogs, BoundHoldsAfterTheSandboxEnded) {
  for (int number = 1; number <= 3; ++number) {
    flood();
    ASSERT_TRUE(hasEnded(number));
    ASSERT_EQ(cli.caisson({"session", "checkpoint", "--stop", id}).exit_status, 0);
    EXPECT_LE(size(), kLimit);
  }
}

}  // namespace
}  // namespace caisson::test
