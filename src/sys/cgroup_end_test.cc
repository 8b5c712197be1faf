// Removal of cgroups whose makers are gone.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "sys/cgroup_testing.h"

namespace caisson::sys {
namespace {

using namespace std::chrono_literals;
using namespace fixtures;  // NOLINT: helpers of these tests

/// A process that runs `work` and lives until it is killed; `work` returns the pid it started inside, or -1.
struct Creator {
  pid_t pid = -1, payload = -1;
};

template <class Work>
Creator startCreator(Work work) {
  int ready[2];
  EXPECT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  Creator creator{.pid = ::fork()};
  if (creator.pid == 0) {
    const pid_t payload = work();
    if (::write(ready[1], &payload, sizeof(payload)) != sizeof(payload)) ::_exit(1);
    ::_exit(sleepLong());
  }
  EXPECT_EQ(::read(ready[0], &creator.payload, sizeof(creator.payload)), static_cast<ssize_t>(sizeof(creator.payload)));
  ::close(ready[0]);
  ::close(ready[1]);
  return creator;
}

class CgroupEnd : public CgroupTest {};

TEST_F(CgroupEnd, DirectoriesOfADeadCreatorAreRemovedAndOthersStay) {
  std::optional<Cgroup> held;
  const Creator started = startCreator([&] {
    auto made = Cgroup::create(CgroupBase::find(), newId(), {.memory = 64 * kMiB, .pids = 10});
    if (!made) return pid_t{-1};
    held.emplace(std::move(*made));  // until the creator is killed
    return startInside(*held, sleepLong);
  });
  const pid_t creator = started.pid, payload = started.payload;
  ASSERT_GT(payload, 0);
  Cgroup live = make({.memory = 64 * kMiB});
  // A foreign directory, one of a live creator and one of another pid namespace: all must survive.
  const int parent = base_.directories.front().fd.get();
  CgroupName elsewhere = ownCgroupName();
  elsewhere.world += 1;
  elsewhere.pid = creator;
  elsewhere.id = newId();
  const std::string foreign[] = {"not-" + newId(), formatCgroupName(elsewhere)};
  for (const std::string& one : foreign) ASSERT_EQ(::mkdirat(parent, one.c_str(), 0755), 0);

  const std::vector<std::string> before = removeAbandonedCgroups(base_);
  EXPECT_TRUE(std::ranges::none_of(before, [&](const auto& one) { return parseCgroupName(one)->pid == creator; }));
  ::kill(creator, SIGKILL);
  waitFor(creator);
  const auto mine = directoriesOf(base_, creator);
  EXPECT_GE(mine.size(), 2U);  // the dead creator's and the one of another pid namespace
  const std::vector<std::string> removed = removeAbandonedCgroups(base_);
  ASSERT_EQ(removed.size(), 1U);
  EXPECT_EQ(parseCgroupName(removed[0])->pid, creator);
  EXPECT_EQ(directoriesOf(base_, creator), std::vector<std::string>{foreign[1]});
  EXPECT_FALSE(directoriesOf(base_, ::getpid()).empty());
  for (const std::string& one : foreign) EXPECT_EQ(::unlinkat(parent, one.c_str(), AT_REMOVEDIR), 0) << one;
}

TEST_F(CgroupEnd, KeptDirectoriesOfADeadCreatorAreRemovedWhenEmpty) {
  const Creator started = startCreator([] {
    const CgroupBase base = CgroupBase::find();
    const std::string prefix(kKeptCgroup);
    auto empty = Cgroup::create(base, prefix + "empty-" + newId(), {.memory = 64 * kMiB, .pids = 10});
    auto inhabited = Cgroup::create(base, prefix + "inhabited-" + newId(), {.memory = 64 * kMiB, .pids = 10});
    if (!empty || !inhabited) return pid_t{-1};
    const pid_t inside = startInside(*inhabited, sleepLong);
    while (inhabited->usage().pids_current.value_or(1) == 0) std::this_thread::sleep_for(1ms);  // until it enters
    empty->keep();
    inhabited->keep();
    return inside;
  });
  const pid_t creator = started.pid, payload = started.payload;
  ASSERT_GT(payload, 0);
  const auto of_creator = [&](const std::string& one) { return parseCgroupName(one)->pid == creator; };
  EXPECT_TRUE(std::ranges::none_of(removeEmptyKeptCgroups(base_, 0s), of_creator))
      << "its creator may still add a process";
  ::kill(creator, SIGKILL);
  waitFor(creator);
  EXPECT_TRUE(std::ranges::none_of(removeAbandonedCgroups(base_), of_creator)) << "made to outlive its creator";
  EXPECT_TRUE(std::ranges::none_of(removeEmptyKeptCgroups(base_, 1h), of_creator)) << "not so soon";
  EXPECT_EQ(std::ranges::count_if(removeEmptyKeptCgroups(base_, 0s), of_creator), 1);
  const auto left = directoriesOf(base_, creator);
  ASSERT_FALSE(left.empty());
  EXPECT_TRUE(std::ranges::all_of(left, [](const auto& one) { return one.contains("inhabited"); }));
  EXPECT_EQ(::kill(payload, 0), 0) << "the process in it was killed";
  ::kill(payload, SIGKILL);
  std::ptrdiff_t removed = 0;
  for (int i = 0; i < 2000 && removed == 0; ++i) {
    removed = std::ranges::count_if(removeEmptyKeptCgroups(base_, 0s), of_creator);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(removed, 1);
}

}  // namespace
}  // namespace caisson::sys
