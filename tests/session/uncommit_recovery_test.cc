// An uncommit that was killed or that failed, or that meets what a killed commit left, ends as if nothing had happened.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "session/uncommit_fixture.h"

namespace caisson::test {
namespace {

TEST_F(Uncommit, AnyUseOfTheSessionFinishesOneThatWasKilled) {
  fill();
  const auto before = stateOf(workspace.path());
  Session session = create();
  work(session);
  EXPECT_TRUE(commit(session).complete());
  dieAt("commit: one applied", [&](SessionStore& own) { (void)own.uncommit(session.id()); });
  ASSERT_NE(stateOf(workspace.path()), before);
  const RunOutput used = cli({"exec", session.id(), "--", "true"});
  EXPECT_EQ(used.exit_status, 0);
  EXPECT_NE(used.err.find("uncommit that was interrupted is finished"), std::string::npos) << used.describe();
  EXPECT_EQ(stateOf(workspace.path()), before);
  expectNoLeftovers(session);
  EXPECT_FALSE(store->uncommit(session.id())) << "it is undone";
}

TEST_F(Uncommit, DirectoryOfAKilledCommitIsWhole) {
  Session session = create();
  output(session, "mkdir -p n/m; chmod 751 n/m; echo x > n/m/x");
  const std::string request = session.id();
  dieAt("commit: directory made", [&](SessionStore& own) {
    if (auto same = own.find(request)) (void)same->commit({.paths = {"n/m", "."}});
  });
  EXPECT_EQ(cli({"exec", session.id(), "--", "true"}).exit_status, 0);
  EXPECT_EQ(modeOf(workspace / "n"), 0755U);
  EXPECT_EQ(modeOf(workspace / "n/m"), 0751U);
  EXPECT_EQ(conflictsOf(uncommit(session)), "");
  EXPECT_FALSE(exists(workspace / "n"));
  expectNoLeftovers(session);
}

TEST_F(Uncommit, FileThatTheHostRemovesAfterAKillIsAConflict) {
  workspace.write("z", "old\n");
  letFileTimesSettle();
  for (const bool rename : {false, true}) {
    Session session = create();
    const auto remove = [&](const std::string& name) {
      if (rename) {
        std::filesystem::rename(workspace / name, workspace / "renamed");
      } else {
        std::filesystem::remove(workspace / name);
      }
    };
    output(session, "echo new > new; echo new > new2");
    dieAt("commit: one applied", [&](SessionStore& own) {
      if (auto same = own.find(session.id())) (void)same->commit();
    });
    remove("new");
    const RunOutput used = cli({"exec", session.id(), "--", "true"});
    EXPECT_NE(used.err.find("left alone: new\n"), std::string::npos) << used.describe();
    EXPECT_EQ(readFile(workspace / "new2"), "new\n");
    EXPECT_FALSE(exists(workspace / "new"));
    EXPECT_TRUE(session.commit({.dry_run = true}));
    EXPECT_EQ(conflictsOf(uncommit(session)), "");
    EXPECT_FALSE(exists(workspace / "new2"));
    output(session, "rm z");
    EXPECT_TRUE(commit(session, {.paths = {"z"}}).complete());
    dieAt("commit: one applied", [&](SessionStore& own) { (void)own.uncommit(session.id()); });
    remove("z");
    EXPECT_EQ(paths(uncommit(session).conflicts), "z\n");
    EXPECT_EQ(conflictsOf(uncommit(session)), "");
    EXPECT_EQ(readFile(workspace / "z"), "old\n");
    expectNoLeftovers(session);
  }
}

/// Of these changes only the change time tells, or the attributes.
TEST_F(Uncommit, WhatTheHostChangesAfterAKillIsNotTheCommits) {
  for (const char* step : {"commit: applied", "commit: kept", "commit: synced"}) {
    workspace.write("f", "old\n");
    letFileTimesSettle();
    Session session = create();
    output(session, "echo session > f; mkdir n; echo x > n/x; echo a > added");
    dieAt(step, [&](SessionStore& own) {
      if (auto same = own.find(session.id())) (void)same->commit();
    });
    struct stat status{};
    ASSERT_EQ(::stat((workspace / "f").c_str(), &status), 0);
    letFileTimesSettle();
    {
      std::fstream file(workspace / "f", std::ios::in | std::ios::out);
      file << "HOST";
    }
    const timespec times[2] = {status.st_atim, status.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, (workspace / "f").c_str(), times, 0), 0);
    for (const char* name : {"n", "added"}) {
      ASSERT_EQ(::setxattr((workspace / name).c_str(), "user.note", "host", 4, 0), 0) << name;
    }
    const RunOutput used = cli({"exec", session.id(), "--", "sh", "-c", "echo again > f; echo again > added"});
    EXPECT_NE(used.err.find("left alone: n, added, f\n"), std::string::npos) << step << used.describe();
    EXPECT_EQ(paths(commit(session, {.dry_run = true}).conflicts), "added\nf\n") << step;
    const CommitReport report = uncommit(session);
    EXPECT_EQ(paths(report.conflicts), "added\nf\nn\n") << step << conflictsOf(report);
    EXPECT_EQ(readFile(workspace / "f"), "HOSTion\n") << step;
    char note[8];
    for (const char* name : {"n", "added"}) {
      EXPECT_EQ(::getxattr((workspace / name).c_str(), "user.note", note, sizeof(note)), 4) << step << name;
    }
    expectNoLeftovers(session);
    for (const char* name : {"n", "added"}) std::filesystem::remove_all(workspace / name);
  }
}

TEST_F(Uncommit, SecondOneAtTheSameTimeWaitsAfterDestroy) {
  fill();
  const auto before = stateOf(workspace.path());
  Session session = create();
  work(session);
  EXPECT_TRUE(commit(session).complete());
  ASSERT_TRUE(session.destroy());
  static std::string id;
  static int status = -1;
  id = session.id();
  session::step_observer = [](const char* name) {
    if (std::string_view(name) != "commit: staging made") return;
    status = runProgram({std::getenv("CAISSON_BIN"), "session", "uncommit", id}).exit_status;
  };
  const CommitReport report = uncommit(session);
  session::step_observer = nullptr;
  EXPECT_EQ(status, 125) << "the second one waits, and then refuses";
  EXPECT_EQ(conflictsOf(report), "");
  EXPECT_EQ(stateOf(workspace.path()), before);
}

TEST_F(Uncommit, ItsOwnRecordIsNeverUndone) {
  for (const bool lost : {false, true}) {
    workspace.write("gone", "precious\n");
    letFileTimesSettle();
    Session session = create();
    output(session, "rm gone");
    EXPECT_TRUE(commit(session).complete());
    static std::string keeper;
    keeper = home_path + "/replaced/" + session.id() + "/2";
    // The record cannot be written, as on a full disk.
    session::step_observer = [](const char* name) {
      if (std::string_view(name) != "commit: applied") return;
      std::filesystem::remove(keeper + "/bytes");
      std::filesystem::create_directory(keeper + "/bytes");
    };
    EXPECT_FALSE(store->uncommit(session.id()));
    session::step_observer = nullptr;
    std::filesystem::remove_all(lost ? keeper : keeper + "/bytes");
    EXPECT_EQ(conflictsOf(uncommit(session)), "");
    EXPECT_EQ(readFile(workspace / "gone"), "precious\n");
    EXPECT_FALSE(store->uncommit(session.id())) << "there is no other commit";
    EXPECT_EQ(readFile(workspace / "gone"), "precious\n");
    expectNoLeftovers(session);
  }
}

TEST_F(Uncommit, ObjectThatCannotBeCopiedIsAConflictAndTheRestComesBack) {
  std::string deep = "deep";
  for (int level = 0; level < 230; ++level) deep += "/d";
  for (const std::string& name : {std::string("a"), std::string("b"), deep + "/f"}) workspace.write(name, "old\n");
  letFileTimesSettle();
  Session session = create();
  output(session, "echo new > a; rm b; rm -r deep");
  ASSERT_EQ(::chmod((workspace / "a").c_str(), 0), 0);
  EXPECT_EQ(applied(commit(session, {.theirs = {"a"}})), "a\nb\ndeep\n");
  const CommitReport report = uncommit(session);
  EXPECT_EQ(paths(report.conflicts), ::geteuid() == 0 ? "deep\n" : "a\ndeep\n");
  EXPECT_NE(conflictsOf(report).find("is kept as " + home_path + "/replaced/"), std::string::npos)
      << conflictsOf(report);
  EXPECT_EQ(readFile(workspace / "b"), "old\n");
  expectNoLeftovers(session);
}

TEST_F(Uncommit, KilledAtEachStepIsFinishedByTheNext) {
  fill();
  const auto before = stateOf(workspace.path());
  static int steps = 0, killed_step = 0;
  for (killed_step = 1;; ++killed_step) {
    Session session = create();
    work(session);
    EXPECT_EQ(leftOut(commit(session)), "") << killed_step;
    const pid_t child = ::fork();
    if (child == 0) {
      steps = 0;
      session::step_observer = [](const char*) {
        if (++steps == killed_step) ::kill(::getpid(), SIGKILL);
      };
      auto opened = SessionStore::open(std::getenv("CAISSON_BIN"));
      ::_exit(opened && opened->uncommit(session.id()) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      EXPECT_EQ(stateOf(workspace.path()), before);
      break;
    }
    const auto report = store->uncommit(session.id());
    // Killed after the end, there is nothing left to do.
    EXPECT_EQ(report ? conflictsOf(*report) : "", "") << "killed at step " << killed_step;
    ASSERT_EQ(stateOf(workspace.path()), before) << "killed at step " << killed_step;
    expectNoLeftovers(session);
    ASSERT_TRUE(session.destroy());
    letFileTimesSettle();
  }
  EXPECT_GT(killed_step, 10);
}

}  // namespace
}  // namespace caisson::test
