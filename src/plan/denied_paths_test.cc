#include "plan/denied_paths.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>

#include "plan/plan_testing.h"
#include "support/conforms.h"

namespace caisson::plan {
namespace {

using namespace testing;  // NOLINT: the vocabulary of these tests
using policy::Level;
using policy::Policy;
using policy::WorkspaceMode;

Plan withDenied(std::vector<std::string> denied, WorkspaceMode mode, HostFacts host = someHost()) {
  Policy policy = withWorkspace(mode);
  policy.filesystem.denied = std::move(denied);
  return planned(policy, host);
}

TEST(DeniedPaths, ComeAfterEveryMountThatContainsThem) {
  HostFacts host = someHost();
  host.read_only = {directory("/opt/tools")};
  host.read_write = {directory("/srv/data")};
  const Plan plan = withDenied({"/usr/share/secret", "/opt/tools/key", "/srv/data/key", "/workspace/key", "/tmp/key"},
                               WorkspaceMode::rw, host);
  const std::pair<const char*, const char*> pairs[] = {{"/usr/share/secret", "/usr"},
                                                       {"/opt/tools/key", "/opt/tools"},
                                                       {"/srv/data/key", "/srv/data"},
                                                       {"/workspace/key", "/workspace"}};
  for (const auto& [denied, mount] : pairs) {
    ASSERT_GE(positionOf<MaskPath>(plan, denied), 0) << denied;
    ASSERT_GE(positionOf<Bind>(plan, mount), 0) << mount;
    EXPECT_GT(positionOf<MaskPath>(plan, denied), positionOf<Bind>(plan, mount)) << denied;
  }
  EXPECT_GT(positionOf<MaskPath>(plan, "/tmp/key"), positionOf<MountTmpfs>(plan, "/tmp"));
  EXPECT_TRUE(std::holds_alternative<ReadOnlyRoot>(plan.steps.back()));
}

/// Else a program moves the directory away, and the next run shows the path under its new name.
TEST(DeniedPaths, InWritableTreesPinTheDirectoriesAboveThem) {
  HostFacts host = someHost();
  host.read_write = {directory("/srv/data")};
  const Plan plan = withDenied({"/workspace/a/b/key", "/srv/data/c/key"}, WorkspaceMode::rw, host);
  for (const auto& [above, denied] : {std::pair("/workspace/a", "/workspace/a/b/key"),
                                      {"/workspace/a/b", "/workspace/a/b/key"},
                                      {"/srv/data/c", "/srv/data/c/key"}}) {
    const auto* pin = stepAt<Bind>(plan, above);
    ASSERT_NE(pin, nullptr) << above;
    EXPECT_TRUE(pin->inside && pin->writable) << above;
    EXPECT_LT(positionOf<Bind>(plan, above), positionOf<MaskPath>(plan, denied)) << above;
  }
  EXPECT_EQ(stepAt<Bind>(withDenied({"/workspace/a/b/key"}, WorkspaceMode::ro), "/workspace/a"), nullptr);
}

/// With a comparison of each denied path with each shown one, half of these took 17 seconds.
TEST(DeniedPaths, LongListsAreComparedInLinearTime) {
  Policy policy = withWorkspace(WorkspaceMode::ro);
  HostFacts host = someHost();
  for (int i = 0; i < 50'000; ++i) {
    policy.filesystem.denied.push_back("/workspace/d" + std::to_string(i));
    host.read_only.push_back(directory("/opt/r" + std::to_string(i)));
  }
  host.read_only.push_back(directory("/workspace/d7/x"));
  timespec start{}, end{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
  const std::vector<std::string> denied = deniedBelow(policy, host, "/workspace");
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  EXPECT_EQ(denied.size(), 50'001U);
  EXPECT_NE(std::ranges::find(denied, "d7/x"), denied.end());
  EXPECT_LT(end.tv_sec - start.tv_sec, 5);
}

TEST(DeniedPaths, ThatHoldTheWorkspaceAreRefused) {
  for (const WorkspaceMode mode : {WorkspaceMode::overlay, WorkspaceMode::ro, WorkspaceMode::rw}) {
    for (const char* denied : {"/home/someone/project", "/home/someone", "/home"}) {
      Policy policy = withWorkspace(mode);
      policy.filesystem.denied = {denied};
      EXPECT_NE(refusal(policy).find("lies in it"), std::string::npos) << denied;
    }
  }
}

TEST(DeniedPaths, InAnOverlayAreWhiteouts) {
  const Plan plan = withDenied({"/workspace/key", "/workspace/deep/er/key", "/usr/x"}, WorkspaceMode::overlay);
  const auto& whiteouts = stepAt<MountOverlay>(plan, "/workspace")->whiteouts;
  EXPECT_EQ(whiteouts, (std::vector<std::string>{"deep/er/key", "key"}));
  EXPECT_EQ(positionOf<MaskPath>(plan, "/workspace/key"), -1);
  EXPECT_GE(positionOf<MaskPath>(plan, "/usr/x"), 0);
}

TEST(DeniedPaths, ThroughALinkOrByPatternOutsideTheWorkspaceAreRefused) {
  Policy policy = withWorkspace(WorkspaceMode::overlay);
  policy.filesystem.denied = {"/usr/*.key"};
  EXPECT_NE(refusal(policy).find("pattern"), std::string::npos);
  for (const char* entry : {"/workspace/*.key", "/workspace/pages/[id].tsx"}) {
    Policy direct = withWorkspace(WorkspaceMode::rw);
    direct.filesystem.denied = {entry};
    EXPECT_NE(refusal(direct).find("pattern"), std::string::npos) << entry;
  }
  policy.filesystem.denied = {"/workspace/link/key"};
  HostFacts host = someHost();
  host.denied_through_links = {"/workspace/link/key"};
  EXPECT_NE(refusal(policy, host).find("link"), std::string::npos);
}

TEST(DeniedPaths, ByPatternHideWhatMatchesAndTheFileOfThisName) {
  HostFacts host = someHost();
  host.denied_matches = {"a.key", "b.key", "x/[id]/y"};
  for (const WorkspaceMode mode : {WorkspaceMode::overlay, WorkspaceMode::ro}) {
    Policy policy = withWorkspace(mode);
    policy.filesystem.denied = {"/workspace/*.key", "/workspace/pages/[id].tsx", "/workspace/x/[id]/y"};
    const Plan plan = planned(policy, host);
    EXPECT_EQ(stepAt<MountOverlay>(plan, "/workspace")->whiteouts,
              (std::vector<std::string>{"*.key", "a.key", "b.key", "pages/[id].tsx", "x/[id]/y"}));
    EXPECT_TRUE(plan.watched.has_value());
  }
}

TEST(DeniedPaths, ThatMatchNothingAreReported) {
  HostFacts host = someHost();
  host.denied_matches = {"sub/a.key", "sub/[id].tsx"};
  const Plan plan =
      withDenied({"/workspace/sub/*.key", "/workspace/sub/[id].tsx", "/workspace/misspelt", "/usr/share/x"},
                 WorkspaceMode::overlay, host);
  std::string notices;
  for (const std::string& notice : plan.notices) notices += notice + "\n";
  EXPECT_NE(notices.find("denied, but not in the workspace now: misspelt"), std::string::npos) << notices;
  EXPECT_EQ(notices.find("sub/"), std::string::npos) << notices;
}

TEST(DeniedPaths, ThatAreTheWorkspaceItselfAreMasked) {
  const Plan plan = withDenied({"/workspace"}, WorkspaceMode::overlay);
  EXPECT_GT(positionOf<MaskPath>(plan, "/workspace"), positionOf<MountOverlay>(plan, "/workspace"));
}

TEST(DeniedPaths, WhoseNameOnlyBeginsLikeTheWorkspaceAreNotInIt) {
  const Plan plan = withDenied({"/workspace2/key"}, WorkspaceMode::overlay);
  EXPECT_TRUE(stepAt<MountOverlay>(plan, "/workspace")->whiteouts.empty());
  EXPECT_GE(positionOf<MaskPath>(plan, "/workspace2/key"), 0);
}

TEST(DeniedPaths, ThatAreAbsentAreRefusedWhereThePayloadCouldCreateThem) {
  HostFacts host = someHost();
  host.read_write = {directory("/srv/data")};
  const Plan plan =
      withDenied({"/workspace/later", "/srv/data/later", "/tmp/later", "/usr/later"}, WorkspaceMode::rw, host);
  EXPECT_EQ(stepAt<MaskPath>(plan, "/workspace/later")->absent, MaskPath::Absent::refuse);
  EXPECT_EQ(stepAt<MaskPath>(plan, "/srv/data/later")->absent, MaskPath::Absent::refuse);
  EXPECT_EQ(stepAt<MaskPath>(plan, "/tmp/later")->absent, MaskPath::Absent::create);
  EXPECT_EQ(stepAt<MaskPath>(plan, "/usr/later")->absent, MaskPath::Absent::skip);
}

/// A mask on the file would be lost when the host replaces it, and cannot be made before the file exists.
TEST(DeniedPaths, OfAReadOnlyWorkspaceAreHiddenByALayer) {
  HostFacts host = someHost();
  const Plan plan = withDenied({"/workspace/later"}, WorkspaceMode::ro, host);
  const auto* overlay = stepAt<MountOverlay>(plan, "/workspace");
  ASSERT_NE(overlay, nullptr);
  EXPECT_TRUE(overlay->read_only);
  EXPECT_EQ(overlay->whiteouts, (std::vector<std::string>{"later"}));
  host.mounts_below = true;  // an overlay could not show these
  const Plan direct = withDenied({"/workspace/later"}, WorkspaceMode::ro, host);
  ASSERT_NE(stepAt<MaskPath>(direct, "/workspace/later"), nullptr);
  EXPECT_EQ(stepAt<MaskPath>(direct, "/workspace/later")->absent, MaskPath::Absent::refuse) << "the host can create it";
}

TEST(DeniedPaths, ThatAreAbsentAreRefusedAtLevelProcessToo) {
  Policy policy = withWorkspace(WorkspaceMode::rw, Level::process);
  policy.filesystem.denied = {"/home/someone/project/later"};
  const auto plan = build(policy, someHost(), {{"true"}, false});
  if (!plan) return;  // an error: fine
  const MaskPath* mask = stepAt<MaskPath>(*plan, "/home/someone/project/later");
  ASSERT_NE(mask, nullptr);
  EXPECT_EQ(mask->absent, MaskPath::Absent::refuse) << "the payload can create it and use it";
}

}  // namespace
}  // namespace caisson::plan
