// A commit that was killed has the only copies of what it replaced in its staging directory. Whatever happens to the
// session or the workspace then, they are not lost.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>

#include "functional/commit.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

int kill_after = 0;

std::string directoryPart(const std::string& path) { return path.substr(0, path.rfind('/')); }

void countAndDie(const char* name) {
  if (std::string_view(name) == "commit: one applied" && --kill_after == 0) ::kill(::getpid(), SIGKILL);
}

class CommitRescue : public CommitTest {
 protected:
  static constexpr int kFiles = 6, kApplied = 3;
  // Below a directory that a test can rename.
  [[nodiscard]] virtual std::string top() const { return workspace / "top"; }

  void TearDown() override {
    CommitTest::TearDown();
    std::error_code missing;
    std::filesystem::permissions(top() + "/sub", std::filesystem::perms::owner_all, missing);
  }
  /// A session whose commit was killed when three of six files were replaced.
  std::string interrupted() {
    std::filesystem::create_directories(top() + "/sub");
    for (int i = 0; i < kFiles; ++i) std::ofstream(file(i)) << "of the host " << i << "\n";
    letFileTimesSettle();
    SessionOptions wanted = options();
    EXPECT_TRUE(wanted.policy.set("filesystem.workspace.path", top()));
    auto made = store->create(wanted);
    EXPECT_TRUE(made) << made.error().message();
    output(*made, "for i in 0 1 2 3 4 5; do echo session $i > sub/f$i; done");
    const std::string id = made->id();
    const pid_t child = ::fork();
    if (child == 0) {
      kill_after = kApplied;
      session::step_observer = countAndDie;
      auto own = SessionStore::open(std::getenv("CAISSON_BIN"));
      if (auto same = own->find(id)) (void)same->commit();
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(readFile(file(0)), "session 0\n");
    EXPECT_EQ(readFile(file(5)), "of the host 5\n");
    return id;
  }
  [[nodiscard]] std::string file(int number, const std::string& directory = {}) const {
    return (directory.empty() ? top() : directory) + "/sub/f" + std::to_string(number);
  }
  void expectUndone(const std::string& id, const std::string& directory = {}) {
    const RunOutput undone = cli({"uncommit", id});
    EXPECT_EQ(undone.exit_status, 0) << undone.describe();
    for (int i = 0; i < kFiles; ++i) {
      EXPECT_EQ(readFile(file(i, directory)), "of the host " + std::to_string(i) + "\n") << undone.describe();
    }
  }
  /// How many originals there are below CAISSON_HOME and the workspace.
  [[nodiscard]] std::string originals() const {
    return runProgram({"sh", "-c",
                       "grep -rl 'of the host' " + home_path + "/replaced " + home_path + "/sessions " +
                           workspace.path() + " | wc -l"})
        .out;
  }
};

TEST_F(CommitRescue, WhatWasReplacedInADirectoryThatWasMovedComesBack) {
  const std::string id = interrupted();
  std::filesystem::rename(top() + "/sub", top() + "/sub.bak");
  EXPECT_EQ(cli({"exec", id, "--", "true"}).exit_status, 0);
  std::filesystem::rename(top() + "/sub.bak", top() + "/sub");
  expectUndone(id);
}

TEST_F(CommitRescue, FileOfWhichOnlyTheChangeTimeTellsIsLeftAloneAfterAKill) {
  const std::string id = interrupted();
  requireOrSkip(::setxattr(file(3).c_str(), "user.note", "host", 4, 0) == 0, "the file system has no attributes");
  if (IsSkipped()) return;
  struct stat before{};
  ASSERT_EQ(::stat(file(4).c_str(), &before), 0);
  std::ofstream(file(4)) << "OF THE HOST 4\n";
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file(4).c_str(), times, 0), 0);
  const RunOutput used = cli({"exec", id, "--", "true"});
  EXPECT_NE(used.err.find("left alone: sub/f3, sub/f4\n"), std::string::npos) << used.describe();
  EXPECT_EQ(readFile(file(3)), "of the host 3\n");
  EXPECT_EQ(readFile(file(4)), "OF THE HOST 4\n");
  EXPECT_EQ(readFile(file(5)), "session 5\n");
}

TEST_F(CommitRescue, EveryCommandThatFinishesACommitSaysSo) {
  const std::vector<std::vector<std::string>> verbs = {
      {"diff"}, {"export"}, {"commit", "--dry-run"}, {"commit"}, {"checkpoint"}, {"fork"}, {"destroy"}};
  for (const auto& verb : verbs) {
    std::vector<std::string> words = verb;
    words.push_back(interrupted());
    std::ofstream(file(4)) << "of the host, again\n";
    const RunOutput used = cli(words);
    EXPECT_NE(used.err.find("a commit that was interrupted is finished: 6 changes"), std::string::npos)
        << verb.front() << ": " << used.describe();
    EXPECT_NE(used.err.find("left alone: sub/f4\n"), std::string::npos) << verb.front() << ": " << used.describe();
    EXPECT_EQ(readFile(file(5)), "session 5\n") << verb.front();
  }
}

TEST_F(CommitRescue, FailedCommitRemovesTheDirectoriesThatItMade) {
  std::filesystem::create_directories(top() + "/sub");
  for (int i = 0; i < kFiles; ++i) std::ofstream(file(i)) << "of the host " << i << "\n";
  // Below a default access list, new files are copied beside their place.
  const std::string list = "u:" + std::to_string(::geteuid()) + ":rwx";
  const bool set = runProgram({"setfacl", "-d", "-m", list, top(), top() + "/sub"}).exit_status == 0;
  requireOrSkip(set, "cannot set a default access list");
  if (IsSkipped()) return;
  letFileTimesSettle();
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.workspace.path", top()));
  auto made = store->create(wanted);
  ASSERT_TRUE(made) << made.error().message();
  output(*made, "mkdir -p new/deep; echo x > new/deep/x; echo y > new/y; echo session > sub/f5");
  const auto planned = made->commit({.dry_run = true});
  ASSERT_TRUE(planned);
  static std::string changed;
  changed = file(5);
  session::step_observer = [](const char* name) {
    if (std::string_view(name) == "commit: journal written") std::ofstream(changed) << "of the host, again\n";
  };
  EXPECT_FALSE(made->commit({.expect = planned->digest}));
  session::step_observer = nullptr;
  EXPECT_FALSE(exists(top() + "/new"));
  EXPECT_EQ(readFile(file(5)), "of the host, again\n");
}

TEST_F(CommitRescue, MovedWorkspaceKeepsTheCommitUntilItIsBack) {
  const std::string id = interrupted();
  std::filesystem::rename(top(), top() + "2");
  (void)cli({"exec", id, "--", "true"});
  EXPECT_EQ(originals(), "6\n");
  EXPECT_NE(cli({"commit", id}).exit_status, 0);
  EXPECT_EQ(cli({"info", id}).exit_status, 0);
  std::filesystem::rename(top() + "2", top());
  EXPECT_EQ(cli({"exec", id, "--", "true"}).exit_status, 0);
  EXPECT_EQ(readFile(file(5)), "session 5\n") << "it is finished";
  expectUndone(id);
}

TEST_F(CommitRescue, RebindToTheMovedWorkspaceFinishesTheCommitThere) {
  const std::string id = interrupted();
  const std::string moved = top() + "2";
  std::filesystem::rename(top(), moved);
  const RunOutput rebound = cli({"rebind", id, moved});
  EXPECT_EQ(rebound.exit_status, 0) << rebound.describe();
  EXPECT_EQ(readFile(file(5, moved)), "session 5\n");
  expectUndone(id, moved);
  std::filesystem::rename(moved, top());
}

TEST_F(CommitRescue, RebindToAnotherDirectorySetsTheCommitAside) {
  const std::string id = interrupted();
  const std::string other = workspace / "other";
  std::filesystem::create_directory(other);
  std::filesystem::rename(top(), top() + "2");
  const RunOutput rebound = cli({"rebind", id, other});
  EXPECT_EQ(rebound.exit_status, 0) << rebound.describe();
  EXPECT_EQ(originals(), "6\n");
  const std::string info = cli({"info", id}).out;
  EXPECT_NE(info.find("interrupted: what it replaced is in " + home_path + "/replaced/" + id), std::string::npos)
      << info;
  EXPECT_EQ(cli({"exec", id, "--", "true"}).exit_status, 0);
  const RunOutput early = cli({"uncommit", id});
  EXPECT_NE(early.exit_status, 0);
  EXPECT_NE(early.err.find("move the directory back"), std::string::npos) << early.describe();
  std::filesystem::rename(top() + "2", top());
  expectUndone(id);
}

TEST_F(CommitRescue, DestroyWithoutTheWorkspaceSetsTheCommitAside) {
  const std::string id = interrupted();
  std::filesystem::rename(top(), top() + "2");
  const RunOutput destroyed = cli({"destroy", id});
  EXPECT_EQ(destroyed.exit_status, 0) << destroyed.describe();
  EXPECT_NE(destroyed.err.find("was interrupted and could not be finished"), std::string::npos) << destroyed.describe();
  EXPECT_EQ(originals(), "6\n");
  std::filesystem::rename(top() + "2", top());
  expectUndone(id);
  EXPECT_FALSE(store->uncommit(id)) << "it is undone";
}

TEST_F(CommitRescue, DestroySetsACommitAsideThatCannotBeFinished) {
  const auto destroyWhile = [&](const std::function<void()>& begin, const std::function<void()>& end) {
    const std::string id = interrupted();
    begin();
    EXPECT_EQ(cli({"destroy", id}).exit_status, 0);
    end();
    EXPECT_EQ(originals(), "6\n");
    expectUndone(id);
    std::filesystem::remove_all(home_path + "/replaced");
  };
  int held = -1;
  destroyWhile(
      [&] {
        held = ::open(top().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        ASSERT_EQ(::flock(held, LOCK_EX), 0);
      },
      [&] { ::close(held); });
  destroyWhile(
      [&] {
        std::filesystem::rename(top(), top() + "2");
        std::filesystem::create_directory(top());
      },
      [&] {
        std::filesystem::remove(top());
        std::filesystem::rename(top() + "2", top());
      });
  if (::geteuid() == 0) return;  // may write everywhere
  destroyWhile([&] { std::filesystem::permissions(top() + "/sub", std::filesystem::perms(0555)); },
               [&] { std::filesystem::permissions(top() + "/sub", std::filesystem::perms(0755)); });
}

TEST_F(CommitRescue, ExpiryKeepsTheSessionOfACommitThatCannotBeFinished) {
  const std::string id = interrupted();
  std::filesystem::rename(top(), top() + "2");
  ASSERT_EQ(cli({"renew", id, "1s"}).exit_status, 0);
  sleepFor(std::chrono::milliseconds(1200));
  ASSERT_TRUE(store->list());  // cleans
  EXPECT_TRUE(exists(home_path + "/sessions/" + id + "/commit.journal"));
  EXPECT_EQ(originals(), "6\n");
  std::filesystem::rename(top() + "2", top());
  ASSERT_TRUE(store->destroy(id));
  expectUndone(id);
}

TEST_F(CommitRescue, DamagedJournalLeavesWhatWasReplacedInANamedPlace) {
  const std::string id = interrupted();
  const std::string journal = home_path + "/sessions/" + id + "/commit.journal";
  std::string text = readFile(journal);
  text[text.size() / 2] ^= 1;
  std::ofstream(journal, std::ios::binary) << text;
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cli({"exec", id, "--", "true"}).exit_status, 0);
  EXPECT_TRUE(exists(journal + ".invalid"));
  EXPECT_EQ(originals(), "6\n");
  const std::string info = cli({"info", id}).out;
  EXPECT_NE(info.find("interrupted: what it replaced is in " + home_path + "/replaced/" + id), std::string::npos)
      << info;
  const RunOutput undone = cli({"uncommit", id});
  EXPECT_NE(undone.err.find("what it had replaced is in " + home_path + "/replaced/" + id), std::string::npos)
      << undone.describe();
  EXPECT_EQ(cli({"destroy", id}).exit_status, 0);
  EXPECT_EQ(originals(), "6\n");
}

TEST_F(CommitRescue, JournalOfANewerVersionIsNotLostWithItsSession) {
  const std::string id = interrupted();
  const std::string journal = home_path + "/sessions/" + id + "/commit.journal";
  std::string text = readFile(journal);
  const std::string heading = text.substr(0, text.find('\n'));
  std::ofstream(journal, std::ios::binary) << "caisson commit journal 99" << text.substr(heading.size());
  EXPECT_EQ(cli({"exec", id, "--", "true"}).exit_status, 0);
  EXPECT_EQ(originals(), "6\n");
  EXPECT_EQ(cli({"destroy", id}).exit_status, 0);
  EXPECT_EQ(originals(), "6\n");
  const std::string kept = home_path + "/replaced/" + id + "/1/commit.journal";
  ASSERT_TRUE(exists(kept));
  std::ofstream(kept, std::ios::binary) << text;  // as that version would read it
  expectUndone(id);
}

/// The staging directory lies in the workspace.
class CommitRescueOnAnotherMount : public CommitRescue {
 protected:
  void SetUp() override {
    CommitRescue::SetUp();
    if (IsSkipped()) return;
    char place[] = "/dev/shm/caisson-test-XXXXXX";
    requireOrSkip(::mkdtemp(place) != nullptr, "cannot write to /dev/shm");
    place_ = place;
  }
  void TearDown() override {
    if (place_.empty()) return;
    CommitRescue::TearDown();
    std::filesystem::remove_all(place_);
  }
  [[nodiscard]] std::string top() const override { return place_ + "/top"; }
  std::string place_;
};

std::function<void(std::string_view)> at_step;

/// Runs a part of a test at the steps of a commit of this process.
class AtSteps {
 public:
  explicit AtSteps(std::function<void(std::string_view)> work) {
    at_step = std::move(work);
    session::step_observer = [](const char* name) { at_step(name); };
  }
  ~AtSteps() { session::step_observer = nullptr; }
};

TEST_F(CommitRescueOnAnotherMount, WhatWasReplacedInADirectoryThatMovesDuringTheCommitComesBack) {
  requireOrSkip(::geteuid() != 0, "root may write to every directory");
  if (IsSkipped()) return;
  std::filesystem::create_directories(top() + "/sub");
  for (int i = 0; i < kFiles; ++i) std::ofstream(file(i)) << "of the host " << i << "\n";
  ASSERT_EQ(::chmod(top().c_str(), 0555), 0);
  letFileTimesSettle();
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.workspace.path", top()));
  auto made = store->create(wanted);
  ASSERT_TRUE(made) << made.error().message();
  output(*made, "rm sub/f0; for i in 1 2 3 4 5; do echo session $i > sub/f$i; done");
  const std::string sub = top() + "/sub", moved = top() + "/moved";
  const auto rename = [](const std::string& from, const std::string& to) {
    ASSERT_EQ(::chmod(directoryPart(from).c_str(), 0755), 0);
    std::filesystem::rename(from, to);
    ASSERT_EQ(::chmod(directoryPart(from).c_str(), 0555), 0);
  };
  {
    const AtSteps steps([&](std::string_view name) {
      if (name == "commit: applied") rename(sub, moved);
    });
    (void)commit(*made);
  }
  EXPECT_EQ(runProgram({"find", moved, "-name", ".caisson-*"}).out, "");
  rename(moved, sub);
  EXPECT_EQ(readFile(file(1)), "session 1\n");
  expectUndone(made->id());
  ASSERT_EQ(::chmod(top().c_str(), 0755), 0);
}

TEST_F(CommitRescueOnAnotherMount, OlderCommitBelowADirectoryThatCameBackCanBeUndone) {
  std::filesystem::create_directories(top() + "/sub");
  for (int i = 0; i < kFiles; ++i) std::ofstream(file(i)) << "of the host " << i << "\n";
  letFileTimesSettle();
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.workspace.path", top()));
  auto made = store->create(wanted);
  ASSERT_TRUE(made) << made.error().message();
  output(*made, "echo session > sub/f1");
  EXPECT_TRUE(commit(*made).complete());
  output(*made, "rm -r sub");
  EXPECT_TRUE(commit(*made).complete());
  EXPECT_EQ(cli({"uncommit", made->id()}).exit_status, 0);
  EXPECT_EQ(readFile(file(1)), "session\n");
  expectUndone(made->id());
}

TEST_F(CommitRescueOnAnotherMount, DestroyWithoutTheWorkspaceKeepsARecord) {
  const std::string id = interrupted();
  std::filesystem::rename(top(), top() + "2");
  EXPECT_EQ(cli({"destroy", id}).exit_status, 0);
  std::filesystem::rename(top() + "2", top());
  expectUndone(id);
  EXPECT_EQ(runProgram({"find", top(), "-name", ".caisson-*"}).out, "");
}

TEST_F(CommitRescueOnAnotherMount, StagingOfAKilledCommitIsRemovedWhenTheWorkspaceIsBack) {
  std::filesystem::create_directories(top() + "/sub");
  std::ofstream(file(0)) << "of the host\n";
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.workspace.path", top()));
  auto made = store->create(wanted);
  ASSERT_TRUE(made) << made.error().message();
  output(*made, "echo session > sub/f0");
  const std::string id = made->id();
  const pid_t child = ::fork();
  if (child == 0) {
    session::step_observer = [](const char* name) {
      if (std::string_view(name) == "commit: one staged") ::kill(::getpid(), SIGKILL);
    };
    auto own = SessionStore::open(std::getenv("CAISSON_BIN"));
    if (auto same = own->find(id)) (void)same->commit();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_NE(runProgram({"find", top(), "-name", ".caisson-*"}).out, "");
  std::filesystem::rename(top(), top() + "2");
  EXPECT_NE(cli({"commit", id}).exit_status, 0);
  std::filesystem::rename(top() + "2", top());
  EXPECT_EQ(cli({"commit", id}).exit_status, 0);
  EXPECT_EQ(runProgram({"find", top(), "-name", ".caisson-*"}).out, "");
}

TEST_F(CommitRescueOnAnotherMount, RebindToTheMovedWorkspaceFinishesTheCommitThere) {
  const std::string id = interrupted();
  const std::string moved = top() + "2";
  std::filesystem::rename(top(), moved);
  EXPECT_EQ(cli({"rebind", id, moved}).exit_status, 0);
  expectUndone(id, moved);
  EXPECT_EQ(runProgram({"find", moved, "-name", ".caisson-*"}).out, "");
  std::filesystem::rename(moved, top());
}

}  // namespace
}  // namespace caisson::test
