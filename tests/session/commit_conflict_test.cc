// Files that the host changed meanwhile, and how a conflict is settled.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <string_view>
#include <utility>

#include "functional/commit.h"
#include "session/layers/steps.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class CommitConflict : public CommitTest {};

TEST_F(CommitConflict, HostChangesBetweenReviewAndCommitAreKept) {
  for (const char* name : {"changed", "removed", "linked", "made_directory"}) workspace.write(name, "old\n");
  workspace.write("tree/x", "old\n");
  Session session = create();
  output(session, "for f in changed removed linked made_directory; do echo session > $f; done; rm -r tree");
  const std::string digest = commit(session, {.dry_run = true}).digest;
  workspace.write("changed", "host\n");
  ASSERT_EQ(::unlink((workspace / "removed").c_str()), 0);
  ASSERT_EQ(::unlink((workspace / "linked").c_str()), 0);
  ASSERT_EQ(::symlink("changed", (workspace / "linked").c_str()), 0);
  ASSERT_EQ(::unlink((workspace / "made_directory").c_str()), 0);
  workspace.write("made_directory/x", "host\n");
  workspace.write("tree/y", "host\n");
  EXPECT_FALSE(session.commit({.expect = digest})) << "not what was reviewed";
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "");
  EXPECT_EQ(report.conflicts.size(), 5U) << paths(report.conflicts);
  EXPECT_EQ(readFile(workspace / "changed"), "host\n");
  EXPECT_EQ(readFile(workspace / "made_directory/x"), "host\n");
  EXPECT_EQ(readFile(workspace / "tree/y"), "host\n");
  EXPECT_FALSE(exists(workspace / "removed"));
  expectNoLeftovers(session);
}

/// Once, when the commit has checked everything and nothing is written yet.
std::function<void()> change_on_the_host;

TEST_F(CommitConflict, HostChangesDuringTheApplyAreKept) {
  CONFORMS("R-SESSION-17");
  for (const char* name : {"changed", "removed", "gone"}) workspace.write(name, "old\n");
  Session session = create();
  output(session, "for f in changed removed new; do echo session > $f; done; rm gone; echo fine > other");
  change_on_the_host = [&] {
    // The same size and time of modification: only the change time tells.
    struct stat before{};
    ASSERT_EQ(::stat((workspace / "changed").c_str(), &before), 0);
    workspace.write("changed", "HOST");
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, (workspace / "changed").c_str(), times, 0), 0);
    ASSERT_EQ(::unlink((workspace / "removed").c_str()), 0);
    workspace.write("new", "host\n");
    workspace.write("gone", "host\n");
  };
  session::step_observer = [](const char* name) {
    if (std::string_view(name) == "commit: journal written" && change_on_the_host)
      std::exchange(change_on_the_host, {})();
  };
  const CommitReport report = commit(session);
  session::step_observer = nullptr;
  EXPECT_EQ(applied(report), "other\n");
  EXPECT_EQ(report.conflicts.size(), 4U) << paths(report.conflicts);
  EXPECT_EQ(readFile(workspace / "changed"), "HOST");
  EXPECT_FALSE(exists(workspace / "removed"));
  EXPECT_EQ(readFile(workspace / "new"), "host\n");
  EXPECT_EQ(readFile(workspace / "gone"), "host\n");
  expectNoLeftovers(session);
}

/// The file is replaced between the look at it and the exchange.
TEST_F(CommitConflict, HostChangeBetweenCheckAndExchangeIsPutBack) {
  workspace.write("f", "old\n");
  Session session = create();
  output(session, "echo session > f");
  change_on_the_host = [&] {
    // As if the host had renamed it over the real one just before: what the exchange brought out is not the old file.
    const std::string staged = home_path + "/sessions/" + session.id() + "/commit.files/0";
    ASSERT_EQ(::unlink(staged.c_str()), 0);
    workspace.write("fresh", "host\n");
    ASSERT_EQ(::rename((workspace / "fresh").c_str(), staged.c_str()), 0);
  };
  session::step_observer = [](const char* name) {
    if (std::string_view(name) == "commit: exchanged" && change_on_the_host) std::exchange(change_on_the_host, {})();
  };
  const CommitReport report = commit(session);
  session::step_observer = nullptr;
  EXPECT_EQ(paths(report.conflicts), "f\n");
  EXPECT_EQ(readFile(workspace / "f"), "host\n");
}

TEST_F(CommitConflict, ConflictIsSettledEitherWay) {
  for (const char* name : {"a", "b", "c"}) workspace.write(name, "old\n");
  Session session = create();
  output(session, "for f in a b c; do echo session > $f; done");
  for (const char* name : {"a", "b", "c"}) workspace.write(name, "host\n");
  EXPECT_EQ(paths(commit(session).conflicts), "a\nb\nc\n");
  RunOutput out = cli({"commit", "--ours", "a", "--theirs", "b", session.id()});
  EXPECT_EQ(out.exit_status, 1) << "c is still a conflict: " << out.describe();
  EXPECT_EQ(out.out, "M b\n");
  EXPECT_NE(out.err.find("kept: a"), std::string::npos) << out.describe();
  EXPECT_EQ(readFile(workspace / "a"), "host\n");
  EXPECT_EQ(readFile(workspace / "b"), "session\n");
  EXPECT_EQ(readFile(workspace / "c"), "host\n");
  out = cli({"commit", "--ours", "a", "--ours", "c", session.id()});
  EXPECT_EQ(out.exit_status, 0) << out.describe();
  EXPECT_EQ(cli({"commit", "--ours", "a", "--theirs", "a", session.id()}).exit_status, 125);
}

TEST_F(CommitConflict, DirectoryNamesEveryConflictInIt) {
  for (const char* name : {"s/a", "s/t/b", "sibling/c", "top"}) workspace.write(name, "old\n");
  Session session = create();
  output(session, "for f in s/a s/t/b sibling/c top; do echo session > $f; done; echo new > s/new");
  for (const char* name : {"s/a", "s/t/b", "sibling/c", "top"}) workspace.write(name, "host\n");
  RunOutput out = cli({"commit", "--ours", "s/", session.id(), "s"});
  EXPECT_EQ(out.exit_status, 0) << out.describe();
  EXPECT_EQ(out.out, "A s/new\n") << "the new file has no conflict";
  EXPECT_NE(out.err.find("kept: s/a"), std::string::npos) << out.describe();
  EXPECT_NE(out.err.find("kept: s/t/b"), std::string::npos) << out.describe();
  EXPECT_EQ(readFile(workspace / "s/a"), "host\n");

  out = cli({"commit", "--theirs", "s", session.id()});
  EXPECT_EQ(out.exit_status, 1) << "the others are still conflicts: " << out.describe();
  EXPECT_EQ(out.out, "M s/a\nM s/t/b\n");
  EXPECT_EQ(readFile(workspace / "s/a"), "session\n");
  EXPECT_EQ(readFile(workspace / "sibling/c"), "host\n");

  out = cli({"commit", "--theirs", ".", "--ours", "sibling", session.id()});
  EXPECT_EQ(out.exit_status, 0) << out.describe();
  EXPECT_EQ(out.out, "M top\n") << "the longest path decides";
  EXPECT_NE(out.err.find("kept: sibling/c"), std::string::npos) << out.describe();
  EXPECT_EQ(readFile(workspace / "top"), "session\n");
  EXPECT_EQ(readFile(workspace / "sibling/c"), "host\n");
  EXPECT_EQ(cli({"commit", "--theirs", ".", "--ours", "./", session.id()}).exit_status, 125);
}

TEST_F(CommitConflict, ChoiceWithoutAConflictIsReported) {
  workspace.write("s/a", "old\n");
  Session session = create();
  output(session, "echo session > s/a");
  for (const char* option : {"--ours", "--theirs", "--merge"}) {
    const RunOutput out = cli({"commit", "--dry-run", option, "elsewhere", session.id()});
    EXPECT_EQ(out.exit_status, 1) << out.describe();
    EXPECT_EQ(out.out, "M s/a\n");
    EXPECT_NE(out.err.find("skipped: elsewhere: there is no conflict"), std::string::npos) << out.describe();
  }
  EXPECT_EQ(paths(commit(session, {.theirs = {"."}}).skipped), ".\n");
  EXPECT_EQ(readFile(workspace / "s/a"), "session\n") << "it was committed without a conflict";
}

TEST_F(CommitConflict, HiddenFileIsReplacedOnlyByItsOwnPath) {
  workspace.write("app/.env", "KEY=real\n");
  workspace.write("app/a", "old\n");
  Session session = create();
  output(session, "echo KEY=session > app/.env; echo session > app/a");
  workspace.write("app/a", "host\n");
  const CommitReport report = commit(session, {.theirs = {"app"}});
  EXPECT_EQ(applied(report), "app/a\n");
  EXPECT_EQ(paths(report.conflicts), "app/.env\n");
  EXPECT_EQ(readFile(workspace / "app/.env"), "KEY=real\n");
  EXPECT_EQ(applied(commit(session, {.theirs = {"app/.env"}})), "app/.env\n");
  EXPECT_EQ(readFile(workspace / "app/.env"), "KEY=session\n");
}

TEST_F(CommitConflict, TheirsBringsARemovedDirectoryBackAndReplacesNone) {
  workspace.write("s/gone/f", "old\n");
  workspace.write("s/f", "old\n");
  Session session = create();
  output(session, "echo session > s/gone/f; echo session > s/f; echo session > s/made");
  workspace.write("s/f", "host\n");
  ASSERT_EQ(::unlink((workspace / "s/gone/f").c_str()), 0);
  ASSERT_EQ(::rmdir((workspace / "s/gone").c_str()), 0);
  workspace.write("s/made/x", "host\n");
  const CommitReport report = commit(session, {.theirs = {"s"}});
  EXPECT_EQ(applied(report), "s/f\ns/gone\ns/gone/f\n");
  EXPECT_EQ(paths(report.conflicts), "s/made\n");
  EXPECT_EQ(readFile(workspace / "s/made/x"), "host\n");
  const CommitReport kept = commit(session, {.ours = {"."}});
  EXPECT_TRUE(kept.complete());
  EXPECT_EQ(kept.kept, (std::vector<std::string>{"s/made"}));
}

TEST_F(CommitConflict, FileShownWithoutItsSecretsIsNotWrittenBack) {
  const std::string real = "[remote \"origin\"]\n\turl = https://me:hunter2@example.org/x.git\n";
  workspace.write(".git/config", real);
  Session session = create();
  EXPECT_EQ(output(session, "cat .git/config").find("hunter2"), std::string::npos);
  output(session, "printf '[user]\\n\\tname = x\\n' >> .git/config");
  const CommitReport report = commit(session, {.paths = {".git/config"}});
  EXPECT_EQ(paths(report.conflicts), ".git/config\n");
  EXPECT_EQ(readFile(workspace / ".git/config"), real);
}

TEST_F(CommitConflict, NoChoicePutsAFileIntoADirectoryThatTheHostRemoved) {
  workspace.write("d/f", "old\n");
  workspace.write("g", "old\n");
  letFileTimesSettle();
  Session session = create();
  output(session, "echo new > d/f; echo new > g");
  ASSERT_EQ(::rename((workspace / "d").c_str(), (workspace / "d.old").c_str()), 0);
  CommitRequest request{.dry_run = true, .ours = {"d"}, .theirs = {"d/f"}};
  const CommitReport dry = commit(session, request);
  EXPECT_EQ(paths(dry.conflicts), "d/f\n");
  request = {.expect = dry.digest, .ours = {"d"}, .theirs = {"d/f"}};
  EXPECT_EQ(applied(commit(session, request)), "g\n") << "as the dry run showed";
}

}  // namespace
}  // namespace caisson::test
