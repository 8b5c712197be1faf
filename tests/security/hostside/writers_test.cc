// Runs that write to the same directory at the same time, and runs whose caisson is killed: no file that the host would
// execute is left.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>

#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;

constexpr auto kLong = std::chrono::seconds(60);

class Writers : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    base_.openToAll();
    project_ = fs::canonical(base_.makeDir("project")).string();
    base_.makeDir("project/app");
    base_.write("project/.vscode/settings.json", "{}\n");
  }
  [[nodiscard]] RunOptions options() const {
    return {.env = {{"CAISSON_HOME", home_ / "state"}, {"XDG_DATA_HOME", home_ / "data"}}, .cwd = base_.path()};
  }
  [[nodiscard]] static std::vector<std::string> command(const std::string& workspace, const std::string& script) {
    return {"run", "--workspace", workspace + ":rw", "--", "sh", "-c", script};
  }
  [[nodiscard]] RunOutput run(const std::string& workspace, const std::string& script) const {
    return runCaisson(command(workspace, script), options());
  }
  [[nodiscard]] std::unique_ptr<BackgroundProgram> start(const std::string& workspace,
                                                         const std::string& script) const {
    std::vector<std::string> words = command(workspace, script);
    words.insert(words.begin(), caissonBinary());
    return std::make_unique<BackgroundProgram>(words, options());
  }
  [[nodiscard]] bool isThere(const std::string& name) const { return exists(project_ + "/" + name); }
  void write(const std::string& name) const { base_.write("project/" + name, ""); }

  const TempDir base_, home_;
  std::string project_;
};

constexpr const char* kTasks = "sub/.vscode/tasks.json";

TEST_F(Writers, SecondOneCannotMakeAgainWhatTheFirstOnesCheckRemoved) {
  const auto first = start(
      project_,
      "mkdir -p sub/.vscode; echo 1 > sub/.vscode/tasks.json; echo > planted; while ! [ -e go ]; do sleep 0.05; done");
  ASSERT_TRUE(eventually([&] { return isThere("planted") && isThere(kTasks); }, kLong));
  const auto second = start(project_,
                            "echo > began; while [ -e sub/.vscode/tasks.json ]; do sleep 0.02; done; "
                            "mkdir -p sub/.vscode; echo 2 > sub/.vscode/tasks.json; echo > again");
  ASSERT_TRUE(eventually([&] { return isThere("began"); }, kLong));
  write("go");
  ASSERT_TRUE(first->wait(kLong));
  ASSERT_TRUE(second->wait(kLong));
  EXPECT_TRUE(isThere("again"));
  EXPECT_FALSE(isThere(kTasks));
  EXPECT_TRUE(isThere(".vscode/settings.json")) << "it was there before both";
}

TEST_F(Writers, DirectoryThatAnotherOnePutsInPlaceOfACoveredOneIsSearched) {
  base_.write("project/closed/.envrc", "mine\n");
  fs::permissions(project_ + "/closed", fs::perms::none);
  const auto first = start(project_,
                           "mkdir d; chmod 0 d; echo > planted; while ! [ -e began ]; do sleep 0.02; done; "
                           "mv d e; mkdir d; echo > moved");
  ASSERT_TRUE(eventually([&] { return isThere("planted"); }, kLong));
  const auto second = start(project_,
                            "echo > began; while ! [ -e go ]; do sleep 0.02; done; "
                            "mkdir d/.vscode && echo 2 > d/.vscode/tasks.json; echo > d/.envrc; echo > d/plain");
  ASSERT_TRUE(first->wait(kLong));
  ASSERT_TRUE(isThere("moved"));
  write("go");
  ASSERT_TRUE(second->wait(kLong));
  fs::permissions(project_ + "/closed", fs::perms::owner_all);
  EXPECT_TRUE(isThere("d/plain")) << "the second one could write there";
  EXPECT_FALSE(isThere("d/.vscode/tasks.json"));
  EXPECT_FALSE(isThere("d/.envrc"));
  if (::geteuid() != 0) {
    EXPECT_TRUE(isThere("closed/.envrc")) << "it was covered for both";
  }
}

TEST_F(Writers, WriterOfADirectoryBelowIsOneOfTheSameFiles) {
  const auto first = start(
      project_,
      "mkdir app/.vscode; echo 1 > app/.vscode/tasks.json; echo > planted; while ! [ -e go ]; do sleep 0.05; done");
  ASSERT_TRUE(eventually([&] { return isThere("planted"); }, kLong));
  const auto second = start(project_ + "/app",
                            "echo > began; while [ -e .vscode/tasks.json ]; do sleep 0.02; done; "
                            "mkdir -p .vscode; echo 2 > .vscode/tasks.json; echo > again");
  ASSERT_TRUE(eventually([&] { return isThere("app/began"); }, kLong));
  write("go");
  ASSERT_TRUE(first->wait(kLong));
  ASSERT_TRUE(second->wait(kLong));
  EXPECT_TRUE(isThere("app/again"));
  EXPECT_FALSE(isThere("app/.vscode/tasks.json"));
}

TEST_F(Writers, WriterOfADirectoryAboveIsOneOfTheSameFiles) {
  const auto first =
      start(project_ + "/app",
            "mkdir .vscode; echo 1 > .vscode/tasks.json; echo > planted; while ! [ -e go ]; do sleep 0.05; done");
  ASSERT_TRUE(eventually([&] { return isThere("app/planted"); }, kLong));
  const auto second = start(project_,
                            "echo > began; while [ -e app/.vscode/tasks.json ]; do sleep 0.02; done; "
                            "mkdir -p app/.vscode; echo 2 > app/.vscode/tasks.json; echo > again");
  ASSERT_TRUE(eventually([&] { return isThere("began"); }, kLong));
  write("app/go");
  ASSERT_TRUE(first->wait(kLong));
  ASSERT_TRUE(second->wait(kLong));
  EXPECT_TRUE(isThere("again"));
  EXPECT_FALSE(isThere("app/.vscode/tasks.json"));
}

TEST_F(Writers, ThirdOneThatBeginsWhileTheSecondOneStillRunsInheritsFromTheFirst) {
  const auto first = start(
      project_,
      "mkdir -p sub/.vscode; echo 1 > sub/.vscode/tasks.json; echo > planted; while ! [ -e go ]; do sleep 0.05; done");
  ASSERT_TRUE(eventually([&] { return isThere("planted") && isThere(kTasks); }, kLong));
  const auto second =
      start(project_,
            "echo > began; while [ -e sub/.vscode/tasks.json ]; do sleep 0.02; done; mkdir -p sub/.vscode; "
            "echo 2 > sub/.vscode/tasks.json; echo > again; while ! [ -e go2 ]; do sleep 0.05; done");
  ASSERT_TRUE(eventually([&] { return isThere("began"); }, kLong));
  write("go");
  ASSERT_TRUE(first->wait(kLong));
  ASSERT_TRUE(eventually([&] { return isThere("again"); }, kLong));
  const auto third = start(project_,
                           "echo > third; while [ -e sub/.vscode/tasks.json ]; do sleep 0.02; done; "
                           "mkdir -p sub/.vscode; echo 3 > sub/.vscode/tasks.json");
  ASSERT_TRUE(eventually([&] { return isThere("third"); }, kLong));
  write("go2");
  ASSERT_TRUE(second->wait(kLong));
  ASSERT_TRUE(third->wait(kLong));
  EXPECT_FALSE(isThere(kTasks));
}

TEST_F(Writers, LaterRunKeepsWhatTheUserMadeBetween) {
  ASSERT_EQ(run(project_, "echo > x").exit_status, 0);
  write(kTasks);
  const RunOutput output = run(project_, "echo > y");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(isThere(kTasks)) << output.describe();
}

TEST_F(Writers, ManyAtOnceAllFinish) {
  std::vector<std::unique_ptr<BackgroundProgram>> running;
  for (int i = 0; i < 8; ++i) {
    running.push_back(
        start(project_, "for i in 1 2 3; do echo > f$$-$i; mkdir -p .idea; echo > .idea/x$$; done; true"));
  }
  for (const auto& one : running) EXPECT_EQ(one->wait(kLong), 0);
  EXPECT_FALSE(isThere(".idea"));
  EXPECT_TRUE(isThere(".vscode/settings.json"));
  EXPECT_LE(std::distance(fs::directory_iterator(home_ / "data/caisson/trees/writers"), fs::directory_iterator()), 1)
      << "records of writers that ended are removed";
}

TEST_F(Writers, NextRunCompletesTheCheckOfAKilledOne) {
  const auto killed = start(project_, "mkdir .idea; echo > .idea/x; echo > planted; sleep 1000");
  ASSERT_TRUE(eventually([&] { return isThere("planted"); }, kLong));
  ::kill(killed->pid(), SIGKILL);
  ASSERT_TRUE(killed->wait(kLong));
  EXPECT_TRUE(isThere(".idea")) << "no process was left to remove it";
  RunOutput output;
  ASSERT_TRUE(eventually(
      [&] {
        output = runCaisson({"run", "--workspace", base_ / "project", "--", "true"}, options());
        return !isThere(".idea");
      },
      kLong))
      << output.describe();
  EXPECT_NE(output.err.find("killed"), std::string::npos) << output.describe();
  EXPECT_NE(output.err.find(".idea"), std::string::npos) << output.describe();
  EXPECT_TRUE(isThere(".vscode/settings.json"));
  output = run(project_, "true");
  EXPECT_EQ(output.err.find("killed"), std::string::npos) << "reported once: " << output.describe();
}

TEST_F(Writers, CheckOfAKilledRunFollowsNoLinkInItsPlace) {
  const TempDir victim;
  const Canary rc(victim.write(".bashrc", "x"));
  const auto killed = start(project_ + "/app", "mkdir .idea; echo > planted; sleep 1000");
  ASSERT_TRUE(eventually([&] { return isThere("app/planted"); }, kLong));
  ::kill(killed->pid(), SIGKILL);
  ASSERT_TRUE(killed->wait(kLong));
  fs::rename(project_ + "/app", project_ + "/old");
  fs::create_directory_symlink(victim.path(), project_ + "/app");
  for (int i = 0; i < 3; ++i) {
    const RunOutput output = runCaisson({"run", "--workspace", ":none", "--", "true"}, options());
    EXPECT_EQ(output.exit_status, 0) << output.describe();
  }
  EXPECT_TRUE(rc.untouched());
}

TEST_F(Writers, ProgramThatCannotStartLeavesNoRecord) {
  const RunOutput output = runCaisson({"run", "--workspace", project_ + ":rw", "--", "no-such-program"}, options());
  EXPECT_NE(output.exit_status, 0);
  write(kTasks);
  EXPECT_EQ(run(project_, "true").exit_status, 0);
  EXPECT_TRUE(isThere(kTasks)) << "the user made it after the run that failed";
}

}  // namespace
}  // namespace caisson::test
