// Three-way merge of a file that both the session and the host changed: only with a base that is known, never with
// conflict marks, and covered by the digest like everything else.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>

#include "functional/commit.h"

namespace caisson::test {
namespace {

constexpr const char* kText = "one\ntwo\nthree\nfour\nfive\nsix\n";

class CommitMerge : public CommitTest {
 protected:
  void git(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"git", "-c", "user.name=t", "-c", "user.email=t@example.org"});
    const RunOutput out = runProgram(arguments, {.cwd = workspace.path()});
    ASSERT_EQ(out.exit_status, 0) << out.describe();
  }
  /// A repository with `name` in it, unchanged, and older than the session that comes.
  void track(const std::string& name, const std::string& text = kText) const {
    workspace.write(name, text);
    // Older than the index: else git itself could not tell whether it changed since.
    const timespec old[2] = {{1'700'000'000, 0}, {1'700'000'000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (workspace / name).c_str(), old, 0), 0);
    git({"init", "-q"});
    git({"add", "-A"});
    git({"commit", "-q", "-m", "begin"});
    waitForTick(workspace / name);
  }
  /// File times have the precision of the kernel's tick; a session only relies on clearly older ones.
  static void waitForTick(const std::string& path) {
    struct stat status{};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    timespec now{};
    do {
      sleepFor(std::chrono::milliseconds(5));
      ::clock_gettime(CLOCK_REALTIME, &now);
    } while ((now.tv_sec - status.st_ctim.tv_sec) * 1'000'000'000LL + now.tv_nsec - status.st_ctim.tv_nsec <
             50'000'000);
  }
  static std::string reasonFor(const CommitReport& report, const std::string& path) {
    for (const NotCommitted& one : report.conflicts) {
      if (one.path == path) return one.reason;
    }
    return "";
  }
  void edit(const std::string& name, const std::string& expression) const {
    ASSERT_EQ(runProgram({"sed", "-i", expression, workspace / name}).exit_status, 0);
  }
};

TEST_F(CommitMerge, CombinesChangesOfBothSidesOfATrackedFile) {
  track("f");
  Session session = create();
  output(session, "sed -i 's/six/SESSION/' f");
  edit("f", "s/one/HOST/");
  ASSERT_EQ(::chmod((workspace / "f").c_str(), 0640), 0);
  const CommitReport plain = commit(session);
  EXPECT_NE(reasonFor(plain, "f").find("--merge"), std::string::npos) << reasonFor(plain, "f");
  EXPECT_EQ(readFile(workspace / "f"), "HOST\ntwo\nthree\nfour\nfive\nsix\n") << "only when it is asked for";

  const CommitReport dry = commit(session, {.dry_run = true, .merge = {"f"}});
  const CommitReport report = commit(session, {.expect = dry.digest, .merge = {"f"}});
  const std::string merged = "HOST\ntwo\nthree\nfour\nfive\nSESSION\n";
  EXPECT_EQ(readFile(workspace / "f"), merged);
  EXPECT_EQ(modeOf(workspace / "f"), 0640U);
  ASSERT_EQ(applied(report), "f\n");
  EXPECT_TRUE(report.applied[0].merged);
  EXPECT_EQ(report.applied[0].size, merged.size());
  EXPECT_EQ(runProgram({"sha256sum", workspace / "f"}).out.substr(0, 64), report.applied[0].sha256);
  expectNoLeftovers(session);
}

TEST_F(CommitMerge, LaterCommitDoesNotReplaceTheMergedFile) {
  track("f");
  Session session = create();
  output(session, "sed -i 's/six/SESSION/' f");
  edit("f", "s/one/HOST/");
  EXPECT_TRUE(commit(session, {.merge = {"f"}}).complete());
  EXPECT_EQ(paths(commit(session).conflicts), "f\n") << "the session's own version lacks the host's change";
  EXPECT_EQ(readFile(workspace / "f"), "HOST\ntwo\nthree\nfour\nfive\nSESSION\n");
  const CommitReport again = commit(session, {.merge = {"f"}});
  EXPECT_TRUE(again.complete());
  EXPECT_EQ(applied(again), "") << "everything is there already";
  output(session, "sed -i 's/three/MORE/' f");
  EXPECT_TRUE(commit(session, {.merge = {"."}}).complete());
  EXPECT_EQ(readFile(workspace / "f"), "HOST\ntwo\nMORE\nfour\nfive\nSESSION\n");
}

TEST_F(CommitMerge, ChangesThatTouchStayAConflict) {
  track("f");
  Session session = create();
  output(session, "sed -i 's/two/SESSION/' f");
  edit("f", "s/one/HOST/");
  const CommitReport report = commit(session, {.merge = {"f"}});
  EXPECT_NE(reasonFor(report, "f").find("neighbouring"), std::string::npos) << reasonFor(report, "f");
  EXPECT_EQ(applied(report), "");
  EXPECT_EQ(readFile(workspace / "f"), "HOST\ntwo\nthree\nfour\nfive\nsix\n") << "no conflict marks";
}

TEST_F(CommitMerge, BaseIsTheFileAtTheBeginningNotWhatTheHostCommittedSince) {
  track("f");
  Session session = create();
  output(session, "sed -i 's/six/SESSION/' f");
  edit("f", "s/one/HOST/");
  git({"commit", "-q", "-a", "-m", "later"});
  git({"repack", "-q", "-a", "-d"});
  EXPECT_TRUE(commit(session, {.merge = {"f"}}).complete());
  EXPECT_EQ(readFile(workspace / "f"), "HOST\ntwo\nthree\nfour\nfive\nSESSION\n");
}

TEST_F(CommitMerge, EveryFormatOfTheIndexIsRead) {
  for (const char* name : {"a/b/c", "a/b/d", "a/long name", "z"}) workspace.write(name, "other\n");
  track("a/b/f");
  for (const char* format : {"2", "3", "4"}) {
    git({"update-index", "--index-version", format});
    if (std::string(format) == "3") git({"update-index", "--skip-worktree", "a/b/c"});  // needs format 3
    Session session = create();
    output(session, "sed -i 's/six/SESSION/' a/b/f");
    edit("a/b/f", "s/one/HOST/");
    EXPECT_TRUE(commit(session, {.merge = {"a"}}).complete()) << format;
    EXPECT_EQ(readFile(workspace / "a/b/f"), "HOST\ntwo\nthree\nfour\nfive\nSESSION\n") << format;
    git({"checkout", "-q", "a/b/f"});
    waitForTick(workspace / "a/b/f");
    git({"update-index", "--refresh"});
  }
}

TEST_F(CommitMerge, UnknownBaseIsAConflict) {
  track("tracked");
  workspace.write("untracked", kText);
  edit("tracked", "s/three/changed before the session began/");
  Session session = create();
  output(session, "sed -i 's/six/SESSION/' tracked untracked");
  edit("tracked", "s/one/HOST/");
  edit("untracked", "s/one/HOST/");
  const CommitReport report = commit(session, {.merge = {"."}});
  for (const char* name : {"tracked", "untracked"}) {
    EXPECT_NE(reasonFor(report, name).find("not known"), std::string::npos) << name << reasonFor(report, name);
    EXPECT_EQ(readFile(workspace / name).find("SESSION"), std::string::npos) << name;
  }
}

TEST_F(CommitMerge, BlobThatDiffersFromTheFileIsNotABase) {
  workspace.write(".gitattributes", "f eol=crlf\n");
  track("f", "one\r\ntwo\r\nthree\r\nfour\r\n");
  Session session = create();
  output(session, "sed -i 's/four/SESSION/' f");
  edit("f", "s/one/HOST/");
  EXPECT_NE(reasonFor(commit(session, {.merge = {"f"}}), "f").find("not known"), std::string::npos);
}

TEST_F(CommitMerge, BinaryFileIsAConflict) {
  track("f", std::string("a\n\0b\nc\nd\n", 9));
  Session session = create();
  output(session, "echo more >> f");
  edit("f", "1s/a/HOST/");
  EXPECT_NE(reasonFor(commit(session, {.merge = {"f"}}), "f").find("binary"), std::string::npos);
}

/// Git runs programs that a repository's configuration names.
TEST_F(CommitMerge, ConfigurationOfTheRepositoryIsNotRead) {
  const TempDir proof;
  track("f");
  const std::string attack = "touch " + (proof / "ran");
  for (const char* key : {"core.fsmonitor", "core.pager", "core.sshCommand", "core.gitProxy", "filter.x.smudge",
                          "diff.external", "core.hooksPath", "uploadpack.packObjectsHook"}) {
    git({"config", key, attack});
  }
  git({"config", "core.repositoryformatversion", "1"});
  git({"config", "extensions.partialClone", "origin"});
  git({"config", "remote.origin.url", "ext::" + attack});
  git({"config", "remote.origin.promisor", "true"});
  git({"config", "protocol.ext.allow", "always"});
  Session session = create();
  output(session, "sed -i 's/six/SESSION/' f");
  edit("f", "s/one/HOST/");
  EXPECT_TRUE(commit(session, {.merge = {"f"}}).complete());
  EXPECT_EQ(readFile(workspace / "f"), "HOST\ntwo\nthree\nfour\nfive\nSESSION\n");
  // An object that is missing would be fetched with the repository's configuration.
  output(session, "sed -i 's/five/MORE/' f");
  ASSERT_EQ(runProgram({"sh", "-c", "rm -rf .git/objects/*"}, {.cwd = workspace.path()}).exit_status, 0);
  EXPECT_NE(reasonFor(commit(session, {.merge = {"f"}}), "f").find("not known"), std::string::npos);
  EXPECT_FALSE(exists(proof / "ran"));
}

TEST_F(CommitMerge, EarlierCommitOfTheSessionIsABase) {
  workspace.write("f", "something else\n");
  Session session = create();
  output(session, "printf 'one\\ntwo\\nthree\\nfour\\n' > f");
  EXPECT_TRUE(commit(session).complete());
  edit("f", "s/one/HOST/");
  output(session, "sed -i 's/four/SESSION/' f");
  EXPECT_EQ(paths(commit(session).conflicts), "f\n");
  EXPECT_TRUE(commit(session, {.merge = {"f"}}).complete());
  EXPECT_EQ(readFile(workspace / "f"), "HOST\ntwo\nthree\nSESSION\n");
}

TEST_F(CommitMerge, ForkKnowsTheBase) {
  track("f");
  Session session = create();
  ASSERT_TRUE(eventually([&] { return exists(home_path + "/sessions/" + session.id() + "/git-bases"); }));
  auto fork = session.fork({});
  ASSERT_TRUE(fork) << fork.error().message();
  output(*fork, "sed -i 's/six/SESSION/' f");
  edit("f", "s/one/HOST/");
  EXPECT_TRUE(commit(*fork, {.merge = {"f"}}).complete());
  EXPECT_EQ(readFile(workspace / "f"), "HOST\ntwo\nthree\nfour\nfive\nSESSION\n");
}

TEST_F(CommitMerge, SessionOfAPoolKnowsTheBase) {
  track("f");
  auto pool = store->pool(options(), 1);
  ASSERT_TRUE(pool) << pool.error().message();
  auto session = pool->take();
  ASSERT_TRUE(session) << session.error().message();
  // The pool's thread writes it down.
  ASSERT_TRUE(eventually([&] { return exists(home_path + "/sessions/" + session->id() + "/git-bases"); }));
  output(*session, "sed -i 's/six/SESSION/' f");
  edit("f", "s/one/HOST/");
  EXPECT_TRUE(commit(*session, {.merge = {"f"}}).complete());
  EXPECT_EQ(readFile(workspace / "f"), "HOST\ntwo\nthree\nfour\nfive\nSESSION\n");
}

TEST_F(CommitMerge, HostChangeAfterTheReviewIsRefused) {
  track("f");
  Session session = create();
  output(session, "sed -i 's/six/SESSION/' f");
  edit("f", "s/one/HOST/");
  const std::string digest = commit(session, {.dry_run = true, .merge = {"f"}}).digest;
  edit("f", "s/HOST/AGAIN/");
  EXPECT_FALSE(session.commit({.expect = digest, .merge = {"f"}}));
  EXPECT_EQ(readFile(workspace / "f"), "AGAIN\ntwo\nthree\nfour\nfive\nsix\n");
}

TEST_F(CommitMerge, WorksOnTheCommandLine) {
  track("f");
  Session session = create();
  output(session, "sed -i 's/six/SESSION/' f");
  edit("f", "s/one/HOST/");
  const RunOutput dry = cli({"commit", "--dry-run", "--json", "--merge", "f", session.id()});
  EXPECT_EQ(dry.json()["applied"][0]["merged"], true) << dry.describe();
  const RunOutput out = cli({"commit", "--merge", "f", session.id()});
  EXPECT_EQ(out.exit_status, 0) << out.describe();
  EXPECT_NE(out.err.find("merged: f"), std::string::npos) << out.describe();
  EXPECT_EQ(cli({"commit", "--merge", "../x", session.id()}).exit_status, 125);
}

}  // namespace
}  // namespace caisson::test
