#include "host/named_open.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "host/written_trees.h"
#include "support/temp_dir.h"

namespace caisson::host {
namespace {

namespace fs = std::filesystem;
using test::TempDir;

/// A tree that a sandbox could write to, a directory outside, and our own records.
class NamedOpenTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_DATA_HOME", (state_ / "data").c_str(), 1);
    ::setenv("CAISSON_HOME", (state_ / "home").c_str(), 1);
    tree_ = fs::canonical(base_.makeDir("tree")).string();
    outside_ = fs::canonical(base_.makeDir("outside")).string();
    base_.write("outside/secret", "x");
    base_.makeDir("tree/real");
  }
  void TearDown() override { ::unsetenv("CAISSON_HOME"); }

  void record() const {
    const sys::Fd opened(::open(tree_.c_str(), O_PATH | O_CLOEXEC));
    const auto recorded = recordWrittenTree(opened.get(), tree_);
    ASSERT_TRUE(recorded) << recorded.error().message();
  }
  /// Later than what was recorded or made before, also for the coarse clock of change times.
  static void waitForNextTick() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }
  static void expectRefused(const std::string& path, const std::string& target) {
    const NamedOpen found = openNamed(path);
    EXPECT_FALSE(found.opened) << path;
    EXPECT_EQ(found.error, ELOOP) << path;
    EXPECT_NE(found.why_not.find(target), std::string::npos) << found.why_not;
    EXPECT_NE(found.remedy.find(target), std::string::npos) << found.remedy;
  }
  static void expectOpened(const std::string& path, const std::string& real) {
    const NamedOpen found = openNamed(path);
    ASSERT_TRUE(found.opened) << path << ": " << found.why_not;
    EXPECT_EQ(fs::read_symlink("/proc/self/fd/" + std::to_string(found.opened.get())).string(), real);
  }

  const TempDir base_, state_;
  std::string tree_, outside_;
};

TEST_F(NamedOpenTest, LinkMadeAfterASandboxCouldWriteIsNotFollowedOutOfTheTree) {
  record();
  waitForNextTick();
  fs::create_directory_symlink(outside_, tree_ + "/data");
  fs::create_directory(tree_ + "/sub");
  fs::create_directory_symlink("../../outside", tree_ + "/sub/relative");
  fs::create_directory_symlink("sub/relative", tree_ + "/chain");
  for (const char* name :
       {"/data", "/data/", "/data/secret", "/sub/relative", "/sub/../data", "/chain", "/chain/secret"}) {
    expectRefused(tree_ + name, outside_);
  }
}

TEST_F(NamedOpenTest, LinkThatLeadsThroughATreeIsNotFollowedEither) {
  record();
  waitForNextTick();
  fs::create_directory_symlink(outside_, tree_ + "/data");
  fs::create_directory_symlink(tree_, base_ / "shortcut");
  expectOpened(base_ / "shortcut", tree_);
  expectRefused(base_ / "shortcut/data", outside_);
}

TEST_F(NamedOpenTest, OlderLinksAndThoseThatStayInTheTreeWork) {
  fs::create_directory_symlink(outside_, tree_ + "/older");
  waitForNextTick();
  record();
  waitForNextTick();
  fs::create_directory_symlink("real", tree_ + "/inner");
  fs::create_directory_symlink(tree_ + "/real", tree_ + "/absolute");
  fs::create_directory_symlink(outside_, base_ / "beside");
  expectOpened(tree_ + "/older", outside_);
  expectOpened(tree_ + "/inner", tree_ + "/real");
  expectOpened(tree_ + "/absolute", tree_ + "/real");
  expectOpened(base_ / "beside", outside_);
  expectOpened(base_ / "beside/secret", outside_ + "/secret");
}

TEST_F(NamedOpenTest, OldLinkInAMovedDirectoryIsNotFollowedOutOfTheTree) {
  fs::create_directories(tree_ + "/x/y/z/deep");
  fs::create_directory_symlink("../../outside", tree_ + "/x/y/z/shared");
  fs::create_directory_symlink(outside_, tree_ + "/x/y/z/deep/absolute");
  fs::create_directories(tree_ + "/stays/deep");
  fs::create_directory_symlink(outside_, tree_ + "/stays/deep/data");
  waitForNextTick();
  record();
  waitForNextTick();
  fs::rename(tree_ + "/x/y/z", tree_ + "/assets");
  expectRefused(tree_ + "/assets/shared", outside_);
  expectRefused(tree_ + "/assets/deep/absolute/secret", outside_);
  std::ofstream(tree_ + "/stays/deep/new") << "x";
  expectOpened(tree_ + "/stays/deep/data", outside_);
}

TEST_F(NamedOpenTest, RecordOutlivesARename) {
  record();
  waitForNextTick();
  fs::create_directory_symlink(outside_, tree_ + "/data");
  fs::rename(tree_, base_ / "renamed");
  expectRefused(base_ / "renamed/data", outside_);
}

TEST_F(NamedOpenTest, FirstTimeCounts) {
  record();
  waitForNextTick();
  fs::create_directory_symlink(outside_, tree_ + "/data");
  waitForNextTick();
  record();
  expectRefused(tree_ + "/data", outside_);
}

TEST_F(NamedOpenTest, WithoutARecordEveryLinkWorks) {
  fs::create_directory_symlink(outside_, tree_ + "/data");
  expectOpened(tree_ + "/data", outside_);
  expectOpened(tree_ + "/data/secret", outside_ + "/secret");
  EXPECT_EQ(openNamed(tree_ + "/missing").error, ENOENT);
  EXPECT_EQ(openNamed(tree_ + "/data/missing").error, ENOENT);
}

TEST_F(NamedOpenTest, LoopsAndMagicLinksBehaveAsInTheKernel) {
  record();
  waitForNextTick();
  fs::create_directory_symlink("loop", base_ / "loop");
  EXPECT_EQ(openNamed(base_ / "loop").error, ELOOP);
  const sys::Fd opened(::open(outside_.c_str(), O_PATH | O_CLOEXEC));
  expectOpened("/proc/self/fd/" + std::to_string(opened.get()), outside_);
}

TEST_F(NamedOpenTest, DamagedRecordRefusesLinks) {
  record();
  waitForNextTick();
  fs::create_directory_symlink(outside_, tree_ + "/data");
  for (const auto& one : fs::directory_iterator(state_ / "data/caisson/trees")) std::ofstream(one.path()) << "?";
  const NamedOpen found = openNamed(tree_ + "/data");
  EXPECT_FALSE(found.opened);
  EXPECT_NE(found.why_not.find("damaged"), std::string::npos) << found.why_not;
}

}  // namespace
}  // namespace caisson::host
