// No degradation is silent: for every missing feature, the run is refused, reports what it lacks, or lacks
// nothing.
#include <algorithm>

#include "degraded/degraded.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

/// Each with the errno of a kernel without it, and of a filter around us.
constexpr const char* kCalls[] = {
    "openat2",
    "clone3",
    "fsopen",
    "fsconfig",
    "fsmount",
    "open_tree",
    "move_mount",
    "mount_setattr",
    "pivot_root",
    "umount2",
    "landlock_create_ruleset",
    "landlock_add_rule",
    "landlock_restrict_self",
    "namespaces",
    "seccomp",
    "unshare",
    "time_namespace",
    "prctl",
    "capset",
    "capget",
    "close_range",
    "pidfd_open",
    "pidfd_send_signal",
    "signalfd4",
    "keyctl",
    "setsid",
    "sethostname",
    "setdomainname",
    "prlimit64",
    "rseq",

    "setgroups",
    "setresuid",
    "setresgid",
    "fchdir",
    "umask",
    "socketpair",
    "ioctl",
    "mknodat",
    "mkdirat",
    "symlinkat",
    "newfstatat",
    "getrandom",
    "dup3",

    "faccessat2",
};

class MissingCall : public DegradedTest, public testing::WithParamInterface<std::tuple<const char*, const char*>> {};

TEST_P(MissingCall, IsRefusedReportedOrHarmless) {
  CONFORMS("R-LEVEL-9");
  const std::string missing = std::string(std::get<0>(GetParam())) + ":" + std::get<1>(GetParam());
  const Ending ending = probe(missing);
  EXPECT_FALSE(ending.output.timed_out) << ending.describe();
  EXPECT_EQ(ending.left_behind, "") << ending.describe();
  if (!ending.ran) {  // also if the program could not start: nothing ran unprotected
    EXPECT_NE(ending.output.exit_status, 0) << ending.describe();
    if (!ending.refused()) return;
    EXPECT_NE(ending.result["error"].value("reason", ""), "") << ending.describe();
    EXPECT_NE(ending.result["error"].value("hint", ""), "") << ending.describe();
    return;
  }
  ASSERT_FALSE(ending.refused()) << "refused, and yet the payload ran: " << ending.describe();
  const Ending whole = probe();
  const auto before = whole.warnings();
  const auto now = ending.warnings();
  const bool said = std::any_of(now.begin(), now.end(), [&](const std::string& warning) {
    return std::find(before.begin(), before.end(), warning) == before.end();
  });
  if (!said) expectSameAs(ending, whole);
}

INSTANTIATE_TEST_SUITE_P(Degraded, MissingCall,
                         testing::Combine(testing::ValuesIn(kCalls), testing::Values("ENOSYS", "EPERM")),
                         [](const auto& test) {
                           return asTestName(std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param));
                         });

}  // namespace
}  // namespace caisson::test
