#include "host/path_probe.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/temp_dir.h"

namespace caisson::host {
namespace {

using test::TempDir;

TEST(PathProbe, ReportsTypeAndAccessOfHostPaths) {
  const TempDir directory;
  const std::string file = directory.write("file", "x");
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  FileRequest there{.path = file, .operation = FileOperation::read};
  FileRequest folder{.path = directory.path(), .operation = FileOperation::look};
  FileRequest later{.path = directory / "a/b/c", .operation = FileOperation::create};
  FileRequest absent{.path = directory / "none", .operation = FileOperation::read};
  EXPECT_TRUE(probePaths({&there, &folder, &later, &absent}).empty());
  EXPECT_EQ(there.on_host, HostFile::file);
  EXPECT_TRUE(there.host_readable);
  EXPECT_TRUE(there.host_writable);
  EXPECT_FALSE(there.host_executable);
  EXPECT_EQ(folder.on_host, HostFile::directory);
  EXPECT_EQ(later.on_host, HostFile::absent);
  EXPECT_EQ(later.host_directory, directory.path());
  EXPECT_TRUE(later.host_directory_writable);
  EXPECT_EQ(absent.on_host, HostFile::absent);
  EXPECT_EQ(absent.host_directory, "");
}

/// A FUSE file system whose server never answers, in a mount namespace of this process.
bool mountDeadFileSystem(const std::string& target) {
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  const auto put = [](const char* path, const std::string& text) {
    const int fd = open(path, O_WRONLY);
    return fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && close(fd) == 0;
  };
  put("/proc/self/setgroups", "deny");
  if (!put("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1") ||
      !put("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1")) {
    return false;
  }
  const int device = open("/dev/fuse", O_RDWR);
  const std::string options = "fd=" + std::to_string(device) + ",rootmode=40000,user_id=0,group_id=0";
  return device >= 0 && mount("dead", target.c_str(), "fuse", 0, options.c_str()) == 0;
}

TEST(PathProbe, TimesOutOnAFileSystemThatDoesNotRespond) {
  const TempDir directory;
  const std::string dead = directory.makeDir("dead");
  const std::string file = directory.write("file", "x");
  constexpr int kUnavailable = 77;
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!mountDeadFileSystem(dead)) _exit(kUnavailable);
    alarm(60);
    FileRequest stuck{.path = dead + "/x", .operation = FileOperation::read};
    FileRequest there{.path = file, .operation = FileOperation::read};
    const auto unanswered = probePaths({&stuck, &there}, {.per_path = std::chrono::milliseconds(300)});
    _exit(unanswered == std::vector{dead + "/x"} && there.on_host == HostFile::file ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kUnavailable) GTEST_SKIP() << "FUSE cannot be mounted here";
  EXPECT_TRUE(WIFEXITED(status)) << "it hung";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace caisson::host
