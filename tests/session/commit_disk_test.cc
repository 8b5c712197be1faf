// Workspaces on a small, separate file system: when it is full, everything stays as it was; a mount in it is not
// entered.
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>

#include "functional/commit.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

/// The workspace is a small, separate file system.
class CommitToSmallDisk : public CommitTest {
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
TEST_F(CommitToSmallDisk, FailureInTheMiddleIsRolledBack) {
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

TEST_F(CommitToSmallDisk, AdditionWhereTheHostMountedSomethingIsAConflict) {
  onSmallDisk([&](const std::string& point) {
    ASSERT_EQ(::mkdir((point + "/conf").c_str(), 0755), 0);
    std::ofstream(point + "/conf/a") << "old\n";
    ::usleep(30'000);
    ASSERT_EQ(runCaisson({"session", "create", "--name", "n", "--workspace", point}).exit_status, 0);
    const auto session = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), "session");
      return runCaisson(arguments);
    };
    ASSERT_EQ(session({"exec", "n", "--", "sh", "-c", "echo n > conf/new; mkdir conf/d; echo n > top"}).exit_status, 0);
    const RunOutput dry = session({"commit", "--dry-run", "--json", "n"});
    const std::string digest = dry.json()["digest"];
    ASSERT_EQ(::mount("none", (point + "/conf").c_str(), "tmpfs", 0, "size=1m"), 0);
    const RunOutput refused = session({"commit", "--expect", digest, "n"});
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    const RunOutput done = session({"commit", "n"});
    EXPECT_EQ(done.exit_status, 1) << done.describe();
    EXPECT_EQ(done.out, "A top\n");
    EXPECT_NE(done.err.find("conflict: conf/new: conf is another directory there now"), std::string::npos)
        << done.describe();
    EXPECT_EQ(runProgram({"ls", "-A", point + "/conf"}).out, "");
    ASSERT_EQ(::umount((point + "/conf").c_str()), 0);
    EXPECT_EQ(session({"commit", "n"}).out, "A conf/d\nA conf/new\n");
  });
}

TEST_F(CommitToSmallDisk, DirectoryOfAnotherFileSystemWithTheSameInodesIsAnotherOne) {
  onSmallDisk([&](const std::string& point) {
    const std::string other = workspace / "other";
    ASSERT_EQ(::mkdir(other.c_str(), 0755), 0);
    ASSERT_EQ(::mount("none", other.c_str(), "tmpfs", 0, "size=1m,nr_inodes=64,mode=755"), 0);
    std::vector<ino_t> inodes;
    for (const std::string& top : {point, other}) {
      ASSERT_EQ(::mkdir((top + "/sub").c_str(), 0755), 0);
      for (const char* name : {"f", "gone", "sub/g"}) std::ofstream(top + "/" + name) << "of " + top + "\n";
      struct stat status{};
      ASSERT_EQ(::stat((top + "/sub").c_str(), &status), 0);
      inodes.push_back(status.st_ino);
    }
    EXPECT_EQ(inodes[0], inodes[1]) << "else this shows nothing";
    ::usleep(30'000);
    ASSERT_EQ(runCaisson({"session", "create", "--name", "n", "--workspace", point}).exit_status, 0);
    const auto session = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), "session");
      return runCaisson(arguments);
    };
    ASSERT_EQ(
        session({"exec", "n", "--", "sh", "-c", "echo n > f; rm gone; echo n > sub/g; echo n > sub/n"}).exit_status, 0);
    ASSERT_EQ(session({"rebind", "n", other}).exit_status, 0);
    const RunOutput refused = session({"commit", "n"});
    EXPECT_EQ(refused.exit_status, 1) << refused.describe();
    EXPECT_EQ(refused.out, "");
    EXPECT_NE(refused.err.find("sub/g: the workspace is another directory there now"), std::string::npos)
        << refused.describe();
    for (const char* name : {"f", "gone", "sub/g"}) EXPECT_EQ(readFile(other + "/" + name), "of " + other + "\n");
    EXPECT_FALSE(exists(other + "/sub/n"));
    ASSERT_EQ(session({"rebind", "n", point}).exit_status, 0);
    EXPECT_EQ(session({"commit", "n"}).out, "M f\nD gone\nM sub/g\nA sub/n\n");
  });
}

/// A file above the limit cannot be copied to where it is kept, as on a full disk.
class CommitKeptElsewhere : public AcrossMounts<CommitTest> {};

TEST_F(CommitKeptElsewhere, CommitThatCannotKeepWhatItReplacesIsRepeated) {
  static rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  for (const char* name : {"e/x", "e/sub/y", "e/closed/z"}) put(name, "old\n");
  put("large", std::string(200'000, 'x'));
  ASSERT_EQ(::chmod((elsewhere + "/e/closed").c_str(), 0555), 0);
  letFileTimesSettle();
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.workspace.path", elsewhere));
  auto session = store->create(wanted);
  ASSERT_TRUE(session) << session.error().message();
  output(*session, "chmod 755 e/closed; rm -r e; echo new > large");
  const auto ignored = ::signal(SIGXFSZ, SIG_IGN);
  session::step_observer = [](const char* name) {
    rlimit limit = before;
    limit.rlim_cur = 100'000;
    if (std::string_view(name) == "commit: one kept") (void)::setrlimit(RLIMIT_FSIZE, &limit);
  };
  const auto failed = session->commit();
  session::step_observer = nullptr;
  EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)::signal(SIGXFSZ, ignored);
  EXPECT_FALSE(failed);
  EXPECT_EQ(readFile(elsewhere + "/e/closed/z"), "old\n");
  const CommitReport report = commit(*session);
  EXPECT_EQ(paths(report.conflicts), "") << report.conflicts.front().reason;
  EXPECT_EQ(applied(report), "e\nlarge\n");
}

}  // namespace
}  // namespace caisson::test
