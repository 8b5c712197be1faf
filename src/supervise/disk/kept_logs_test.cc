#include "supervise/disk/kept_logs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

#include "support/temp_dir.h"
#include "sys/fd.h"

namespace caisson::supervise {
namespace {

using test::TempDir;

class KeptLogsTest : public testing::Test {
 protected:
  void SetUp() override { ::setenv("CAISSON_HOME", home.path().c_str(), 1); }
  void TearDown() override { ::unsetenv("CAISSON_HOME"); }

  Result<KeptLogs> keep(const std::string& name, std::uint64_t max_bytes = 1 << 20) {
    const sys::Fd fd(::open(logs.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    return keepLogs(fd.get(), name, max_bytes);
  }

  const TempDir home, logs;
};

TEST_F(KeptLogsTest, CopiesFilesAndFollowsNoLink) {
  logs.write("build.log", "first\n");
  logs.write("deep/er.log", "second\n");
  ASSERT_EQ(::symlink("/etc/passwd", (logs / "link").c_str()), 0);
  ASSERT_EQ(::mkfifo((logs / "pipe").c_str(), 0600), 0);
  const auto kept = keep("cs-1");
  ASSERT_TRUE(kept) << kept.error().message();
  EXPECT_EQ(kept->path, home / "logs/cs-1");
  EXPECT_FALSE(kept->complete) << "a link and a pipe were left out";
  EXPECT_EQ(test::readFile(kept->path + "/build.log"), "first\n");
  EXPECT_EQ(test::readFile(kept->path + "/deep/er.log"), "second\n");
  EXPECT_FALSE(test::exists(kept->path + "/link"));
  EXPECT_FALSE(test::exists(kept->path + "/pipe"));
}

TEST_F(KeptLogsTest, IsBoundedForSparseFilesToo) {
  logs.write("huge", "");
  ASSERT_EQ(::truncate((logs / "huge").c_str(), 1LL << 40), 0);
  const auto kept = keep("cs-1", 100'000);
  ASSERT_TRUE(kept) << kept.error().message();
  EXPECT_FALSE(kept->complete);
  EXPECT_EQ(test::readFile(kept->path + "/huge").size(), 100'000U);
}

TEST_F(KeptLogsTest, OmitsEmptyLogsAndKeepsOnlyTheNewestRuns) {
  EXPECT_EQ(keep("cs-0")->path, "");
  EXPECT_FALSE(test::exists(home / "logs"));
  logs.write("x", "x");
  for (int run = 1; run <= 25; ++run) ASSERT_TRUE(keep("cs-" + std::to_string(run)));
  EXPECT_FALSE(test::exists(home / "logs/cs-1"));
  EXPECT_TRUE(test::exists(home / "logs/cs-25"));
}

}  // namespace
}  // namespace caisson::supervise
