#include "policy/decode/validate.h"

#include <gtest/gtest.h>

#include <limits>

#include "policy/profiles/profiles.h"
#include "support/conforms.h"

namespace caisson::policy {

namespace {

using Change = void (*)(Policy&);

struct Case {
  const char* name;
  Change change;
  const char* key;     ///< that the error names; nullptr: the policy is good
  const char* reason;  ///< a part of it
};

class Validate : public testing::TestWithParam<Case> {};

}  // namespace

TEST_P(Validate, NamesTheKey) {
  CONFORMS("R-POLICY-2", "R-POLICY-4");
  Policy policy = *builtin("bash");
  GetParam().change(policy);
  const auto result = validate(policy);
  if (GetParam().key == nullptr) {
    EXPECT_TRUE(result) << result.error().message();
    return;
  }
  ASSERT_FALSE(result) << GetParam().name;
  EXPECT_EQ(result.error().object, GetParam().key);
  EXPECT_NE(result.error().reason.find(GetParam().reason), std::string::npos) << result.error().message();
}

INSTANTIATE_TEST_SUITE_P(
    Ceilings, Validate,
    testing::Values(
        Case{"descriptor", [](Policy& p) { p.process.pass_descriptors = {"2"}; }, "process.pass_descriptors[0]",
             "3 to 63"},
        Case{"highDescriptor", [](Policy& p) { p.process.pass_descriptors = {"64"}; }, "process.pass_descriptors[0]",
             "3 to 63"},
        Case{"goodDescriptors", [](Policy& p) { p.process.pass_descriptors = {"3", "63"}; }, nullptr, ""},
        Case{"cpusAt", [](Policy& p) { p.resources.cpus = 2; }, nullptr, ""},
        Case{"cpusAbove", [](Policy& p) { p.resources.cpus = 2.5; }, "resources.cpus", "2.5 is above the ceiling of 2"},
        Case{"memoryAt", [](Policy& p) { p.resources.memory = 2 * kGiB; }, nullptr, ""},
        Case{"memoryAbove", [](Policy& p) { p.resources.memory = 2 * kGiB + 1; }, "resources.memory",
             "ceiling of 2 GiB"},
        Case{"wallAt", [](Policy& p) { p.resources.wall_seconds = 600; }, nullptr, ""},
        Case{"wallAbove", [](Policy& p) { p.resources.wall_seconds = 601; }, "resources.wall_seconds",
             "601 s is above"},
        Case{"processesAt", [](Policy& p) { p.process.max_processes = 500; }, nullptr, ""},
        Case{"processesAbove", [](Policy& p) { p.process.max_processes = 501; }, "process.max_processes",
             "ceiling of 500"},
        Case{"filesAt", [](Policy& p) { p.resources.open_files = 4096; }, nullptr, ""},
        Case{"filesAbove", [](Policy& p) { p.resources.open_files = 4097; }, "resources.open_files", "ceiling of 4096"},
        Case{"outputAt", [](Policy& p) { p.resources.output = kGiB; }, nullptr, ""},
        Case{"outputAbove", [](Policy& p) { p.resources.output = kGiB + 1; }, "resources.output", "ceiling of 1 GiB"},
        Case{"processWall",
             [](Policy& p) {
               p.isolation.level = Level::process;
               p.resources.wall_seconds = 301;
             },
             "resources.wall_seconds", "ceiling of 300 s"},
        Case{"processOutput",
             [](Policy& p) {
               p.isolation.level = Level::process;
               p.resources.output = 11 * kMiB;
             },
             "resources.output", "ceiling of 10 MiB"}),
    [](const auto& each) { return std::string(each.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Values, Validate,
    testing::Values(
        Case{"cpusNan", [](Policy& p) { p.resources.cpus = std::numeric_limits<double>::quiet_NaN(); },
             "resources.cpus", ""},
        Case{"cpusZero", [](Policy& p) { p.resources.cpus = 0; }, "resources.cpus", "above 0"},
        Case{"cpusNegative", [](Policy& p) { p.resources.cpus = -1; }, "resources.cpus", "above 0"},
        Case{"wallZero", [](Policy& p) { p.resources.wall_seconds = 0; }, "resources.wall_seconds", "above 0"},
        Case{"noProcesses", [](Policy& p) { p.process.max_processes = 0; }, "process.max_processes", "at least 1"},
        Case{"memoryZero", [](Policy& p) { p.resources.memory = 0; }, "resources.memory", "at least"},
        Case{"hostname", [](Policy& p) { p.isolation.hostname = "a_b"; }, "isolation.hostname", "host name"},
        Case{"hostnameEmpty", [](Policy& p) { p.isolation.hostname = ""; }, "isolation.hostname", "host name"},
        Case{"variable", [](Policy& p) { p.environment.pass = {"A=B"}; }, "environment.pass[0]", "variable"},
        Case{"variableSet", [](Policy& p) { p.environment.set["A=B"] = "x"; }, "environment.set.A=B", "variable"},
        Case{"variableNul", [](Policy& p) { p.environment.set["A"] = std::string("x\0y", 3); }, "environment.set.A",
             "NUL"},
        Case{"deniedRelative", [](Policy& p) { p.filesystem.denied = {"secret"}; }, "filesystem.denied[0]", "absolute"},
        Case{"home", [](Policy& p) { p.filesystem.read_only = {"~/x"}; }, "filesystem.read_only[0]", "absolute"},
        Case{"climbing", [](Policy& p) { p.filesystem.read_only = {"/a/../b"}; }, "filesystem.read_only[0]", ".."},
        Case{"wholeRoot", [](Policy& p) { p.filesystem.read_only = {"/./"}; }, "filesystem.read_only[0]",
             "below the root"},
        Case{"hostProc", [](Policy& p) { p.filesystem.read_write = {"/proc/sys"}; }, "filesystem.read_write[0]",
             "/proc"},
        Case{"tmpfsRelative", [](Policy& p) { p.filesystem.tmpfs = {{"tmp"}}; }, "filesystem.tmpfs[0].path",
             "absolute"},
        Case{"tmpfsClimbs", [](Policy& p) { p.filesystem.tmpfs = {{"/a/.."}}; }, "filesystem.tmpfs[0].path", ".."},
        Case{"tmpfsTwice", [](Policy& p) { p.filesystem.tmpfs = {{"/a"}, {"//a/"}}; }, "filesystem.tmpfs[1].path",
             "twice"},
        Case{"tmpfsProc", [](Policy& p) { p.filesystem.tmpfs = {{"/proc"}}; }, "filesystem.tmpfs[0].path", "itself"},
        Case{"tmpfsDev", [](Policy& p) { p.filesystem.tmpfs = {{"/dev/x"}}; }, "filesystem.tmpfs[0].path", "itself"},
        Case{"tmpfsUsr", [](Policy& p) { p.filesystem.tmpfs = {{"/usr"}}; }, "filesystem.tmpfs[0].path", "itself"},
        Case{"tmpfsRoot", [](Policy& p) { p.filesystem.tmpfs = {{"/"}}; }, "filesystem.tmpfs[0].path", "itself"},
        Case{"tmpfsUsrLike", [](Policy& p) { p.filesystem.tmpfs = {{"/usrlike"}}; }, nullptr, ""},
        Case{"tmpfsWriteOnlyBelow",
             [](Policy& p) { p.filesystem.tmpfs[0] = {.path = "/a/logs", .access = TmpfsAccess::wo}; },
             "filesystem.tmpfs[0].path", "at the top"},
        Case{"tmpfsReadOnlyExec",
             [](Policy& p) { p.filesystem.tmpfs[0] = {.path = "/a", .exec = true, .access = TmpfsAccess::ro}; },
             "filesystem.tmpfs[0].exec", "nothing new can be executed"},
        Case{"tmpfsNoInodes", [](Policy& p) { p.filesystem.tmpfs[0].inodes = 0; }, "filesystem.tmpfs[0].inodes",
             "above 0"},
        Case{"syscall", [](Policy& p) { p.syscalls.allow = {"opennat"}; }, "syscalls.allow[0]", "system call"},
        Case{"syscallElsewhere", [](Policy& p) { p.syscalls.names = {"open", "openat"}; }, nullptr, ""},
        Case{"syscallBlocked", [](Policy& p) { p.syscalls.allow = {"ptrace"}; }, "syscalls.allow[0]", "can be allowed"},
        Case{"syscallNamed", [](Policy& p) { p.syscalls.names = {"read", "bpf"}; }, "syscalls.names[1]",
             "can be allowed"},
        Case{"cpuTwice", [](Policy& p) { p.resources.cpu_affinity = {1, 1}; }, "resources.cpu_affinity[1]", "twice"},
        Case{"executable", [](Policy& p) { p.process.allowed_executables = {"bin/x"}; },
             "process.allowed_executables[0]", ""}),
    [](const auto& each) { return std::string(each.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Contradictions, Validate,
    testing::Values(
        Case{"workspace", [](Policy& p) { p.filesystem.workspace = {.path = "/src", .mode = WorkspaceMode::none}; },
             "filesystem.workspace.path", "mode is \"none\""},
        Case{"readOnlyAndWrite",
             [](Policy& p) {
               p.filesystem.read_only = {"/opt/"};
               p.filesystem.read_write = {"/opt"};
             },
             "filesystem.read_only[0]", "read_write"},
        Case{"tmpfsAndHost", [](Policy& p) { p.filesystem.read_only = {"/tmp"}; }, "filesystem.tmpfs[0].path", "host"},
        Case{"tmpfsAndWorkspace", [](Policy& p) { p.filesystem.tmpfs = {{"/workspace/x"}}; },
             "filesystem.tmpfs[0].path", "workspace"},
        Case{"executables",
             [](Policy& p) {
               p.process.allowed_executables = {"/bin/a"};
               p.process.blocked_executables = {"/bin/a"};
             },
             "process.allowed_executables[0]", "blocked_executables"},
        Case{"hosts",
             [](Policy& p) {
               p.network.allowed_hosts = {"a.b"};
               p.network.denied_hosts = {"a.b"};
             },
             "network.allowed_hosts[0]", "denied_hosts"},
        Case{"hostNetwork",
             [](Policy& p) {
               p.network.mode = NetworkMode::host;
               p.network.allowed_hosts = {"a.b"};
             },
             "network.mode", "cannot keep"},
        Case{"denylistAndAllow",
             [](Policy& p) {
               p.syscalls.mode = SyscallMode::denylist;
               p.syscalls.names = {"read"};
               p.syscalls.allow = {"read"};
             },
             "syscalls.allow[0]", "taken away"},
        Case{"denylistOfNothing", [](Policy& p) { p.syscalls.mode = SyscallMode::denylist; }, "syscalls.mode", "needs"},
        Case{"reservation", [](Policy& p) { p.resources.memory_reservation = kGiB; }, "resources.memory_reservation",
             "more is reserved"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(ValidateCeilings, AnOwnerMayRaiseThem) {
  Policy policy;
  policy.resources.memory = 8 * kGiB;
  EXPECT_FALSE(validate(policy));
  Ceilings ceilings = ceilingsOf(Level::full);
  ceilings.memory = 16 * kGiB;
  EXPECT_TRUE(validate(policy, ceilings));
}

TEST(ValidateDefaults, FollowTheLevel) {
  Policy policy;
  EXPECT_EQ(effectiveWallSeconds(policy), 120);
  EXPECT_EQ(effectiveOutput(policy), 10 * kMiB);
  policy.isolation.level = Level::process;
  EXPECT_EQ(effectiveWallSeconds(policy), 60);
  EXPECT_EQ(effectiveOutput(policy), kMiB);
  policy.resources.wall_seconds = 5;
  EXPECT_EQ(effectiveWallSeconds(policy), 5);
}

}  // namespace caisson::policy
