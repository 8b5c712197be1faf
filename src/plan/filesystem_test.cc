#include "plan/filesystem.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "plan/plan_testing.h"
#include "plan/system_paths.h"
#include "support/conforms.h"

namespace caisson::plan {
namespace {

using namespace testing;  // NOLINT: the vocabulary of these tests
using policy::Level;
using policy::Policy;
using policy::WorkspaceMode;

mode_t modeOfRootsHome(const std::vector<std::string>& shown) {
  Policy policy = withWorkspace(WorkspaceMode::none);
  policy.filesystem.read_only = shown;
  const Plan plan = planned(policy);
  const auto* home = stepAt<MakeDirectory>(plan, "/root");
  return home == nullptr ? 07777 : home->mode;
}

TEST(RootsHome, IsClosedExceptForTraversalToShownPaths) {
  EXPECT_EQ(modeOfRootsHome({}), 0U);
  EXPECT_EQ(modeOfRootsHome({"/rooted"}), 0U);
  EXPECT_EQ(modeOfRootsHome({"/root/project/tools"}), 0111U) << "to be passed, not to be listed";
}

TEST(Workspace, FollowsItsMode) {
  const Plan none = planned(withWorkspace(WorkspaceMode::none));
  EXPECT_EQ(positionOf<Bind>(none, "/workspace"), -1);
  EXPECT_EQ(positionOf<MountOverlay>(none, "/workspace"), -1);
  EXPECT_EQ(none.working_directory, "/home/sandbox");

  const Plan ro = planned(withWorkspace(WorkspaceMode::ro));
  ASSERT_NE(stepAt<Bind>(ro, "/workspace"), nullptr);
  EXPECT_FALSE(stepAt<Bind>(ro, "/workspace")->writable);
  EXPECT_TRUE(stepAt<Bind>(ro, "/workspace")->canonical) << "a link planted since would be followed";
  EXPECT_EQ(ro.working_directory, "/workspace");

  const Plan rw = planned(withWorkspace(WorkspaceMode::rw));
  EXPECT_TRUE(stepAt<Bind>(rw, "/workspace")->writable);
  EXPECT_TRUE(anyContains(rw.warnings, "cannot be rolled back"));

  const Plan overlay = planned(withWorkspace(WorkspaceMode::overlay));
  ASSERT_NE(stepAt<MountOverlay>(overlay, "/workspace"), nullptr);
  EXPECT_EQ(stepAt<MountOverlay>(overlay, "/workspace")->lower, "/home/someone/project");
  EXPECT_TRUE(overlay.workspace_overlay);
}

TEST(Workspace, OfARootCallerBelongsToThePayloadInside) {
  HostFacts host = someHost();
  host.may_map_other_ids = host.may_map_mounts = true;
  for (const WorkspaceMode mode : {WorkspaceMode::ro, WorkspaceMode::rw}) {
    EXPECT_TRUE(stepAt<Bind>(planned(withWorkspace(mode), host), "/workspace")->owned);
    EXPECT_FALSE(stepAt<Bind>(planned(withWorkspace(mode)), "/workspace")->owned);
  }
  EXPECT_TRUE(stepAt<MountOverlay>(planned(withWorkspace(WorkspaceMode::overlay), host), "/workspace")->owned);
}

TEST(Workspace, KeepsItsChangesInMemoryWhereTheKernelCan) {
  Policy policy = withWorkspace(WorkspaceMode::overlay);
  HostFacts old = someHost();
  old.tmpfs_user_xattrs = false;
  EXPECT_FALSE(stepAt<MountOverlay>(planned(policy), "/workspace")->on_disk);
  EXPECT_TRUE(stepAt<MountOverlay>(planned(policy, old), "/workspace")->on_disk);
  policy.filesystem.overlay_store = policy::OverlayStore::disk;
  EXPECT_TRUE(stepAt<MountOverlay>(planned(policy), "/workspace")->on_disk);
  policy.filesystem.overlay_store = policy::OverlayStore::memory;
  EXPECT_FALSE(stepAt<MountOverlay>(planned(policy), "/workspace")->on_disk);
}

TEST(Workspace, KeepsItsChangesOnDiskIfPreferredAndSupported) {
  Policy policy = withWorkspace(WorkspaceMode::overlay);
  policy.filesystem.overlay_store = policy::OverlayStore::prefer_disk;
  EXPECT_TRUE(stepAt<MountOverlay>(planned(policy), "/workspace")->on_disk);
  HostFacts host = someHost();
  host.state_disk.why_no_overlay = "it lies on NFS";
  const Plan plan = planned(policy, host);
  EXPECT_FALSE(stepAt<MountOverlay>(plan, "/workspace")->on_disk);
  EXPECT_TRUE(anyContains(plan.warnings, "it lies on NFS"));
  host = someHost();
  host.own_state = host.workspace.path + "/.caisson";
  EXPECT_FALSE(stepAt<MountOverlay>(planned(policy, host), "/workspace")->on_disk) << "a layer in a layer";
}

TEST(SizedDirectories, AreInMemoryForAPayloadWithAnotherUserId) {
  Policy policy = withWorkspace(WorkspaceMode::none);
  policy.isolation.separate_user = true;
  policy.filesystem.tmpfs = {{.path = "/tmp", .store = policy::DirectoryStore::prefer_disk}};
  EXPECT_TRUE(stepAt<MountTmpfs>(planned(policy), "/tmp")->on_disk) << "there is no other id here";
  HostFacts host = someHost();
  host.subordinate = {
      .uid = 100000, .gid = 100000, .uid_helper = "/usr/bin/newuidmap", .gid_helper = "/usr/bin/newgidmap"};
  const Plan plan = planned(policy, host);
  ASSERT_TRUE(plan.identity.subordinate());
  EXPECT_FALSE(stepAt<MountTmpfs>(plan, "/tmp")->on_disk);
}

TEST(Workspace, ThatCannotBeUsedIsRefusedWithTheReason) {
  for (const WorkspaceMode mode : {WorkspaceMode::ro, WorkspaceMode::rw, WorkspaceMode::overlay}) {
    for (const Level level : {Level::full, Level::process}) {
      Policy policy = withWorkspace(mode, level);
      HostFacts host = someHost();
      policy.filesystem.workspace.path = "/no/such/dir";
      host.workspace = {.requested = "/no/such/dir", .path = "", .sys_errno = ENOENT};
      EXPECT_NE(refusal(policy, host).find("/no/such/dir"), std::string::npos);
      policy.filesystem.workspace.path = "a-fifo";
      host.workspace = {.requested = "a-fifo", .path = "/tmp/a-fifo"};
      EXPECT_NE(refusal(policy, host).find("not a directory"), std::string::npos);
      host.workspace = {.requested = "a-fifo", .path = "/tmp/a-fifo", .regular_file = true};
      EXPECT_NE(refusal(policy, host).find("not a directory"), std::string::npos);
    }
  }
}

// --- what the current directory may be ---

struct Place {
  const char* path;
  bool taken;
};

TEST(CurrentDirectory, IsNotTheDefaultInOrAboveAHomeDirectory) {
  const Place places[] = {{"/", false},
                          {"/home", false},
                          {"/root", false},
                          {"/home/someone", false},
                          {"/home/another-user", false},
                          {"/home/someone/project", true},
                          {"/srv/project", true},
                          {"/homework", true},
                          {"/tmp", true},
                          {"/root/project", true}};
  for (const Place& place : places) {
    for (const WorkspaceMode mode : {WorkspaceMode::overlay, WorkspaceMode::ro, WorkspaceMode::rw}) {
      const Plan plan = planned(withWorkspace(mode), hostWithWorkspace(place.path));
      const bool taken = plan.layers.at("workspace") != "none";
      EXPECT_EQ(taken, place.taken) << place.path;
      EXPECT_EQ(taken, plan.notices.empty()) << place.path;
    }
  }
}

TEST(CurrentDirectory, IsNotTheDefaultAboveAHomeElsewhere) {
  HostFacts host = someHost();
  host.homes = {"/home/me", "/data/users/team/me"};
  for (const char* path : {"/data", "/data/users", "/data/users/team", "/data/users/team/me"}) {
    host.workspace.path = path;
    EXPECT_EQ(planned(withWorkspace(WorkspaceMode::overlay), host).layers.at("workspace"), "none") << path;
  }
  for (const char* path : {"/data/users/team/me/x", "/data/users/team/me2", "/data/users/te"}) {
    host.workspace.path = path;
    EXPECT_NE(planned(withWorkspace(WorkspaceMode::overlay), host).layers.at("workspace"), "none") << path;
  }
}

TEST(CurrentDirectory, IsNotTheDefaultInAHomeAtAWeakerLevelEither) {
  for (const char* path : {"/", "/home", "/home/someone"}) {
    for (const WorkspaceMode mode : {WorkspaceMode::overlay, WorkspaceMode::ro, WorkspaceMode::rw}) {
      const HostFacts host = hostWithWorkspace(path);
      const Plan process = planned(withWorkspace(mode, Level::process), host);
      for (const LandlockRule& rule : process.landlock.rules) {
        EXPECT_NE(rule.path, path) << "level process opens all of " << path << " without having been asked";
      }
      EXPECT_FALSE(process.notices.empty()) << path;
      if (mode == WorkspaceMode::overlay) continue;
      Policy policy = withWorkspace(mode);
      policy.isolation.tier = policy::Tier::landlock;
      for (const LandlockRule& rule : planned(policy, host).landlock.rules) {
        EXPECT_NE(rule.path, path) << "the landlock tier opens all of " << path << " without having been asked";
      }
    }
  }
}

TEST(CurrentDirectory, ThatIsGoneIsNotMistakenForAHomeDirectory) {
  HostFacts host = someHost();
  host.workspace = {.requested = ".", .path = "", .sys_errno = ENOENT};
  const auto plan = build(withWorkspace(WorkspaceMode::overlay), host, {{"true"}, false});
  if (!plan) {
    EXPECT_NE(plan.error().message().find("workspace"), std::string::npos) << plan.error().message();
  } else {
    EXPECT_FALSE(anyContains(plan->notices, "home directory")) << plan->notices.front();
  }
}

TEST(NamedWorkspace, MayBeAHomeDirectory) {
  Policy policy = withWorkspace(WorkspaceMode::ro);
  policy.filesystem.workspace.path = "/home/someone";
  EXPECT_NE(planned(policy, hostWithWorkspace("/home/someone")).layers.at("workspace"), "none");
}

// --- the rest of the tree ---

TEST(Tree, ShowsOfProcOnlyWhatIsListed) {
  const Plan plan = planned(profile());
  const MountProc* proc = stepAt<MountProc>(plan, "/proc");
  ASSERT_NE(proc, nullptr);
  EXPECT_TRUE(proc->mask);
  for (const char* entry : {"kcore", "kmsg", "keys", "timer_list", "diskstats", "pressure", "zoneinfo", "bus"}) {
    EXPECT_EQ(std::ranges::find(proc->shown, entry), proc->shown.end()) << entry;
  }
  const Bind* settings = stepAt<Bind>(plan, "/proc/sys");
  ASSERT_NE(settings, nullptr);
  EXPECT_FALSE(settings->writable);
  EXPECT_TRUE(settings->inside);
}

TEST(Tree, HasTheTemporaryDirectoriesOfThePolicyWithTheirLimits) {
  CONFORMS("R-FILES-7");
  Policy policy = profile();
  policy.filesystem.tmpfs = {{"/tmp", 12345, 67, true}, {"/cache", 99, 5, false}};
  const Plan plan = planned(policy);
  const MountTmpfs* tmp = stepAt<MountTmpfs>(plan, "/tmp");
  ASSERT_NE(tmp, nullptr);
  EXPECT_EQ(tmp->bytes, 12345U);
  EXPECT_EQ(tmp->inodes, 67U);
  EXPECT_EQ(tmp->mode, 01777U);
  EXPECT_TRUE(tmp->executable);
  EXPECT_EQ(stepAt<MountTmpfs>(plan, "/cache")->mode, 0700U);
  EXPECT_FALSE(stepAt<MountTmpfs>(plan, "/cache")->executable);
  EXPECT_EQ(stepAt<MountTmpfs>(plan, "/var/tmp"), nullptr);
}

TEST(Tree, BeginsWithAFreshRootAndEndsByMakingItReadOnly) {
  const Plan plan = planned(profile());
  ASSERT_FALSE(plan.steps.empty());
  EXPECT_EQ(targetOf(plan.steps.front()), "/");
  EXPECT_TRUE(std::holds_alternative<MountTmpfs>(plan.steps.front()));
  EXPECT_TRUE(std::holds_alternative<ReadOnlyRoot>(plan.steps.back()));
}

TEST(Tree, AWorkspaceBelowTmpComesAfterTheFreshOneAtLevelProcess) {
  const Plan plan = planned(withWorkspace(WorkspaceMode::rw, Level::process), hostWithWorkspace("/tmp/project"));
  ASSERT_GE(positionOf<MountTmpfs>(plan, "/tmp"), 0);
  EXPECT_GT(positionOf<Bind>(plan, "/tmp/project"), positionOf<MountTmpfs>(plan, "/tmp"));
}

TEST(Tree, AtLevelProcessHidesHomesAndSocketsBeforeShowingPaths) {
  HostFacts host = someHost();
  host.homes = {"/home/someone", "/data/home/someone"};
  host.other_directories = {"/srv", "/var/lib"};
  host.read_only = {directory("/home/someone/tools")};
  const Plan plan = planned(withWorkspace(WorkspaceMode::ro, Level::process), host);
  ASSERT_EQ(positionOf<Bind>(plan, "/"), 0);
  EXPECT_FALSE(stepAt<Bind>(plan, "/")->writable) << "Landlock does not cover chmod, chown, utimes and setxattr";
  for (const char* covered :
       {"/home", "/root", "/run", "/data/home/someone", "/dev/shm", "/tmp", "/var/tmp", "/srv", "/var/lib"}) {
    ASSERT_GT(positionOf<MountTmpfs>(plan, covered), 0) << covered;
    EXPECT_LT(positionOf<MountTmpfs>(plan, covered), positionOf<Bind>(plan, "/home/someone/project")) << covered;
    EXPECT_LT(positionOf<MountTmpfs>(plan, covered), positionOf<Bind>(plan, "/home/someone/tools")) << covered;
  }
}

// --- secrets by name ---

TEST(Secrets, OfAHomeDirectoryAreHiddenWhereverItIsShown) {
  CONFORMS("R-FILES-15");
  Policy policy = withWorkspace(WorkspaceMode::ro);
  policy.filesystem.workspace.path = "/home/someone";
  const Plan named = planned(policy, hostWithWorkspace("/home/someone"));
  policy.filesystem.workspace.mode = WorkspaceMode::overlay;
  const Plan overlay = planned(policy, hostWithWorkspace("/home/someone"));
  HostFacts host = someHost();
  host.read_only = {directory("/home")};
  const Plan above = planned(profile(), host);
  for (const std::string secret : {".ssh", ".aws", ".config/gcloud", ".kube", ".gnupg", ".gitconfig", ".netrc",
                                   ".git-credentials", ".docker", ".bash_history"}) {
    EXPECT_TRUE(anyContains(stepAt<MountOverlay>(named, "/workspace")->whiteouts, secret)) << secret;
    EXPECT_GE(positionOf<MaskPath>(above, "/home/someone/" + secret), 0) << secret;
    EXPECT_TRUE(anyContains(stepAt<MountOverlay>(overlay, "/workspace")->whiteouts, secret)) << secret;
  }
}

TEST(Secrets, AreMaskedUnlessTheyAreAskedFor) {
  HostFacts host = someHost();
  host.scan.secrets = {".env", "id_rsa"};
  const Plan overlay = planned(withWorkspace(WorkspaceMode::overlay), host);
  EXPECT_EQ(stepAt<MountOverlay>(overlay, "/workspace")->whiteouts, host.scan.secrets);
  EXPECT_EQ(overlay.masked_secrets, host.scan.secrets);
  const Plan ro = planned(withWorkspace(WorkspaceMode::ro), host);
  EXPECT_EQ(stepAt<MountOverlay>(ro, "/workspace")->whiteouts, host.scan.secrets);
  EXPECT_TRUE(stepAt<MountOverlay>(ro, "/workspace")->read_only);
  const Plan rw = planned(withWorkspace(WorkspaceMode::rw), host);
  EXPECT_GT(positionOf<MaskPath>(rw, "/workspace/.env"), positionOf<Bind>(rw, "/workspace"));
  const Plan process = planned(withWorkspace(WorkspaceMode::rw, Level::process), host);
  EXPECT_GE(positionOf<MaskPath>(process, "/home/someone/project/id_rsa"), 0);
  Policy shown = withWorkspace(WorkspaceMode::overlay);
  shown.filesystem.workspace.show_secrets = true;
  EXPECT_TRUE(planned(shown, host).masked_secrets.empty());
  EXPECT_TRUE(stepAt<MountOverlay>(planned(shown, host), "/workspace")->whiteouts.empty());
}

// --- files that the host would execute ---

TEST(ProtectedFiles, AreReadOnlyAndPinnedInAWritableWorkspace) {
  HostFacts host = someHost();
  host.scan.protected_paths = {{"a/.git/hooks", true}, {"a/.git/config", false}};
  const Plan plan = planned(withWorkspace(WorkspaceMode::rw), host);
  const int workspace = positionOf<Bind>(plan, "/workspace");
  for (const char* pinned : {"/workspace/a", "/workspace/a/.git"}) {
    ASSERT_GT(positionOf<Bind>(plan, pinned), workspace) << pinned;
    EXPECT_TRUE(stepAt<Bind>(plan, pinned)->writable) << pinned;
  }
  for (const char* guarded : {"/workspace/a/.git/hooks", "/workspace/a/.git/config"}) {
    ASSERT_GT(positionOf<Bind>(plan, guarded), positionOf<Bind>(plan, "/workspace/a/.git")) << guarded;
    EXPECT_FALSE(stepAt<Bind>(plan, guarded)->writable) << guarded;
  }
  ASSERT_EQ(plan.guarded.size(), 1U);
  ASSERT_EQ(plan.guarded.front().before.size(), 2U);
  EXPECT_EQ(plan.guarded.front().before[0].path, "a/.git/hooks");
  EXPECT_EQ(plan.guarded.front().before[1].path, "a/.git/config");
}

TEST(ProtectedFiles, WritableWorkspaceIsRefusedIfSomeCannotBeTold) {
  HostFacts host = someHost();
  host.scan.unscanned = {".git"};
  host.scan.unscanned_count = 1;
  const auto plan = build(withWorkspace(WorkspaceMode::rw), host, {{"true"}});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message().find("too many links"), std::string::npos) << plan.error().message();
}

TEST(CoveredDirectories, AreHiddenInEveryModeAndNamed) {
  HostFacts host = someHost();
  host.scan.covered = {{"a/closed", "no permission to read it", "identity"}, {"b/gone", "no permission to read it"}};
  const Plan direct = planned(withWorkspace(WorkspaceMode::rw), host);
  EXPECT_NE(stepAt<MaskPath>(direct, "/workspace/a/closed"), nullptr);
  EXPECT_NE(stepAt<Bind>(direct, "/workspace/a"), nullptr) << "it cannot be renamed";
  ASSERT_EQ(direct.guarded.size(), 1U) << "new files are still moved away";
  ASSERT_EQ(direct.guarded.front().before.size(), 1U);
  EXPECT_EQ(direct.guarded.front().before[0].path, "a/closed/") << "nothing in it is new";
  EXPECT_EQ(direct.guarded.front().before[0].target, "identity");
  host.scan.covered.pop_back();
  for (const WorkspaceMode mode : {WorkspaceMode::overlay, WorkspaceMode::ro}) {
    const Plan plan = planned(withWorkspace(mode), host);
    const auto* layer = stepAt<MountOverlay>(plan, "/workspace");
    ASSERT_NE(layer, nullptr);
    EXPECT_EQ(layer->whiteouts, (std::vector<std::string>{"a/closed"}));
    EXPECT_TRUE(plan.masked_secrets.empty());
    EXPECT_EQ(plan.covered, (std::vector<std::string>{"not shown, since it could not be searched for secrets: a/closed "
                                                      "(no permission to read it)"}));
  }
  host.scan.covered = {{".", "beyond the first 5 entries"}};
  const auto whole = build(withWorkspace(WorkspaceMode::overlay), host, {{"true"}});
  ASSERT_FALSE(whole);
  EXPECT_NE(whole.error().message().find("beyond the first 5 entries"), std::string::npos) << whole.error().message();
}

TEST(ProtectedFiles, HardLinksAreNamedInAWritableWorkspace) {
  HostFacts host = someHost();
  host.scan.protected_paths = {{".git/hooks", true}};
  EXPECT_FALSE(anyContains(planned(withWorkspace(WorkspaceMode::rw), host).notices, "hard links"));
  host.scan.shared_files = {".git/hooks/pre-commit"};
  EXPECT_TRUE(
      anyContains(planned(withWorkspace(WorkspaceMode::rw), host).notices, "change them: .git/hooks/pre-commit"));
}

TEST(ProtectedFiles, AreLeftAloneWhenAllowedAndElsewhere) {
  HostFacts host = someHost();
  host.scan.protected_paths = {{".envrc", false}};
  Policy allowed = withWorkspace(WorkspaceMode::rw);
  allowed.filesystem.workspace.allow_exec_config = true;
  EXPECT_TRUE(planned(allowed, host).guarded.empty());
  EXPECT_TRUE(anyContains(planned(allowed, host).warnings, "--allow-exec-config"));
  EXPECT_TRUE(planned(withWorkspace(WorkspaceMode::overlay), host).guarded.empty());
}

}  // namespace
}  // namespace caisson::plan
