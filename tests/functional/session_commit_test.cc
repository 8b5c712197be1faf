// commit: what a person chose reaches the real workspace, and nothing else does.
#include <unistd.h>

#include "functional/commit.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class SessionCommit : public CommitTest {};

TEST_F(SessionCommit, CommitsEverythingThatChanged) {
  workspace.write("a", "old\n");
  workspace.write("gone", "x\n");
  workspace.write("dir/keep", "k\n");
  workspace.write("dir/drop", "d\n");
  workspace.write("tree/x/y", "y\n");
  Session session = create();
  output(session,
         "echo new > a; rm gone dir/drop; rm -r tree; mkdir -p n/m; echo f > n/m/f; printf '#!/bin/sh\\n' > run; "
         "chmod 777 run; ln -s a link");
  const CommitReport dry = commit(session, {.dry_run = true});
  EXPECT_TRUE(dry.complete());
  EXPECT_EQ(readFile(workspace / "a"), "old\n");
  const CommitReport report = commit(session);
  EXPECT_TRUE(report.complete()) << paths(report.conflicts) << paths(report.skipped) << paths(report.held);
  EXPECT_EQ(applied(report), applied(dry));
  EXPECT_EQ(readFile(workspace / "a"), "new\n");
  EXPECT_FALSE(exists(workspace / "gone"));
  EXPECT_FALSE(exists(workspace / "dir/drop"));
  EXPECT_FALSE(exists(workspace / "tree"));
  EXPECT_EQ(readFile(workspace / "dir/keep"), "k\n");
  EXPECT_EQ(readFile(workspace / "n/m/f"), "f\n");
  EXPECT_EQ(readFile(workspace / "link"), "new\n");
  EXPECT_EQ(modeOf(workspace / "run"), 0755U) << "not writable by others";
  EXPECT_EQ(applied(commit(session)), "") << "done is done";
  output(session, "echo newer > a; echo z > n/z");
  EXPECT_EQ(applied(commit(session)), "a\nn/z\n") << "its own work is not a conflict";
  EXPECT_EQ(readFile(workspace / "a"), "newer\n");
}

TEST_F(SessionCommit, CommitsOnlySelectedPaths) {
  Session session = create();
  output(session, "mkdir -p d e; echo 1 > d/1; echo 2 > d/2; echo 3 > e/3; echo 4 > f");
  EXPECT_EQ(applied(commit(session, {.paths = {"d/1", "./f"}})), "d\nd/1\nf\n");
  EXPECT_TRUE(exists(workspace / "d/1"));
  EXPECT_FALSE(exists(workspace / "d/2"));
  EXPECT_FALSE(exists(workspace / "e"));
  EXPECT_EQ(paths(commit(session, {.paths = {"nothing"}}).skipped), "nothing\n");
  EXPECT_FALSE(session.commit({.paths = {"../x"}}));
  EXPECT_FALSE(session.commit({.paths = {"/etc/passwd"}}));
  EXPECT_FALSE(session.commit({.paths = {"a/../../x"}}));
}

TEST_F(SessionCommit, NamesThatAreNotUtf8AreDistinctAndCanBeSelected) {
  workspace.write("kept\xff", "old\n");
  Session session = create();
  sleepFor(std::chrono::milliseconds(20));
  output(session,
         "printf 1 > \"$(printf 'a\\377\\nb')\"; printf 2 > \"$(printf 'a\\376\\nb')\"; printf 3 > "
         "\"\\$'a\\\\377\\\\nb'\"; "
         "printf 4 > \"$(printf 'kept\\377')\"");
  workspace.write("kept\xff", "host\n");
  EXPECT_EQ(cli({"diff", session.id()}).out,
            "A $'$\\'a\\\\377\\\\nb\\''\nA $'a\\376\\nb'\nA $'a\\377\\nb'\nM $'kept\\377'\n");
  const RunOutput stat = cli({"diff", "--stat", session.id()});
  EXPECT_NE(stat.out.find(" $'a\\377\\nb'"), std::string::npos) << stat.out;
  const RunOutput dry = cli({"commit", "--dry-run", session.id()});
  EXPECT_NE(dry.out.find("A $'a\\377\\nb'\n"), std::string::npos) << dry.out;
  EXPECT_NE(dry.err.find("conflict: $'kept\\377': "), std::string::npos) << dry.err;

  const auto json = cli({"commit", "--dry-run", "--json", "--ours", "kept\xff", session.id()}).json();
  std::vector<std::string> encoded;
  for (const auto& one : json["applied"])
    if (one.value("path_encoding", "") == "base64") encoded.push_back(one["path"]);
  EXPECT_EQ(encoded, (std::vector<std::string>{"Yf4KYg==", "Yf8KYg=="})) << json;
  EXPECT_EQ(json["kept"], nlohmann::json::array({"a2VwdP8="})) << json;
  EXPECT_EQ(json["kept_encoding"], "base64") << json;

  // The notation, pasted into a shell.
  const std::string line = "\"$CAISSON_BIN\" session commit " + session.id() + " $'a\\377\\nb'";
  const RunOutput committed = runProgram({"bash", "-c", line});
  EXPECT_EQ(committed.out, "A $'a\\377\\nb'\n") << committed.describe();
  EXPECT_EQ(readFile(workspace / "a\xff\nb"), "1");
  EXPECT_FALSE(exists(workspace / "a\xfe\nb"));
  EXPECT_FALSE(exists(workspace / "$'a\\377\\nb'"));
}

TEST_F(SessionCommit, SkipsFilesThatTheHostChangedMeanwhile) {
  CONFORMS("R-SESSION-17");
  for (const char* name : {"both", "removed", "dir/a", "same"}) workspace.write(name, "old\n");
  Session session = create();
  sleepFor(std::chrono::milliseconds(20));
  output(session, "echo session > both; echo session > removed; rm -r dir; echo session > made; echo equal > same");
  workspace.write("both", "host\n");
  ASSERT_EQ(::unlink((workspace / "removed").c_str()), 0);
  workspace.write("dir/b", "host\n");
  workspace.write("made", "host\n");
  workspace.write("same", "equal\n");
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.conflicts), "both\ndir\nmade\nremoved\n");
  EXPECT_EQ(applied(report), "");
  EXPECT_EQ(readFile(workspace / "both"), "host\n");
  EXPECT_EQ(readFile(workspace / "made"), "host\n");
  EXPECT_TRUE(exists(workspace / "dir/a"));
  EXPECT_FALSE(exists(workspace / "removed"));
}

TEST_F(SessionCommit, HoldsBackFilesThatTheHostWouldExecuteUnlessNamed) {
  CONFORMS("R-SESSION-17");
  workspace.write(".git/config", "[core]\n");
  Session session = create();
  output(
      session,
      "mkdir -p .git/hooks .vscode .claude .github/workflows; echo x > .git/hooks/pre-commit; echo x >> .git/config; "
      "echo x > .vscode/tasks.json; echo x > .claude/settings.json; echo x > .github/workflows/ci.yml; echo x > "
      ".bashrc; ln -s /etc/passwd out; echo ok > ok");
  CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "ok\n");
  EXPECT_NE(paths(report.held).find(".git/hooks/pre-commit\n"), std::string::npos);
  EXPECT_NE(paths(report.held).find("out\n"), std::string::npos);
  EXPECT_EQ(readFile(workspace / ".git/config"), "[core]\n");
  for (const char* name : {".git/hooks", ".vscode", ".claude", ".github", ".bashrc", "out"}) {
    EXPECT_FALSE(exists(workspace / name)) << name;
  }
  report = commit(session, {.paths = {".vscode"}});
  EXPECT_EQ(paths(report.held), ".vscode/tasks.json\n") << "a directory that is named does not name what is in it";
  report = commit(session, {.paths = {".bashrc", ".git/config"}});
  EXPECT_EQ(readFile(workspace / ".git/config"), "[core]\nx\n");
  EXPECT_TRUE(exists(workspace / ".bashrc"));
}

TEST_F(SessionCommit, DoesNotWriteThroughALinkOfTheRealWorkspace) {
  const TempDir elsewhere;
  const Canary canary(elsewhere / "file");
  workspace.write(".git/hooks/sample", "real\n");
  ASSERT_EQ(::symlink(".git", (workspace / "docs").c_str()), 0);
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), (workspace / "away").c_str()), 0);
  Session session = create();
  output(session, "rm docs away; mkdir -p docs/hooks away; echo evil > docs/hooks/sample; echo evil > away/file");
  (void)commit(session, {.paths = {"docs/hooks/sample", "away/file"}});
  EXPECT_TRUE(canary.untouched());
  EXPECT_EQ(readFile(workspace / ".git/hooks/sample"), "real\n");
}

TEST_F(SessionCommit, NeverPlantsSpecialFilesOrBits) {
  Session session = create();
  output(
      session,
      "mkfifo pipe; echo x > file; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")' || true");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "file\n");
  EXPECT_FALSE(exists(workspace / "pipe"));
  EXPECT_FALSE(exists(workspace / "sock"));
}

TEST_F(SessionCommit, DirectoryThatCannotBeReadIsSkippedAlone) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can read every directory";
  workspace.write("ok/f", "1\n");
  workspace.write("was/f", "1\n");
  for (const char* mode : {"000", "100", "300", "400", "600"}) {
    SCOPED_TRACE(mode);
    Session session = create();
    const std::string closing = std::string("; chmod ") + mode + " a/b was";
    output(session, "date +%N > ok/f; mkdir -p a/b; echo 2 | tee a/b/inside a/beside was/f" + closing);
    EXPECT_EQ(applied(commit(session, {.paths = {"ok"}})), "ok/f\n");
    EXPECT_EQ(paths(commit(session, {.paths = {"a/b"}, .dry_run = true}).skipped), "a/b\n");
    const CommitReport report = commit(session);
    EXPECT_EQ(applied(report), "a\na/beside\n");
    EXPECT_EQ(paths(report.skipped), "a/b\nwas\n");
    EXPECT_NE(report.skipped.at(0).reason.find("chmod u+rwx"), std::string::npos) << report.skipped[0].reason;
    EXPECT_FALSE(exists(workspace / "a/b"));
    EXPECT_EQ(readFile(workspace / "was/f"), "1\n");
    EXPECT_EQ(cli({"commit", session.id()}).exit_status, 1);
    EXPECT_TRUE(*session.hasUncommittedChanges());
    output(session, "chmod 700 a/b was");
    EXPECT_EQ(applied(commit(session)), "a/b\na/b/inside\nwas\nwas/f\n") << "nothing was lost";
    ASSERT_EQ(runProgram({"rm", "-r", workspace / "a"}).exit_status, 0);
    workspace.write("was/f", "1\n");
    ASSERT_EQ(::chmod((workspace / "was").c_str(), 0755), 0);
  }
}

/// Two trees of 3,000 bytes each, one renamed into the depth of the other: no single path reaches the lower leaf.
TEST_F(SessionCommit, FilesBeyondTheLongestPathAreNamedAndStayUncommitted) {
  std::string deep(200, 'x');
  for (int level = 0; level < 14; ++level) deep += "/" + std::string(200, 'x');
  Session session = create();
  output(session, "mkdir -p a/" + deep + " b/" + deep);
  output(session, "echo 1 > a/" + deep + "/upper; echo 2 > b/" + deep + "/lower; mv b a/" + deep);
  RunOutput out = cli({"diff", session.id()});
  EXPECT_NE(out.out.find("/upper\n"), std::string::npos);
  EXPECT_NE(out.err.find("its path is too long"), std::string::npos) << out.err;
  out = cli({"export", session.id(), "--format", "tar"});
  EXPECT_EQ(out.exit_status, 1);
  EXPECT_NE(out.err.find("its path is too long"), std::string::npos) << out.err;
  const CommitReport report = commit(session);
  EXPECT_NE(applied(report).find("/upper\n"), std::string::npos);
  ASSERT_EQ(report.skipped.size(), 1U) << paths(report.skipped);
  EXPECT_TRUE(report.skipped[0].path.starts_with("a/" + deep + "/b/x")) << report.skipped[0].path;
  EXPECT_NE(report.skipped[0].reason.find("its path is too long"), std::string::npos) << report.skipped[0].reason;
  EXPECT_EQ(cli({"commit", session.id()}).exit_status, 1);
  EXPECT_NE(cli({"info", session.id()}).out.find("uncommitted"), std::string::npos);
  EXPECT_NE(cli({"destroy", session.id()}).err.find("uncommitted"), std::string::npos);
}

TEST_F(SessionCommit, WorkspaceThatCannotBeReadIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can read every directory";
  Session session = create();
  output(session, "echo 1 > f; chmod 000 .");
  for (const char* verb : {"diff", "export", "commit"}) {
    const RunOutput out = cli({verb, session.id()});
    EXPECT_EQ(out.exit_status, 125) << out.describe();
    EXPECT_NE(out.err.find("caisson: /workspace: Permission denied"), std::string::npos) << out.describe();
    EXPECT_NE(out.err.find("chmod u+rwx /workspace"), std::string::npos) << out.describe();
  }
  EXPECT_TRUE(*session.hasUncommittedChanges());
}

TEST_F(SessionCommit, AMaskedSecretIsNotOverwritten) {
  workspace.write(".env", "SECRET=1\n");
  Session session = create();
  EXPECT_EQ(output(session, "cat .env 2>/dev/null || echo hidden; echo mine > .env; cat .env"), "hidden\nmine\n");
  ASSERT_TRUE(session.checkpoint("kept"));
  EXPECT_EQ(output(session, "cat .env"), "mine\n") << "the session's own file is not masked later";
  EXPECT_EQ(paths(commit(session).conflicts), ".env\n");
  EXPECT_EQ(readFile(workspace / ".env"), "SECRET=1\n");
}

TEST_F(SessionCommit, WorksOnTheCommandLine) {
  workspace.write("a", "1\n");
  Session session = create();
  output(session, "echo 2 > a; echo x > .envrc");
  RunOutput out = cli({"commit", "--dry-run", session.id()});
  EXPECT_EQ(out.exit_status, 1) << out.describe();
  EXPECT_EQ(out.out, "M a\n");
  EXPECT_NE(out.err.find("held: .envrc"), std::string::npos) << out.describe();
  out = cli({"commit", session.id(), "a"});
  EXPECT_EQ(out.exit_status, 0) << out.describe();
  EXPECT_EQ(readFile(workspace / "a"), "2\n");
  EXPECT_EQ(cli({"commit", "--json", session.id(), ".envrc"}).json()["applied"][0]["path"], ".envrc");
}

}  // namespace
}  // namespace caisson::test
