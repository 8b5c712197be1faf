#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>

#include "plan/plan.h"
#include "plan/plan_testing.h"
#include "plan/syscalls.h"
#include "support/conforms.h"
#include "sys/kernel_abi.h"

namespace caisson::plan {
namespace {

using namespace testing;  // NOLINT: the vocabulary of these tests
using policy::Level;
using policy::OptionalLayer;
using policy::Policy;
using policy::Tier;
using policy::WorkspaceMode;

TEST(Identity, IsTheCallersOwnForAnOrdinaryUser) {
  const Plan plan = planned(profile());
  EXPECT_EQ(plan.identity.outside_uid, 1234U);
  EXPECT_EQ(plan.identity.outside_gid, 1235U);
  EXPECT_EQ(plan.identity.inside_uid, 1000U);
  EXPECT_FALSE(plan.identity.parent_writes_maps);
}

TEST(Identity, OfARootCallersPayloadIsUnprivilegedOnTheHost) {
  CONFORMS("R-LEVEL-14");
  HostFacts host = someHost();
  host.uid = host.gid = 0;
  host.may_map_other_ids = host.may_map_mounts = true;
  const Plan plan = planned(profile(), host);
  EXPECT_TRUE(plan.identity.parent_writes_maps);
  EXPECT_GE(plan.identity.outside_uid, 0x70000000U);
  EXPECT_GE(plan.identity.outside_gid, 0x70000000U);
  EXPECT_NE(plan.identity.inside_uid, 0U);
}

TEST(Identity, OfAContainersRootNeedsNoMappedMounts) {
  HostFacts host = someHost();
  host.uid = host.gid = 0;
  host.may_map_other_ids = true;
  const Plan plan = planned(profile(), host);
  EXPECT_TRUE(plan.identity.parent_writes_maps);
  EXPECT_FALSE(plan.identity.maps_files);
  EXPECT_EQ(plan.identity.outside_uid, host.payload_id);
  EXPECT_TRUE(anyContains(plan.warnings, "CAP_SYS_ADMIN"));
  for (const Step& step : plan.steps) {
    const auto* bind = std::get_if<Bind>(&step);
    const auto* overlay = std::get_if<MountOverlay>(&step);
    EXPECT_FALSE((bind != nullptr && bind->owned) || (overlay != nullptr && overlay->owned));
  }
}

TEST(Identity, OfRootThatIsAnotherIdOfTheHostIsTheCallers) {
  HostFacts host = someHost();
  host.uid = host.gid = 0;  // rootless podman: 0 is the id of the user outside
  const Plan plan = planned(profile(), host);
  EXPECT_EQ(plan.identity.outside_uid, 0U);
  EXPECT_EQ(plan.identity.inside_uid, 1000U);
  EXPECT_FALSE(plan.identity.parent_writes_maps);
  EXPECT_FALSE(plan.identity.change_user);
}

TEST(Identity, RootThatCannotChangeItsUserIsRefused) {
  CONFORMS("R-LEVEL-14");
  HostFacts host = someHost();
  host.uid = host.gid = 0;
  host.why_no_other_id = "root without CAP_SETUID";
  for (const Level level : {Level::process, Level::full}) {
    EXPECT_NE(refusal(withWorkspace(WorkspaceMode::ro, level), host).find("root"), std::string::npos);
  }
}

Policy asksForSeparateUser(WorkspaceMode mode = WorkspaceMode::none) {
  Policy policy = withWorkspace(mode);
  policy.isolation.separate_user = true;
  return policy;
}

HostFacts hostWithSubordinateIds() {
  HostFacts host = someHost();
  host.subordinate = {
      .uid = 150000, .gid = 160000, .uid_helper = "/usr/bin/newuidmap", .gid_helper = "/usr/bin/newgidmap"};
  return host;
}

TEST(SeparateUser, IsASubordinateIdWhereTheHostGivesOne) {
  HostFacts host = hostWithSubordinateIds();
  host.supplementary_groups = 3;
  const Plan plan = planned(asksForSeparateUser(), host);
  EXPECT_EQ(plan.identity.outside_uid, 150000U);
  EXPECT_EQ(plan.identity.outside_gid, 160000U);
  EXPECT_TRUE(plan.identity.subordinate());
  EXPECT_FALSE(plan.identity.parent_writes_maps);
  EXPECT_EQ(plan.layers.at("identity"), "separate user id");
  EXPECT_FALSE(anyContains(plan.warnings, "supplementary groups"));
}

TEST(SeparateUser, IsOnlyUsedWhenAskedFor) {
  const Plan plan = planned(withWorkspace(WorkspaceMode::none), hostWithSubordinateIds());
  EXPECT_FALSE(plan.identity.subordinate());
  EXPECT_EQ(plan.layers.at("identity"), "shared with caller");
  EXPECT_FALSE(anyContains(plan.warnings, "separate_user"));
}

TEST(SeparateUser, WithoutWhatItNeedsIsSharedWithWarning) {
  const auto expectShared = [](const Policy& policy, const HostFacts& host, const std::string& reason) {
    const Plan plan = planned(policy, host);
    EXPECT_EQ(plan.identity.outside_uid, 1234U) << reason;
    EXPECT_FALSE(plan.identity.subordinate()) << reason;
    EXPECT_EQ(plan.layers.at("identity"), "shared with caller") << reason;
    EXPECT_TRUE(anyContains(plan.warnings, "isolation.separate_user")) << reason;
    EXPECT_TRUE(anyContains(plan.warnings, reason)) << reason;
  };
  HostFacts host = hostWithSubordinateIds();
  for (const WorkspaceMode mode : {WorkspaceMode::ro, WorkspaceMode::rw, WorkspaceMode::overlay})
    expectShared(asksForSeparateUser(mode), host, "workspace");
  Policy writes = asksForSeparateUser();
  writes.filesystem.read_write = {"/srv/data"};
  HostFacts with_path = host;
  with_path.read_write = {directory("/srv/data")};
  expectShared(writes, with_path, "read_write");
  host.subordinate.why_not = "newuidmap is missing";
  expectShared(asksForSeparateUser(), host, "newuidmap is missing");
  HostFacts v1 = hostWithSubordinateIds();
  v1.cgroup.kind = "v1";
  v1.cgroup.memory = v1.cgroup.pids = true;
  expectShared(asksForSeparateUser(), v1, "cgroup v1");
}

TEST(Identity, GroupsThatCannotBeDroppedAreAWarning) {
  HostFacts host = someHost();
  host.supplementary_groups = 3;
  EXPECT_TRUE(anyContains(planned(profile(), host).warnings, "3 supplementary groups"));
  host.may_map_other_ids = host.may_map_mounts = true;  // root drops them
  EXPECT_FALSE(anyContains(planned(profile(), host).warnings, "supplementary"));
}

}  // namespace
}  // namespace caisson::plan
