#include "runtime/outer_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/plan_testing.h"
#include "runtime/config.h"

namespace caisson::runtime {
namespace {

using namespace plan::testing;
using nlohmann::json;
using policy::Runtime;

plan::Plan planFor(Runtime runtime, bool image = false) {
  plan::HostFacts host = someHost();
  host.runtime.path = "/usr/bin/runtime";
  host.runtime.proc_entries = {"cpuinfo", "kallsyms"};
  policy::Policy policy = profile();
  policy.isolation.runtime = runtime;
  policy.isolation.may_be_missing.push_back(policy::OptionalLayer::runtime);
  if (image) {
    policy.filesystem.root = "/srv/debian";
    host.root.layers = {"/srv/debian"};
    host.root.top_level = {{"bin", "usr/bin"}, {"usr", ""}};
  }
  return planned(policy, host);
}

constexpr std::string_view kProgram = "the program";

plan::Plan outerFor(const plan::Plan& plan) { return outerPlan(plan, {0x3000000000, 8192, std::string(kProgram)}); }

json configIn(const plan::Plan& outer) {
  const auto* file = stepAt<plan::MakeFile>(outer, "/bundle/config.json");
  return file == nullptr ? json() : json::parse(file->content);
}

TEST(OuterPlan, BuildsTheTreeOfThePlanBeforeMovingIt) {
  for (const bool image : {false, true}) {
    const plan::Plan plan = planFor(Runtime::runc, image);
    const plan::Plan outer = outerFor(plan);
    const int moved = positionOf<plan::MoveRoot>(outer, "/bundle/rootfs");
    ASSERT_GT(moved, 0);
    for (const plan::Step& step : plan.steps) {
      const std::string target = targetOf(step);
      if (target.empty() || target.starts_with("/proc")) continue;
      const auto same = [&](const plan::Step& other) {
        return other.index() == step.index() && targetOf(other) == target;
      };
      const auto found = std::ranges::find_if(outer.steps, same);
      ASSERT_NE(found, outer.steps.end()) << target;
      EXPECT_LT(found - outer.steps.begin(), moved) << target;
    }
    EXPECT_GT(positionOf<plan::MountProc>(outer, "/proc"), moved) << "the runtime's own";
    EXPECT_LT(positionOf<plan::MakeFile>(outer, "/.caisson-init"), moved);
    EXPECT_GE(positionOf<plan::MakeFile>(outer, "/.caisson-init"), 0);
  }
}

TEST(OuterPlan, RuntimeHasOneIdItsLibrariesAndTheSandboxesNetwork) {
  const plan::Plan plan = planFor(Runtime::crun);
  const plan::Plan outer = outerFor(plan);
  EXPECT_EQ(outer.identity.inside_uid, 0U);
  EXPECT_EQ(outer.identity.outside_uid, plan.identity.outside_uid);
  EXPECT_TRUE(outer.namespaces.user && outer.namespaces.network && outer.namespaces.pid && outer.namespaces.mount);
  EXPECT_TRUE(outer.no_new_privileges);
  const auto* usr = stepAt<plan::Bind>(outer, "/usr");
  ASSERT_NE(usr, nullptr);
  EXPECT_FALSE(usr->writable);
  EXPECT_EQ(stepAt<plan::Bind>(outer, "/usr/bin/runtime"), nullptr) << "in /usr already";
  plan::Plan elsewhere = plan;
  elsewhere.runtime->path = "/opt/crun";
  EXPECT_NE(stepAt<plan::Bind>(outerFor(elsewhere), "/opt/crun"), nullptr);
}

TEST(OuterPlan, CommandLinesOfTheRuntimes) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(runtimeCommand({.kind = Runtime::runc, .path = "/usr/sbin/runc"}),
            (Words{"/usr/sbin/runc", "--root", "/bundle/state", "run", "--bundle", "/bundle", "--preserve-fds", "5",
                   "caisson"}));
  EXPECT_EQ(runtimeCommand({.kind = Runtime::crun, .path = "/usr/bin/crun"}),
            (Words{"/usr/bin/crun", "--cgroup-manager=disabled", "--root", "/bundle/state", "run", "--bundle",
                   "/bundle", "--preserve-fds", "5", "caisson"}));
  // Not run in any test: gVisor is in no Debian release.
  EXPECT_EQ(runtimeCommand({.kind = Runtime::runsc, .path = "/usr/local/bin/runsc"}),
            (Words{"/usr/local/bin/runsc", "--rootless", "--network=none", "--ignore-cgroups", "--oci-seccomp",
                   "--host-uds=none", "--overlay2=none", "--root", "/bundle/state", "run", "--bundle", "/bundle",
                   "caisson"}));
}

TEST(OciConfig, HasTheLayersOfThePlan) {
  const plan::Plan plan = planFor(Runtime::runc);
  const json config = configIn(outerFor(plan));
  EXPECT_EQ(config["process"]["args"], (json{"/.caisson-init", "206158430208", "8192"}));
  EXPECT_EQ(config["process"]["noNewPrivileges"], true);
  EXPECT_EQ(config["process"]["user"]["uid"], 0);
  for (const char* set : {"bounding", "effective", "inheritable", "permitted", "ambient"})
    EXPECT_TRUE(config["process"]["capabilities"][set].empty()) << set;
  EXPECT_EQ(config["root"], (json{{"path", "rootfs"}, {"readonly", true}}));
  EXPECT_EQ(config["hostname"], "sandbox");
  std::vector<std::string> namespaces;
  for (const json& one : config["linux"]["namespaces"]) namespaces.push_back(one["type"]);
  EXPECT_EQ(namespaces, (std::vector<std::string>{"user", "pid", "mount", "ipc", "uts"}));
  EXPECT_EQ(config["linux"]["uidMappings"], (json{{{"containerID", 0}, {"hostID", 0}, {"size", 1}}}));
  EXPECT_TRUE(config["linux"]["maskedPaths"].dump().find("/proc/kallsyms") != std::string::npos);
  EXPECT_EQ(config["linux"]["readonlyPaths"], (json{"/proc/sys"}));
  bool has_stack = false;
  for (const json& limit : config["process"]["rlimits"]) {
    EXPECT_NE(limit["type"], "RLIMIT_NPROC") << "pid 1 sets it";
    has_stack = has_stack || limit["type"] == "RLIMIT_STACK";
  }
  EXPECT_TRUE(has_stack);
}

TEST(OciConfig, CrunGetsTheMountsBelowDevOneByOne) {
  const auto destinations = [](Runtime runtime) {
    std::vector<std::string> all;
    const json config = configIn(outerFor(planFor(runtime)));
    for (const json& mount : config["mounts"]) all.push_back(mount["destination"]);
    return all;
  };
  const auto runc = destinations(Runtime::runc), crun = destinations(Runtime::crun);
  EXPECT_EQ(std::ranges::count(runc, "/dev/null"), 0);
  EXPECT_EQ(std::ranges::count(crun, "/dev/null"), 1);
  EXPECT_EQ(std::ranges::count(crun, "/dev/pts"), 1);
  for (const auto& all : {runc, crun}) EXPECT_EQ(std::ranges::count(all, "/proc/meminfo"), 1);
}

/// What gVisor would get. It was never run with it.
TEST(OciConfig, OfGvisorStartsTheProgramItself) {
  const plan::Plan plan = planFor(Runtime::runsc);
  const plan::Plan outer = outerFor(plan);
  const json config = configIn(outer);
  EXPECT_EQ(config["process"]["args"], (json{"true"}));
  EXPECT_EQ(config["process"]["cwd"], plan.working_directory);
  EXPECT_EQ(config["process"]["env"].size(), plan.environment.size());
  EXPECT_EQ(positionOf<plan::MakeFile>(outer, "/.caisson-init"), -1);
  EXPECT_EQ(positionOf<plan::MakeFile>(outer, "/bundle/init"), -1);
  bool conditional = false;
  for (const json& rule : config["linux"]["seccomp"]["syscalls"]) conditional = conditional || rule.contains("args");
  EXPECT_TRUE(conditional) << "argument rules that libseccomp can express are in the profile";
}

}  // namespace
}  // namespace caisson::runtime
