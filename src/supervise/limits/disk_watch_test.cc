#include "supervise/limits/disk_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "support/temp_dir.h"

namespace caisson::supervise {
namespace {

using Clock = DiskWatch::Clock;
using std::chrono::seconds;

/// A payload could write without a limit until a tree that is slow to measure may be measured again.
TEST(DiskWatch, MeasuresASlowTreeAtOnceWhenALimitMayBeExceeded) {
  const test::TempDir directory;
  plan::DiskQuota quota;
  plan::DirectoryQuota& own = quota.directories.emplace_back();
  own.target = "/tmp";
  own.bytes = 4 << 20;
  own.inodes = 1000;
  DiskWatch watch(quota);
  std::vector<sys::Fd> descriptors;
  descriptors.emplace_back(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  watch.addDirectories(descriptors);
  DiskWatch::Pace pace{Clock::now(), seconds(10)};
  watch.usePace(pace);
  const ProcessTree processes(::getpid());
  EXPECT_FALSE(watch.look(Clock::now(), processes));
  directory.write("large", std::string(64 << 20, 'x'));
  // Other programs may free space at the same time.
  std::optional<DiskWatch::Exceeded> exceeded;
  for (const auto end = Clock::now() + seconds(5); !exceeded && Clock::now() < end; ::usleep(1000)) {
    exceeded = watch.look(Clock::now(), processes);
  }
  ASSERT_TRUE(exceeded);
  EXPECT_EQ(exceeded->directory, "/tmp");
}

}  // namespace
}  // namespace caisson::supervise
