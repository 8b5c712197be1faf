#include "session/commit/real_tree.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include "sys/fd.h"

namespace caisson::session {
namespace {

constexpr std::int64_t kWholeSecond = 1'000'000'000;

TEST(ChangeTimes, WholeSecondsMayBeLaterUnlessTheFileSystemIsPrecise) {
  const sys::FileInfo whole{.device = 7, .changed_ns = 100 * kWholeSecond};
  const sys::FileInfo part{.device = 7, .changed_ns = 100 * kWholeSecond + 1};
  EXPECT_TRUE(isLater(whole, 101 * kWholeSecond, 0));
  EXPECT_TRUE(isLater(whole, 101 * kWholeSecond, 8)) << "another file system";
  EXPECT_FALSE(isLater(whole, 101 * kWholeSecond, 7));
  EXPECT_FALSE(isLater(whole, 102 * kWholeSecond, 0)) << "no file system has less than every other second";
  EXPECT_FALSE(isLater(part, 101 * kWholeSecond, 0));
  EXPECT_TRUE(isLater(part, 100 * kWholeSecond, 7));
  EXPECT_TRUE(isLater(whole, 100 * kWholeSecond - 1, 7));
}

TEST(ChangeTimes, AreThoseOfAFileSystemOnlyIfItIsKnown) {
  const sys::Fd shared(::open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const sys::Fd proc(::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct statfs system{};
  struct stat status{};
  ASSERT_EQ(::fstatfs(shared.get(), &system), 0);
  ASSERT_EQ(::fstat(shared.get(), &status), 0);
  if (system.f_type != TMPFS_MAGIC) GTEST_SKIP() << "/dev/shm is another file system";
  EXPECT_EQ(preciseDevice(shared.get()), fileInfoOf(status).device);
  EXPECT_EQ(preciseDevice(proc.get()), 0U);
}

}  // namespace
}  // namespace caisson::session
