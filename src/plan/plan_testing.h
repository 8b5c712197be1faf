// For tests only: a fictional host, and helpers to inspect a plan.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "policy/profiles/profiles.h"

namespace caisson::plan::testing {

/// A merged-/usr machine with a new kernel; the current directory is a project below the home directory.
inline HostFacts someHost() {
  HostFacts host;
  host.kernel_major = 6;
  host.kernel_minor = 12;
  host.landlock_abi = 7;
  host.uid = 1234;
  host.gid = 1235;
  host.homes = {"/home/someone"};
  host.payload_id = 0x70000007;
  host.current_directory.path = "/home/someone/project";
  host.workspace = {.requested = ".", .path = "/home/someone/project", .directory = true, .uid = 1234, .gid = 1235};
  host.system_directories = {{"/usr", ""}, {"/bin", "usr/bin"}, {"/lib", "usr/lib"}, {"/sbin", "usr/sbin"}};
  host.etc_links = {{"/etc/localtime", "/usr/share/zoneinfo/UTC"}};
  host.tmpfs_user_xattrs = true;
  return host;
}

inline HostFacts hostWithWorkspace(const std::string& path) {
  HostFacts host = someHost();
  host.workspace.path = path;
  return host;
}

inline HostPath directory(const std::string& path) { return {.requested = path, .path = path, .directory = true}; }
inline HostPath file(const std::string& path) { return {.requested = path, .path = path, .regular_file = true}; }

inline policy::Policy profile(std::string_view name = "bash") { return *policy::builtin(name); }

inline policy::Policy withWorkspace(policy::WorkspaceMode mode, policy::Level level = policy::Level::full) {
  policy::Policy policy = profile();
  policy.isolation.level = level;
  policy.filesystem.workspace.mode = mode;
  return policy;
}

/// The plan for `true`, or for a command that the policy's rules allow; fails the test if there is none.
inline Plan planned(const policy::Policy& policy, const HostFacts& host = someHost()) {
  using Words = std::vector<std::string>;
  const Words words = policy.commands.allowed_patterns ? Words{"cargo", "--version"} : Words{"true"};
  auto plan = build(policy, host, {words, false});
  EXPECT_TRUE(plan) << plan.error().message();
  return plan ? *plan : Plan{};
}

/// The error instead of a plan; fails the test if there is a plan.
inline std::string refusal(const policy::Policy& policy, const HostFacts& host = someHost()) {
  const auto plan = build(policy, host, {{"true"}, false});
  EXPECT_FALSE(plan) << "a plan was made, a refusal expected";
  return plan ? std::string() : plan.error().message();
}

inline std::string targetOf(const Step& step) {
  return std::visit(
      [](const auto& one) -> std::string {
        if constexpr (requires { one.target; }) {
          return one.target;
        } else {
          return "";
        }
      },
      step);
}

/// The index of the first step of this kind for `target`, or -1.
template <class Kind>
int positionOf(const Plan& plan, const std::string& target) {
  for (std::size_t at = 0; at < plan.steps.size(); ++at) {
    if (std::holds_alternative<Kind>(plan.steps[at]) && targetOf(plan.steps[at]) == target) return static_cast<int>(at);
  }
  return -1;
}

template <class Kind>
const Kind* stepAt(const Plan& plan, const std::string& target) {
  const int at = positionOf<Kind>(plan, target);
  return at < 0 ? nullptr : std::get_if<Kind>(&plan.steps[static_cast<std::size_t>(at)]);
}

inline bool anyContains(const std::vector<std::string>& texts, std::string_view part) {
  return std::any_of(texts.begin(), texts.end(), [&](const std::string& text) { return text.find(part) != text.npos; });
}

inline const std::uint64_t* limitCalled(const Plan& plan, std::string_view name) {
  for (const ResourceLimit& limit : plan.rlimits) {
    if (limit.name == name) return &limit.value;
  }
  return nullptr;
}

}  // namespace caisson::plan::testing
