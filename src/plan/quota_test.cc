#include "plan/quota.h"

#include <algorithm>

#include "plan/plan_testing.h"
#include "plan/workspace.h"

namespace caisson::plan {
namespace {

using policy::WorkspaceMode;
using testing::limitCalled;
using testing::planned;
using testing::someHost;
using testing::withWorkspace;

TEST(Quota, NoModeLetsSparseFilesGrowWithoutEnd) {
  for (const WorkspaceMode mode : {WorkspaceMode::none, WorkspaceMode::ro, WorkspaceMode::overlay, WorkspaceMode::rw}) {
    policy::Policy policy = withWorkspace(mode);
    const Plan plan = planned(policy);
    const std::uint64_t* limit = limitCalled(plan, "fsize");
    ASSERT_NE(limit, nullptr) << static_cast<int>(mode);
    EXPECT_GE(*limit, policy.resources.memory) << "a file without a name may take all memory";
    EXPECT_LE(*limit, 64 * policy::kGiB) << static_cast<int>(mode);
    policy.filesystem.max_file_size = 1 * policy::kMiB;
    EXPECT_EQ(*limitCalled(planned(policy), "fsize"), 1 * policy::kMiB) << "the policy's own limit";
  }
}

TEST(Quota, FileSizeLimitIsThatOfTheLargestWritableDirectory) {
  policy::Policy policy = withWorkspace(WorkspaceMode::overlay);
  policy.resources.memory = 64 * policy::kMiB;
  policy.filesystem.max_total_size = 3 * policy::kGiB;
  EXPECT_EQ(*limitCalled(planned(policy), "fsize"), 3 * policy::kGiB);
}

TEST(Quota, FilesInADirectWorkspaceAreCounted) {
  const Plan plan = planned(withWorkspace(WorkspaceMode::rw));
  ASSERT_TRUE(plan.disk);
  EXPECT_EQ(plan.disk->inodes, kWorkspaceInodes);
  HostFacts host = someHost();
  host.read_write = {testing::directory("/srv/data")};
  policy::Policy policy = withWorkspace(WorkspaceMode::none);
  policy.filesystem.read_write = {"/srv/data"};
  const Plan named = planned(policy, host);
  ASSERT_TRUE(named.disk);
  EXPECT_EQ(named.disk->inodes, kWorkspaceInodes);
  policy.filesystem.max_inodes = 7;
  EXPECT_EQ(planned(policy, host).disk->inodes, 7U);
}

policy::Policy withScratch() {
  policy::Policy policy = withWorkspace(WorkspaceMode::none);
  policy.filesystem.tmpfs = {
      {.path = "/tmp", .size = 2 * policy::kGiB, .inodes = 100, .store = policy::DirectoryStore::disk},
      {.path = "/run", .size = 1 * policy::kMiB}};
  return policy;
}

TEST(Quota, DirectoriesOnDiskAreWatchedWithTheirOwnLimits) {
  const Plan plan = planned(withScratch());
  ASSERT_TRUE(plan.disk);
  ASSERT_EQ(plan.disk->directories.size(), 1U);
  EXPECT_EQ(plan.disk->directories[0].target, "/tmp");
  EXPECT_EQ(plan.disk->directories[0].bytes, 2 * policy::kGiB);
  EXPECT_EQ(plan.disk->directories[0].inodes, 100U);
  EXPECT_FALSE(plan.disk->total_has_directories);
  const std::string quota = plan.layers.at("disk_quota");
  EXPECT_NE(quota.find("watched: /tmp 2 GiB"), std::string::npos) << quota;
  EXPECT_EQ(quota.substr(0, quota.find(';')).find("/tmp"), std::string::npos) << quota;
  EXPECT_EQ(*limitCalled(plan, "fsize"), 2 * policy::kGiB);
}

TEST(Quota, TotalIncludesDirectoriesOnDisk) {
  policy::Policy policy = withScratch();
  policy.filesystem.max_total_size = 1 * policy::kGiB;
  const Plan plan = planned(policy);
  ASSERT_TRUE(plan.disk);
  EXPECT_TRUE(plan.disk->total_has_directories);
  EXPECT_EQ(plan.disk->bytes, 1 * policy::kGiB);
  EXPECT_EQ(*limitCalled(plan, "fsize"), 1 * policy::kGiB);
}

TEST(Quota, DefaultOfTheOverlayDoesNotLimitDirectoriesOnDisk) {
  policy::Policy policy = withScratch();
  policy.filesystem.workspace.mode = WorkspaceMode::overlay;
  policy.filesystem.overlay_store = policy::OverlayStore::disk;
  const Plan plan = planned(policy);
  ASSERT_TRUE(plan.disk);
  EXPECT_EQ(plan.disk->bytes, 1 * policy::kGiB);
  EXPECT_FALSE(plan.disk->total_has_directories);
  EXPECT_EQ(*limitCalled(plan, "fsize"), 2 * policy::kGiB) << "a file in /tmp";
}

TEST(Quota, DirectoriesThatMustBeOnDiskAreRefusedWhereTheDiskCannotHoldThem) {
  HostFacts host = someHost();
  host.state_disk.why_not = "/state cannot be written: EROFS";
  policy::Policy policy = withScratch();
  const auto refused = build(policy, host, {.argv = {"true"}});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("/state cannot be written: EROFS"), std::string::npos);
  policy.filesystem.tmpfs[0].store = policy::DirectoryStore::prefer_disk;
  const Plan plan = planned(policy, host);
  EXPECT_FALSE(plan.disk);
  const auto warned = std::ranges::find_if(plan.warnings, [](const std::string& text) {
    return text.find("in memory") != std::string::npos && text.find("/tmp") != std::string::npos;
  });
  EXPECT_NE(warned, plan.warnings.end());
}

TEST(Quota, ClassHardRefusesDirectoriesOnDisk) {
  policy::Policy policy = withScratch();
  policy.filesystem.quota_class = policy::QuotaClass::hard;
  EXPECT_FALSE(build(policy, someHost(), {.argv = {"true"}}));
  policy.filesystem.tmpfs[0].store = policy::DirectoryStore::memory;
  EXPECT_TRUE(build(policy, someHost(), {.argv = {"true"}}));
}

}  // namespace
}  // namespace caisson::plan
