// What a commit replaces and deletes is kept, and uncommit puts it back under the conflict rules of a commit.
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/sha256.h"
#include "session/uncommit_fixture.h"

namespace caisson::test {
namespace {

TEST_F(Uncommit, RestoresEverythingThatACommitReplacedDeletedAndAdded) {
  fill();
  const auto before = stateOf(workspace.path());
  Session session = create();
  work(session);
  EXPECT_TRUE(commit(session).complete());
  const auto after = stateOf(workspace.path());
  EXPECT_NE(after, before);
  const CommitReport dry = uncommit(session, true);
  EXPECT_EQ(stateOf(workspace.path()), after) << "a dry run changes nothing";
  const CommitReport report = uncommit(session);
  EXPECT_EQ(conflictsOf(report), "");
  EXPECT_EQ(applied(report), applied(dry));
  EXPECT_EQ(stateOf(workspace.path()), before);
  expectNoLeftovers(session);
  EXPECT_FALSE(store->uncommit(session.id())) << "there is no other commit";
}

TEST_F(Uncommit, GoesBackOneCommitAtATimeAndWorksAfterDestroy) {
  workspace.write("f", "0\n");
  letFileTimesSettle();
  Session session = create();
  for (const char* text : {"1", "2", "3"}) {
    output(session, std::string("echo ") + text + " > f");
    EXPECT_EQ(applied(commit(session)), "f\n");
  }
  const std::string id = session.id();
  const auto listed = store->replaced(id);
  ASSERT_TRUE(listed) << listed.error().message();
  ASSERT_EQ(listed->size(), 3U);
  EXPECT_EQ((*listed)[2].number, 3U);
  EXPECT_EQ((*listed)[2].objects, 1U);
  EXPECT_EQ((*listed)[2].bytes, 2U);
  EXPECT_GT((*listed)[2].removed_in, 6.0 * 86400);
  EXPECT_NE(cli({"info", id}).out.find("commit 3"), std::string::npos);
  EXPECT_EQ(cli({"info", "--json", id}).json()["commits"][2]["kept"], 1);
  EXPECT_EQ(cli({"uncommit", "--dry-run", id}).out, "M f\n");
  EXPECT_EQ(readFile(workspace / "f"), "3\n");
  EXPECT_EQ(cli({"uncommit", id}).out, "M f\n");
  EXPECT_EQ(readFile(workspace / "f"), "2\n");
  ASSERT_TRUE(session.destroy());
  // What is there was put back by an uncommit: what the second commit had left.
  const RunOutput second = cli({"uncommit", id});
  EXPECT_EQ(second.out + readFile(workspace / "f"), "M f\n1\n") << second.describe();
}

TEST_F(Uncommit, WhatTheHostChangedSinceIsAConflict) {
  fill();
  Session session = create();
  work(session);
  EXPECT_TRUE(commit(session).complete());
  letFileTimesSettle();
  workspace.write("file", "of the host\n");
  workspace.write("gone", "of the host\n");
  workspace.write("dir/new", "of the host\n");
  workspace.write("n/m/host", "of the host\n");
  workspace.write("was_file/deep/host", "of the host\n");
  workspace.write("added", "of the host\n");
  const CommitReport report = uncommit(session);
  EXPECT_EQ(paths(report.conflicts), "added\ndir\nfile\ngone\nn\nn/m\nwas_file\nwas_file/deep\n")
      << conflictsOf(report);
  for (const char* name : {"file", "gone", "dir/new", "n/m/host", "was_file/deep/host", "added"}) {
    EXPECT_EQ(readFile(workspace / name), "of the host\n") << name;
  }
  EXPECT_EQ(readFile(workspace / "tree/a"), "old tree/a\n") << "the rest is undone";
  EXPECT_EQ(readFile(workspace / "kind/x"), "old kind/x\n");
}

TEST_F(Uncommit, OlderCommitBelowADirectoryThatCameBackCanBeUndone) {
  workspace.write("d/f", "old\n");
  workspace.write("d/sub/g", "old\n");
  letFileTimesSettle();
  const auto before = stateOf(workspace.path());
  Session session = create();
  output(session, "echo new > d/f; echo new > d/sub/g; echo a > d/sub/added; mkdir d/made; chmod 750 d/sub");
  EXPECT_TRUE(commit(session, {.paths = {".", "d/sub"}}).complete());
  output(session, "rm -r d");
  EXPECT_TRUE(commit(session).complete());
  EXPECT_EQ(conflictsOf(uncommit(session)), "");
  EXPECT_EQ(readFile(workspace / "d/f"), "new\n");
  EXPECT_EQ(conflictsOf(uncommit(session)), "");
  EXPECT_EQ(stateOf(workspace.path()), before);
}

TEST_F(Uncommit, CommitsOfTwoSessionsAreUndoneOneAfterTheOther) {
  workspace.write("f", "old\n");
  workspace.write("d/f", "old\n");
  letFileTimesSettle();
  const auto before = stateOf(workspace.path());
  Session first = create();
  output(first, "echo first > f; echo first > d/f; chmod 750 d");
  EXPECT_TRUE(commit(first, {.paths = {".", "d"}}).complete());
  letFileTimesSettle();
  Session second = create();
  output(second, "echo second > f; rm -r d");
  EXPECT_TRUE(commit(second).complete());
  EXPECT_EQ(conflictsOf(uncommit(second)), "");
  EXPECT_EQ(readFile(workspace / "f"), "first\n");
  EXPECT_EQ(conflictsOf(uncommit(first)), "");
  EXPECT_EQ(stateOf(workspace.path()), before);
}

TEST_F(Uncommit, DirectoryInWhichAnotherSessionWorkedIsRemoved) {
  const auto before = stateOf(workspace.path());
  Session first = create(), second = create();
  output(first, "mkdir n; echo x > n/x");
  EXPECT_TRUE(commit(first).complete());
  letFileTimesSettle();
  output(second, "echo y > n/y");
  // Made since the second session began.
  EXPECT_EQ(applied(commit(second, {.theirs = {"n/y"}})), "n/y\n");
  EXPECT_EQ(conflictsOf(uncommit(second)), "");
  EXPECT_EQ(conflictsOf(uncommit(first)), "");
  EXPECT_EQ(stateOf(workspace.path()), before);
}

TEST_F(Uncommit, OlderCommitStaysAConflictWhereTheHostChangedWhatCameBack) {
  workspace.write("d/f", "old\n");
  letFileTimesSettle();
  Session session = create();
  output(session, "echo new > d/f");
  EXPECT_TRUE(commit(session).complete());
  output(session, "rm -r d");
  EXPECT_TRUE(commit(session).complete());
  EXPECT_EQ(conflictsOf(uncommit(session)), "");
  workspace.write("d/f", "of the host\n");
  EXPECT_EQ(paths(uncommit(session).conflicts), "d/f\n");
  EXPECT_EQ(readFile(workspace / "d/f"), "of the host\n");
}

TEST_F(Uncommit, ConflictLeavesTheRestToTheNext) {
  for (const char* name : {"a", "b", "c"}) workspace.write(name, std::string("old ") + name + "\n");
  letFileTimesSettle();
  const auto before = stateOf(workspace.path());
  Session session = create();
  output(session, "echo new > a; echo new > b; rm c; mkdir -p n/m; echo f > n/m/f");
  EXPECT_TRUE(commit(session).complete());
  letFileTimesSettle();
  workspace.write("a", "of the host\n");
  workspace.write("n/m/host", "of the host\n");
  const RunOutput first = cli({"uncommit", session.id()});
  EXPECT_EQ(first.exit_status, 1) << first.describe();
  const std::string kept = home_path + "/replaced/" + session.id() + "/1/objects/";
  const std::size_t named = first.err.find("is kept as " + kept);
  ASSERT_NE(named, std::string::npos) << first.describe();
  const std::string number = first.err.substr(named + 11 + kept.size(), 1);
  EXPECT_EQ(readFile(kept + number), "old a\n");
  EXPECT_EQ(readFile(workspace / "b"), "old b\n");
  EXPECT_EQ(readFile(workspace / "c"), "old c\n");
  EXPECT_FALSE(exists(workspace / "n/m/f"));
  const RunOutput still = cli({"uncommit", session.id()});
  EXPECT_EQ(still.exit_status, 1) << still.describe();
  EXPECT_EQ(readFile(workspace / "a"), "of the host\n");
  std::filesystem::remove(workspace / "a");
  std::filesystem::remove(workspace / "n/m/host");
  const RunOutput last = cli({"uncommit", session.id()});
  EXPECT_EQ(last.exit_status, 0) << last.describe();
  EXPECT_EQ(stateOf(workspace.path()), before);
  EXPECT_FALSE(store->uncommit(session.id()));
}

TEST_F(Uncommit, ConflictDoesNotKeepTheCommitsBeforeFromBeingUndone) {
  for (const char* name : {"a", "b"}) workspace.write(name, "0\n");
  letFileTimesSettle();
  Session session = create();
  output(session, "echo 1 > b");
  EXPECT_TRUE(commit(session).complete());
  output(session, "echo 2 > a");
  EXPECT_TRUE(commit(session).complete());
  workspace.write("a", "of the host\n");
  EXPECT_EQ(paths(uncommit(session).conflicts), "a\n");
  const CommitReport report = uncommit(session);
  EXPECT_EQ(applied(report), "b\n");
  EXPECT_EQ(paths(report.conflicts), "a\n");
  EXPECT_EQ(readFile(workspace / "b"), "0\n");
}

TEST_F(Uncommit, DirectoryThatItsOwnerCannotWriteComesBack) {
  workspace.write("closed/x", "x\n");
  workspace.write("gone/x", "x\n");
  for (const char* name : {"closed", "gone"}) ASSERT_EQ(::chmod((workspace / name).c_str(), 0555), 0);
  letFileTimesSettle();
  const auto before = stateOf(workspace.path());
  Session session = create();
  output(session, "chmod 755 closed gone; rm -r closed gone; echo x > closed");
  EXPECT_EQ(applied(commit(session)), "closed\ngone\n");
  EXPECT_EQ(conflictsOf(uncommit(session)), "");
  EXPECT_EQ(stateOf(workspace.path()), before);
  expectNoLeftovers(session);
  for (const char* name : {"closed", "gone"}) EXPECT_EQ(::chmod((workspace / name).c_str(), 0755), 0);
}

TEST_F(Uncommit, ComesBackOnAnotherMountAndNoSecretPassesThroughTheWorkspace) {
  struct stat here{}, there{};
  char place[] = "/dev/shm/caisson-test-XXXXXX";
  requireOrSkip(::mkdtemp(place) != nullptr, "cannot write to /dev/shm");
  if (IsSkipped()) return;
  const std::string top = place;
  ASSERT_EQ(::chmod(place, 0755), 0);
  ASSERT_EQ(::stat(home.path().c_str(), &here), 0);
  ASSERT_EQ(::stat(place, &there), 0);
  if (here.st_dev != there.st_dev) {
    ASSERT_EQ(
        runProgram({"sh", "-c", "cd " + top + " && mkdir -p d/s && echo old > f && echo x > d/s/x && echo k > .env"})
            .exit_status,
        0);
    letFileTimesSettle();
    auto before = stateOf(top);
    SessionOptions wanted = options();
    EXPECT_TRUE(wanted.policy.set("filesystem.workspace.path", top));
    auto made = store->create(wanted);
    ASSERT_TRUE(made) << made.error().message();
    output(*made, "echo new > f; rm -r d; echo mine > .env; echo a > added");
    EXPECT_EQ(applied(commit(*made, {.theirs = {".env"}})), ".env\nadded\nd\nf\n");
    EXPECT_EQ(paths(uncommit(*made).conflicts), ".env\n");
    auto after = stateOf(top);
    before.erase("/.env");
    after.erase("/.env");
    EXPECT_EQ(after, before);
  }
  std::filesystem::remove_all(top);
}

TEST_F(Uncommit, FollowsTheDirectoryThatTheSessionWasBoundTo) {
  const std::string place = workspace.makeDir("place"), moved = workspace / "moved", other = workspace.makeDir("other");
  workspace.write("place/file", "old\n");
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.workspace.path", place));
  auto session = store->create(wanted);
  ASSERT_TRUE(session) << session.error().message();
  output(*session, "echo new > file");
  EXPECT_EQ(applied(commit(*session)), "file\n");
  ASSERT_EQ(::rename(place.c_str(), moved.c_str()), 0);
  workspace.write("place/file", "of another directory\n");
  ASSERT_TRUE(session->rebind(other));
  EXPECT_FALSE(store->uncommit(session->id())) << "neither is the directory of the commit";
  EXPECT_EQ(readFile(workspace / "place/file"), "of another directory\n");
  ASSERT_TRUE(session->rebind(moved));
  ASSERT_TRUE(store->uncommit(session->id()));
  EXPECT_EQ(readFile(workspace / "moved/file"), "old\n");
  EXPECT_EQ(readFile(workspace / "place/file"), "of another directory\n");
}

TEST_F(Uncommit, CommitToADirectoryThatIsGoneIsAConflictAndTheOneBeforeIsUndone) {
  const std::string place = workspace.makeDir("place"), other = workspace.makeDir("other");
  workspace.write("place/file", "old\n");
  letFileTimesSettle();
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.workspace.path", place));
  auto session = store->create(wanted);
  ASSERT_TRUE(session) << session.error().message();
  output(*session, "echo new > file; echo added > added");
  EXPECT_EQ(applied(commit(*session)), "added\nfile\n");
  ASSERT_TRUE(session->rebind(other));
  EXPECT_EQ(applied(commit(*session, {.paths = {"added"}, .theirs = {"."}})), "added\n");
  std::filesystem::remove_all(other);
  const CommitReport report = uncommit(*session);
  EXPECT_EQ(paths(report.conflicts), "added\n");
  EXPECT_EQ(applied(report), "added\nfile\n");
  EXPECT_EQ(readFile(workspace / "place/file"), "old\n");
  EXPECT_FALSE(exists(workspace / "place/added"));
  EXPECT_FALSE(store->uncommit(session->id())) << "there is nothing else to undo";
}

TEST_F(Uncommit, DirectoryWhoseAttributesTheHostChangedIsAConflict) {
  workspace.write("was_file", "old\n");
  letFileTimesSettle();
  Session session = create();
  output(session, "mkdir n list o; echo x > n/x; rm was_file; mkdir was_file; echo x > was_file/x");
  EXPECT_TRUE(commit(session).complete());
  requireOrSkip(::setxattr((workspace / "n").c_str(), "user.note", "x", 1, 0) == 0, "no user attributes here");
  if (IsSkipped()) return;
  EXPECT_EQ(::setxattr((workspace / "was_file").c_str(), "user.note", "x", 1, 0), 0);
  const std::string list = "u:" + std::to_string(::geteuid()) + ":rwx";
  const bool set = runProgram({"setfacl", "-d", "-m", list, workspace / "list"}).exit_status == 0;
  const CommitReport report = uncommit(session);
  EXPECT_EQ(paths(report.conflicts), set ? "list\nn\nwas_file\n" : "n\nwas_file\n") << conflictsOf(report);
  EXPECT_FALSE(exists(workspace / "n/x"));
  EXPECT_FALSE(exists(workspace / "o"));
  EXPECT_TRUE(exists(workspace / "n"));
  EXPECT_TRUE(exists(workspace / "was_file"));
}

TEST_F(Uncommit, DiscardKeepsNothing) {
  workspace.write("f", "old\n");
  letFileTimesSettle();
  Session session = create();
  output(session, "echo new > f");
  EXPECT_EQ(commit(session, {.dry_run = true}).replaced_bytes, 4U);
  EXPECT_EQ(applied(commit(session, {.discard = true})), "f\n");
  EXPECT_FALSE(store->uncommit(session.id()));
}

TEST_F(Uncommit, ForgedRecordIsKeptAsideAndReported) {
  workspace.write("work-file", "before\n");
  workspace.write("host-file", "of the host\n");
  Session session = create();
  output(session, "echo session > work-file");
  ASSERT_TRUE(commit(session).complete());
  const std::string file = home_path + "/replaced/" + session.id() + "/1/record";
  const std::string text = readFile(file);
  const std::size_t heading = text.find('\n') + 1;
  std::string body = text.substr(heading + 65);
  body.replace(body.find("work-file"), 9, "host-file");
  std::ofstream(file, std::ios::binary) << text.substr(0, heading) << hex(Sha256().add(body).finish()) << "\n" << body;
  const auto refused = store->uncommit(session.id());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("is kept as record.invalid"), std::string::npos)
      << refused.error().message();
  EXPECT_TRUE(exists(file + ".invalid"));
  EXPECT_EQ(readFile(workspace / "host-file"), "of the host\n");
  EXPECT_EQ(readFile(workspace / "work-file"), "session\n");
  EXPECT_TRUE(store->replaced(session.id())) << "it is reported once";
}

}  // namespace
}  // namespace caisson::test
