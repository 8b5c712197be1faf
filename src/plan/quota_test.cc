#include "plan/quota.h"

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

TEST(Quota, LargestFileIsTheLargestPlaceThatTakesOne) {
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

}  // namespace
}  // namespace caisson::plan
