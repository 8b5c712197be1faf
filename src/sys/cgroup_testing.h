// Helpers for cgroup tests: base directories, child processes inside.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sys/cgroup.h"
#include "sys/cgroup_files.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"
#include "sys/remove_tree.h"

namespace caisson::sys::fixtures {

inline constexpr std::uint64_t kMiB = 1 << 20;

inline std::string newId() { return unpredictableName().value().substr(1); }

/// Directories below the base that follow our naming and were made by `pid`, without its supervisor leaf.
inline std::vector<std::string> directoriesOf(const CgroupBase& base, pid_t pid) {
  std::vector<std::string> names;
  for (const auto& directory : base.directories) {
    DIR* listing = ::opendir(directory.path.c_str());
    if (listing == nullptr) continue;
    while (const dirent* entry = ::readdir(listing)) {
      const auto name = parseCgroupName(entry->d_name);
      if (name && name->pid == pid && name->id != kSupervisorLeaf) names.emplace_back(entry->d_name);
    }
    ::closedir(listing);
  }
  return names;
}

enum class Way { fallback, preferred };

/// Starts a child inside `cgroup` that runs `body`, which may only make raw system calls.
template <class Body>
pid_t startInside(Cgroup& cgroup, Body body, Way way = Way::preferred) {
  CloneArgs arguments{};
  arguments.exit_signal = SIGCHLD;
  const bool direct = cgroup.kind() == CgroupBase::Kind::v2 && way == Way::preferred;
  if (direct) {
    arguments.flags = kCloneIntoCgroup;
    arguments.cgroup = static_cast<std::uint64_t>(cgroup.descriptor());
  } else if (cgroup.entries().empty()) {
    EXPECT_TRUE(cgroup.openEntries());
  }
  const long pid = raw(SYS_clone3, &arguments, sizeof(arguments));
  if (pid == 0) {
    if (!direct) {
      for (const int entry : cgroup.entries()) {
        if (raw(SYS_write, entry, "0", 1) != 1) raw(SYS_exit_group, 99);
      }
    }
    raw(SYS_exit_group, body());
  }
  EXPECT_GT(pid, 0) << errnoName(static_cast<int>(-pid));
  return static_cast<pid_t>(pid);
}

inline int waitFor(pid_t pid) {
  int status = -1;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return status;
}

inline int sleepLong() {
  const timespec time{.tv_sec = 30, .tv_nsec = 0};
  raw(SYS_nanosleep, &time, nullptr);
  return 0;
}

class CgroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (base_.kind == CgroupBase::Kind::none) GTEST_SKIP() << base_.why_not;
  }
  void TearDown() override { EXPECT_EQ(directoriesOf(base_, ::getpid()), std::vector<std::string>{}); }
  Cgroup make(const CgroupLimits& limits) {
    auto made = Cgroup::create(base_, newId(), limits);
    EXPECT_TRUE(made) << made.error().message();
    return made ? std::move(*made) : Cgroup();
  }
  CgroupBase base_ = CgroupBase::find();
};

}  // namespace caisson::sys::fixtures
