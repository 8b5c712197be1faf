// A link that one run leaves in a directory does not redirect what the user names in the next one.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;

class PlantedLink : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    base_.openToAll();
    project_ = fs::canonical(base_.makeDir("project")).string();
    victim_ = fs::canonical(base_.makeDir("victim")).string();
    base_.makeDir("project/data");
    canary_.emplace(base_.write("victim/key", "x"));
  }
  [[nodiscard]] RunOutput caisson(const std::vector<std::string>& arguments) const {
    return runCaisson(arguments,
                      {.env = {{"CAISSON_HOME", home_ / "state"}, {"XDG_DATA_HOME", home_ / "data"}}, .cwd = project_});
  }
  void plant(const std::vector<std::string>& options) const {
    std::vector<std::string> words{"run"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c",
                               "cd " + options.back().substr(0, options.back().find(':')) +
                                   " 2>/dev/null || cd /workspace; "
                                   "rm -rf data && ln -s " +
                                   victim_ + " data"});
    const RunOutput output = caisson(words);
    ASSERT_EQ(output.exit_status, 0) << output.describe();
    ASSERT_TRUE(fs::is_symlink(project_ + "/data")) << output.describe();
  }
  void expectRefused(const std::vector<std::string>& options) const {
    std::vector<std::string> words{"run"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(),
                 {"--", "sh", "-c", "cat key data/key " + victim_ + "/key; echo evil > " + victim_ + "/key"});
    const RunOutput output = caisson(words);
    EXPECT_NE(output.exit_status, 0) << output.describe();
    EXPECT_FALSE(canary_->leakedInto(output.out + output.err)) << output.describe();
    EXPECT_TRUE(canary_->untouched()) << output.describe();
    EXPECT_NE(output.err.find("symbolic link to " + victim_), std::string::npos) << output.describe();
  }
  void expectAllRefused() const {
    expectRefused({"--ro", "data"});
    expectRefused({"--ro", "data/key"});
    expectRefused({"--rw", project_ + "/data"});
    expectRefused({"--workspace", "data"});
    expectRefused({"--workspace", "data:ro"});
    expectRefused({"--workspace", "data:rw"});
    expectRefused({"--image", "./data"});
    const RunOutput session = caisson({"session", "create", "--workspace", "data"});
    EXPECT_NE(session.exit_status, 0) << session.describe();
    EXPECT_NE(session.err.find("symbolic link to " + victim_), std::string::npos) << session.describe();
  }

  const TempDir base_, home_;
  std::string project_, victim_;
  std::optional<Canary> canary_;
};

TEST_F(PlantedLink, FromAWorkspaceIsNotFollowed) {
  plant({"--workspace", project_ + ":rw"});
  expectAllRefused();
}

TEST_F(PlantedLink, FromANamedDirectoryIsNotFollowed) {
  plant({"--workspace", ":none", "--rw", project_});
  expectAllRefused();
}

TEST_F(PlantedLink, FromTheLandlockTierIsNotFollowed) {
  fs::permissions(project_, fs::perms::all);  // root's program is another user there
  const RunOutput output = caisson({"run", "--tier", "landlock", "--workspace", project_ + ":rw", "--", "sh", "-c",
                                    "rmdir data && ln -s " + victim_ + " data"});
  if (output.exit_status == 125) GTEST_SKIP() << output.err;
  ASSERT_EQ(output.exit_status, 0) << output.describe();
  expectAllRefused();
}

TEST_F(PlantedLink, FromACommitIsNotFollowed) {
  const RunOutput made = caisson({"session", "create"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  ASSERT_EQ(caisson({"session", "exec", id, "--", "sh", "-c", "rmdir data && ln -s " + victim_ + " data"}).exit_status,
            0);
  const RunOutput committed = caisson({"session", "commit", id, "data"});
  if (!fs::is_symlink(project_ + "/data")) GTEST_SKIP() << "the commit holds the link back: " << committed.describe();
  expectAllRefused();
}

TEST_F(PlantedLink, OtherHomeKnowsIt) {
  plant({"--workspace", project_ + ":rw"});
  const RunOutput output =
      runCaisson({"run", "--ro", "data", "--", "cat", victim_ + "/key"},
                 {.env = {{"CAISSON_HOME", home_ / "other"}, {"XDG_DATA_HOME", home_ / "data"}}, .cwd = project_});
  EXPECT_NE(output.exit_status, 0) << output.describe();
  EXPECT_FALSE(canary_->leakedInto(output.out)) << output.describe();
}

TEST_F(PlantedLink, OldLinkInADirectoryThatARunMovedIsNotFollowed) {
  fs::create_directories(project_ + "/x/y/z");
  fs::create_directory_symlink("../../victim", project_ + "/x/y/z/data");  // leads to nothing there
  fs::create_directories(project_ + "/own/deep");
  fs::create_directory_symlink(victim_, project_ + "/own/deep/data");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // change times are coarse
  const RunOutput output = caisson({"run", "--workspace", ".:rw", "--", "sh", "-c", "mv x/y/z assets; > own/deep/new"});
  ASSERT_EQ(output.exit_status, 0) << output.describe();
  expectRefused({"--workspace", ":none", "--ro", "assets/data"});
  expectRefused({"--workspace", "assets/data"});
  expectRefused({"--workspace", "assets/data:rw"});
  const RunOutput own =
      caisson({"run", "--workspace", ":none", "--ro", "own/deep/data", "--", "cat", victim_ + "/key"});
  EXPECT_TRUE(canary_->leakedInto(own.out)) << "its directory was only written to" << own.describe();
}

TEST_F(PlantedLink, TargetCanBeNamedDirectlyAndTheUsersLinksWork) {
  fs::create_directory_symlink(victim_, base_ / "mine");
  plant({"--workspace", project_ + ":rw"});
  for (const std::string& path : {victim_, base_ / "mine"}) {
    const RunOutput output = caisson({"run", "--ro", path, "--", "cat", path + "/key"});
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    EXPECT_TRUE(canary_->leakedInto(output.out)) << output.describe();
  }
}

TEST_F(PlantedLink, RecordsAreHiddenFromTheSandbox) {
  plant({"--workspace", project_ + ":rw"});
  const std::string trees = home_ / "data/caisson/trees";
  ASSERT_FALSE(fs::is_empty(trees));
  const RunOutput output =
      caisson({"run", "--rw", home_.path(), "--", "sh", "-c", "ls -A " + trees + "; rm -rf " + trees + "/*; true"});
  EXPECT_EQ(output.out, "") << output.describe();
  EXPECT_FALSE(fs::is_empty(trees)) << output.describe();
}

}  // namespace
}  // namespace caisson::test
