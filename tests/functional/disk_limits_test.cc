// Disk limits hold for files that a payload hides from its supervisor: in closed directories, or nested deeply.
#include <gtest/gtest.h>

#include <chrono>

#include "functional/sandbox.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

// More files than /tmp may have, in a directory that cannot be listed, and 40 MiB that are not written at once.
constexpr const char* kFiles =
    "python3 -c 'import os\nfor i in range(20000): os.close(os.open(f\"/tmp/d/{i}\", os.O_CREAT | os.O_WRONLY))'";
constexpr const char* kWait = "; sleep 5; echo not ended";
constexpr const char* kScratch =
    "[[filesystem.tmpfs]]\npath = \"/tmp\"\nsize = \"16M\"\ninodes = 500\nstore = \"disk\"\n";

/// A directory 250 levels below /workspace, with 40 MiB.
constexpr const char* kDeep =
    "python3 -c 'import os\nfor i in range(250): os.mkdir(\"d\"); os.chdir(\"d\")\n"
    "for i in range(40): open(str(i), \"wb\").write(bytes(1 << 20))'";

class HiddenFiles : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    how_.env["CAISSON_HOME"] = home_.path();
  }
  [[nodiscard]] nlohmann::json runWith(const std::string& policy, const std::string& text) const {
    const std::string file = settings_.write("policy.toml", "extends = \"bash\"\n" + policy);
    const RunOutput output = script(text, {"--json", "--policy", file}, how_);
    const nlohmann::json result = output.json();
    EXPECT_TRUE(result.is_object()) << output.describe();
    return result;
  }

  const TempDir home_, settings_;
  RunOptions how_;
};

TEST_F(HiddenFiles, InUnlistableDirectoryCountAsInodes) {
  const auto result = runWith(kScratch, "mkdir -m 0300 /tmp/d; " + std::string(kFiles) + kWait);
  EXPECT_EQ(result["limit"], "disk") << result.dump();
}

TEST_F(HiddenFiles, InUnsearchableDirectoryCountAsInodes) {
  const auto result = runWith(kScratch, "mkdir -m 0300 /tmp/d; " + std::string(kFiles) + "; chmod 0400 /tmp/d" + kWait);
  EXPECT_EQ(result["limit"], "disk") << result.dump();
}

TEST_F(HiddenFiles, InClosedTopDirectoryCountAsInodes) {
  const auto result = runWith(kScratch, "chmod 0300 /tmp; mkdir /tmp/d; " + std::string(kFiles) + kWait);
  EXPECT_EQ(result["limit"], "disk") << result.dump();
}

TEST_F(HiddenFiles, BelowTwoHundredLevelsCount) {
  const auto result =
      runWith("[filesystem]\nmax_total_size = \"16M\"\noverlay_store = \"disk\"\n", std::string(kDeep) + kWait);
  EXPECT_EQ(result["limit"], "disk") << result.dump();
}

TEST_F(HiddenFiles, WithinTheLimitEndNothing) {
  const auto result = runWith(kScratch,
                              "mkdir -m 0300 /tmp/d; head -c 8000000 /dev/zero > /tmp/d/file; sleep 1; "
                              "rm /tmp/d/file; head -c 8000000 /dev/zero > /tmp/d/other; sleep 1; echo fine");
  EXPECT_EQ(result["stdout"], "fine\n") << result.dump();
}

class SessionHiddenFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
  }
  SessionCli cli;
};

TEST_F(SessionHiddenFiles, BelowTwoHundredLevelsCount) {
  const std::string id = cli.create("[filesystem]\nmax_total_size = \"16M\"\n");
  const RunOutput output = cli.script(id, std::string(kDeep) + kWait, {"--json"});
  EXPECT_EQ(output.json()["limit"], "disk") << output.describe();
}

TEST_F(SessionHiddenFiles, InUnlistableDirectoryCountAsInodes) {
  const std::string id = cli.create(kScratch);
  const RunOutput output = cli.script(id, "mkdir -m 0300 /tmp/d; " + std::string(kFiles) + kWait, {"--json"});
  EXPECT_EQ(output.json()["limit"], "disk") << output.describe();
}

TEST_F(SessionHiddenFiles, OfShortCommandsTogetherReachTheLimit) {
  const std::string id = cli.create(kScratch);
  ASSERT_EQ(cli.script(id, "mkdir -m 0300 /tmp/d").exit_status, 0);
  int commands = 0;
  bool ended = false;
  auto full = std::chrono::steady_clock::now();
  while (!ended && ++commands < 40) {
    if (commands <= 4) full = std::chrono::steady_clock::now();  // 4 commands write as much as it may hold
    const std::string file = "of=/tmp/d/" + std::to_string(commands);
    const RunOutput one = cli.exec(id, {"dd", "if=/dev/zero", file, "bs=4M", "count=1", "status=none"}, {"--json"});
    ended = one.json()["limit"] == "disk";
  }
  EXPECT_TRUE(ended) << "160 MiB were written to a directory of 16 MiB";
  EXPECT_LT(std::chrono::steady_clock::now() - full, std::chrono::seconds(3)) << commands << " commands";
}

}  // namespace
}  // namespace caisson::test
