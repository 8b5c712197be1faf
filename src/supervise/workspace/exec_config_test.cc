#include "supervise/workspace/exec_config.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>

#include "support/temp_dir.h"
#include "sys/fd.h"

namespace caisson::supervise {
namespace {

using test::TempDir;

class NewExecutedFiles : public testing::Test {
 protected:
  NewExecutedFiles() { ::setenv("CAISSON_HOME", home_.path().c_str(), 1); }
  ~NewExecutedFiles() override { ::unsetenv("CAISSON_HOME"); }

  [[nodiscard]] RunResult quarantine(std::vector<plan::WorkspaceScan::Protected> before = {}) const {
    plan::Plan plan;
    const int opened = ::open(workspace_.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    plan.guarded.push_back({.path = workspace_.path(),
                            .opened = std::make_shared<const sys::Fd>(opened),
                            .patterns = {},
                            .before = std::move(before)});
    RunResult result;
    result.sandbox_id = "test";
    quarantineNewFiles(plan, result);
    return result;
  }
  [[nodiscard]] static bool says(const std::vector<std::string>& notices, const std::string& text) {
    return std::ranges::any_of(notices, [&](const auto& one) { return one.find(text) != std::string::npos; });
  }

  TempDir home_, workspace_;
};

void writeMap(const char* file, const std::string& text) {
  const int fd = ::open(file, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || ::write(fd, text.data(), text.size()) < 0) ::_exit(2);
  ::close(fd);
}

/// Mounts a file system over the workspace that has no room for a directory, and lets a file be found there.
bool leavesFileAndReportsIt(const std::string& workspace, const std::function<RunResult()>& quarantine) {
  if (::mount("none", workspace.c_str(), "tmpfs", 0, "nr_inodes=2") != 0) ::_exit(2);
  const std::string file = workspace + "/.envrc";
  if (::close(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) != 0) ::_exit(2);
  const RunResult result = quarantine();
  return ::access(file.c_str(), F_OK) == 0 && result.denials.size() == 1 && result.denials[0].object == ".envrc" &&
         result.denials[0].operation == kNotMoved && result.notices.size() == 1 &&
         result.notices[0].find("still in the workspace") == 0 && result.warnings.empty();
}

TEST_F(NewExecutedFiles, FileThatCannotBeMovedIsReportedAsStillThere) {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(2);
    writeMap("/proc/self/setgroups", "deny");
    writeMap("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1");
    writeMap("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
    ::_exit(leavesFileAndReportsIt(workspace_.path(), [this] { return quarantine(); }) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no mount in a user namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(NewExecutedFiles, OfADirectoryAndItsContentOnlyTheDirectoryIsMoved) {
  workspace_.write("tools/.envrc", "x");
  workspace_.write("tools-other/.envrc", "x");
  workspace_.write("tools-other/file", "x");
  ASSERT_EQ(::symlink("tools", (workspace_ / ".zed").c_str()), 0);
  const RunResult result = quarantine({{.path = ".zed", .target = "tools"}});
  ASSERT_EQ(result.denials.size(), 2U);
  EXPECT_EQ(result.denials[0].object, "tools");
  EXPECT_EQ(result.denials[1].object, "tools-other/.envrc");
  EXPECT_TRUE(test::exists(workspace_ / "tools-other/file"));
  EXPECT_EQ(test::readFile(home_ / "quarantined-files/test/tools/.envrc"), "x");
}

/// tools/.envrc is moved first, and `tools` only when the new link that leads to it is gone.
TEST_F(NewExecutedFiles, DirectoryIsMovedAfterAFileInIt) {
  workspace_.write("tools/.envrc", "x");
  workspace_.write("tools/tasks.json", "x");
  ASSERT_EQ(::symlink("tools", (workspace_ / ".zed").c_str()), 0);
  ASSERT_EQ(::symlink("tools", (workspace_ / ".idea").c_str()), 0);
  const RunResult result = quarantine({{.path = ".zed", .target = "tools"}});
  EXPECT_FALSE(test::exists(workspace_ / "tools"));
  EXPECT_TRUE(std::ranges::none_of(result.denials, [](const auto& one) { return one.operation == kNotMoved; }));
}

/// Makes files that a service manager would start deep in the workspace. Returns their directory.
std::string makeDeepServices(const TempDir& in, int depth, int count) {
  std::string path;
  sys::Fd at(::open(in.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < depth; ++i) {
    EXPECT_EQ(::mkdirat(at.get(), "d", 0700), 0);
    at = sys::Fd(::openat(at.get(), "d", O_PATH | O_DIRECTORY | O_CLOEXEC));
    path += i == 0 ? "d" : "/d";
  }
  for (int i = 0; i < count; ++i) {
    const std::string name = std::to_string(i);
    EXPECT_EQ(::mkdirat(at.get(), name.c_str(), 0700), 0);
    for (const std::string& file : {name + ".service", name + "/x.service"}) {
      EXPECT_GE(sys::Fd(::openat(at.get(), file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)).get(), 0);
    }
  }
  return path;
}

double processorSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

TEST_F(NewExecutedFiles, ManyInADeepDirectoryTakeLittleTime) {
  const std::string deep = makeDeepServices(workspace_, 1000, 200);
  const double begin = processorSeconds();
  const RunResult result = quarantine();
  EXPECT_LT(processorSeconds() - begin, 6);
  EXPECT_EQ(result.denials.size(), 400U);
  EXPECT_TRUE(test::exists(home_ / ("quarantined-files/test/" + deep + "/7.service")));
  EXPECT_TRUE(test::exists(home_ / ("quarantined-files/test/" + deep + "/7/x.service")));
}

TEST_F(NewExecutedFiles, ManyThroughANewLinkTakeLittleTime) {
  workspace_.makeDir("l");
  for (int i = 0; i < 30'000; ++i) workspace_.write("l/" + std::to_string(i) + ".pth", "");
  ASSERT_EQ(::symlink("l", (workspace_ / "site-packages").c_str()), 0);
  const double begin = processorSeconds();
  const RunResult result = quarantine();
  EXPECT_LT(processorSeconds() - begin, 6);
  ASSERT_EQ(result.denials.size(), 1U);
  EXPECT_EQ(result.denials[0].object, "site-packages");
}

TEST(RepeatUntilZero, EndsAfterTheLastRound) {
  int rounds = 0;
  EXPECT_FALSE(repeatUntilZero([&] { return ++rounds > 0 ? 1U : 0U; }));
  EXPECT_EQ(rounds, kMaxSearches);
  EXPECT_TRUE(repeatUntilZero([] { return 0U; }));
}

}  // namespace
}  // namespace caisson::supervise
