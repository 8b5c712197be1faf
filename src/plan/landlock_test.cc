#include "plan/landlock.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "plan/plan_testing.h"
#include "plan/system_paths.h"
#include "policy/profiles/profiles.h"
#include "support/conforms.h"
#include "sys/kernel_abi.h"

namespace caisson::plan {
namespace {

using namespace testing;       // NOLINT: the vocabulary of these tests
using namespace caisson::sys;  // NOLINT: the kernel's constants
using policy::Level;
using policy::WorkspaceMode;

HostFacts hostWithAbi(int abi) {
  HostFacts host = someHost();
  host.landlock_abi = abi;
  return host;
}

const LandlockRule* ruleFor(const Plan& plan, std::string_view path) {
  for (const LandlockRule& rule : plan.landlock.rules) {
    if (rule.path == path) return &rule;
  }
  return nullptr;
}

TEST(LandlockRights, GrowWithTheAbi) {
  const int counts[] = {0, 13, 14, 15, 15, 16, 16, 16, 16, 16, 16, 16};
  for (int abi = 0; abi <= 11; ++abi) {
    EXPECT_EQ(std::popcount(filesystemRights(abi)), counts[abi]) << "ABI " << abi;
    if (abi > 0) {
      EXPECT_EQ(filesystemRights(abi) & filesystemRights(abi - 1), filesystemRights(abi - 1)) << "ABI " << abi;
    }
  }
  EXPECT_EQ(filesystemRights(1) & kFsRefer, 0U);
  EXPECT_NE(filesystemRights(2) & kFsRefer, 0U);
  EXPECT_EQ(filesystemRights(2) & kFsTruncate, 0U);
  EXPECT_NE(filesystemRights(3) & kFsTruncate, 0U);
  EXPECT_EQ(filesystemRights(4) & kFsIoctlDev, 0U);
  EXPECT_NE(filesystemRights(5) & kFsIoctlDev, 0U);
}

TEST(LandlockRights, OfAnUnknownNewerAbiAreTheKnownOnes) {
  for (const int abi : {8, 9, 10, 11, 100}) EXPECT_EQ(filesystemRights(abi), filesystemRights(7)) << abi;
}

TEST(LandlockRights, ToWriteIncludeNeitherExecutionNorDevices) {
  for (int abi = 1; abi <= 11; ++abi) {
    EXPECT_EQ(writeRights(abi) & (kFsExecute | kFsMakeChar | kFsMakeBlock), 0U) << abi;
    EXPECT_NE(writeRights(abi) & kFsWriteFile, 0U) << abi;
  }
  EXPECT_EQ(readRights() & ~(kFsReadFile | kFsReadDir), 0U);
}

TEST(LandlockPlan, WriteOnlyDirectoryHasNoReadRule) {
  policy::Policy wanted = *policy::builtin("bash");
  wanted.filesystem.tmpfs.push_back({.path = "/logs", .access = policy::TmpfsAccess::wo});
  wanted.filesystem.tmpfs.push_back({.path = "/metadata", .access = policy::TmpfsAccess::ro});
  for (int abi = 1; abi <= 7; ++abi) {
    const auto plan = build(wanted, hostWithAbi(abi), {{"true"}});
    ASSERT_TRUE(plan) << plan.error().message();
    ASSERT_NE(ruleFor(*plan, "/logs"), nullptr);
    EXPECT_EQ(ruleFor(*plan, "/logs")->access, kFsWriteFile | kFsMakeReg | kFsMakeDir);
    EXPECT_EQ(ruleFor(*plan, "/metadata")->access, readRights());
    EXPECT_EQ(ruleFor(*plan, "/")->access, kFsReadDir);
    for (const char* path : {"/usr", "/etc", "/proc", "/workspace"}) {
      ASSERT_NE(ruleFor(*plan, path), nullptr) << path;
      EXPECT_NE(ruleFor(*plan, path)->access & kFsReadFile, 0U) << path;
    }
  }
  const auto without = build(wanted, hostWithAbi(0), {{"true"}});
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().message().find("/logs"), std::string::npos);
}

TEST(LandlockPlan, NeverNamesARightThatTheAbiLacks) {
  for (int abi = 1; abi <= 11; ++abi) {
    for (const Level level : {Level::full, Level::process}) {
      auto policy = withWorkspace(WorkspaceMode::rw, level);
      HostFacts host = hostWithAbi(abi);
      host.read_only = {directory("/opt/tools"), file("/opt/file")};
      host.read_write = {directory("/srv/data"), file("/srv/file")};
      const Plan plan = planned(policy, host);
      EXPECT_EQ(plan.landlock.abi, abi);
      EXPECT_EQ(plan.landlock.handled_fs, filesystemRights(abi)) << abi;
      for (const LandlockRule& rule : plan.landlock.rules) {
        EXPECT_EQ(rule.access & ~plan.landlock.handled_fs, 0U) << "ABI " << abi << ", " << rule.path;
      }
    }
  }
}

TEST(LandlockPlan, ScopesSignalsAndAbstractSocketsFromAbiSix) {
  for (int abi = 1; abi <= 11; ++abi) {
    const Plan plan = planned(profile(), hostWithAbi(abi));
    EXPECT_EQ(plan.landlock.scoped, abi >= 6 ? kScopeAbstractUnix | kScopeSignal : 0) << abi;
  }
}

TEST(LandlockPlan, OnlyWritableMountsAreWritable) {
  const Plan plan = planned(withWorkspace(WorkspaceMode::ro));
  for (const LandlockRule& rule : plan.landlock.rules) {
    if ((rule.access & kFsMakeReg) == 0) continue;
    EXPECT_NE(stepAt<MountTmpfs>(plan, rule.path), nullptr) << rule.path;
  }
  EXPECT_EQ(ruleFor(plan, "/usr")->access, executeRights());
  EXPECT_EQ(ruleFor(plan, "/workspace")->access, executeRights());
}

TEST(LandlockPlan, TheRootOfAReadOnlyTreeIsNotWritable) {
  // The root is a tmpfs step like /tmp, but is made read-only before the payload starts.
  const Plan plan = planned(profile());
  std::uint64_t root = 0;
  for (const LandlockRule& rule : plan.landlock.rules) {
    if (rule.path == "/") root |= rule.access;
  }
  EXPECT_EQ(root & (kFsWriteFile | kFsMakeReg | kFsMakeDir | kFsRemoveFile | kFsRemoveDir), 0U)
      << "Landlock would not be a second wall behind the read-only root";
}

TEST(LandlockPlan, AWorkspaceFollowsItsMode) {
  const auto accessOf = [](WorkspaceMode mode, Level level) {
    const Plan plan = planned(withWorkspace(mode, level));
    const LandlockRule* rule = ruleFor(plan, level == Level::full ? "/workspace" : "/home/someone/project");
    return rule == nullptr ? kNoRights : rule->access;
  };
  for (const Level level : {Level::full, Level::process}) {
    EXPECT_EQ(accessOf(WorkspaceMode::none, level), kNoRights);
    EXPECT_EQ(accessOf(WorkspaceMode::ro, level) & kFsWriteFile, 0U);
    EXPECT_NE(accessOf(WorkspaceMode::rw, level) & kFsWriteFile, 0U);
    EXPECT_NE(accessOf(WorkspaceMode::overlay, level) & kFsWriteFile, 0U);
  }
}

TEST(LandlockPlan, ANoexecWorkspaceIsNotExecutable) {
  for (const WorkspaceMode mode : {WorkspaceMode::ro, WorkspaceMode::rw, WorkspaceMode::overlay}) {
    for (const Level level : {Level::full, Level::process}) {
      auto policy = withWorkspace(mode, level);
      policy.filesystem.workspace_exec = false;
      const Plan plan = planned(policy);
      const LandlockRule* rule = ruleFor(plan, level == Level::full ? "/workspace" : "/home/someone/project");
      if (rule != nullptr) {
        EXPECT_EQ(rule->access & kFsExecute, 0U) << static_cast<int>(mode);
      }
    }
  }
}

TEST(LandlockPlan, OverTheHostsRootOnlyNamedPathsAreOpen) {
  CONFORMS("R-LEVEL-5");
  const Plan plan = planned(withWorkspace(WorkspaceMode::ro, Level::process));
  for (const LandlockRule& rule : plan.landlock.rules) {
    for (const char* closed : {"/", "/home", "/home/someone", "/root", "/etc", "/var", "/run", "/sys", "/etc/shadow"}) {
      EXPECT_NE(rule.path, closed);
    }
  }
  EXPECT_EQ(ruleFor(plan, "/bin"), nullptr) << "a link: its target has the rule";
}

policy::Policy withoutNamespaces(WorkspaceMode mode = WorkspaceMode::ro) {
  auto policy = withWorkspace(mode);
  policy.isolation.tier = policy::Tier::landlock;
  return policy;
}

TEST(LandlockPlan, WithoutAMountNamespaceTheHostsTmpStaysClosed) {
  const Plan plan = planned(withoutNamespaces());
  for (const char* closed : {"/tmp", "/var/tmp", "/dev/shm", "/dev/pts", "/run", "/etc/hosts", "/etc/resolv.conf",
                             "/etc/hostname", "/etc/machine-id", "/etc/shadow"}) {
    EXPECT_EQ(ruleFor(plan, closed), nullptr) << closed;
  }
}

TEST(LandlockPlan, WithoutAMountNamespaceShowsWhatLevelFullShows) {
  HostFacts host = someHost();
  host.read_only = {directory("/opt/tools"), file("/opt/file")};
  host.toolchains = {{.manager = "nvm", .programs = "/home/someone/.nvm/bin", .shown = {"/home/someone/.nvm/bin"}}};
  const Plan full = planned(withWorkspace(WorkspaceMode::ro), host);
  const Plan tier = planned(withoutNamespaces(), host);
  std::set<std::string> shown{"/proc", std::string(kPrivateHome), std::string(kPrivateTmp)};
  for (const std::string_view path : hostEtcPaths()) shown.emplace(path);
  for (const Step& step : full.steps) {
    const auto* bind = std::get_if<Bind>(&step);
    if (bind == nullptr || bind->inside) continue;
    shown.insert(bind->source);
    const LandlockRule* rule = ruleFor(tier, bind->source);
    ASSERT_NE(rule, nullptr) << bind->source << " is missing in the tier";
    EXPECT_NE(rule->access & kFsReadFile, 0U) << bind->source;
    EXPECT_EQ((rule->access & kFsExecute) != 0, bind->executable) << bind->source;
    EXPECT_EQ((rule->access & kFsWriteFile) != 0, bind->writable) << bind->source;
  }
  for (const LandlockRule& rule : tier.landlock.rules) EXPECT_TRUE(shown.contains(rule.path)) << rule.path;
}

TEST(LandlockPlan, WithoutAPidNamespaceProcIsNeverWritable) {
  // Landlock's rules cannot tell one process's directory from another's: what keeps them apart is that the domain may
  // not trace processes outside. Files that need no such right, as oom_score_adj, must not be writable.
  const Plan plan = planned(withoutNamespaces(WorkspaceMode::rw));
  for (const LandlockRule& rule : plan.landlock.rules) {
    if (rule.path.starts_with("/proc")) {
      EXPECT_EQ(rule.access, readRights()) << rule.path;
    }
  }
  ASSERT_NE(ruleFor(plan, "/proc"), nullptr);
}

TEST(LandlockTierPlan, RefusesToShowAHomeUnlessItsSecretsMayBeSeen) {
  for (const char* path : {"/home/someone", "/home", "/home/other", "/root", "/home/someone/.config"}) {
    auto policy = withoutNamespaces();
    policy.filesystem.workspace.path = path;
    HostFacts host = hostWithWorkspace(path);
    EXPECT_NE(refusal(policy, host).find("--show-secrets"), std::string::npos) << path;
    policy.filesystem.workspace.show_secrets = true;
    EXPECT_TRUE(anyContains(planned(policy, host).warnings, "keys and passwords")) << path;

    auto named = withoutNamespaces(WorkspaceMode::none);
    host = someHost();
    host.read_only = {directory(path)};
    EXPECT_NE(refusal(named, host).find("--show-secrets"), std::string::npos) << path;
    named.filesystem.workspace.show_secrets = true;
    EXPECT_NE(ruleFor(planned(named, host), path), nullptr) << path;
  }
  auto project = withoutNamespaces();
  project.filesystem.workspace.path = "/home/someone/project";
  EXPECT_TRUE(planned(project).workspace_shown);
}

TEST(LandlockTierPlan, RefusesTheWholeHostAndMissingPaths) {
  auto policy = withoutNamespaces();
  policy.filesystem.workspace = {.path = "/", .mode = WorkspaceMode::ro, .show_secrets = true};
  EXPECT_NE(refusal(policy, hostWithWorkspace("/")).find("the whole host"), std::string::npos);
  HostFacts host = someHost();
  host.read_only = {{.requested = "/nowhere", .sys_errno = 2}};
  EXPECT_NE(refusal(withoutNamespaces(), host).find("/nowhere"), std::string::npos);
}

TEST(LandlockTierPlan, DropsACurrentDirectoryThatThePayloadMayNotEnter) {
  HostFacts host = someHost();
  host.may_map_other_ids = true;
  host.workspace.payload_may_enter = false;
  auto policy = withoutNamespaces(WorkspaceMode::overlay);
  const Plan plan = planned(policy, host);
  EXPECT_FALSE(plan.workspace_shown);
  EXPECT_EQ(plan.working_directory, kPrivateHome);
  EXPECT_TRUE(anyContains(plan.notices, "may not enter the current directory"));
  policy.filesystem.workspace.path = "/home/someone/project";  // a named one fails at the launch, with the reason
  EXPECT_TRUE(planned(policy, host).workspace_shown);
}

}  // namespace
}  // namespace caisson::plan
