#include "supervise/disk/run_store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "support/conforms.h"
#include "support/temp_dir.h"
#include "sys/state_home.h"

namespace caisson::supervise {
namespace {

using test::exists;
using test::TempDir;

/// Sets an environment variable for a scope.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// A plan with an overlay and two size-limited directories on disk.
plan::Plan onDisk() {
  plan::Plan plan;
  plan.steps.emplace_back(plan::MountOverlay{.lower = "/src", .target = "/workspace", .on_disk = true});
  plan.steps.emplace_back(plan::MountTmpfs{.target = "/tmp", .bytes = 4096, .mode = 01777, .on_disk = true});
  plan.steps.emplace_back(plan::MountTmpfs{.target = "/run", .bytes = 4096});
  plan.steps.emplace_back(plan::MountTmpfs{.target = "/home/sandbox", .bytes = 4096, .mode = 0700, .on_disk = true});
  return plan;
}

/// Another process that holds a store until it is killed.
class Holder {
 public:
  explicit Holder(const std::string& id) {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      auto store = RunStore::create(id, onDisk());
      (void)!::write(ready[1], store ? "y" : "n", 1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char answer = 'n';
    holds_ = ::read(ready[0], &answer, 1) == 1 && answer == 'y';
    ::close(ready[0]);
  }
  ~Holder() { kill(); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  [[nodiscard]] bool holds() const { return holds_; }
  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  bool holds_ = false;
};

class RunStoreTest : public testing::Test {
 protected:
  [[nodiscard]] std::string runs(const std::string& below = "") const { return state + "/runs" + below; }
  static unsigned modeOf(const std::string& path) {
    struct stat status{};
    return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : ~0U;
  }

  TempDir dir;
  std::string state = dir / "state/deep";
  Variable home{"CAISSON_HOME", state};
};

TEST_F(RunStoreTest, IsPrivateToItsUser) {
  ::umask(0);
  const auto store = RunStore::create("cs-1", onDisk());
  ::umask(022);
  ASSERT_TRUE(store) << store.error().message();
  for (const char* path : {"", "/cs-1"}) EXPECT_EQ(modeOf(runs(path)), 0700U) << path;
  EXPECT_EQ(store->layers(), std::filesystem::canonical(runs("/cs-1")).string());
}

TEST_F(RunStoreTest, HasADirectoryForEachThatThePlanKeepsOnDisk) {
  ::umask(077);
  const auto store = RunStore::create("cs-1", onDisk());
  ::umask(022);
  ASSERT_TRUE(store) << store.error().message();
  const DiskDirectories& made = store->directories();
  ASSERT_EQ(made.paths.size(), 2U);
  ASSERT_EQ(made.descriptors.size(), 2U);
  EXPECT_EQ(modeOf(made.paths[0]), 01777U);
  EXPECT_EQ(modeOf(made.paths[1]), 0700U);
  EXPECT_NE(made.paths[0], made.paths[1]);
  EXPECT_TRUE(made.paths[0].starts_with(std::filesystem::canonical(runs("/cs-1")).string() + "/")) << made.paths[0];
}

TEST_F(RunStoreTest, HasNoLayersWithoutAnOverlayOnDisk) {
  plan::Plan plan = onDisk();
  plan.steps.erase(plan.steps.begin());
  ASSERT_TRUE(RunStore::needed(plan));
  const auto store = RunStore::create("cs-1", plan);
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_EQ(store->layers(), "");
  for (plan::Step& step : plan.steps) std::get<plan::MountTmpfs>(step).on_disk = false;
  EXPECT_FALSE(RunStore::needed(plan));
}

TEST_F(RunStoreTest, IsRemovedByItsDestructor) {
  {
    auto store = RunStore::create("cs-1", onDisk());
    ASSERT_TRUE(store);
    test::TempDir unrelated;
    ASSERT_EQ(::symlink(unrelated.path().c_str(), (store->layers() + "/link").c_str()), 0);
    unrelated.write("file", "kept");
    ASSERT_EQ(::mkdir((store->layers() + "/closed").c_str(), 0), 0);
    const RunStore moved = std::move(*store);
    EXPECT_TRUE(exists(runs("/cs-1")));
    EXPECT_EQ(test::readFile(unrelated / "file"), "kept");
  }
  EXPECT_FALSE(exists(runs("/cs-1")));
}

TEST_F(RunStoreTest, NeverFollowsALinkThatAPayloadLeft) {
  CONFORMS("R-FILES-18");
  const test::Canary canary(dir / "canary");
  {
    const auto store = RunStore::create("cs-1", onDisk());
    ASSERT_TRUE(store);
    ASSERT_EQ(::symlink(dir.path().c_str(), (store->layers() + "/up").c_str()), 0);
    ASSERT_EQ(::symlink(canary.path().c_str(), (store->layers() + "/file").c_str()), 0);
  }
  EXPECT_FALSE(exists(runs("/cs-1")));
  EXPECT_TRUE(canary.untouched());
}

TEST_F(RunStoreTest, OfAKilledHolderIsRemovedByTheNext) {
  CONFORMS("R-FILES-18");
  Holder holder("cs-killed");
  ASSERT_TRUE(holder.holds());
  ASSERT_TRUE(exists(runs("/cs-killed")));
  holder.kill();
  EXPECT_TRUE(exists(runs("/cs-killed"))) << "no process has removed it yet";
  const auto store = RunStore::create("cs-next", onDisk());
  ASSERT_TRUE(store);
  EXPECT_FALSE(exists(runs("/cs-killed")));
  EXPECT_TRUE(exists(runs("/cs-next")));
}

TEST_F(RunStoreTest, OfALivingHolderIsLeftAlone) {
  const Holder holder("cs-living");
  ASSERT_TRUE(holder.holds());
  const auto store = RunStore::create("cs-next", onDisk());
  ASSERT_TRUE(store);
  EXPECT_TRUE(exists(runs("/cs-living")));
}

TEST_F(RunStoreTest, OfTheSameProcessIsLeftAlone) {
  const auto first = RunStore::create("cs-1", onDisk());
  const auto second = RunStore::create("cs-2", onDisk());
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(exists(runs("/cs-1")));
  EXPECT_TRUE(exists(runs("/cs-2")));
}

TEST_F(RunStoreTest, StaleStoreWithoutLockIsRemoved) {
  // Nothing stays behind. Stores are created under one lock: one whose lock is free has no creator left.
  dir.makeDir("state/deep/runs/cs-old", 0700);
  const auto store = RunStore::create("cs-next", onDisk());
  ASSERT_TRUE(store);
  EXPECT_FALSE(exists(runs("/cs-old")));
}

TEST_F(RunStoreTest, ALinkInPlaceOfAStoreIsNotFollowed) {
  const test::Canary canary(dir / "elsewhere-canary");
  dir.write("elsewhere/lock", "");
  dir.makeDir("state/deep/runs", 0700);
  ASSERT_EQ(::symlink((dir / "elsewhere").c_str(), runs("/cs-link").c_str()), 0);
  const auto store = RunStore::create("cs-next", onDisk());
  ASSERT_TRUE(store);
  EXPECT_TRUE(exists(dir / "elsewhere/lock"));
  EXPECT_TRUE(canary.untouched());
}

TEST_F(RunStoreTest, CannotBeMadeTwice) {
  const auto first = RunStore::create("cs-1", onDisk());
  const auto again = RunStore::create("cs-1", onDisk());
  EXPECT_TRUE(first);
  EXPECT_FALSE(again);
  EXPECT_TRUE(exists(runs("/cs-1"))) << "the failed attempt took the first one's store away";
}

TEST_F(RunStoreTest, InAnUnwritableDirectoryIsAnErrorWithARemedy) {
  dir.write("file", "");
  const Variable in_a_file("CAISSON_HOME", dir / "file");
  const auto store = RunStore::create("cs-1", onDisk());
  ASSERT_FALSE(store);
  EXPECT_NE(store.error().message().find("CAISSON_HOME"), std::string::npos) << store.error().message();
}

TEST(StateHome, IsTheFirstThatIsSet) {
  const TempDir real_home;
  const Variable home("HOME", real_home.path());
  const Variable data("XDG_DATA_HOME", "/data");
  const Variable ours("CAISSON_HOME", "/ours");
  EXPECT_EQ(sys::stateHome(), "/ours");
  {
    const Variable relative("CAISSON_HOME", "relative");
    EXPECT_EQ(sys::stateHome(), "/data/caisson");
    const Variable relative_data("XDG_DATA_HOME", "relative");
    EXPECT_EQ(sys::stateHome(), real_home.path() + "/.local/share/caisson");
    for (const std::string nowhere : {"", "relative", "/no/such/home"}) {
      const Variable no_home("HOME", nowhere);
      const std::string known = sys::homeFromPasswd(::geteuid());
      EXPECT_EQ(sys::stateHome(), test::exists(known) ? known + "/.local/share/caisson" : "") << nowhere;
    }
  }
}

}  // namespace
}  // namespace caisson::supervise
