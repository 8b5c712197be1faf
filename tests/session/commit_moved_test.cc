// Directories and files that the host moves while a session works: a commit deletes and replaces only what the session
// could see. A rename leaves the change times of everything below what is moved.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "functional/commit.h"
#include "session/commit/host_directories.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

void moveOnHost(const std::string& from, const std::string& to) {
  ASSERT_EQ(::rename(from.c_str(), to.c_str()), 0) << from << " to " << to;
}

class CommitMoved : public CommitTest {
 protected:
  Session createLater() {
    letFileTimesSettle();  // change times have the precision of the clock tick
    Session session = create();
    letFileTimesSettle();
    return session;
  }
  static std::string conflictsOf(const CommitReport& report) {
    std::string text;
    for (const NotCommitted& one : report.conflicts) text += one.path + ": " + one.reason + "\n";
    return text;
  }
  /// A commit, and one with the digest of a dry run, leave out exactly the path `conflict`, and name `host`.
  void expectConflict(Session& session, const std::string& conflict, const std::string& host) {
    const CommitReport dry = commit(session, {.dry_run = true});
    EXPECT_EQ(paths(dry.conflicts), conflict + "\n") << conflictsOf(dry);
    EXPECT_NE(conflictsOf(dry).find(host), std::string::npos) << conflictsOf(dry);
    EXPECT_EQ(paths(commit(session, {.expect = dry.digest}).conflicts), conflict + "\n");
    EXPECT_EQ(paths(commit(session).conflicts), conflict + "\n");
    EXPECT_EQ(paths(commit(session, {.paths = {conflict}}).conflicts), conflict + "\n");
  }
};

TEST_F(CommitMoved, OldFilesMovedIntoARemovedDirectoryAreKept) {
  workspace.write("victim/known", "old\n");
  workspace.write("important/sub/work", "of the host\n");
  Session session = createLater();
  output(session, "rm -rf victim; echo x > other");
  const std::string reviewed = commit(session, {.dry_run = true}).digest;
  moveOnHost(workspace / "important", workspace / "victim/important");
  EXPECT_FALSE(session.commit({.expect = reviewed})) << "not what was reviewed";
  expectConflict(session, "victim", "victim");
  EXPECT_EQ(readFile(workspace / "victim/important/sub/work"), "of the host\n");
  EXPECT_EQ(readFile(workspace / "other"), "x\n") << "the rest is committed";
}

TEST_F(CommitMoved, OldFilesMovedDeepIntoARemovedDirectoryAreKept) {
  workspace.write("victim/a/b/known", "old\n");
  workspace.write("important/work", "of the host\n");
  Session session = createLater();
  output(session, "rm -rf victim");
  moveOnHost(workspace / "important", workspace / "victim/a/b/important");
  expectConflict(session, "victim", "victim/a/b");
  EXPECT_EQ(readFile(workspace / "victim/a/b/important/work"), "of the host\n");
}

TEST_F(CommitMoved, OldFilesMovedIntoADirectoryMadeAgainAreKept) {
  workspace.write("src/known", "old\n");
  workspace.write("important/sub/work", "of the host\n");
  Session session = createLater();
  output(session, "rm -rf src; mkdir src; echo new > src/new");
  moveOnHost(workspace / "important", workspace / "src/important");
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.conflicts), "src/important\n") << conflictsOf(report);
  EXPECT_EQ(applied(report), "src/known\nsrc/new\n");
  EXPECT_EQ(readFile(workspace / "src/important/sub/work"), "of the host\n");
}

TEST_F(CommitMoved, OldFilesMovedIntoADirectoryReplacedByAFileAreKept) {
  workspace.write("file/known", "old\n");
  workspace.write("link/known", "old\n");
  workspace.write("important/sub/work", "of the host\n");
  workspace.write("more/sub/work", "of the host\n");
  Session session = createLater();
  output(session, "rm -rf file link; echo x > file; ln -s file link");
  moveOnHost(workspace / "important", workspace / "file/important");
  moveOnHost(workspace / "more", workspace / "link/more");
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.conflicts), "file\nlink\n") << conflictsOf(report);
  EXPECT_EQ(readFile(workspace / "file/important/sub/work"), "of the host\n");
  EXPECT_EQ(readFile(workspace / "link/more/sub/work"), "of the host\n");
}

TEST_F(CommitMoved, OldDirectoryInThePlaceOfARemovedOneIsKept) {
  workspace.write("victim/known", "old\n");
  workspace.write("important/sub/work", "of the host\n");
  Session session = createLater();
  output(session, "rm -rf victim");
  moveOnHost(workspace / "victim", workspace / "victim.old");
  moveOnHost(workspace / "important", workspace / "victim");
  expectConflict(session, "victim", "victim");
  EXPECT_EQ(readFile(workspace / "victim/sub/work"), "of the host\n");
}

TEST_F(CommitMoved, OldDirectoryInThePlaceOfACommittedRemovalIsKept) {
  workspace.write("victim/known", "old\n");
  workspace.write("important/sub/work", "of the host\n");
  Session session = createLater();
  output(session, "rm -rf victim");
  EXPECT_EQ(applied(commit(session)), "victim\n");
  moveOnHost(workspace / "important", workspace / "victim");
  expectConflict(session, "victim", "victim");
  EXPECT_EQ(readFile(workspace / "victim/sub/work"), "of the host\n");
}

/// Once, when the commit has checked everything and nothing is written yet; then when the directory is moved away.
std::function<void()> move_on_the_host;
std::string_view move_at;

TEST_F(CommitMoved, OldFilesMovedThereDuringTheApplyAreKept) {
  for (const char* at : {"commit: staging made", "commit: journal written"}) {
    workspace.write("victim/known", "old\n");
    workspace.write("file/known", "old\n");
    workspace.write("important/sub/work", "of the host\n");
    workspace.write("more/sub/work", "of the host\n");
    Session session = createLater();
    output(session, "rm -rf victim file; echo x > file");
    move_at = at;
    move_on_the_host = [&] {
      moveOnHost(workspace / "important", workspace / "victim/important");
      moveOnHost(workspace / "more", workspace / "file/more");
    };
    session::step_observer = [](const char* name) {
      if (name == move_at && move_on_the_host) std::exchange(move_on_the_host, {})();
    };
    const CommitReport report = commit(session);
    session::step_observer = nullptr;
    EXPECT_EQ(paths(report.conflicts), "file\nvictim\n") << at << conflictsOf(report);
    EXPECT_EQ(readFile(workspace / "victim/important/sub/work"), "of the host\n") << at;
    EXPECT_EQ(readFile(workspace / "file/more/sub/work"), "of the host\n") << at;
    expectNoLeftovers(session);
    std::filesystem::remove_all(workspace / "victim");
    std::filesystem::remove_all(workspace / "file");
  }
}

TEST_F(CommitMoved, WhatTheHostPutsThereDuringACommitIsNotTheSessions) {
  for (const char* name : {"dir/f", "other/f", "file", "gone", "mode"}) workspace.write(name, "old\n");
  workspace.write("other/f", "of the host\n");
  Session session = createLater();
  output(session, "echo 1 > dir/f; echo 1 > dir/n; echo 1 > file; rm gone; chmod 700 mode");
  move_at = "commit: applied";
  move_on_the_host = [&] {
    letFileTimesSettle();
    moveOnHost(workspace / "dir", workspace / "dir.old");
    moveOnHost(workspace / "other", workspace / "dir");
    for (const char* name : {"file", "gone"}) {
      workspace.write("tmp", "of the host\n");
      moveOnHost(workspace / "tmp", workspace / name);
    }
    ASSERT_EQ(::chmod((workspace / "mode").c_str(), 0640), 0);
  };
  session::step_observer = [](const char* name) {
    if (name == move_at && move_on_the_host) std::exchange(move_on_the_host, {})();
  };
  EXPECT_EQ(applied(commit(session)), "dir/f\ndir/n\nfile\ngone\nmode\n");
  session::step_observer = nullptr;
  output(session, "rm -f dir/f file; echo 2 > gone; chmod 600 mode");
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.conflicts), "dir/f\ndir/n\nfile\ngone\nmode\n") << conflictsOf(report);
  for (const char* name : {"dir/f", "file", "gone"}) EXPECT_EQ(readFile(workspace / name), "of the host\n") << name;
}

TEST_F(CommitMoved, FileThatTheHostEditsInAFailedCommitStays) {
  for (const char* name : {"added/x", "placed", "refused"}) workspace.write(name, "old\n");
  Session session = createLater();
  output(session, "for f in added/new placed refused; do echo session > $f; done");
  const std::string digest = commit(session, {.dry_run = true}).digest;
  move_at = "commit: one applied";
  move_on_the_host = [&] {
    letFileTimesSettle();
    workspace.write("added/new", "host\n");
    workspace.write("refused", "host\n");
  };
  session::step_observer = [](const char* name) {
    if (name == move_at && move_on_the_host) std::exchange(move_on_the_host, {})();
  };
  const auto failed = session.commit({.expect = digest});
  session::step_observer = nullptr;
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message().find("stay changed: added/new"), std::string::npos) << failed.error().message();
  EXPECT_EQ(readFile(workspace / "added/new"), "host\n");
  EXPECT_EQ(readFile(workspace / "placed"), "old\n");
  EXPECT_EQ(readFile(workspace / "refused"), "host\n");
}

TEST_F(CommitMoved, WhatCannotBePutBackIsKeptAlsoWithDiscard) {
  workspace.write("victim/known", "old\n");
  Session session = createLater();
  output(session, "rm -r victim");
  move_at = "commit: moved away";
  move_on_the_host = [&] {  // a program that has the directory open adds to it, another makes a new one
    const std::string staging = home_path + "/sessions/" + session.id() + "/commit.files/0/late";
    EXPECT_EQ(runProgram({"sh", "-c", "echo host > " + staging}).exit_status, 0);
    workspace.write("victim/new", "new\n");
  };
  session::step_observer = [](const char* name) {
    if (name == move_at && move_on_the_host) std::exchange(move_on_the_host, {})();
  };
  const auto failed = session.commit({.discard = true});
  session::step_observer = nullptr;
  ASSERT_FALSE(failed);
  const std::string kept = home_path + "/replaced/" + session.id() + "/1/objects";
  EXPECT_NE(failed.error().message().find(kept), std::string::npos) << failed.error().message();
  EXPECT_EQ(readFile(kept + "/0/late"), "host\n");
  EXPECT_EQ(readFile(kept + "/0/known"), "old\n");
  EXPECT_EQ(readFile(workspace / "victim/new"), "new\n");
}

/// A rename sets the change time of a file, and with it that of its other hard links.
TEST_F(CommitMoved, HardLinksOfWhatTheCommitItselfMovesAreNoConflict) {
  workspace.write("a", "1\n");
  workspace.write("tree/x", "2\n");
  workspace.write("more/deep/y", "3\n");
  for (const auto& [one, other] : {std::pair("a", "b"), {"tree/x", "other/x"}, {"more/deep/y", "single"}}) {
    workspace.makeDir("other");
    ASSERT_EQ(::link((workspace / one).c_str(), (workspace / other).c_str()), 0) << other;
  }
  Session session = createLater();
  output(session, "rm -f b; echo new > a; rm -r tree other more; rm single");
  const CommitReport dry = commit(session, {.dry_run = true});
  EXPECT_EQ(applied(commit(session, {.expect = dry.digest})), "a\nb\nmore\nother\nsingle\ntree\n");
  EXPECT_EQ(runProgram({"ls", workspace.path()}).out, "a\n");
}

TEST_F(CommitMoved, WhatAFailedCommitMovedAndPutBackIsNoConflict) {
  for (const char* name : {"victim/sub/x", "changed", "other"}) workspace.write(name, "old\n");
  Session session = createLater();
  output(session, "rm -r victim; echo session > changed; echo session > other");
  const std::string digest = commit(session, {.dry_run = true}).digest;
  move_at = "commit: journal written";
  move_on_the_host = [&] { workspace.write("changed", "host\n"); };
  session::step_observer = [](const char* name) {
    if (name == move_at && move_on_the_host) std::exchange(move_on_the_host, {})();
  };
  EXPECT_FALSE(session.commit({.expect = digest}));
  session::step_observer = nullptr;
  EXPECT_TRUE(exists(workspace / "victim/sub/x"));
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.conflicts), "changed\n") << conflictsOf(report);
  EXPECT_EQ(applied(report), "other\nvictim\n");
}

TEST_F(CommitMoved, ChangeInAnExchangedDirectoryIsAConflict) {
  for (const char* name : {"dirA/a.txt", "dirA/gone", "dirA/sub/deep", "dirA/removed/x"}) workspace.write(name, "A\n");
  for (const char* name : {"dirB/a.txt", "dirB/gone", "dirB/sub/deep", "dirB/removed/x"}) workspace.write(name, "B\n");
  Session session = createLater();
  output(session,
         "echo A+ >> dirA/a.txt; rm dirA/gone; echo A+ >> dirA/sub/deep; rm -r dirA/removed; echo n > dirA/new");
  const std::string reviewed = commit(session, {.dry_run = true}).digest;
  moveOnHost(workspace / "dirA", workspace / "dirA.old");
  moveOnHost(workspace / "dirB", workspace / "dirA");
  EXPECT_FALSE(session.commit({.expect = reviewed})) << "not what was reviewed";
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.conflicts), "dirA/a.txt\ndirA/gone\ndirA/new\ndirA/removed\ndirA/sub/deep\n")
      << conflictsOf(report);
  EXPECT_FALSE(exists(workspace / "dirA/new")) << "it was made for the other directory";
  EXPECT_NE(conflictsOf(report).find("dirA/sub/deep: dirA is another directory there now"), std::string::npos)
      << conflictsOf(report);
  for (const char* name : {"a.txt", "gone", "sub/deep", "removed/x"}) {
    EXPECT_EQ(readFile(workspace / ("dirA/" + std::string(name))), "B\n") << name;
    EXPECT_EQ(readFile(workspace / ("dirA.old/" + std::string(name))), "A\n") << name;
  }
  // Only an explicit choice replaces the file of the other directory.
  EXPECT_EQ(applied(commit(session, {.paths = {"dirA/a.txt"}, .theirs = {"dirA/a.txt"}})), "dirA/a.txt\n");
  EXPECT_EQ(readFile(workspace / "dirA/a.txt"), "A\nA+\n");
}

TEST_F(CommitMoved, AdditionToADirectoryThatIsExchangedDuringTheCommitIsAConflict) {
  workspace.write("conf/a", "1\n");
  workspace.write("conf2/b", "2\n");
  Session session = createLater();
  output(session, "mkdir conf/d; echo n > conf/new; echo n > conf/d/new; echo n > fine");
  move_at = "commit: journal written";
  move_on_the_host = [&] {
    moveOnHost(workspace / "conf", workspace / "conf.old");
    moveOnHost(workspace / "conf2", workspace / "conf");
  };
  session::step_observer = [](const char* name) {
    if (name == move_at && move_on_the_host) std::exchange(move_on_the_host, {})();
  };
  const CommitReport report = commit(session);
  session::step_observer = nullptr;
  EXPECT_FALSE(move_on_the_host);
  EXPECT_EQ(applied(report), "fine\n");
  EXPECT_EQ(paths(report.conflicts), "conf/d\nconf/d/new\nconf/new\n") << conflictsOf(report);
  EXPECT_NE(conflictsOf(report).find("conf/new: its directory: "), std::string::npos) << conflictsOf(report);
  EXPECT_EQ(runProgram({"ls", workspace / "conf"}).out, "b\n");
}

/// The session and the host made a directory of the same name: the review shows which one.
TEST_F(CommitMoved, DigestCoversTheDirectoryOfAnAddition) {
  workspace.write("a", "1\n");
  Session session = createLater();
  output(session, "mkdir made; echo n > made/new");
  workspace.makeDir("made");
  workspace.makeDir("other");
  const CommitReport dry = commit(session, {.dry_run = true});
  EXPECT_EQ(applied(dry), "made/new\n") << conflictsOf(dry);
  moveOnHost(workspace / "made", workspace / "made.old");
  moveOnHost(workspace / "other", workspace / "made");
  EXPECT_FALSE(session.commit({.expect = dry.digest})) << "not what was reviewed";
  EXPECT_FALSE(exists(workspace / "made/new"));
  EXPECT_EQ(applied(commit(session)), "made/new\n");
}

TEST_F(CommitMoved, DirectoryExchangedWithinAChangedDirectoryIsAConflict) {
  workspace.write("top/dirA/a.txt", "A\n");
  workspace.write("top/dirB/a.txt", "B\n");
  Session session = createLater();
  output(session, "echo A+ >> top/dirA/a.txt");
  // The times of the directories are set back; the change time cannot be.
  workspace.write("top/another", "x\n");
  moveOnHost(workspace / "top/dirA", workspace / "top/dirA.old");
  moveOnHost(workspace / "top/dirB", workspace / "top/dirA");
  workspace.write("top/dirA/another", "x\n");
  ASSERT_EQ(runProgram({"touch", "-d", "2001-01-01", workspace / "top", workspace / "top/dirA"}).exit_status, 0);
  expectConflict(session, "top/dirA/a.txt", "top/dirA");
  EXPECT_EQ(readFile(workspace / "top/dirA/a.txt"), "B\n");
}

TEST_F(CommitMoved, ExchangedDirectoryIsAConflictOfAForkAndAfterARestore) {
  workspace.write("dirA/a.txt", "A\n");
  workspace.write("dirB/a.txt", "B\n");
  Session session = createLater();
  ASSERT_TRUE(session.checkpoint("clean"));
  output(session, "echo A+ >> dirA/a.txt");
  auto fork = session.fork();
  ASSERT_TRUE(fork) << fork.error().message();
  ASSERT_TRUE(session.restore("clean"));
  output(session, "rm -r dirA");
  workspace.write("made", "x\n");
  moveOnHost(workspace / "dirA", workspace / "dirA.old");
  moveOnHost(workspace / "dirB", workspace / "dirA");
  workspace.write("dirA/made", "x\n");
  expectConflict(session, "dirA", "dirA");
  expectConflict(*fork, "dirA/a.txt", "dirA");
  EXPECT_EQ(readFile(workspace / "dirA/a.txt"), "B\n");
}

TEST_F(CommitMoved, WhatTheHostAddsBesideIsNoConflict) {
  for (const char* name : {"src/a", "src/gone", "src/deep/x", "tree/x", "top"}) workspace.write(name, "old\n");
  Session session = createLater();
  output(session, "echo new > src/a; rm src/gone; echo new > src/deep/x; rm -r tree; echo new > top; echo n > src/n");
  for (const char* name : {"made", "src/made", "src/deep/made", "src/built/made"}) workspace.write(name, "host\n");
  const CommitReport report = commit(session);
  EXPECT_TRUE(report.conflicts.empty()) << conflictsOf(report);
  EXPECT_EQ(applied(report), "src/a\nsrc/deep/x\nsrc/gone\nsrc/n\ntop\ntree\n");
  // A fork has the same beginning; after the commit, the session's own directories are known.
  output(session, "mkdir pkg; echo 1 > pkg/f");
  EXPECT_EQ(applied(commit(session)), "pkg\npkg/f\n");
  workspace.write("pkg/built", "host\n");
  workspace.write("again", "host\n");
  output(session, "echo 2 > pkg/f");
  EXPECT_EQ(applied(commit(session)), "pkg/f\n");
}

TEST_F(CommitMoved, WithoutARecordOnlyADoubtIsAConflict) {
  for (const char* name : {"quiet/a", "busy/a"}) workspace.write(name, "old\n");
  Session session = createLater();
  ASSERT_EQ(::unlink((home_path + "/sessions/" + session.id() + "/directories").c_str()), 0);
  output(session, "echo new > quiet/a; echo new > busy/a");
  workspace.write("made", "host\n");
  workspace.write("busy/made", "host\n");  // moved here, or a name made in it: its times do not tell
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.conflicts), "busy/a\n") << conflictsOf(report);
  EXPECT_EQ(applied(report), "quiet/a\n");
}

TEST(DirectoryBaselineTest, DirectoryChangedJustBeforeTheBeginningIsUnchanged) {
  const TempDir work, home;
  work.write("d/x", "x\n");
  work.write("other/x", "x\n");
  struct stat status{};
  ASSERT_EQ(::stat((work / "d").c_str(), &status), 0);
  const auto session = sys::RootDir::open(home.path()), root = sys::RootDir::open(work.path());
  ASSERT_TRUE(session && root);
  auto committed = session::Committed::load(*session);
  ASSERT_TRUE(committed);
  session::Moment began = session::Moment::now();
  began.wall_ns = status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec + 1'000'000;
  letFileTimesSettle();
  session::Metadata metadata;
  metadata.workspace = work.path();
  metadata.began = began;
  session::recordDirectories(*session, metadata);
  const auto state = [&](const std::string& directory) {
    session::RealTree real(*root);
    return session::HostDirectories(real, *committed, session::DirectoryBaseline::load(*session, metadata),
                                    began.wall_ns)
        .stateOf(directory);
  };
  EXPECT_EQ(state("d"), session::DirectoryState::unchanged);
  work.write("d/y", "y\n");
  EXPECT_NE(state("d"), session::DirectoryState::unchanged);
  moveOnHost(work / "d", work / "d.old");
  moveOnHost(work / "other", work / "d");
  EXPECT_EQ(state("d"), session::DirectoryState::another);
}

std::string walked_top;

TEST(DirectoryBaselineTest, DirectoryMovedWhileACommandMayRunIsNotRecorded) {
  const TempDir work, home;
  for (const char* name : {"d/sub/x", "other/sub/x", "quiet/x"}) work.write(name, "x\n");
  letFileTimesSettle();
  session::Metadata metadata;
  metadata.workspace = walked_top = work.path();
  metadata.began = session::Moment::now();
  const auto session = sys::RootDir::open(home.path());
  ASSERT_TRUE(session);
  session::step_observer = [](const char*) {
    moveOnHost(walked_top + "/d", walked_top + "/d.old");
    moveOnHost(walked_top + "/other", walked_top + "/d");
  };
  session::recordDirectories(*session, metadata, session::CommandsRun::perhaps);
  session::step_observer = nullptr;
  const auto baseline = session::DirectoryBaseline::load(*session, metadata);
  EXPECT_EQ(baseline.find("d"), nullptr);
  EXPECT_EQ(baseline.find("d/sub"), nullptr);
  EXPECT_NE(baseline.find("quiet"), nullptr);
}

}  // namespace
}  // namespace caisson::test
