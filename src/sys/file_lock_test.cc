#include "sys/file_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <cerrno>
#include <future>

#include "support/temp_dir.h"
#include "sys/fd.h"

namespace caisson::sys {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FileLock : public testing::Test {
 protected:
  /// Every call opens the file again, so their locks exclude each other.
  [[nodiscard]] Fd open() const { return Fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)); }

  const test::TempDir directory_;
  const std::string path_ = directory_ / "lock";
};

TEST_F(FileLock, WaitsUntilTheHolderReleasesIt) {
  Fd holder = open();
  ASSERT_TRUE(lockFile(holder.get(), LockKind::exclusive, milliseconds(0), path_));
  const Fd waiter = open();
  auto locked =
      std::async(std::launch::async, [&] { return lockFile(waiter.get(), LockKind::exclusive, seconds(60), path_); });
  EXPECT_EQ(locked.wait_for(milliseconds(50)), std::future_status::timeout) << "two holders at once";
  holder.reset();
  ASSERT_EQ(locked.wait_for(seconds(30)), std::future_status::ready);
  EXPECT_TRUE(locked.get());
}

TEST_F(FileLock, TimeoutNamesTheFileAndItsHolder) {
  Fd holder = open();
  ASSERT_EQ(::flock(holder.get(), LOCK_EX), 0);
  for (const LockKind kind : {LockKind::exclusive, LockKind::shared}) {
    const Fd waiter = open();
    auto locked = std::async(std::launch::async, [&] { return lockFile(waiter.get(), kind, milliseconds(50), path_); });
    const bool bounded = locked.wait_for(seconds(30)) == std::future_status::ready;
    if (!bounded) holder.reset();
    ASSERT_TRUE(bounded) << "it waits without a limit";
    const auto result = locked.get();
    ASSERT_FALSE(result);
    EXPECT_NE(result.error().message().find(path_ + ": another process holds it"), std::string::npos)
        << result.error().message();
    EXPECT_NE(result.error().hint.find("fuser -v " + path_), std::string::npos) << result.error().hint;
  }
}

TEST_F(FileLock, SharedHoldersDoNotExcludeEachOther) {
  const Fd first = open(), second = open(), third = open();
  EXPECT_TRUE(lockFile(first.get(), LockKind::shared, milliseconds(0), path_));
  EXPECT_TRUE(lockFile(second.get(), LockKind::shared, milliseconds(0), path_));
  const auto excluded = lockFile(third.get(), LockKind::exclusive, milliseconds(0), path_);
  ASSERT_FALSE(excluded);
  EXPECT_EQ(excluded.error().sys_errno, EWOULDBLOCK);
}

}  // namespace
}  // namespace caisson::sys
