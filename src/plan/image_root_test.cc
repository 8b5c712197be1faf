#include "plan/image_root.h"

#include <gtest/gtest.h>

#include "plan/plan_testing.h"
#include "sys/kernel_abi.h"

namespace caisson::plan {
namespace {

using namespace testing;

policy::Policy withRoot(bool root_user = false) {
  policy::Policy policy = profile();
  policy.filesystem.root = "/srv/debian";
  if (root_user) policy.isolation.user = policy::InsideUser::root;
  return policy;
}

HostFacts hostWithRoot() {
  HostFacts host = someHost();
  host.root.layers = {"/srv/debian"};
  host.root.top_level = {{"bin", "usr/bin"}, {"lib", "usr/lib"}, {"usr", ""}, {"etc", ""}};
  host.root.passwd = "root:x:0:0::/root:/bin/bash\nowner::1000:1000::/home/owner:/bin/bash\n";
  host.root.group = "root:x:0:\nowner:x:1000:\n";
  return host;
}

template <class Kind>
int firstOf(const Plan& plan) {
  for (std::size_t at = 0; at < plan.steps.size(); ++at) {
    if (std::holds_alternative<Kind>(plan.steps[at])) return static_cast<int>(at);
  }
  return -1;
}

TEST(ImageRoot, EveryMountPointIsMadeBeforeTheRootAndMountedAfterIt) {
  policy::Policy policy = withRoot();
  policy.filesystem.read_only = {"/data/one"};
  HostFacts host = hostWithRoot();
  host.read_only = {file("/data/one")};
  const Plan plan = planned(policy, host);
  const int root = firstOf<MountRoot>(plan);
  ASSERT_GT(root, 0);
  for (const std::string path : {"/tmp", "/home/sandbox", "/workspace", "/proc", "/dev/pts"}) {
    const int made = positionOf<MakeDirectory>(plan, path);
    EXPECT_TRUE(made >= 0 && made < root) << path;
  }
  EXPECT_LT(positionOf<MakeFile>(plan, "/data/one"), root);
  EXPECT_GE(positionOf<MakeFile>(plan, "/data/one"), 0);
  EXPECT_GT(positionOf<Bind>(plan, "/data/one"), root);
  EXPECT_GT(positionOf<MountProc>(plan, "/proc"), root);
  EXPECT_GT(positionOf<MountOverlay>(plan, "/workspace"), root);
  EXPECT_EQ(stepAt<Bind>(plan, "/usr"), nullptr) << "nothing of the host's system is shown";
}

HostFacts hostWithMoreIds() {
  HostFacts host = hostWithRoot();
  host.supplementary_groups = 2;
  host.root.has_apt = true;
  host.subordinate = {.uids = {100000, 65536},
                      .gids = {200000, 65536},
                      .uid_helper = "/usr/bin/newuidmap",
                      .gid_helper = "/usr/bin/newgidmap"};
  return host;
}

TEST(RootIds, HaveCapabilitiesOverSubordinateIdsWhereTheHostAssignsThem) {
  const Plan plan = planned(withRoot(true), hostWithMoreIds());
  EXPECT_EQ(plan.identity.inside_uid, 0U);
  EXPECT_EQ(plan.identity.outside_uid, 1234U) << "files of the caller stay the caller's";
  EXPECT_EQ(plan.identity.more_uids.first, 100000U);
  EXPECT_EQ(plan.identity.more_gids.first, 200000U);
  EXPECT_FALSE(plan.identity.subordinate());
  EXPECT_EQ(plan.kept_capabilities, 0xebU);
  EXPECT_TRUE(plan.no_new_privileges);
  EXPECT_EQ(plan.layers.at("user"), "root inside, with 65536 subordinate ids");
  EXPECT_NE(plan.layers.at("capabilities"), "none");
  EXPECT_FALSE(anyContains(plan.warnings, "supplementary")) << "they are dropped";
  EXPECT_EQ(stepAt<MakeFile>(plan, "/etc/apt/apt.conf.d/zz-caisson"), nullptr) << "apt can become _apt";
}

TEST(RootIds, AreASingleIdWhereForeignFilesWouldBeLeftOnTheHost) {
  const auto expectSingle = [](const policy::Policy& policy, const HostFacts& host, const std::string& reason) {
    const Plan plan = planned(policy, host);
    EXPECT_FALSE(plan.identity.hasMoreIds()) << reason;
    EXPECT_EQ(plan.kept_capabilities, 0U) << reason;
    EXPECT_EQ(plan.layers.at("capabilities"), "none") << reason;
    EXPECT_NE(plan.layers.at("user").find(reason), std::string::npos) << plan.layers.at("user");
  };
  policy::Policy direct = withRoot(true);
  direct.filesystem.workspace.mode = policy::WorkspaceMode::rw;
  expectSingle(direct, hostWithMoreIds(), "written directly");
  policy::Policy writes = withRoot(true);
  writes.filesystem.read_write = {"/srv/data"};
  HostFacts with_path = hostWithMoreIds();
  with_path.read_write = {directory("/srv/data")};
  expectSingle(writes, with_path, "read_write");
  HostFacts without = hostWithMoreIds();
  without.subordinate.why_not = "newuidmap is missing";
  expectSingle(withRoot(true), without, "newuidmap is missing");
  HostFacts root = hostWithMoreIds();
  root.may_map_other_ids = root.may_map_mounts = true;
  expectSingle(withRoot(true), root, "the caller is root");
  policy::Policy host_root = profile();
  host_root.isolation.user = policy::InsideUser::root;
  expectSingle(host_root, hostWithMoreIds(), "another root");
}

TEST(RootIds, OtherUsersGetNoSubordinateIds) {
  EXPECT_FALSE(planned(withRoot(), hostWithMoreIds()).identity.usesHelpers());
}

TEST(ImageRoot, IsReadOnlyUnlessTheUserIsRoot) {
  const Plan plan = planned(withRoot(), hostWithRoot());
  const auto* root = std::get_if<MountRoot>(&plan.steps[static_cast<std::size_t>(firstOf<MountRoot>(plan))]);
  EXPECT_FALSE(root->writable);
  EXPECT_EQ(plan.identity.inside_uid, 1000U);
  for (const LandlockRule& rule : plan.landlock.rules) {
    if (rule.path != "/") continue;
    EXPECT_EQ(rule.access & sys::kFsWriteFile, 0U);
  }
  const Plan writable = planned(withRoot(true), hostWithRoot());
  const int at = firstOf<MountRoot>(writable);
  EXPECT_TRUE(std::get<MountRoot>(writable.steps[static_cast<std::size_t>(at)]).writable);
  EXPECT_LT(positionOf<MountTmpfs>(writable, std::string(kRootChanges)), at);
  EXPECT_EQ(writable.identity.inside_uid, 0U);
  EXPECT_EQ(writable.identity.outside_uid, 1234U) << "root inside is the caller on the host";
  EXPECT_TRUE(anyContains(writable.warnings, "root inside"));
  EXPECT_TRUE(writable.drop_capabilities);
}

TEST(ImageRoot, AccountsOfTheImageStayWithoutTheSandboxUsersId) {
  const Plan plan = planned(withRoot(), hostWithRoot());
  const auto* accounts = stepAt<MakeFile>(plan, "/etc/passwd");
  ASSERT_NE(accounts, nullptr);
  EXPECT_EQ(accounts->content, "root:x:0:0::/root:/bin/bash\nsandbox:x:1000:1000:sandbox:/home/sandbox:/bin/sh\n");
  EXPECT_EQ(stepAt<MakeFile>(planned(withRoot(true), hostWithRoot()), "/etc/passwd"), nullptr);
}

TEST(ImageRoot, PolicyOverridesVariablesOfTheImage) {
  HostFacts host = hostWithRoot();
  host.root.environment = {"PATH=/opt/bin:/bin", "LANG=de_DE.UTF-8", "LD_PRELOAD=/x.so",
                           "HOME=/root",         "MODE=image",       "broken"};
  policy::Policy policy = withRoot();
  policy.environment.set = {{"MODE", "policy"}};
  const Plan plan = planned(policy, host);
  EXPECT_TRUE(anyContains(plan.environment, "PATH=/opt/bin:/bin"));
  EXPECT_TRUE(anyContains(plan.environment, "LANG=de_DE.UTF-8"));
  EXPECT_TRUE(anyContains(plan.environment, "MODE=policy"));
  EXPECT_TRUE(anyContains(plan.environment, "HOME=/home/sandbox"));
  EXPECT_FALSE(anyContains(plan.environment, "LD_PRELOAD"));
  policy.environment.mode = policy::EnvironmentMode::listed;
  EXPECT_FALSE(anyContains(planned(policy, host).environment, "LANG="));
}

TEST(ImageRoot, WorkingDirectoryOfTheImageIsUsedWithoutAWorkspace) {
  HostFacts host = hostWithRoot();
  host.root.working_directory = "/srv/app";
  policy::Policy policy = withRoot();
  EXPECT_EQ(planned(policy, host).working_directory, "/workspace");
  policy.filesystem.workspace.mode = policy::WorkspaceMode::none;
  EXPECT_EQ(planned(policy, host).working_directory, "/srv/app");
}

TEST(ImageRoot, AnotherUserOfTheImageIsNamedInANotice) {
  HostFacts host = hostWithRoot();
  for (const std::string same : {"1000", "owner", "owner:owner", ""}) {
    host.root.user = same;
    EXPECT_FALSE(anyContains(planned(withRoot(), host).notices, "user")) << same;
  }
  for (const std::string other : {"0", "root", "33:33", "www-data"}) {
    host.root.user = other;
    EXPECT_TRUE(anyContains(planned(withRoot(), host).notices, "is not used")) << other;
  }
  host.root.user = "root";
  EXPECT_FALSE(anyContains(planned(withRoot(true), host).notices, "is not used"));
}

TEST(ImageRoot, HostPathsBelowItsLinksAreRefused) {
  policy::Policy policy = withRoot();
  policy.filesystem.read_only = {"/lib/x"};
  HostFacts host = hostWithRoot();
  host.read_only = {directory("/lib/x")};
  EXPECT_NE(refusal(policy, host).find("a link at /lib"), std::string::npos);
}

TEST(ImageRoot, IsRefusedWhereItCannotBeEnforced) {
  policy::Policy process = withRoot();
  process.isolation.level = policy::Level::process;
  EXPECT_NE(refusal(process, hostWithRoot()).find("level full"), std::string::npos);
  policy::Policy blocked = withRoot();
  blocked.process.blocked_executables = {"curl"};
  EXPECT_NE(refusal(blocked, hostWithRoot()).find("blocklist"), std::string::npos);
  policy::Policy writable = withRoot(true);
  writable.process.allowed_executables = {"true"};
  HostFacts with_true = hostWithRoot();
  with_true.executables.allowed = {{.entry = "true", .path = "/usr/bin/true", .real = "/usr/bin/true"}};
  EXPECT_NE(refusal(writable, with_true).find("writable"), std::string::npos);
  HostFacts absent = hostWithRoot();
  absent.root.why_not = "it is not a directory";
  EXPECT_NE(refusal(withRoot(), absent).find("not a directory"), std::string::npos);
}

TEST(ImageRoot, NoticeOfItsUserIsEscapedLikeOtherOutput) {
  HostFacts host = hostWithRoot();
  host.root.user = "a\nb\x1b[31m\xE2\x80\xAE";
  EXPECT_TRUE(anyContains(planned(withRoot(), host).notices, R"(user a\nb\x1b[31m\u{202e} is not used)"));
}

TEST(ImageRoot, ChangesAreKeptOnDiskElseInMemoryElseRefused) {
  HostFacts host = hostWithRoot();
  EXPECT_TRUE(stepAt<MountTmpfs>(planned(withRoot(true), host), std::string(kRootChanges))->on_disk);
  host.state_disk.why_no_overlay = "it is an overlay itself";
  const Plan plan = planned(withRoot(true), host);
  EXPECT_FALSE(stepAt<MountTmpfs>(plan, std::string(kRootChanges))->on_disk);
  EXPECT_TRUE(anyContains(plan.warnings, "kept in memory"));
  host.tmpfs_user_xattrs = false;
  EXPECT_NE(refusal(withRoot(true), host).find("Linux 6.6"), std::string::npos);
}

TEST(ImageRoot, DirectoriesThatHoldTheCallersHomeOrStateAreRefused) {
  for (const std::string path : {"/", "/home", "/home/someone", "/home/someone/.local/state/caisson/x"}) {
    HostFacts host = hostWithRoot();
    host.own_state = "/home/someone/.local/state/caisson";
    host.root.layers = {path};
    EXPECT_NE(refusal(withRoot(), host).find("filesystem.root"), std::string::npos) << path;
  }
}

TEST(ImageRoot, DeniedPathsOfAWritableRootCannotBeMadeLater) {
  policy::Policy policy = withRoot(true);
  policy.filesystem.denied = {"/opt/secret"};
  const Plan plan = planned(policy, hostWithRoot());
  const auto* mask = stepAt<MaskPath>(plan, "/opt/secret");
  ASSERT_NE(mask, nullptr);
  EXPECT_EQ(mask->absent, MaskPath::Absent::create);
}

}  // namespace
}  // namespace caisson::plan
