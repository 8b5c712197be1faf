// Opens paths below a directory without following links, with openat2 and with the fallback walk.
#include "isolation/child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "support/temp_dir.h"
#include "sys/fd.h"

namespace caisson::isolation {
namespace {

using test::TempDir;

/// Makes openat2 fail with `error` in this process from now on.
bool disableOpenat2(int error) {
  sock_filter code[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_openat2},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)},
                        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
  const sock_fprog program{std::size(code), code};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

int openDescriptors() {
  int count = 0;
  for (int fd = 0; fd < 256; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
  return count;
}

struct OpenMethod {
  const char* name;
  int openat2_error;  ///< 0 for a kernel that has it
};

class OpenBeneath : public testing::TestWithParam<OpenMethod> {
 protected:
  void SetUp() override {
    dir.write("deep/er/file", "content");
    dir.write("file", "content");
    ASSERT_EQ(::symlink("deep", (dir / "to-directory").c_str()), 0);
    ASSERT_EQ(::symlink("file", (dir / "to-file").c_str()), 0);
    ASSERT_EQ(::symlink("/", (dir / "to-root").c_str()), 0);
    ASSERT_EQ(::symlink("/proc/self/root", (dir / "deep/magic").c_str()), 0);
    ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  }

  /// 0, or the errno of opening `path`; runs in a child, since a filter cannot be removed.
  [[nodiscard]] int openError(const char* path, int flags = O_PATH) const {
    const sys::Fd root(::open(dir.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const pid_t pid = ::fork();
    if (pid == 0) {
      if (GetParam().openat2_error != 0 && !disableOpenat2(GetParam().openat2_error)) ::_exit(255);
      ::alarm(20);
      const int before = openDescriptors();
      const long fd = openBeneath(root.get(), path, flags);
      if (openDescriptors() != before + (fd >= 0 ? 1 : 0)) ::_exit(254);  // a descriptor leaked
      ::_exit(fd >= 0 ? 0 : static_cast<int>(-fd));
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  TempDir dir;
};

TEST_P(OpenBeneath, OpensWhatIsThere) {
  for (const char* path : {"", "file", "deep", "deep/er", "deep/er/file", "./deep/./er//file", "fifo", "deep/"}) {
    EXPECT_EQ(openError(path), 0) << path;
  }
  EXPECT_EQ(openError("deep/er/file", O_RDONLY), 0);
}

TEST_P(OpenBeneath, ReportsWhyAPathCannotBeOpened) {
  EXPECT_EQ(openError("missing"), ENOENT);
  EXPECT_EQ(openError("deep/missing/x"), ENOENT);
  EXPECT_EQ(openError("file/below"), ENOTDIR);
}

TEST_P(OpenBeneath, FollowsNoLinkAnywhereInThePath) {
  for (const char* path : {"to-file", "to-directory", "to-root", "to-directory/er/file", "to-root/etc/passwd",
                           "deep/magic", "deep/magic/etc/passwd"}) {
    EXPECT_NE(openError(path), 0) << path;
    EXPECT_NE(openError(path, O_RDONLY), 0) << path;
  }
  EXPECT_EQ(openError("to-file"), ELOOP);
  EXPECT_EQ(openError("to-root"), ELOOP);
}

TEST_P(OpenBeneath, NeverLeavesTheDirectory) {
  for (const char* path : {"..", "../..", "deep/../../x", "deep/er/../../..", "/etc/passwd"}) {
    EXPECT_NE(openError(path), 0) << path;
  }
}

TEST_P(OpenBeneath, NamesLongerThanTheKernelTakesAreRefused) {
  const std::string name(256, 'n');
  EXPECT_EQ(openError(name.c_str()), ENAMETOOLONG);
  EXPECT_EQ(openError(("deep/" + name + "/x").c_str()), ENAMETOOLONG);
  EXPECT_EQ(openError(std::string(255, 'n').c_str()), ENOENT);
}

INSTANTIATE_TEST_SUITE_P(Isolation, OpenBeneath,
                         testing::Values(OpenMethod{"Openat2", 0}, OpenMethod{"ByHandAfterENOSYS", ENOSYS},
                                         OpenMethod{"ByHandAfterEPERM", EPERM}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace caisson::isolation
