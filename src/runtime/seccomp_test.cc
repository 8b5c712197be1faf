#include "runtime/seccomp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/never_allowed_calls.h"
#include "base/syscall_names.h"
#include "plan/call_siblings.h"
#include "plan/syscalls.h"
#include "policy/profiles/profiles.h"

namespace caisson::runtime {
namespace {

using nlohmann::json;

json profileOf(const policy::Policy& policy, ArgumentRules arguments, Architecture architecture = kNative) {
  const auto filter = plan::filterForFull(policy, {}, architecture);
  if (!filter) return json();
  JsonWriter writer;
  writeSeccomp(writer, *filter, arguments);
  return json::parse(writer.text());
}

std::set<std::string> allowedBy(const json& profile) {
  std::set<std::string> names;
  for (const json& rule : profile["syscalls"]) {
    if (rule["action"] == "SCMP_ACT_ALLOW") names.insert(rule["names"].begin(), rule["names"].end());
  }
  return names;
}

TEST(OciSeccomp, AllowsByNameWhatTheFilterAllows) {
  const json profile = profileOf(*policy::builtin("bash"), ArgumentRules::by_init);
  EXPECT_EQ(profile["defaultAction"], "SCMP_ACT_ERRNO");
  EXPECT_EQ(profile["defaultErrnoRet"], ENOSYS);
  EXPECT_EQ(profile["architectures"].size(), 1U) << "no foreign architecture";
  const std::set<std::string> allowed = allowedBy(profile);
  for (const std::string_view name : plan::allowedSyscalls()) {
    EXPECT_TRUE(!syscallNumber(name) || allowed.contains(std::string(name))) << name;
  }
  for (const std::string& name : allowed) EXPECT_FALSE(isNeverAllowed(name)) << name;
  for (const json& rule : profile["syscalls"]) EXPECT_FALSE(rule.contains("args")) << "pid 1 has them: " << rule;
}

TEST(OciSeccomp, ForbiddenCallsAreDeniedWithTheirErrno) {
  const json profile = profileOf(*policy::builtin("bash"), ArgumentRules::by_init);
  std::set<std::string> denied;
  for (const json& rule : profile["syscalls"]) {
    if (rule["action"] == "SCMP_ACT_ERRNO" && rule["errnoRet"] == EPERM)
      denied.insert(rule["names"].begin(), rule["names"].end());
  }
  for (const char* name : {"mount", "unshare", "setns", "ptrace", "bpf", "keyctl", "open_by_handle_at", "pivot_root"})
    EXPECT_TRUE(denied.contains(name)) << name;
}

TEST(OciSeccomp, ListOfAPolicyNarrowsTheProfile) {
  policy::Policy policy = *policy::builtin("bash");
  policy.syscalls.mode = policy::SyscallMode::denylist;
  policy.syscalls.names = {"inotify_init1", "getrandom"};
  const std::set<std::string> allowed = allowedBy(profileOf(policy, ArgumentRules::by_init));
  EXPECT_FALSE(allowed.contains("inotify_init1"));
  EXPECT_TRUE(allowed.contains("getrandom")) << "runtimes need it until the program's own filter denies it";
}

/// Calls that the C library makes for one function, on either architecture.
TEST(OciSeccomp, AllowsSiblingsOfSetupCalls) {
  policy::Policy policy = *policy::builtin("bash");
  policy.syscalls.names = {"read", "write", "exit_group"};
  for (const Architecture architecture : kArchitectures) {
    const std::set<std::string> allowed = allowedBy(profileOf(policy, ArgumentRules::by_init, architecture));
    EXPECT_EQ(allowed.contains("dup2"), architecture == Architecture::x86_64);
    for (const auto& group : plan::kSiblings) {
      const auto listed = [&](std::string_view name) { return allowed.contains(std::string(name)); };
      if (std::ranges::none_of(group, listed)) continue;
      for (const std::string_view name : group) {
        const bool exists = syscallNumber(name, architecture) && name != "clone3";  // never allowed: ENOSYS
        EXPECT_TRUE(!exists || listed(name)) << name << " on " << architectureName(architecture);
      }
    }
  }
}

/// Whether the profile's conditions hold for these arguments, as libseccomp defines them.
bool profileAllows(const json& profile, const std::string& name, const std::uint64_t (&arguments)[6]) {
  for (const json& rule : profile["syscalls"]) {
    if (rule["action"] != "SCMP_ACT_ALLOW" ||
        std::find(rule["names"].begin(), rule["names"].end(), name) == rule["names"].end())
      continue;
    bool holds = true;
    std::set<int> seen;
    for (const json& test : rule.value("args", json::array())) {
      EXPECT_EQ(test["op"], "SCMP_CMP_MASKED_EQ");
      EXPECT_TRUE(seen.insert(test["index"].get<int>()).second) << "runtimes make alternatives of two: " << rule;
      const std::uint64_t value = arguments[test["index"].get<std::size_t>()];
      holds = holds && (value & test["value"].get<std::uint64_t>()) == test["valueTwo"].get<std::uint64_t>();
    }
    if (holds) return true;
  }
  return false;
}

TEST(OciSeccomp, ArgumentRulesNeverDenyWhatTheFilterAllows) {
  const auto filter = plan::filterForFull(*policy::builtin("bash"), {});
  ASSERT_TRUE(filter);
  const auto program = plan::compile(*filter);
  ASSERT_TRUE(program);
  const json profile = profileOf(*policy::builtin("bash"), ArgumentRules::in_profile);
  constexpr std::uint64_t kValues[] = {0, 1, 2, 3, 7, 16, 17, 40, 0x5401, 0x5412, 0x10000000, 0x10000, 0x20000, 04755};
  for (const plan::SyscallRule& rule : filter->rules) {
    if (rule.branches.empty()) continue;
    const std::string name(syscallName(rule.number));
    for (const std::uint64_t first : kValues) {
      for (const std::uint64_t second : kValues) {
        const std::uint64_t arguments[6] = {first, second, second, first, 0, 0};
        constexpr std::uint32_t kAllowed = 0x7fff0000;
        if (plan::evaluate(*program, plan::nativeArchitecture(), rule.number, arguments) != kAllowed) continue;
        EXPECT_TRUE(profileAllows(profile, name, arguments)) << name << " " << first << " " << second;
      }
    }
  }
  const std::uint64_t new_namespace[6] = {0x10000000, 0, 0, 0, 0, 0};
  EXPECT_FALSE(profileAllows(profile, "clone", new_namespace));
}

}  // namespace
}  // namespace caisson::runtime
