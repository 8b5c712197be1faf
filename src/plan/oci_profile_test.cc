#include "plan/oci_profile.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "plan/syscall_filter_testing.h"
#include "support/conforms.h"

namespace caisson::plan {
namespace {

constexpr OciTarget kTarget{6, 12, false};
constexpr std::string_view kStart = R"({"names": ["execve", "exit_group", "write"], "action": "SCMP_ACT_ALLOW"})";

std::string profileOf(const std::string& entries, const std::string& unlisted = R"("SCMP_ACT_ERRNO")") {
  return R"({"defaultAction": )" + unlisted + R"(, "syscalls": [)" + std::string(kStart) +
         (entries.empty() ? "" : ", ") + entries + "]}";
}

class OciProfile : public OnEachArchitecture {
 protected:
  /// The built-in filter, narrowed by `text`, as a program.
  static Result<Filter> narrowed(const std::string& text, const OciTarget& target = kTarget) {
    auto filter = filterForFull(Policy{}, {}, architecture());
    if (!filter) return fail(filter.error());
    if (auto applied = applyOciProfile(text, "p.json", target, *filter); !applied) return fail(applied.error());
    return compile(*filter);
  }
  static std::uint32_t valueOf(const Filter& program, std::string_view name, std::uint64_t first = 0,
                               std::uint64_t second = 0, std::uint64_t third = 0) {
    return evaluateNumber(program, syscallNumber(name, architecture()).value_or(-1), {first, second, third, 0, 0, 0});
  }
};
INSTANTIATE_TEST_SUITE_P(, OciProfile, ::testing::ValuesIn(kArchitectures), nameOfArchitecture);

TEST_P(OciProfile, RemovesCallsItDoesNotAllow) {
  CONFORMS("R-LEVEL-16");
  const auto program =
      narrowed(profileOf(R"({"names": ["read", "mount", "no_such_call"], "action": "SCMP_ACT_ALLOW"})"));
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(valueOf(*program, "read"), SECCOMP_RET_ALLOW);
  EXPECT_EQ(valueOf(*program, "write"), SECCOMP_RET_ALLOW);
  EXPECT_EQ(valueOf(*program, "getcwd"), SECCOMP_RET_USER_NOTIF | EPERM);
  EXPECT_EQ(valueOf(*program, "clone", 0x10000000), SECCOMP_RET_USER_NOTIF | EPERM);
  EXPECT_EQ(valueOf(*program, "mount"), SECCOMP_RET_USER_NOTIF | EPERM) << "a forbidden call stays forbidden";
}

TEST_P(OciProfile, ThatAllowsEverythingChangesNothing) {
  CONFORMS("R-LEVEL-16");
  const auto program = narrowed(R"({"defaultAction": "SCMP_ACT_ALLOW"})");
  const auto own = compile(*filterForFull(policy::Policy{}, {}, architecture()));
  ASSERT_TRUE(program) << program.error().message();
  for (int number = 0; number < 480; ++number) {
    for (const std::uint64_t value : {0ULL, 1ULL, 2ULL, 0x10000000ULL, 0x5412ULL}) {
      const std::uint64_t arguments[6] = {value, value, 0, 0, 0, 0};
      EXPECT_EQ(evaluateNumber(*program, number, arguments), evaluateNumber(*own, number, arguments))
          << number << " " << value;
    }
  }
}

TEST_P(OciProfile, ComparesArguments) {
  struct Case {
    std::string op;
    std::uint64_t value, second;
    std::vector<std::uint64_t> yes, no;
  };
  constexpr std::uint64_t kHigh = 1ULL << 32;
  for (const Case& one : std::vector<Case>{
           {"EQ", 7, 0, {7}, {6, 8, 7 + kHigh}},
           {"NE", 7, 0, {6, 8}, {7, 7 + kHigh}},
           {"LT", 7, 0, {0, 6}, {7, 8, kHigh}},
           {"LE", 7, 0, {0, 7}, {8, kHigh}},
           {"GT", 7, 0, {8, kHigh, kHigh + 1}, {0, 7}},
           {"GE", 7, 0, {7, 8, kHigh}, {0, 6}},
           {"GE", kHigh + 5, 0, {kHigh + 5, 2 * kHigh}, {5, kHigh + 4, kHigh - 1}},
           {"MASKED_EQ", 0xf0, 0x10, {0x10, 0x1f, 0x110}, {0, 0x20, 0x30}},
       }) {
    const auto program =
        narrowed(profileOf(R"({"names": ["dup"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": )" +
                           std::to_string(one.value) + R"(, "valueTwo": )" + std::to_string(one.second) +
                           R"(, "op": "SCMP_CMP_)" + one.op + R"("}]})"));
    ASSERT_TRUE(program) << program.error().message();
    for (const std::uint64_t value : one.yes) EXPECT_EQ(valueOf(*program, "dup", value), SECCOMP_RET_ALLOW) << one.op;
    for (const std::uint64_t value : one.no) {
      EXPECT_EQ(valueOf(*program, "dup", value), SECCOMP_RET_USER_NOTIF | EPERM) << one.op << " " << value;
    }
  }
}

TEST_P(OciProfile, NarrowsCallsThatArePartlyAllowed) {
  const auto program = narrowed(profileOf(
      R"({"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 2, "op": "SCMP_CMP_NE"}]})"));
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(valueOf(*program, "socket", AF_INET6, SOCK_STREAM), SECCOMP_RET_ALLOW);
  EXPECT_EQ(valueOf(*program, "socket", AF_INET, SOCK_STREAM), SECCOMP_RET_USER_NOTIF | EPERM);
  EXPECT_EQ(valueOf(*program, "socket", AF_INET6, SOCK_RAW), SECCOMP_RET_USER_NOTIF | EPERM) << "denied by the filter";
  EXPECT_EQ(valueOf(*program, "socket", AF_VSOCK, SOCK_STREAM), SECCOMP_RET_USER_NOTIF | EAFNOSUPPORT);
}

TEST_P(OciProfile, DeniesByEntryWithItsAction) {
  const auto program = narrowed(profileOf(
      R"({"names": ["getcwd"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}, {"names": ["chdir"], "action": "SCMP_ACT_KILL"},
         {"names": ["dup"], "action": "SCMP_ACT_ERRNO", "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]})",
      R"("SCMP_ACT_ALLOW")"));
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(valueOf(*program, "getcwd"), SECCOMP_RET_USER_NOTIF | ENOSYS);
  EXPECT_EQ(valueOf(*program, "chdir"), SECCOMP_RET_KILL_PROCESS);
  EXPECT_EQ(valueOf(*program, "dup", 2), SECCOMP_RET_ALLOW);
  EXPECT_EQ(valueOf(*program, "dup", (1ULL << 32) | 1), SECCOMP_RET_USER_NOTIF | EPERM) << "the kernel sees a 1";
}

TEST_P(OciProfile, EntriesDependOnHostAndCapabilities) {
  const std::string other = architecture() == Architecture::x86_64 ? "arm64" : "amd64";
  const std::string native = architecture() == Architecture::x86_64 ? "amd64" : "arm64";
  const auto allowed = [&](const std::string& condition) {
    const auto program = narrowed(profileOf(R"({"names": ["getcwd"], "action": "SCMP_ACT_ALLOW", )" + condition + "}"));
    return program && valueOf(*program, "getcwd") == SECCOMP_RET_ALLOW;
  };
  EXPECT_TRUE(allowed(R"("includes": {"arches": [")" + native + R"("]})"));
  EXPECT_FALSE(allowed(R"("includes": {"arches": [")" + other + R"("]})"));
  EXPECT_FALSE(allowed(R"("includes": {"caps": ["CAP_SYS_ADMIN"]})"));
  EXPECT_TRUE(allowed(R"("excludes": {"caps": ["CAP_SYS_ADMIN"]})"));
  EXPECT_TRUE(allowed(R"("includes": {"minKernel": "4.8"})"));
  EXPECT_FALSE(allowed(R"("includes": {"minKernel": "6.13"})"));
  EXPECT_FALSE(allowed(R"("excludes": {"arches": [")" + native + R"("]})"));
}

TEST_P(OciProfile, WhatCannotBeEnforcedIsRefused) {
  for (const auto& [text, word] : std::vector<std::pair<std::string, std::string>>{
           {"{", "JSON"},
           {"{}", "no defaultAction"},
           {R"({"defaultAction": "SCMP_ACT_TRACE"})", "SCMP_ACT_TRACE"},
           {R"({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 0})", "errno 0"},
           {R"({"defaultAction": "SCMP_ACT_ALLOW", "denied": []})", "denied"},
           {R"({"defaultAction": "SCMP_ACT_ERRNO", "syscalls": []})", "denies"},
           {profileOf(R"({"names": ["read"]})"), "no action"},
           {profileOf(R"({"names": [], "action": "SCMP_ACT_ALLOW"})"), "names no call"},
           {profileOf(R"({"names": ["read"], "action": "SCMP_ACT_ALLOW", "unless": 1})"), "unless"},
           {profileOf(
                R"({"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 6, "op": "SCMP_CMP_EQ"}]})"),
            "index"},
           {profileOf(R"({"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "op": "LIKE"}]})"),
            "LIKE"},
           {profileOf(R"({"names": ["write"], "action": "SCMP_ACT_ERRNO"})"), "denies write"}}) {
    const auto program = narrowed(text);
    ASSERT_FALSE(program) << text;
    EXPECT_NE(program.error().message().find(word), std::string::npos) << program.error().message();
  }
}

}  // namespace
}  // namespace caisson::plan
