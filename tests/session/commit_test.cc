// commit as a transaction: what was reviewed arrives or nothing does; links, git directories and names that the host
// would execute; a full disk, two commits at once, names and files of every odd kind.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <thread>

#include "functional/session.h"

namespace caisson::test {
namespace {

class CommitTransaction : public SessionTest {
 protected:
  static CommitReport commit(Session& session, const CommitRequest& request = {}) {
    auto report = session.commit(request);
    EXPECT_TRUE(report) << report.error().message();
    return report ? *std::move(report) : CommitReport{};
  }
  static std::string paths(const std::vector<NotCommitted>& list) {
    std::string text;
    for (const NotCommitted& one : list) text += one.path + "\n";
    return text;
  }
  static std::string applied(const CommitReport& report) {
    std::string text;
    for (const Change& change : report.applied) text += change.path + "\n";
    return text;
  }
  static bool isHeld(const CommitReport& report, const std::string& path) {
    for (const NotCommitted& one : report.held)
      if (one.path == path) return true;
    return false;
  }
  /// Nothing of a commit is left: neither beside the files nor in the session.
  void expectNoLeftovers(const Session& session) const {
    EXPECT_EQ(runProgram({"find", workspace.path(), "-name", ".caisson-*"}).out, "");
    EXPECT_EQ(runProgram({"sh", "-c", "ls -A " + home_path + "/sessions/" + session.id() + " | grep '^commit[.]'"}).out,
              "");
  }
};

TEST_F(CommitTransaction, ManifestNamesKindModeSizeHashAndTarget) {
  workspace.write("gone", "x\n");
  Session session = create();
  output(session, "rm gone; printf abc > f; chmod 750 f; ln -s f l; mkdir -m 700 d");
  const CommitReport report = commit(session, {.dry_run = true});
  ASSERT_EQ(applied(report), "d\nf\ngone\nl\n");
  EXPECT_EQ(report.applied[1].sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(report.applied[1].mode, 0750U);
  EXPECT_EQ(report.applied[1].size, 3U);
  EXPECT_EQ(report.applied[2].kind, ChangeKind::deleted);
  EXPECT_EQ(report.applied[3].target, "f");
  EXPECT_EQ(report.bytes, 3U);
  EXPECT_EQ(report.digest.size(), 64U);
  EXPECT_EQ(commit(session, {.dry_run = true}).digest, report.digest) << "the same changes have the same digest";
}

TEST_F(CommitTransaction, ExpectedDigestCoversContentModeTargetAndFileSet) {
  workspace.write("f", "old\n");
  Session session = create();
  output(session, "echo aaa > f; ln -s f l");
  for (const char* change : {"echo bbb > f", "chmod 755 f", "ln -sfn f2 l", "echo x > extra", "rm l"}) {
    const std::string digest = commit(session, {.dry_run = true}).digest;
    output(session, change);
    const auto refused = session.commit({.expect = digest});
    ASSERT_FALSE(refused) << change;
    EXPECT_EQ(readFile(workspace / "f"), "old\n") << change;
    EXPECT_FALSE(exists(workspace / "extra"));
  }
  const std::string digest = commit(session, {.dry_run = true}).digest;
  EXPECT_EQ(commit(session, {.expect = digest}).digest, digest);
  EXPECT_EQ(readFile(workspace / "f"), "bbb\n");
  EXPECT_FALSE(session.commit({.expect = "no digest"}));
  expectNoLeftovers(session);
}

TEST_F(CommitTransaction, DigestIsCarriedByTheCommandLine) {
  Session session = create();
  output(session, "echo one > f");
  const RunOutput dry = cli({"commit", "--dry-run", "--json", session.id()});
  const std::string digest = dry.json()["digest"];
  EXPECT_NE(cli({"commit", "--dry-run", session.id()}).err.find(digest), std::string::npos);
  output(session, "echo two > f");
  const RunOutput refused = cli({"commit", "--expect", digest, session.id()});
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_FALSE(exists(workspace / "f"));
  output(session, "echo one > f");
  EXPECT_EQ(cli({"commit", "--expect", digest, session.id()}).exit_status, 0);
  EXPECT_EQ(readFile(workspace / "f"), "one\n");
}

TEST_F(CommitTransaction, LinkThroughALinkIsResolvedInTheResult) {
  Session session = create();
  output(session,
         "mkdir -p s d; ln -s .. s/u; ln -s s/u/../.bashrc todo.md; ln -s missing/../../x bad; ln -s missing/x half; "
         "ln -s loop2 loop; ln -s loop loop2; ln -s /etc/passwd abs; ln -s ../.. d/out; ln -s d/../f turn; "
         "echo f > f; ln -s f good; ln -s ../f d/up; ln -s gone dangling; ln -s d/up through; ln -s d dir; "
         "ln -s dir/up more");
  const CommitReport report = commit(session);
  for (const char* held : {"todo.md", "bad", "half", "loop", "abs", "d/out", "turn"}) {
    EXPECT_TRUE(isHeld(report, held)) << held;
    struct stat status{};
    EXPECT_NE(::lstat((workspace / held).c_str(), &status), 0) << held;
  }
  for (const char* passed : {"good", "d/up", "dangling", "through", "dir", "more", "s/u"}) {
    EXPECT_FALSE(isHeld(report, passed)) << passed;
    struct stat status{};
    EXPECT_EQ(::lstat((workspace / passed).c_str(), &status), 0) << passed;
  }
  EXPECT_EQ(readFile(workspace / "more"), "f\n");
}

TEST_F(CommitTransaction, LinkThroughALinkOfTheHostIsHeld) {
  const TempDir elsewhere;
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), (workspace / "away").c_str()), 0);
  Session session = create();
  output(session, "ln -s away/file through; ln -s away whole");
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.held), "through\nwhole\n");
}

TEST_F(CommitTransaction, LinkIsJudgedByWhatIsCommittedNotByTheSession) {
  Session session = create();
  output(session, "mkdir d; ln -s .. d/up; ln -s d/up/x chosen; echo x > x");
  const CommitReport report = commit(session, {.paths = {"x", "d"}});
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(applied(commit(session)), "chosen\n") << "its way is there now";
}

TEST_F(CommitTransaction, ExchangedLinkNeverArrives) {
  const TempDir outside;
  workspace.write("f", "old\n");
  Session session = create();
  output(session, "printf 'good\\n' > f; ln -s ../../../../etc l");
  auto started = session.start({.command = {"python3", "-c",
                                            "import ctypes\n"
                                            "c = ctypes.CDLL(None)\n"
                                            "while True: c.renameat2(-100, b'f', -100, b'l', 2)\n"}});
  ASSERT_TRUE(started) << started.error().message();
  for (int round = 0; round < 60; ++round) {
    const auto report = session.commit();
    ASSERT_TRUE(report) << report.error().message();
    for (const char* name : {"f", "l"}) {
      struct stat status{};
      if (::lstat((workspace / name).c_str(), &status) != 0) continue;
      ASSERT_TRUE(S_ISREG(status.st_mode)) << "an outward link arrived as " << name << " in round " << round;
      const std::string text = readFile(workspace / name);
      ASSERT_TRUE(text == "good\n" || text == "old\n") << text;
    }
  }
  EXPECT_TRUE(session.stop(*started, 0));
}

TEST_F(CommitTransaction, FileIsReadOnceWhileItIsRewritten) {
  Session session = create();
  output(session, "head -c 300000 /dev/zero | tr '\\0' a > f");
  auto started = session.start({.command = {"python3", "-c",
                                            "import os\n"
                                            "f = os.open('f', os.O_WRONLY)\n"
                                            "n = 0\n"
                                            "while True:\n"
                                            "  os.pwrite(f, bytes([97 + n % 26]) * 300000, 0)\n"
                                            "  n += 1\n"}});
  ASSERT_TRUE(started) << started.error().message();
  for (int round = 0; round < 20; ++round) {
    const CommitReport report = commit(session);
    EXPECT_FALSE(report.consistent);
    if (report.applied.empty()) continue;  // it was the same as in the round before
    const RunOutput sum = runProgram({"sha256sum", workspace / "f"});
    ASSERT_EQ(sum.out.substr(0, 64), report.applied[0].sha256) << "what arrived is not what the manifest says";
  }
  EXPECT_TRUE(session.stop(*started, 0));
  EXPECT_TRUE(commit(session, {.stop = true}).consistent);
}

TEST_F(CommitTransaction, IdleSessionIsFrozenAndGoesOn) {
  Session session = create();
  output(session, "echo 1 > f; echo kept > /tmp/kept");
  const CommitReport report = commit(session);
  EXPECT_TRUE(report.consistent);
  EXPECT_EQ(output(session, "cat f /tmp/kept; echo 2 > f; cat f"), "1\nkept\n2\n") << "its sandbox stays";
  EXPECT_EQ(applied(commit(session)), "f\n");
  EXPECT_EQ(readFile(workspace / "f"), "2\n");
}

TEST_F(CommitTransaction, BareRepositoryIsHeldByItsShape) {
  const TempDir proof;
  Session session = create();
  const std::string attack = "touch " + (proof / "ran");
  output(session,
         "mkdir -p docs/objects docs/refs docs/sub; echo 'ref: refs/heads/main' > docs/HEAD; "
         "printf '[core]\\n\\tbare = false\\n\\tworktree = sub\\n\\tfsmonitor = \"" +
             attack + "; false\"\\n' > docs/config; echo text > docs/readme.md; echo x > docs/sub/x");
  CommitReport report = commit(session);
  for (const char* held : {"docs/HEAD", "docs/config", "docs/objects", "docs/refs"}) {
    EXPECT_TRUE(isHeld(report, held)) << held;
    EXPECT_FALSE(exists(workspace / held)) << held;
  }
  EXPECT_EQ(readFile(workspace / "docs/readme.md"), "text\n") << "the rest of the directory is content";
  (void)runProgram({"git", "status"}, {.cwd = workspace / "docs"});
  EXPECT_FALSE(exists(proof / "ran")) << "git ran a program of the session's on the host";
}

TEST_F(CommitTransaction, RepositoryIsHeldWhenItsPartsComeOneByOne) {
  Session session = create();
  output(session, "mkdir d; echo '[core]' > d/config");
  EXPECT_EQ(applied(commit(session)), "d\nd/config\n") << "a file of this name is nothing special";
  output(session, "mkdir d/objects d/refs; echo 'ref: refs/heads/m' > d/HEAD");
  CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "") << "together they make a repository";
  output(session, "rm -r d/objects d/refs; echo ../x > d/commondir");
  report = commit(session);
  EXPECT_EQ(applied(report), "");
}

TEST_F(CommitTransaction, DataOfARepositoryOfTheHostPasses) {
  ASSERT_EQ(runProgram({"git", "init", "-q", "--bare", workspace / "mirror"}).exit_status, 0);
  Session session = create();
  output(session,
         "echo x > mirror/refs/heads/x; mkdir -p mirror/objects/ab; echo o > mirror/objects/ab/c; "
         "echo x >> mirror/config; echo x > mirror/hooks/post-update");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "mirror/objects/ab\nmirror/objects/ab/c\nmirror/refs/heads/x\n");
  EXPECT_EQ(paths(report.held), "mirror/config\nmirror/hooks/post-update\n");
}

TEST_F(CommitTransaction, NamesThatWereNotHeldBefore) {
  Session session = create();
  output(session,
         "mkdir -p .jj .sl .helix; for f in .jj/config.toml .sl/config .helix/languages.toml .dir-locals-2.el "
         "lefthook.yaml mise.local.toml .overcommit.yml CLAUDE.local.md x.desktop x.service; do echo x > $f; done; "
         "echo ok > ok");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "ok\n") << applied(report);
}

TEST_F(CommitTransaction, PolicyAddsProtectedFiles) {
  SessionOptions wish = options();
  ASSERT_TRUE(wish.policy.append("filesystem.workspace.protected_files", "deploy/"));
  ASSERT_TRUE(wish.policy.append("filesystem.workspace.protected_files", "*.secret.sh"));
  auto session = store->create(wish);
  ASSERT_TRUE(session) << session.error().message();
  output(*session, "mkdir deploy; echo x > deploy/x; echo x > a.secret.sh; echo x > b.sh");
  EXPECT_EQ(applied(commit(*session)), "b.sh\n");
  SessionOptions bad = options();
  EXPECT_FALSE(bad.policy.set("filesystem.workspace.protected_files", "/etc/passwd"));
}

TEST_F(CommitTransaction, ModelsCommitOnlyOrdinaryFiles) {
  SessionOptions wish = options();
  ASSERT_TRUE(wish.policy.set("filesystem.workspace.committable_files", "*.dat"));
  auto session = store->create(wish);
  ASSERT_TRUE(session) << session.error().message();
  output(*session,
         "mkdir src .new; echo x > src/a.py; echo x > .newtool.toml; echo x > .new/a.py; echo x > program; "
         "echo x > a.dat; echo x > \"$(printf 'a\\342\\200\\256gnp.py')\"");
  const CommitReport report = commit(*session, {.ordinary_files_only = true});
  EXPECT_EQ(applied(report), "a.dat\nsrc\nsrc/a.py\n");
  EXPECT_EQ(report.held.size(), 5U) << paths(report.held);
  const CommitReport named = commit(*session, {.paths = {"program"}, .ordinary_files_only = true});
  ASSERT_EQ(applied(named), "program\n");
  EXPECT_TRUE(named.applied[0].held_unless_named);
}

TEST_F(CommitTransaction, HostChangesBetweenReviewAndCommitAreKept) {
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

TEST_F(CommitTransaction, ConflictIsSettledEitherWay) {
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

TEST_F(CommitTransaction, FileShownWithoutItsSecretsIsNotWrittenBack) {
  const std::string real = "[remote \"origin\"]\n\turl = https://me:hunter2@example.org/x.git\n";
  workspace.write(".git/config", real);
  Session session = create();
  EXPECT_EQ(output(session, "cat .git/config").find("hunter2"), std::string::npos);
  output(session, "printf '[user]\\n\\tname = x\\n' >> .git/config");
  const CommitReport report = commit(session, {.paths = {".git/config"}});
  EXPECT_EQ(paths(report.conflicts), ".git/config\n");
  EXPECT_EQ(readFile(workspace / ".git/config"), real);
}

TEST_F(CommitTransaction, KindsAreExchangedWhole) {
  workspace.write("file", "f\n");
  workspace.write("tree/a/b", "b\n");
  ASSERT_EQ(::symlink("file", (workspace / "link").c_str()), 0);
  Session session = create();
  output(session,
         "rm file; mkdir file; echo in > file/in; rm -r tree; echo text > tree; rm link; mkdir -p link/deep; "
         "echo d > link/deep/d");
  EXPECT_TRUE(commit(session).complete());
  EXPECT_EQ(readFile(workspace / "file/in"), "in\n");
  EXPECT_EQ(readFile(workspace / "tree"), "text\n");
  EXPECT_EQ(readFile(workspace / "link/deep/d"), "d\n");
  expectNoLeftovers(session);
}

TEST_F(CommitTransaction, OddNamesAndFilesArriveOrAreNamed) {
  workspace.write("Case", "case\n");
  Session session = create();
  output(session,
         "printf x > \"$(printf 'new\\nline')\"; printf x > \"$(printf 'esc\\033[31m')\"; "
         "printf x > \"$(printf 'bidi\\342\\200\\256txt')\"; printf x > \"$(printf 'bytes\\377')\"; printf x > ' '; "
         "printf x > ./-n; truncate -s 300M sparse; printf end >> sparse; printf x > one; ln one two; "
         "python3 -c 'import os; os.setxattr(\"one\", \"user.note\", b\"v\")'; mv Case CASE; : > empty");
  const RunOutput dry = cli({"commit", "--dry-run", session.id()});
  EXPECT_EQ(dry.out.find('\033'), std::string::npos);
  EXPECT_EQ(dry.out.find("\342\200\256"), std::string::npos);
  EXPECT_NE(dry.out.find("new\\nline"), std::string::npos) << dry.out;
  const CommitReport report = commit(session);
  EXPECT_TRUE(report.complete()) << paths(report.held) << paths(report.skipped) << paths(report.conflicts);
  for (const char* name : {"new\nline", "esc\033[31m", "bidi\342\200\256txt", "bytes\377", " ", "-n", "one", "two"}) {
    EXPECT_EQ(readFile(workspace / name), "x") << name;
  }
  EXPECT_EQ(readFile(workspace / "empty"), "");
  EXPECT_EQ(readFile(workspace / "CASE"), "case\n");
  EXPECT_FALSE(exists(workspace / "Case"));
  struct stat sparse{}, one{}, two{};
  ASSERT_EQ(::stat((workspace / "sparse").c_str(), &sparse), 0);
  EXPECT_EQ(sparse.st_size, 300 * 1048576L + 3);
  EXPECT_LT(sparse.st_blocks, 8192) << "holes stay holes";
  ASSERT_EQ(::stat((workspace / "one").c_str(), &one), 0);
  ASSERT_EQ(::stat((workspace / "two").c_str(), &two), 0);
  EXPECT_NE(one.st_ino, two.st_ino) << "files are committed one by one";
  EXPECT_LT(::getxattr((workspace / "one").c_str(), "user.note", nullptr, 0), 0) << "not part of the manifest";
}

TEST_F(CommitTransaction, TenThousandChanges) {
  for (int i = 0; i < 100; ++i) workspace.write("old/" + std::to_string(i), "old\n");
  Session session = create();
  output(session,
         "rm -r old; i=0; while [ $i -lt 100 ]; do mkdir -p d$i; j=0; while [ $j -lt 100 ]; do echo $i.$j > d$i/$j; "
         "j=$((j+1)); done; i=$((i+1)); done");
  const CommitReport dry = commit(session, {.dry_run = true});
  EXPECT_EQ(dry.applied.size(), 10'101U);
  const CommitReport report = commit(session, {.expect = dry.digest});
  EXPECT_EQ(report.applied.size(), 10'101U);
  EXPECT_EQ(readFile(workspace / "d99/99"), "99.99\n");
  EXPECT_EQ(runProgram({"sh", "-c", "find . -type f | wc -l"}, {.cwd = workspace.path()}).out, "10000\n");
  EXPECT_EQ(applied(commit(session)), "");
  expectNoLeftovers(session);
}

/// Two sessions on one directory, committed by two processes at the same time, again and again.
TEST_F(CommitTransaction, TwoCommitsAtOnceDoNotMix) {
  Session first = create(), second = create();
  for (int round = 0; round < 5; ++round) {
    const std::string number = std::to_string(round);
    for (Session* one : {&first, &second}) {
      const std::string mark = one == &first ? "first" : "second";
      output(*one, "mkdir -p d; for i in 1 2 3 4 5 6 7 8 9; do echo " + mark + number + " > d/" + mark +
                       "$i; done; echo " + mark + number + " > same" + number);
    }
    RunOutput outcomes[2];
    std::thread one([&] { outcomes[0] = cli({"commit", first.id()}); });
    std::thread two([&] { outcomes[1] = cli({"commit", second.id()}); });
    one.join();
    two.join();
    const std::string line = "A same" + number + "\n";
    const bool first_won = outcomes[0].out.find(line) != std::string::npos;
    EXPECT_NE(first_won, outcomes[1].out.find(line) != std::string::npos)
        << outcomes[0].describe() << outcomes[1].describe();
    EXPECT_EQ(readFile(workspace / ("same" + number)), (first_won ? "first" : "second") + number + "\n");
    for (int i = 1; i < 10; ++i) {
      EXPECT_EQ(readFile(workspace / ("d/first" + std::to_string(i))), "first" + number + "\n");
      EXPECT_EQ(readFile(workspace / ("d/second" + std::to_string(i))), "second" + number + "\n");
    }
  }
  expectNoLeftovers(first);
  expectNoLeftovers(second);
}

class CommitModel : public testing::TestWithParam<int> {};

TEST_P(CommitModel, ResultIsTheOneOfAnIndependentImplementation) {
  std::string why;
  requireOrSkip(fullIsolationAvailable(&why), why);
  const RunOutput out =
      runProgram({"python3", sourceFile("tests/session/commit_model.py"), std::to_string(GetParam())});
  EXPECT_EQ(out.exit_status, 0) << out.describe();
}

INSTANTIATE_TEST_SUITE_P(Seeds, CommitModel, testing::Range(1, 25));

/// The workspace is a small, separate file system.
class CommitToSmallDisk : public CommitTransaction {
 protected:
  void onSmallDisk(const std::function<void(const std::string& point)>& work) {
    if (kThreadSanitizer) GTEST_SKIP() << "a program with a thread of its sanitizer's cannot enter a user namespace";
    const std::string point = workspace / "mounted";
    ASSERT_EQ(::mkdir(point.c_str(), 0755), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(200);
      const std::string uid = std::to_string(::getuid()), gid = std::to_string(::getgid());
      const bool root = ::getuid() == 0;
      if (::unshare(root ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) ::_exit(3);
      if (!root) {
        std::ofstream("/proc/self/setgroups") << "deny";
        std::ofstream("/proc/self/uid_map") << uid + " " + uid + " 1";
        std::ofstream("/proc/self/gid_map") << gid + " " + gid + " 1";
      }
      if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(4);
      if (::mount("none", point.c_str(), "tmpfs", 0, "size=1m,nr_inodes=64") != 0) ::_exit(5);
      ::chmod(point.c_str(), 0755);
      work(point);
      (void)runCaisson({"clean", "--all"});
      std::fflush(nullptr);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "see above";
  }
};

TEST_F(CommitToSmallDisk, FullDiskLeavesEverythingAsItWas) {
  onSmallDisk([&](const std::string& point) {
    for (const char* name : {"a", "b", "gone"}) std::ofstream(point + "/" + name) << "old\n";
    const RunOutput made = runCaisson({"session", "create", "--name", "n", "--workspace", point});
    ASSERT_EQ(made.exit_status, 0) << made.describe();
    const auto session = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), "session");
      return runCaisson(arguments);
    };
    ASSERT_EQ(session({"exec", "n", "--", "sh", "-c",
                       "rm gone; echo new > a; mkdir d; head -c 600000 /dev/zero | tr '\\0' x > b; cp b d/c"})
                  .exit_status,
              0);
    const RunOutput refused = session({"commit", "n"});
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_NE(refused.err.find("No space left"), std::string::npos) << refused.describe();
    for (const char* name : {"a", "b", "gone"}) EXPECT_EQ(readFile(point + "/" + name), "old\n") << name;
    EXPECT_EQ(runProgram({"ls", "-A", point}).out, "a\nb\ngone\n") << "nothing is left of the attempt";
    ASSERT_EQ(session({"exec", "n", "--", "rm", "d/c"}).exit_status, 0);
    const RunOutput done = session({"commit", "n"});
    EXPECT_EQ(done.exit_status, 0) << done.describe();
    EXPECT_EQ(readFile(point + "/a"), "new\n");
    EXPECT_EQ(runProgram({"ls", "-A", point}).out, "a\nb\nd\n");
  });
}

/// Renames that need room fail in the middle of the apply: a directory cannot be made.
TEST_F(CommitToSmallDisk, FailureInTheMiddleIsTakenBack) {
  onSmallDisk([&](const std::string& point) {
    for (const char* name : {"a", "gone"}) std::ofstream(point + "/" + name) << "old\n";
    ASSERT_EQ(runCaisson({"session", "create", "--name", "n", "--workspace", point}).exit_status, 0);
    const auto session = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), "session");
      return runCaisson(arguments);
    };
    // Directories are made in the apply: their inodes run out after "gone" was removed.
    ASSERT_EQ(session({"exec", "n", "--", "sh", "-c",
                       "rm gone; echo new > a; i=0; while [ $i -lt 80 ]; do mkdir d$i; i=$((i+1)); done"})
                  .exit_status,
              0);
    const RunOutput refused = session({"commit", "n"});
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_EQ(runProgram({"ls", "-A", point}).out, "a\ngone\n") << "what was done is taken back";
    EXPECT_EQ(readFile(point + "/a"), "old\n");
    EXPECT_EQ(readFile(point + "/gone"), "old\n");
  });
}

}  // namespace
}  // namespace caisson::test
