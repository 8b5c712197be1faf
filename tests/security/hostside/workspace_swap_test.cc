// Another sandbox that may write above a session's workspace, or the run itself, puts something else in its place. The
// host must neither read nor write what is there now: a canary that the test planted.
#include <gtest/gtest.h>

#include <filesystem>
#include <future>

#include "support/environment.h"
#include "support/run.h"
#include "support/temp_dir.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;

/// A project with a workspace `app` in it, and a victim beside it that no sandbox is shown.
class WorkspaceSwap : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    base_.openToAll();
    project_ = fs::canonical(base_.makeDir("project")).string();
    app_ = base_.makeDir("project/app");
    app_ = fs::canonical(app_).string();
    victim_ = fs::canonical(base_.makeDir("victim")).string();
    base_.write("project/app/mine", "mine\n");
    canary_.emplace(base_.write("victim/secret", "x"));
    rc_.emplace(base_.write("victim/.bashrc", "x"));
    tasks_.emplace(base_.write("victim/.vscode/tasks.json", "x"));
  }

  [[nodiscard]] RunOutput caisson(const std::vector<std::string>& arguments) const {
    return runCaisson(arguments, {.env = {{"CAISSON_HOME", home_ / "state"}, {"XDG_DATA_HOME", home_ / "data"}},
                                  .cwd = base_.path()});
  }
  /// A second sandbox, which may write to the project, runs a script in it.
  void inProject(const std::string& script) const {
    const RunOutput output = caisson({"run", "--workspace", project_ + ":rw", "--", "sh", "-c", script});
    ASSERT_EQ(output.exit_status, 0) << output.describe();
  }
  void putLink() const { inProject("mv app old && ln -s " + victim_ + " app"); }
  std::string createSession(std::vector<std::string> options = {}) const {
    std::vector<std::string> words{"session", "create", "--workspace", app_};
    words.insert(words.end(), options.begin(), options.end());
    const RunOutput made = caisson(words);
    EXPECT_EQ(made.exit_status, 0) << made.describe();
    return made.out.substr(0, made.out.find('\n'));
  }
  /// Ends the sandbox, so that the next command mounts the workspace again.
  void endSandbox(const std::string& id) const {
    const RunOutput output = caisson({"session", "checkpoint", "--stop", id});
    ASSERT_EQ(output.exit_status, 0) << output.describe();
  }
  void expectVictimUntouched(const RunOutput& output) const {
    EXPECT_TRUE(canary_->untouched() && rc_->untouched() && tasks_->untouched()) << output.describe();
    for (const Canary* canary : {&*canary_, &*rc_, &*tasks_}) {
      EXPECT_FALSE(canary->leakedInto(output.out + output.err)) << output.describe();
    }
    EXPECT_EQ(std::distance(fs::recursive_directory_iterator(victim_), fs::recursive_directory_iterator()), 4)
        << output.describe();
  }
  void expectRefused(const std::vector<std::string>& arguments, const std::string& found) const {
    const RunOutput output = caisson(arguments);
    EXPECT_NE(output.exit_status, 0) << arguments[1] << output.describe();
    for (const std::string& part : {app_, found, std::string("session rebind")}) {
      EXPECT_NE(output.err.find(part), std::string::npos) << arguments[1] << output.describe();
    }
    expectVictimUntouched(output);
  }
  /// The operations on a session that reach its real directory, each on its own.
  static std::vector<std::vector<std::string>> operations(const std::string& id) {
    return {{"session", "exec", id, "--", "cat", "/workspace/secret"},
            {"session", "read", id, "secret"},
            {"session", "diff", id},
            {"session", "diff", "-p", id},
            {"session", "export", id},
            {"session", "export", "--format", "tar", id},
            {"session", "commit", "--dry-run", id},
            {"session", "commit", id},
            {"session", "commit", id, "f"}};
  }

  const TempDir base_, home_;
  std::string project_, app_, victim_;
  std::optional<Canary> canary_, rc_, tasks_;
};

TEST_F(WorkspaceSwap, LinkInItsPlaceIsRefusedByEveryOperation) {
  const std::string id = createSession();
  ASSERT_EQ(caisson({"session", "exec", id, "--", "sh", "-c", "echo new > f; echo evil > secret"}).exit_status, 0);
  endSandbox(id);
  putLink();
  for (const auto& operation : operations(id)) expectRefused(operation, victim_);
}

TEST_F(WorkspaceSwap, OtherDirectoryInItsPlaceIsRefusedByEveryOperation) {
  const std::string id = createSession();
  ASSERT_EQ(caisson({"session", "exec", id, "--", "sh", "-c", "echo new > f"}).exit_status, 0);
  endSandbox(id);
  inProject("mv app old; mkdir app; echo theirs > app/secret");
  for (const auto& operation : operations(id)) expectRefused(operation, "inode");
  EXPECT_FALSE(exists(app_ + "/f"));
}

TEST_F(WorkspaceSwap, ForkAndRestoreDoNotMountALink) {
  const std::string id = createSession();
  ASSERT_EQ(caisson({"session", "exec", id, "--", "sh", "-c", "echo new > f"}).exit_status, 0);
  ASSERT_EQ(caisson({"session", "checkpoint", "--stop", id, "first"}).exit_status, 0);
  putLink();
  const RunOutput forked = caisson({"session", "fork", id});
  ASSERT_EQ(forked.exit_status, 0) << forked.describe();
  const std::string other = forked.out.substr(0, forked.out.find('\n'));
  ASSERT_EQ(caisson({"session", "restore", id, "first"}).exit_status, 0);
  for (const std::string& one : {id, other}) expectRefused(operations(one).front(), victim_);
}

TEST_F(WorkspaceSwap, SessionOfItsOwnParentDoesNotFollowALinkAtTheNextStart) {
  const std::string id = createSession({"--rw", project_});
  const std::string swap = "cd " + project_ + " && mv app old && ln -s " + victim_ + " app";
  // Its own workspace is a mount point in the directory above.
  const RunOutput own = caisson({"session", "exec", id, "--", "sh", "-c", swap});
  EXPECT_NE(own.exit_status, 0) << own.describe();
  EXPECT_TRUE(exists(app_ + "/mine"));
  endSandbox(id);
  putLink();
  for (const auto& operation : operations(id)) expectRefused(operation, victim_);
}

TEST_F(WorkspaceSwap, RebindContinuesOnTheDirectoryThatTheUserNames) {
  const std::string id = createSession();
  ASSERT_EQ(caisson({"session", "exec", id, "--", "sh", "-c", "echo new > f"}).exit_status, 0);
  endSandbox(id);
  putLink();
  EXPECT_NE(caisson({"session", "rebind", id, project_ + "/nothing"}).exit_status, 0);
  const RunOutput bound = caisson({"session", "rebind", id, project_ + "/old"});
  ASSERT_EQ(bound.exit_status, 0) << bound.describe();
  const RunOutput committed = caisson({"session", "commit", id});
  EXPECT_EQ(committed.exit_status, 0) << committed.describe();
  EXPECT_EQ(readFile(project_ + "/old/f"), "new\n");
  EXPECT_EQ(caisson({"session", "exec", id, "--", "cat", "/workspace/mine"}).out, "mine\n");
  expectVictimUntouched(committed);
}

TEST_F(WorkspaceSwap, DirectoryThatWasOnlyMovedBackIsAccepted) {
  const std::string id = createSession();
  ASSERT_EQ(caisson({"session", "exec", id, "--", "sh", "-c", "echo new > f"}).exit_status, 0);
  endSandbox(id);
  putLink();
  inProject("rm app && mv old app");
  EXPECT_EQ(caisson({"session", "commit", id}).exit_status, 0);
  EXPECT_EQ(readFile(app_ + "/f"), "new\n");
}

TEST_F(WorkspaceSwap, DestroyAndListWorkWithoutTheDirectory) {
  const std::string id = createSession();
  endSandbox(id);
  putLink();
  const RunOutput listed = caisson({"session", "list"});
  EXPECT_NE(listed.out.find(id), std::string::npos) << listed.describe();
  const RunOutput destroyed = caisson({"session", "destroy", id});
  EXPECT_EQ(destroyed.exit_status, 0) << destroyed.describe();
  expectVictimUntouched(destroyed);
}

/// The run cannot rename its own workspace, also not through a directory above it, but the host can.
TEST_F(WorkspaceSwap, CheckAfterARunIsOfTheDirectoryThatTheProgramWroteTo) {
  const std::string script = "mv " + app_ + " " + project_ +
                             "/mine && exit 1; mkdir -p .vscode && echo x > .bashrc && " +
                             "echo x > .vscode/tasks.json && cd " + project_ + " && touch written && " +
                             "until test -e swapped; do sleep 0.05; done";
  auto running = std::async(std::launch::async, [&] {
    return caisson({"run", "--rw", project_, "--workspace", app_ + ":rw", "--", "sh", "-c", script});
  });
  EXPECT_TRUE(eventually([&] { return exists(project_ + "/written"); }, std::chrono::seconds(20)));
  fs::rename(app_, project_ + "/old");
  fs::create_directory_symlink(victim_, app_);
  base_.write("project/swapped", "");
  const RunOutput output = running.get();
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  expectVictimUntouched(output);
  EXPECT_FALSE(exists(project_ + "/old/.vscode")) << output.describe();
  EXPECT_FALSE(exists(project_ + "/old/.bashrc")) << output.describe();
  EXPECT_NE(output.err.find(".vscode"), std::string::npos) << output.describe();
}

TEST_F(WorkspaceSwap, LandlockTierSessionRefusesALink) {
  const RunOutput made = caisson({"session", "create", "--tier", "landlock", "--workspace", app_ + ":rw"});
  if (made.exit_status != 0) GTEST_SKIP() << made.err;
  const std::string id = made.out.substr(0, made.out.find('\n'));
  putLink();
  expectRefused({"session", "exec", id, "--", "cat", "secret"}, victim_);
  expectRefused({"session", "read", id, "secret"}, victim_);
}

TEST_F(WorkspaceSwap, LandlockTierCopyIsNotComparedWithOrCommittedToALink) {
  const RunOutput made = caisson({"session", "create", "--tier", "landlock", "--workspace", app_});
  if (made.exit_status != 0) GTEST_SKIP() << made.err;
  const std::string id = made.out.substr(0, made.out.find('\n'));
  ASSERT_EQ(caisson({"session", "exec", id, "--", "sh", "-c", "echo new > f"}).exit_status, 0);
  putLink();
  expectRefused({"session", "commit", id}, victim_);
}

TEST_F(WorkspaceSwap, SessionOfAnOlderCaissonGetsAnIdentityAndRefusesALink) {
  const std::string id = createSession();
  ASSERT_EQ(caisson({"session", "exec", id, "--", "sh", "-c", "echo new > f"}).exit_status, 0);
  endSandbox(id);
  const std::string meta = home_ / ("state/sessions/" + id + "/meta.json");
  const auto withoutIdentity = [&] {
    auto json = nlohmann::json::parse(readFile(meta));
    EXPECT_EQ(json.erase("workspace_identity"), 1U);
    home_.write("state/sessions/" + id + "/meta.json", json.dump(), 0600);
  };
  withoutIdentity();
  putLink();
  for (const auto& operation : operations(id)) expectRefused(operation, victim_);
  inProject("rm app && mv old app");
  EXPECT_EQ(caisson({"session", "diff", id}).exit_status, 0);
  EXPECT_NE(readFile(meta).find("workspace_identity"), std::string::npos);
  inProject("mv app old; mkdir app");
  expectRefused({"session", "commit", id}, "inode");
}

}  // namespace
}  // namespace caisson::test
