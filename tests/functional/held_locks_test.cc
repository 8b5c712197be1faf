// A process of the same user is stopped while it holds a lock of the state directory: no other waits for it forever.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <future>

#include "functional/audit_fixture.h"

namespace caisson::test {
namespace {

/// An exclusive lock on a file or directory, until the end of its scope.
class HeldLock {
 public:
  HeldLock(const std::string& path, int flags) : file_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    held_ = file_ >= 0 && ::flock(file_, LOCK_EX | LOCK_NB) == 0;
  }
  ~HeldLock() {
    if (file_ >= 0) ::close(file_);
  }
  HeldLock(const HeldLock&) = delete;
  HeldLock& operator=(const HeldLock&) = delete;

  [[nodiscard]] bool held() const { return held_; }

 private:
  int file_ = -1;
  bool held_ = false;
};

using HeldLocks = AuditTest;

TEST_F(HeldLocks, RunsAndSessionsTimeOutAndNameTheFile) {
  workspace.write("disk.toml", "[filesystem]\noverlay_store = \"disk\"\n");
  workspace.openToAll();
  home_.makeDir("runs", 0700);
  home_.makeDir("sessions", 0700);
  const std::vector<std::string> run{"run", "--policy", "disk.toml", "--", "true"};
  const std::vector<std::string> create{"session", "create", "--workspace", ":none"};
  {
    const HeldLock runs(home_ / "runs", O_RDONLY | O_DIRECTORY);
    const HeldLock sessions(home_ / "sessions/.lock", O_RDWR | O_CREAT);
    ASSERT_TRUE(runs.held() && sessions.held());
    auto both = std::async(std::launch::async, [&] { return caisson(run); });
    const RunOutput created = caisson(create);
    const RunOutput ran = both.get();
    EXPECT_NE(ran.exit_status, 0) << ran.describe();
    EXPECT_TRUE(contains(ran.err, "another process holds it")) << ran.describe();
    EXPECT_TRUE(contains(ran.err, "fuser -v " + (home_ / "runs"))) << ran.describe();
    EXPECT_NE(created.exit_status, 0) << created.describe();
    EXPECT_TRUE(contains(created.err, "fuser -v " + (home_ / "sessions/.lock"))) << created.describe();
  }
  EXPECT_EQ(caisson(run).exit_status, 0);
  EXPECT_EQ(caisson(create).exit_status, 0);
  EXPECT_EQ(caisson({"clean", "--all"}).exit_status, 0);
}

}  // namespace
}  // namespace caisson::test
