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

TEST(Plan, IsTheSameEveryTime) {
  for (const std::string_view name : policy::builtinNames()) {
    EXPECT_EQ(describe(planned(profile(name))), describe(planned(profile(name)))) << name;
    EXPECT_EQ(describeJson(planned(profile(name))), describeJson(planned(profile(name)))) << name;
  }
}

TEST(Plan, OfBashHasEveryLayer) {
  const Plan plan = planned(profile("bash"));
  EXPECT_TRUE(plan.own_root);
  EXPECT_TRUE(plan.loopback);
  EXPECT_TRUE(plan.drop_capabilities);
  EXPECT_TRUE(plan.no_new_privileges);
  EXPECT_TRUE(plan.self_test);
  EXPECT_TRUE(plan.builtin_syscalls);
  EXPECT_FALSE(plan.single_exec);
  EXPECT_FALSE(plan.require_time_namespace);
  EXPECT_TRUE(plan.workspace_overlay);
  EXPECT_EQ(plan.working_directory, "/workspace");
  EXPECT_EQ(plan.hostname, "sandbox");
  EXPECT_EQ(plan.landlock.abi, 7);
  EXPECT_TRUE(plan.notices.empty());
  const Namespaces& n = plan.namespaces;
  EXPECT_TRUE(n.user && n.pid && n.mount && n.network && n.ipc && n.uts && n.cgroup && n.time);
  const Hardening& h = plan.hardening;
  EXPECT_TRUE(h.hide_init && h.close_descriptors && h.new_session && h.new_keyring && h.hide_processes &&
              h.guard_links);
  for (const char* layer :
       {"level", "namespaces", "time_namespace", "landlock", "landlock_scoping", "seccomp", "limits", "cgroup",
        "no_new_privs", "capabilities", "self_test", "workspace", "disk_quota", "identity"}) {
    EXPECT_TRUE(plan.layers.contains(layer)) << layer;
  }
}

TEST(Plan, OfBashMatchesTheExpectedText) {
  // The tree as `caisson plan` prints it: a change here changes what every payload sees.
  const std::string text = describe(planned(profile("bash")));
  for (const char* line :
       {"tmpfs      / (4096 KiB, 2048 inodes, noexec)", "read-only  /usr\n", "link       /bin -> usr/bin",
        "directory  /root (0000)", "link       /etc/localtime -> /usr/share/zoneinfo/UTC",
        "proc       /proc (own processes only; of the rest filesystems mounts net",
        "values     /proc/meminfo of the sandbox", "devpts     /dev/pts (own instance, at most 64 ptys)",
        "writable   /dev/null, noexec, device", "overlay    /workspace over /home/someone/project (at most 1048576 KiB",
        "read-only  / from here on", "uid 1000 and gid 1000 inside are 1234 and 1235 on the host"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\nis not in\n" << text;
  }
}

TEST(Plan, ShowsNothingOfTheHostButSystemPathsAndTheWorkspace) {
  CONFORMS("R-LEVEL-3", "R-FILES-10");
  for (const std::string_view name : policy::builtinNames()) {
    if (profile(name).isolation.level != Level::full) continue;  // level process shows the host's root, read-only
    for (const Step& step : planned(profile(name)).steps) {
      const auto* bind = std::get_if<Bind>(&step);
      if (bind == nullptr || bind->inside) continue;
      const std::string& source = bind->source;
      EXPECT_TRUE(source.starts_with("/usr") || source.starts_with("/etc/") || source.starts_with("/dev/") ||
                  source == "/home/someone/project")
          << source;
      for (const char* secret : {"shadow", "/etc/passwd", "/etc/hostname", "/etc/machine-id", "/etc/resolv.conf"}) {
        EXPECT_EQ(source.find(secret), std::string::npos) << source;
      }
      EXPECT_EQ(bind->devices, source.starts_with("/dev/")) << source;
      if (!bind->devices) {
        EXPECT_FALSE(bind->writable) << source;
      }
    }
  }
}

TEST(Plan, HidesCredentialsInToolchains) {
  HostFacts host = someHost();
  const std::string node = "/home/someone/.nvm/versions/node/v20";
  host.toolchains = {{.manager = "nvm", .programs = node + "/bin", .shown = {node + "/bin", node + "/lib"}}};
  const std::string text = describe(planned(profile("dev"), host));
  const std::size_t shown = text.find(node + "/lib"), masked = text.find(node + "/lib/node_modules/npm/npmrc");
  ASSERT_NE(masked, std::string::npos) << text;
  EXPECT_LT(shown, masked) << "a mask comes after what it hides";
}

TEST(Plan, MountsNothingBelowACache) {
  HostFacts host = someHost();
  ASSERT_TRUE(build(profile("dev"), host, {{"true"}}));
  host.read_only = {directory("/cache/tools")};
  const auto plan = build(profile("dev"), host, {{"true"}});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message().find("other sandboxes change"), std::string::npos) << plan.error().message();
}

TEST(Plan, OfStrictHasNoWorkspaceAndOneExec) {
  CONFORMS("R-POLICY-12");
  const Plan plan = planned(profile("strict"));
  EXPECT_TRUE(plan.single_exec);
  EXPECT_FALSE(plan.builtin_syscalls);
  ASSERT_TRUE(plan.syscalls);
  EXPECT_LT(plan.syscalls->allowed(), builtinAllowed());
  EXPECT_FALSE(plan.workspace_overlay);
  EXPECT_EQ(plan.layers.at("workspace"), "none");
  EXPECT_EQ(plan.working_directory, "/") << "it has no home directory either";
  EXPECT_EQ(*limitCalled(plan, "nofile"), 100U);
  EXPECT_EQ(*limitCalled(plan, "cpu"), 5U);
  EXPECT_EQ(*limitCalled(plan, "fsize"), 10 * policy::kMiB);
  EXPECT_EQ(plan.wall_seconds, 30);
  EXPECT_EQ(plan.output_bytes, policy::kMiB);
}

TEST(Plan, OfLevelProcessIsAViewOfTheHostBehindLandlock) {
  CONFORMS("R-LEVEL-5", "R-LIMIT-7");
  const Plan plan = planned(withWorkspace(WorkspaceMode::ro, Level::process));
  EXPECT_TRUE(plan.host_view);
  EXPECT_TRUE(plan.namespaces.user && plan.namespaces.pid && plan.namespaces.mount && plan.namespaces.network);
  EXPECT_FALSE(plan.namespaces.cgroup || plan.namespaces.time);
  EXPECT_TRUE(plan.syscalls);
  EXPECT_EQ(plan.layers.at("seccomp"), "denylist");
  EXPECT_GE(plan.landlock.abi, 1);
  EXPECT_TRUE(plan.no_new_privileges && plan.drop_capabilities && plan.self_test);
  EXPECT_EQ(plan.working_directory, "/home/someone/project");
  EXPECT_EQ(plan.wall_seconds, 60);
}

TEST(Plan, OfLevelNoneRefusesDeniedPaths) {
  CONFORMS("R-FILES-14");
  Policy policy = withWorkspace(WorkspaceMode::none, Level::none);
  policy.filesystem.denied = {"/home/someone/private"};
  EXPECT_NE(refusal(policy).find("/home/someone/private"), std::string::npos);
}

TEST(Plan, OfLevelNoneSaysThatItProtectsNothing) {
  const Plan plan = planned(withWorkspace(WorkspaceMode::none, Level::none));
  EXPECT_TRUE(plan.steps.empty());
  EXPECT_FALSE(plan.syscalls || plan.builtin_syscalls);
  EXPECT_TRUE(anyContains(plan.warnings, "level none"));
  EXPECT_TRUE(plan.layers.at("isolation").starts_with("none"));
  EXPECT_FALSE(plan.layers.contains("landlock"));
}

TEST(Plan, OfTheLandlockTierSaysWhatItDoesNotProtect) {
  Policy policy = withWorkspace(WorkspaceMode::ro);
  policy.isolation.tier = Tier::landlock;
  const Plan plan = planned(policy);
  EXPECT_FALSE(plan.namespaces.user || plan.namespaces.pid || plan.namespaces.mount || plan.namespaces.network);
  for (const Step& step : plan.steps) {
    EXPECT_TRUE(std::get<MountTmpfs>(step).on_disk) << targetOf(step) << ": nothing can be mounted";
  }
  EXPECT_TRUE(plan.syscalls);
  EXPECT_TRUE(anyContains(plan.warnings, "Not protected"));
  EXPECT_EQ(plan.layers.at("namespaces"), "none (landlock tier)");
  EXPECT_EQ(limitCalled(plan, "nproc"), nullptr) << "it would count all processes of the user";
}

Policy ofLandlockTier(WorkspaceMode mode) {
  Policy policy = withWorkspace(mode);
  policy.isolation.tier = Tier::landlock;
  return policy;
}

std::uint64_t rightsOn(const Plan& plan, std::string_view path) {
  for (const LandlockRule& rule : plan.landlock.rules) {
    if (rule.path == path) return rule.access;
  }
  return 0;
}

TEST(Plan, OfTheLandlockTierReplacesAnInheritedOverlayByReading) {
  const Plan plan = planned(ofLandlockTier(WorkspaceMode::overlay));
  EXPECT_TRUE(plan.workspace_shown);
  EXPECT_FALSE(plan.workspace_overlay);
  EXPECT_EQ(plan.layers.at("workspace"), "read-only /home/someone/project");
  EXPECT_TRUE(anyContains(plan.warnings, "the workspace is read-only"));
  EXPECT_EQ(rightsOn(plan, "/home/someone/project") & sys::kFsWriteFile, 0U);
  EXPECT_EQ(rightsOn(planned(ofLandlockTier(WorkspaceMode::rw)), "/home/someone/project") & sys::kFsWriteFile,
            sys::kFsWriteFile);
}

TEST(Plan, OfTheLandlockTierHasPrivateDirectories) {
  const Plan plan = planned(ofLandlockTier(WorkspaceMode::none));
  for (const std::string_view name : {kPrivateHome, kPrivateTmp}) {
    ASSERT_NE(stepAt<MountTmpfs>(plan, std::string(name)), nullptr) << name;
    EXPECT_NE(rightsOn(plan, name) & sys::kFsWriteFile, 0U) << name;
    EXPECT_TRUE(std::ranges::find(plan.attribute_trees, name) != plan.attribute_trees.end()) << name;
    EXPECT_NE(plan.layers.at("disk_quota").find(name), std::string::npos) << name;
  }
  EXPECT_EQ(plan.working_directory, kPrivateHome);
  EXPECT_TRUE(std::ranges::find(plan.environment, "HOME=private HOME") != plan.environment.end());
  EXPECT_TRUE(std::ranges::find(plan.environment, "TMPDIR=private TMPDIR") != plan.environment.end());
  HostFacts host = someHost();
  host.state_disk.why_not = "the disk is full";
  EXPECT_TRUE(anyContains(planned(ofLandlockTier(WorkspaceMode::none), host).warnings, "the disk is full"));
}

TEST(Plan, OfTheLandlockTierOpensProcForReadingOnly) {
  const std::uint64_t rights = rightsOn(planned(ofLandlockTier(WorkspaceMode::none)), "/proc");
  EXPECT_EQ(rights, sys::kFsReadFile | sys::kFsReadDir);
}

TEST(Plan, OfTheLandlockTierRefusesWhatItCannotEnforce) {
  CONFORMS("R-FILES-14");
  Policy policy = withWorkspace(WorkspaceMode::overlay);
  policy.isolation.tier = Tier::landlock;
  policy.typed = {"filesystem.workspace.mode"};
  EXPECT_NE(refusal(policy).find("overlay"), std::string::npos);
  policy = withWorkspace(WorkspaceMode::ro);
  policy.isolation.tier = Tier::landlock;
  policy.filesystem.denied = {"/workspace/x"};
  EXPECT_NE(refusal(policy).find("filesystem.denied"), std::string::npos);
  policy.filesystem.denied.clear();
  HostFacts host = someHost();
  host.landlock_abi = 0;
  EXPECT_NE(refusal(policy, host).find("Landlock"), std::string::npos);
}

TEST(Plan, IsRefusedOnAnOldKernel) {
  for (const auto& [major, minor] : {std::pair{5, 10}, {5, 19}, {6, 0}, {4, 18}}) {
    HostFacts host = someHost();
    host.kernel_major = major;
    host.kernel_minor = minor;
    const std::string why = refusal(profile(), host);
    EXPECT_NE(why.find("caisson doctor"), std::string::npos) << why;
    EXPECT_NE(why.find("6.1"), std::string::npos) << why;
  }
  for (const auto& [major, minor] : {std::pair{6, 1}, {6, 12}, {7, 0}}) {
    HostFacts host = someHost();
    host.kernel_major = major;
    host.kernel_minor = minor;
    planned(profile(), host);
  }
}

TEST(Plan, WithoutACommandIsRefused) { EXPECT_FALSE(build(profile(), someHost(), {})); }

TEST(Plan, RefusesWhatThisBuildCannotEnforceKeyByKey) {
  CONFORMS("R-LIMIT-5");
  const std::pair<const char*, std::function<void(Policy&)>> cases[] = {
      {"filesystem.root", [](Policy& p) { p.filesystem.root = "/srv/image"; }},
      {"process.allowed_executables", [](Policy& p) { p.process.allowed_executables.emplace(); }},
      {"process.blocked_executables", [](Policy& p) { p.process.blocked_executables = {"true"}; }},
      {"resources.io_", [](Policy& p) { p.resources.io_read_bytes_per_second = 1; }},
      {"resources.io_", [](Policy& p) { p.resources.io_write_bytes_per_second = 1; }},
      {"resources.io_", [](Policy& p) { p.resources.io_read_operations_per_second = 1; }},
      {"resources.io_", [](Policy& p) { p.resources.io_write_operations_per_second = 1; }},
      {"commands.allowed_patterns", [](Policy& p) { p.commands.allowed_patterns.emplace(); }},
      {"commands.blocked_patterns[0]", [](Policy& p) { p.commands.blocked_patterns = {"."}; }},
      {"cgroup", [](Policy& p) { p.isolation.may_be_missing = {OptionalLayer::time_namespace}; }},
  };
  for (const auto& [key, change] : cases) {
    for (const Level level : {Level::process, Level::full}) {
      Policy policy = withWorkspace(WorkspaceMode::ro, level);
      change(policy);
      EXPECT_NE(refusal(policy).find(key), std::string::npos) << key;
    }
  }
}

TEST(Plan, LimitsDisksWhereTheHostCan) {
  CONFORMS("R-LIMIT-5");
  Policy policy = withWorkspace(WorkspaceMode::ro);
  policy.resources.io_write_bytes_per_second = 1000;
  HostFacts host = someHost();
  host.cgroup = {.kind = "v2", .memory = true, .pids = true, .cpu = true, .io = true};
  EXPECT_FALSE(build(policy, host, {{"true"}})) << "no disk to limit";
  host.disks = {2049};
  const auto plan = build(policy, host, {{"true"}});
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->cgroup->io_disks, host.disks);
  EXPECT_EQ(plan->cgroup->io_wbps, 1000U);
  EXPECT_FALSE(plan->cgroup->io_rbps);
  EXPECT_NE(plan->layers.at("cgroup").find("disk input and output"), std::string::npos);
}

TEST(Plan, NamesTheQuotaClassOfWritableDirectories) {
  Policy policy = withWorkspace(WorkspaceMode::overlay);
  EXPECT_TRUE(planned(policy).layers.at("disk_quota").starts_with("hard"));
  EXPECT_FALSE(planned(policy).disk);
  policy.filesystem.quota_class = policy::QuotaClass::hard;
  EXPECT_FALSE(planned(policy).disk);

  policy.filesystem.overlay_store = policy::OverlayStore::disk;
  EXPECT_NE(refusal(policy).find("filesystem.quota_class"), std::string::npos);
  policy.filesystem.quota_class = policy::QuotaClass::any;
  policy.filesystem.max_total_size = 4096;
  const Plan plan = planned(policy);
  EXPECT_NE(plan.layers.at("disk_quota").find("watched: /workspace 4096 bytes"), std::string::npos);
  ASSERT_TRUE(plan.disk);
  EXPECT_TRUE(plan.disk->upper);
  EXPECT_EQ(plan.disk->bytes, 4096U);
  const std::uint64_t* file_size = limitCalled(plan, "fsize");
  ASSERT_NE(file_size, nullptr) << "no single file may jump over the limit";
  EXPECT_EQ(*file_size, 4096U);

  policy = withWorkspace(WorkspaceMode::rw);
  ASSERT_TRUE(planned(policy).disk);
  EXPECT_EQ(planned(policy).disk->trees.size(), 1U);
}

TEST(Plan, EnforcesOrRefusesAtEveryLevelWhatAPolicyForbids) {
  // A rule that only `full` implements must not be dropped silently at a weaker level.
  const std::pair<const char*, std::function<void(Policy&)>> cases[] = {
      {"process.allow_fork", [](Policy& p) { p.process.allow_fork = false; }},
      {"process.allow_exec", [](Policy& p) { p.process.allow_exec = false; }},
      {"syscalls.names", [](Policy& p) { p.syscalls.names = {"read", "write", "exit_group"}; }},
  };
  for (const auto& [key, change] : cases) {
    Policy policy = withWorkspace(WorkspaceMode::ro, Level::process);
    const auto before = build(policy, someHost(), {{"true"}, false});
    change(policy);
    const auto plan = build(policy, someHost(), {{"true"}, false});
    if (!plan) continue;  // an error: fine
    EXPECT_FALSE(plan->syscalls->rules == before->syscalls->rules) << key << " changes nothing at level process";
  }
}

std::uint64_t openFiles(const Plan& plan) {
  const auto found = std::ranges::find(plan.rlimits, "nofile", &ResourceLimit::name);
  return found == plan.rlimits.end() ? 0 : found->value;
}

TEST(OpenFiles, LeaveAShareForOtherProgramsOfTheUser) {
  Policy policy = profile();
  policy.resources.open_files = 4096;
  HostFacts host = someHost();
  for (const auto& [hard, expected] : {std::pair{1U << 20U, 4096U}, {5120U, 4096U}, {4096U, 3072U}, {1024U, 512U}}) {
    host.open_files = hard;
    const Plan plan = planned(policy, host);
    EXPECT_EQ(openFiles(plan), expected) << hard;
    EXPECT_EQ(anyContains(plan.warnings, "resources.open_files"), expected < 4096) << hard;
  }
  host.may_map_other_ids = host.may_map_mounts = true;  // the payload shares its user id with no one
  EXPECT_EQ(openFiles(planned(policy, host)), 4096U);
}

TEST(OptionalLayers, MissingOnesAreWarnedAboutWhereAPolicyAllowsIt) {
  CONFORMS("R-LEVEL-9");
  HostFacts host = someHost();
  host.landlock_abi = 5;
  const Plan plan = planned(profile(), host);
  EXPECT_TRUE(plan.layers.at("landlock_scoping").starts_with("missing"));
  EXPECT_TRUE(anyContains(plan.warnings, "scoping"));
  EXPECT_TRUE(plan.layers.at("cgroup").starts_with("missing"));
  EXPECT_TRUE(anyContains(plan.warnings, "cgroup"));
}

TEST(OptionalLayers, AreRequiredWhereAPolicyDoesNot) {
  Policy policy = profile();
  policy.isolation.may_be_missing = {OptionalLayer::cgroup};
  EXPECT_TRUE(planned(policy).require_time_namespace);
  HostFacts host = someHost();
  host.landlock_abi = 5;
  EXPECT_NE(refusal(policy, host).find("scoping"), std::string::npos);
}

TEST(OptionalLayers, WeakerRungsAreInThePlanOnlyWhenNamed) {
  Policy policy = profile();
  const auto procOf = [](const Plan& plan) { return *testing::stepAt<MountProc>(plan, "/proc"); };
  const Plan usual = planned(policy);
  EXPECT_TRUE(usual.may_keep_hostname);
  EXPECT_FALSE(procOf(usual).may_be_subset);
  EXPECT_FALSE(procOf(usual).may_be_bound);
  policy.isolation.may_be_missing = {OptionalLayer::cgroup, OptionalLayer::proc_bound};
  const Plan bound = planned(policy);
  EXPECT_FALSE(bound.may_keep_hostname);
  EXPECT_FALSE(procOf(bound).may_be_subset);
  EXPECT_TRUE(procOf(bound).may_be_bound);
  EXPECT_TRUE(procOf(bound).protect_bound);
  EXPECT_NE(describe(bound).find("if refused: the caller's, read-only"), std::string::npos);
  policy.isolation.may_be_missing = {OptionalLayer::cgroup, OptionalLayer::proc_subset};
  EXPECT_TRUE(procOf(planned(policy)).may_be_subset);
  EXPECT_FALSE(procOf(planned(policy)).may_be_bound);
}

TEST(OptionalLayers, WithoutLandlockOnlyLevelFullIsAvailable) {
  HostFacts host = someHost();
  host.landlock_abi = 0;
  const Plan plan = planned(profile(), host);
  EXPECT_EQ(plan.layers.at("landlock"), "missing");
  EXPECT_TRUE(anyContains(plan.warnings, "Landlock"));
  EXPECT_EQ(plan.landlock.abi, 0);
  EXPECT_NE(refusal(withWorkspace(WorkspaceMode::ro, Level::process), host).find("Landlock"), std::string::npos);
}

TEST(OptionalLayers, ASwitchedOffSelfTestIsAWarning) {
  Policy policy = profile();
  policy.isolation.self_test = false;
  const Plan plan = planned(policy);
  EXPECT_FALSE(plan.self_test);
  EXPECT_TRUE(anyContains(plan.warnings, "self-test"));
  EXPECT_EQ(plan.layers.at("self_test"), "off");
}

TEST(Plan, OfACommandLongerThanThePolicyAllowsIsRefused) {
  Policy policy = profile();
  policy.commands.max_length = 10;
  EXPECT_FALSE(build(policy, someHost(), {{"echo", "more than ten"}, false}));
  EXPECT_TRUE(build(policy, someHost(), {{"echo", "ten"}, false}));
}

TEST(Limits, AreWhatThePolicySays) {
  Policy policy = profile();
  policy.resources.open_files = 77;
  policy.resources.stack = 5 * policy::kMiB;
  policy.process.max_processes = 9;
  policy.resources.cpu_seconds = 2.2;
  policy.filesystem.max_file_size = 4321;
  const Plan plan = planned(policy);
  EXPECT_EQ(*limitCalled(plan, "nofile"), 77U);
  EXPECT_EQ(*limitCalled(plan, "stack"), 5 * policy::kMiB);
  EXPECT_LE(*limitCalled(plan, "core"), 1U) << "no core file";
  EXPECT_EQ(*limitCalled(plan, "nproc"), 10U) << "one more for our own pid 1";
  EXPECT_EQ(*limitCalled(plan, "cpu"), 3U) << "whole seconds, rounded up";
  EXPECT_EQ(*limitCalled(plan, "fsize"), 4321U);
  policy.resources.cpu_seconds = 0.1;
  EXPECT_EQ(*limitCalled(planned(policy), "cpu"), 1U) << "0 would kill at once";
}

TEST(Limits, ThreadsAreCountedApartOnlyIfThePolicyLimitsThem) {
  Policy policy = profile();
  policy.process.max_processes = 9;
  const Plan together = planned(policy);
  EXPECT_EQ(together.max_tasks, 9U);
  policy.resources.threads = 5;
  const Plan apart = planned(policy);
  ASSERT_TRUE(apart.task_limits);
  EXPECT_EQ(apart.task_limits->processes, 9U);
  EXPECT_EQ(apart.task_limits->threads, 5U);
  EXPECT_EQ(apart.max_tasks, 14U) << "the kernel counts both";
  EXPECT_EQ(*limitCalled(apart, "nproc"), 15U);
  EXPECT_FALSE(apart.builtin_syscalls) << "the filter reports forks";
}

TEST(Limits, ForksAreNotReportedForALimitOfProcessesAlone) {
  Policy policy = profile();
  policy.process.max_processes = 2;
  EXPECT_FALSE(planned(policy).task_limits);
  EXPECT_TRUE(planned(policy).builtin_syscalls);
}

TEST(Limits, AreUnsetUnlessConfigured) {
  const Plan plan = planned(profile());
  EXPECT_EQ(limitCalled(plan, "cpu"), nullptr);
  EXPECT_EQ(plan.wall_seconds, 120);
  EXPECT_EQ(plan.output_bytes, 10 * policy::kMiB);
}

TEST(Limits, AnInteractiveRunHasNoTimeOutUnlessOneIsNamed) {
  Policy policy = profile();
  EXPECT_FALSE(build(policy, someHost(), {{"sh"}, true})->wall_seconds);
  policy.resources.wall_seconds = 5;
  EXPECT_EQ(build(policy, someHost(), {{"sh"}, true})->wall_seconds, 5);
}

}  // namespace
}  // namespace caisson::plan
