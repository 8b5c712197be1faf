#include "plan/runtime.h"

#include <gtest/gtest.h>

#include "plan/build_sandbox.h"
#include "plan/plan_testing.h"

namespace caisson::plan {
namespace {

using namespace testing;
using policy::Runtime;

HostFacts hostWithRuntime() {
  HostFacts host = someHost();
  host.runtime.path = "/usr/bin/runtime";
  host.runtime.proc_entries = {"cpuinfo", "kallsyms", "self", "sys"};
  return host;
}

policy::Policy withRuntime(Runtime runtime, bool accepted = true) {
  policy::Policy policy = profile();
  policy.isolation.runtime = runtime;
  if (accepted) policy.isolation.may_be_missing.push_back(policy::OptionalLayer::runtime);
  return policy;
}

TEST(RuntimePlan, IsThePlanOfCaissonWithNamedDifferences) {
  const Plan own = planned(profile(), hostWithRuntime());
  EXPECT_FALSE(own.runtime);
  for (const Runtime runtime : {Runtime::runc, Runtime::crun}) {
    const Plan plan = planned(withRuntime(runtime), hostWithRuntime());
    ASSERT_TRUE(plan.runtime);
    EXPECT_EQ(plan.runtime->path, "/usr/bin/runtime");
    EXPECT_EQ(plan.steps.size(), own.steps.size());
    EXPECT_EQ(plan.landlock.rules.size(), own.landlock.rules.size());
    EXPECT_EQ(plan.builtin_syscalls, own.builtin_syscalls);
    EXPECT_EQ(plan.identity.inside_uid, 0U);
    EXPECT_TRUE(plan.drop_capabilities && plan.no_new_privileges && plan.self_test);
    EXPECT_TRUE(anyContains(plan.warnings, "uid 0")) << "named";
    EXPECT_TRUE(anyContains(plan.warnings, "not reported")) << "named";
    for (const char* layer : {"runtime", "user", "proc", "seccomp_notify"}) EXPECT_TRUE(plan.layers.contains(layer));
  }
}

TEST(RuntimePlan, EntriesOfProcThatAreNotShownAreMasked) {
  const Plan plan = planned(withRuntime(Runtime::runc), hostWithRuntime());
  const std::vector<std::string>& masked = plan.runtime->masked_proc;
  const auto has = [&](std::string_view path) { return std::ranges::find(masked, path) != masked.end(); };
  EXPECT_TRUE(has("/proc/kallsyms") && has("/proc/version") && has("/proc/sys/kernel/random/boot_id"));
  EXPECT_FALSE(has("/proc/cpuinfo") || has("/proc/self") || has("/proc/sys"));
}

TEST(RuntimePlan, CgroupLeavesRoomForTheRuntimeAndCountsNoTasks) {
  HostFacts host = hostWithRuntime();
  host.cgroup = {.kind = "v2", .memory = true, .pids = true, .cpu = true};
  const Plan own = planned(profile(), host);
  const Plan plan = planned(withRuntime(Runtime::crun), host);
  EXPECT_EQ(*plan.cgroup->memory, *own.cgroup->memory + 64 * policy::kMiB);
  EXPECT_FALSE(plan.cgroup->pids);
  ASSERT_NE(limitCalled(plan, "nproc"), nullptr) << "the user namespace limits them";
  EXPECT_TRUE(plan.layers.at("cgroup").find("64 MiB more") != std::string::npos) << plan.layers.at("cgroup");
}

TEST(RuntimePlan, IsRefusedUnlessItsWeaknessIsAccepted) {
  for (const Runtime runtime : {Runtime::runc, Runtime::crun, Runtime::runsc}) {
    const std::string refused = refusal(withRuntime(runtime, false), hostWithRuntime());
    EXPECT_NE(refused.find("is weaker than caisson"), std::string::npos) << refused;
    EXPECT_NE(refused.find("--allow-weaker runtime"), std::string::npos) << refused;
  }
}

TEST(RuntimePlan, MissingRuntimeIsTheHostsFault) {
  HostFacts host = someHost();
  host.runtime = {.path = "", .why_not = "it is not installed", .hint = "install it", .proc_entries = {}};
  const auto plan = build(withRuntime(Runtime::runsc), host, {{"true"}, false});
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().stage, Stage::host) << "a result, setup_failed, and no fallback";
  EXPECT_EQ(plan.error().reason, "it is not installed");
}

TEST(RuntimePlan, UnsupportedSettingsAreRefused) {
  policy::Policy process = withRuntime(Runtime::runc);
  process.isolation.level = policy::Level::process;
  policy::Policy tier = withRuntime(Runtime::runc);
  tier.isolation.tier = policy::Tier::landlock;
  policy::Policy none = withRuntime(Runtime::runc);
  none.isolation.level = policy::Level::none;
  policy::Policy passed = withRuntime(Runtime::runc);
  passed.process.pass_descriptors = {"9"};
  for (const policy::Policy& policy : {process, tier, none, passed})
    EXPECT_NE(refusal(policy, hostWithRuntime()).find("runc "), std::string::npos);
  EXPECT_TRUE(refuseRuntime(profile(), "a session"));
  const auto session = refuseRuntime(withRuntime(Runtime::crun), "a session");
  ASSERT_FALSE(session);
  EXPECT_NE(session.error().message().find("a session cannot use crun"), std::string::npos);
}

TEST(RuntimePlan, GvisorLacksLayersThatPid1OfCaissonApplies) {
  const Plan plan = planned(withRuntime(Runtime::runsc), hostWithRuntime());
  EXPECT_EQ(plan.landlock.abi, 0);
  EXPECT_FALSE(plan.self_test);
  for (const char* layer : {"landlock", "self_test", "seccomp_notify", "secret_watch"})
    EXPECT_TRUE(plan.layers.at(layer).starts_with("missing")) << layer;
  EXPECT_TRUE(anyContains(plan.warnings, "no Landlock"));
}

TEST(RuntimePlan, GvisorRefusesWhatItCannotEnforce) {
  const auto refused = [](auto change) {
    policy::Policy policy = withRuntime(Runtime::runsc);
    change(policy);
    EXPECT_NE(refusal(policy, hostWithRuntime()).find("runsc "), std::string::npos);
  };
  refused([](policy::Policy& p) { p.network.mode = policy::NetworkMode::proxy; });
  refused([](policy::Policy& p) { p.network.published_ports = {"8080"}; });
  refused([](policy::Policy& p) { p.network.host_ports = {"5432"}; });
  refused([](policy::Policy& p) { p.process.allow_exec = false; });
  refused([](policy::Policy& p) { p.process.allow_fork = false; });
  refused([](policy::Policy& p) { p.process.blocked_executables = {"nc"}; });
  refused([](policy::Policy& p) { p.resources.threads = 4; });
  refused([](policy::Policy& p) { p.audit.processes = true; });
  refused([](policy::Policy& p) { p.filesystem.tmpfs[0].access = policy::TmpfsAccess::ro; });
  refused([](policy::Policy& p) { p.isolation.apparmor_profile = "x"; });
  const auto learning = build(withRuntime(Runtime::runsc), hostWithRuntime(), {{"true"}, false, true});
  EXPECT_FALSE(learning);
}

}  // namespace
}  // namespace caisson::plan
