// Files and names of every odd kind, many of them, and two commits at once.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "functional/commit.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

class CommitBulk : public CommitTest {
 protected:
  Session createWithDisk(const std::string& size) {
    SessionOptions wanted = options();
    EXPECT_TRUE(wanted.policy.set("filesystem.max_file_size", size));
    EXPECT_TRUE(wanted.policy.set("filesystem.max_total_size", size));
    auto made = store->create(wanted);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
};

TEST_F(CommitBulk, ChangesOfFileTypeAreCommittedCompletely) {
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

TEST_F(CommitBulk, UnusualNamesAndFilesAreCommittedOrReported) {
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

TEST_F(CommitBulk, HugeSparseFileAndRightsOfOthersAreLeftOut) {
  Session session = createWithDisk("64G");
  output(session, "truncate -s 40G huge && echo x > f && chmod 777 f && mkdir d && chmod 777 d");
  const auto began = std::chrono::steady_clock::now();
  const CommitReport report = commit(session);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20)) << "40 GiB of holes were read";
  EXPECT_EQ(paths(report.skipped), "huge\n");
  EXPECT_FALSE(exists(workspace / "huge"));
  EXPECT_EQ(modeOf(workspace / "f"), 0755U);
  EXPECT_EQ(modeOf(workspace / "d"), 0755U);
}

TEST_F(CommitBulk, HolesOfAllFilesTogetherAreBounded) {
  Session session = createWithDisk("64G");
  // Each would be within the 4 GiB alone. `a` is small: without the processor's instructions a GiB takes 7 s to hash.
  output(session, "truncate -s 256M a; for f in b c d; do truncate -s 4G $f; done; echo x > small");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "a\nsmall\n");
  EXPECT_EQ(paths(report.skipped), "b\nc\nd\n");
  // To see that nothing changed, holes are not read.
  EXPECT_EQ(commit(session, {.paths = {"a"}}).applied.size(), 0U);
}

TEST_F(CommitBulk, DifferenceBetweenSparseFilesIsFoundWithoutReadingHoles) {
  Session session = createWithDisk("1T");
  output(session,
         "for f in same changed; do truncate -s 900G $f; printf a | dd of=$f bs=1 seek=700G conv=notrunc status=none; "
         "done");
  const auto checkpoint = session.checkpoint("before");
  ASSERT_TRUE(checkpoint) << checkpoint.error().message();
  output(session, "touch same; printf b | dd of=changed bs=1 seek=700G conv=notrunc status=none");
  const auto changes = session.diff("before");
  ASSERT_TRUE(changes) << changes.error().message();
  ASSERT_EQ(changes->size(), 1U);
  EXPECT_EQ(changes->front().path, "changed");
}

TEST_F(CommitBulk, CommittedFileTakesNoMoreSpaceThanTheSessions) {
  Session session = createWithDisk("1G");
  output(session,
         "i=0; while [ $i -lt 64 ]; do printf x | dd of=f bs=4k seek=$((i * 64)) conv=notrunc status=none; i=$((i+1)); "
         "done");
  EXPECT_EQ(applied(commit(session)), "f\n");
  struct stat status{};
  ASSERT_EQ(::stat((workspace / "f").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 63 * 64 * 4096 + 1);
  EXPECT_LE(status.st_blocks * 512, 2 * 64 * 4096);
}

int copied_entries = 0;

/// The base of a session in the landlock tier follows a commit with work in proportion to it.
TEST_F(CommitBulk, LandlockTierCopiesOnlyWhatWasCommitted) {
  constexpr int kFiles = 200;
  workspace.write("d/old", "old\n");
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("isolation.tier", "landlock"));
  auto made = store->create(wanted);
  ASSERT_TRUE(made) << made.error().message();
  Session session = *std::move(made);
  output(session, "i=0; while [ $i -lt " + std::to_string(kFiles) +
                      " ]; do echo $i > d/f$i; i=$((i+1)); done; ln -s f1 d/l; mkdir d/e; echo changed > d/old");
  copied_entries = 0;
  session::step_observer = [](const char* name) {
    if (std::string_view(name) == "copy: one entry") ++copied_entries;
  };
  const CommitReport report = commit(session);
  session::step_observer = nullptr;
  EXPECT_EQ(report.applied.size(), kFiles + 3U);
  EXPECT_GE(copied_entries, kFiles);
  EXPECT_LE(copied_entries, 3 * (kFiles + 3)) << "each committed entry copies its whole directory";
  EXPECT_EQ(readFile(workspace / "d/f7"), "7\n");
  const auto rest = session.diff();
  ASSERT_TRUE(rest) << rest.error().message();
  EXPECT_TRUE(rest->empty()) << "what was committed is still a change";
}

TEST_F(CommitBulk, TenThousandChanges) {
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

TEST_F(CommitBulk, WaitsForAnotherCommitToTheSameDirectory) {
  Session session = create();
  output(session, "echo new > f");
  const int directory = ::open(workspace.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(::flock(directory, LOCK_EX), 0);
  const auto refused = session.commit();
  ASSERT_FALSE(refused) << "another commit holds the directory";
  EXPECT_NE(refused.error().message().find("another commit"), std::string::npos) << refused.error().message();
  EXPECT_FALSE(exists(workspace / "f"));
  ::close(directory);
  EXPECT_EQ(applied(commit(session)), "f\n");
}

/// Two sessions on one directory, committed by two processes at the same time, again and again.
TEST_F(CommitBulk, TwoCommitsAtOnceDoNotMix) {
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

}  // namespace
}  // namespace caisson::test
