// Required features: no payload, exit status 125, the call and a pointer to the remedy.
#include <fcntl.h>
#include <unistd.h>

#include <ostream>
#include <string_view>

#include "degraded/degraded.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

struct Missing {
  const char* calls;
  std::vector<std::string> words;  ///< in the error, besides the hint to run `caisson doctor`
};

void PrintTo(const Missing& one, std::ostream* out) { *out << one.calls; }

std::string nameOfMissing(const testing::TestParamInfo<Missing>& test) { return asTestName(test.param.calls); }

class WithoutRequiredCall : public DegradedTest, public testing::WithParamInterface<Missing> {};

// A sanitizer's start-up reads limits with it, before any code of ours.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kStartsWithoutPrlimit = false;
#else
constexpr bool kStartsWithoutPrlimit = true;
#endif

TEST_P(WithoutRequiredCall, RunIsRefusedAndSuggestsTheDoctor) {
  CONFORMS("R-LEVEL-9", "R-USE-5", "R-LEVEL-21");
  if (!kStartsWithoutPrlimit && GetParam().calls == std::string_view("prlimit64:EPERM")) {
    GTEST_SKIP() << "a program built with a sanitizer cannot start without prlimit64";
  }
  std::vector<std::string> words = GetParam().words;
  words.emplace_back("caisson doctor");
  expectRefusal(probe(GetParam().calls), words);
}

INSTANTIATE_TEST_SUITE_P(
    MountApi, WithoutRequiredCall,
    testing::Values(Missing{"fsopen", {"fsopen"}}, Missing{"fsopen:EPERM", {"fsopen"}},
                    Missing{"fsconfig", {"fsconfig"}}, Missing{"fsmount", {"fsmount"}},
                    Missing{"open_tree", {"open_tree"}}, Missing{"open_tree:EPERM", {"open_tree"}},
                    Missing{"move_mount", {"move_mount"}}, Missing{"move_mount:EPERM", {"move_mount"}},
                    Missing{"mount_setattr", {"mount_setattr"}}, Missing{"mount_setattr:EPERM", {"mount_setattr"}},
                    Missing{"pivot_root:EPERM", {"pivot_root"}}, Missing{"umount2:EPERM", {"umount2"}}),
    nameOfMissing);

INSTANTIATE_TEST_SUITE_P(Namespaces, WithoutRequiredCall,
                         testing::Values(Missing{"namespaces", {"clone", "EPERM"}},
                                         Missing{"clone3,namespaces:EPERM", {"clone", "EPERM"}},
                                         Missing{"unshare", {"unshare"}}),
                         nameOfMissing);

INSTANTIATE_TEST_SUITE_P(Landlock, WithoutRequiredCall,
                         testing::Values(Missing{"landlock_restrict_self", {"landlock_restrict_self"}},
                                         Missing{"landlock_restrict_self:EPERM", {"landlock_restrict_self"}},
                                         Missing{"landlock_add_rule", {"landlock_add_rule"}}),
                         nameOfMissing);

INSTANTIATE_TEST_SUITE_P(Privileges, WithoutRequiredCall,
                         testing::Values(Missing{"seccomp", {"seccomp"}}, Missing{"seccomp:EPERM", {"seccomp"}},
                                         Missing{"prctl:EPERM", {"prctl"}}, Missing{"capset:EPERM", {"capset"}},
                                         Missing{"prlimit64:EPERM", {"prlimit64"}}),
                         nameOfMissing);

INSTANTIATE_TEST_SUITE_P(Descriptors, WithoutRequiredCall,
                         testing::Values(Missing{"close_range", {"close_range"}},
                                         Missing{"close_range:EPERM", {"close_range"}},
                                         Missing{"signalfd4:EPERM", {"signalfd4"}}),
                         nameOfMissing);

using WithoutCapget = DegradedTest;

TEST_F(WithoutCapget, RunIsRefusedBecauseCapabilitiesCannotBeRead) { expectRefusal(probe("capget:EPERM"), {}); }

using WithoutLandlockRules = DegradedTest;

TEST_F(WithoutLandlockRules, LevelProcessIsRefusedWithTheReason) {
  CONFORMS("R-LEVEL-5", "R-LEVEL-9");
  expectRefusal(probe("landlock_create_ruleset", {"--level", "process"}), {"Landlock", "lsm="});
  expectRefusal(probe("landlock_restrict_self", {"--level", "process"}), {"landlock_restrict_self"});
}

using WithoutPidfd = DegradedTest;

TEST_F(WithoutPidfd, ATimeOutStillEndsTheWholeTree) {
  for (const char* missing : {"pidfd_send_signal:ENOSYS", "pidfd_send_signal:EPERM", "pidfd_open:ENOSYS"}) {
    const RunOutput output =
        caissonWithout(missing, {"run", "--workspace", ":none", "--timeout", "1s", "--", "sleep", "15"});
    EXPECT_FALSE(output.timed_out) << missing << ": " << output.describe();
    EXPECT_LT(output.duration, std::chrono::seconds(8)) << missing << ": " << output.describe();
    EXPECT_EQ(output.exit_status, 124) << missing << ": " << output.describe();
  }
}

using WithoutCloseRange = DegradedTest;

TEST_F(WithoutCloseRange, NoDescriptorOfTheCallerReachesThePayload) {
  CONFORMS("R-PROCESS-13");
  constexpr int kLeftOpen = 19;
  const int secret = open(files.write("secret", "of the caller\n").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(dup2(secret, kLeftOpen), kLeftOpen);  // not close-on-exec: every program started from here inherits it
  close(secret);
  const std::string script = "cat <&19; cat /proc/self/fd/19; cat /proc/1/fd/19; echo end";
  for (const std::string missing : {"", "close_range:ENOSYS", "close_range:EPERM"}) {
    for (const char* level : {"full", "process"}) {
      const RunOutput output = caissonWithout(
          missing, {"run", "--workspace", workspace.path() + ":ro", "--level", level, "--", "bash", "-c", script});
      EXPECT_FALSE(contains(output.out, "of the caller")) << missing << " " << level << ": " << output.describe();
      EXPECT_EQ(output.exit_status, missing.empty() ? 0 : 125) << missing << " " << level << ": " << output.describe();
      EXPECT_EQ(contains(output.out, "end"), missing.empty());
    }
  }
  close(kLeftOpen);
}

}  // namespace
}  // namespace caisson::test
