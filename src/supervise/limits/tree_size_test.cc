#include "supervise/limits/tree_size.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "support/temp_dir.h"
#include "sys/fd.h"

namespace caisson::supervise {
namespace {

constexpr std::uint64_t kAny = ~0ULL - 1;

class TreeSizeTest : public testing::Test {
 protected:
  [[nodiscard]] TreeSize measure(const std::optional<timespec>& since = {}, std::uint64_t bytes = kAny,
                                 std::uint64_t inodes = kAny) const {
    const sys::Fd top(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return measureTree(top.get(), {.bytes = bytes, .inodes = inodes, .since = since});
  }
  const test::TempDir directory;
};

TEST_F(TreeSizeTest, CountsBlocksAndEntries) {
  directory.write("a/b/file", std::string(100'000, 'x'));
  directory.write("c", "x");
  ASSERT_EQ(::truncate((directory / "c").c_str(), 1 << 30), 0) << "sparse";
  const TreeSize size = measure();
  EXPECT_EQ(size.inodes, 4U);
  EXPECT_GE(size.bytes, 100'000U);
  EXPECT_LT(size.bytes, 400'000U);
  EXPECT_FALSE(size.hidden);
}

TEST_F(TreeSizeTest, CountsBelowAnyDepth) {
  constexpr int kDepth = 250;
  std::string path;
  for (int i = 0; i < kDepth; ++i) {
    path += "d/";
    directory.write(path + "beside", "x");
  }
  directory.write(path + "file", std::string(100'000, 'x'));
  const TreeSize size = measure();
  EXPECT_EQ(size.inodes, 2U * kDepth + 1);
  EXPECT_GE(size.bytes, 100'000U);
  EXPECT_FALSE(size.hidden);
}

TEST_F(TreeSizeTest, ReportsDirectoriesThatItCannotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can read every directory";
  directory.write("a/b", "x");
  for (const mode_t mode : {0300, 0400, 0000}) {
    ASSERT_EQ(::chmod((directory / "a").c_str(), mode), 0);
    EXPECT_TRUE(measure().hidden) << "mode " << mode;
  }
  ASSERT_EQ(::chmod((directory / "a").c_str(), 0700), 0);
  EXPECT_FALSE(measure().hidden);
  const sys::Fd top(::open(directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(::chmod(directory.path().c_str(), 0300), 0);
  EXPECT_TRUE(measureTree(top.get(), {}).hidden) << "the top directory";
  ASSERT_EQ(::chmod(directory.path().c_str(), 0700), 0);
}

TEST_F(TreeSizeTest, StopsAtItsDeadline) {
  for (int i = 0; i < 500; ++i) directory.write("f" + std::to_string(i), "x");
  const sys::Fd top(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const TreeSize size = measureTree(top.get(), {.deadline = std::chrono::steady_clock::now()});
  EXPECT_TRUE(size.hidden);
  EXPECT_LT(size.inodes, 500U);
}

TEST_F(TreeSizeTest, FollowsNoLink) {
  ASSERT_EQ(::symlink("/", (directory / "root").c_str()), 0);
  ASSERT_EQ(::symlink(".", (directory / "loop").c_str()), 0);
  EXPECT_EQ(measure().inodes, 2U);
}

TEST_F(TreeSizeTest, StopsAtItsBounds) {
  for (int i = 0; i < 50; ++i) directory.write("f" + std::to_string(i), "x");
  EXPECT_EQ(measure({}, kAny, 10).inodes, 11U);
}

TEST_F(TreeSizeTest, CountsOnlyNewEntries) {
  directory.write("old", std::string(100'000, 'x'));
  ::usleep(50'000);
  timespec since{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &since);
  EXPECT_EQ(measure(since).bytes, 0U);
  directory.write("new/file", std::string(50'000, 'x'));
  const TreeSize size = measure(since);
  EXPECT_GE(size.bytes, 50'000U);
  EXPECT_LT(size.bytes, 100'000U);
  EXPECT_EQ(size.inodes, 2U);
  // A payload may set back mtime, but not ctime.
  const timespec past[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (directory / "new/file").c_str(), past, 0), 0);
  EXPECT_GE(measure(since).bytes, 50'000U);
}

TEST_F(TreeSizeTest, ReportsUnlistableDirectories) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can look everywhere";
  directory.makeDir("closed", 0300);
  EXPECT_TRUE(measure().hidden);
}

TEST_F(TreeSizeTest, CountsBelowTheLongestPossiblePath) {
  sys::Fd at(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  constexpr int kDepth = 2500;  // more than a path of 4096 bytes can name
  for (int i = 0; i < kDepth; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), "d", 0755), 0);
    at = sys::Fd(::openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  const TreeSize size = measure();
  EXPECT_EQ(size.inodes, static_cast<std::uint64_t>(kDepth));
  EXPECT_FALSE(size.hidden);
}

TEST_F(TreeSizeTest, OfAFileIsItsSize) {
  const std::string path = directory.write("file", std::string(100'000, 'x'));
  const sys::Fd file(::open(path.c_str(), O_PATH | O_CLOEXEC));
  EXPECT_GE(measureTree(file.get(), {}).bytes, 100'000U);
}

}  // namespace
}  // namespace caisson::supervise
