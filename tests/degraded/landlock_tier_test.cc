// Where namespaces are forbidden there is a weaker tier; it must be requested by name and lists what it does not
// protect.
#include "degraded/degraded.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using LandlockTier = DegradedTest;

TEST_F(LandlockTier, IsNeverChosenByItself) {
  CONFORMS("R-LEVEL-24");
  expectRefusal(probe("namespaces"), {"caisson doctor"});
}

TEST_F(LandlockTier, RunsWhereNamespacesAreForbiddenAndSaysWhatItDoesNotProtect) {
  CONFORMS("R-LEVEL-24");
  const Ending ending = probe("namespaces", {"--tier", "landlock"});
  EXPECT_EQ(ending.text("outcome"), "exited") << ending.describe();
  EXPECT_TRUE(ending.ran) << ending.describe();
  EXPECT_TRUE(ending.layer("namespaces").starts_with("none")) << ending.describe();
  EXPECT_FALSE(ending.layer("landlock").empty()) << ending.describe();
  EXPECT_FALSE(ending.layer("seccomp").empty()) << ending.describe();
  std::string said;
  for (const std::string& warning : ending.warnings()) said += warning + "\n";
  for (const char* word : {"landlock tier", "no namespaces", "Not protected", "process list", "IPC"}) {
    EXPECT_TRUE(contains(said, word)) << "no \"" << word << "\" in " << said;
  }
}

TEST_F(LandlockTier, KeepsThePayloadFromWritingOutsideTheWorkspace) {
  const Canary canary(files / "canary");
  files.openToAll();
  const std::string script = "cat " + canary.path() + "; echo x > " + canary.path() + "; echo x > " + (files / "new") +
                             "; echo x > inside && cat inside";
  const RunOutput output = caissonWithout(
      "namespaces", {"run", "--tier", "landlock", "--workspace", workspace.path() + ":rw", "--", "sh", "-c", script});
  EXPECT_EQ(output.out, "x\n") << output.describe();
  EXPECT_TRUE(canary.untouched());
  EXPECT_FALSE(canary.leakedInto(output.out + output.err)) << output.describe();
  EXPECT_FALSE(exists(files / "new"));
}

TEST_F(LandlockTier, HasNoNetwork) {
  requireOrSkip(hasProgram("python3"), "no python3 here");
  const RunOutput output = caissonWithout(
      "namespaces", {"run", "--tier", "landlock", "--workspace", workspace.path() + ":ro", "--", "python3", "-c",
                     "import socket\nfor f in (socket.AF_INET, socket.AF_INET6):\n try:\n  socket.socket(f); "
                     "print('made')\n except OSError as e: print('refused')"});
  EXPECT_EQ(output.out, "refused\nrefused\n") << output.describe();
}

TEST_F(LandlockTier, IsRefusedWithoutLandlock) {
  expectRefusal(probe("landlock_create_ruleset", {"--tier", "landlock"}), {"Landlock"});
  expectRefusal(probe("landlock_restrict_self", {"--tier", "landlock"}), {"landlock_restrict_self"});
  expectRefusal(probe("namespaces,landlock_create_ruleset:ENOSYS", {"--tier", "landlock"}), {"Landlock"});
  expectRefusal(probe("seccomp", {"--tier", "landlock"}), {"seccomp"});
  expectRefusal(probe("close_range", {"--tier", "landlock"}), {"close_range"});
}

TEST_F(LandlockTier, EndsTheWholeTreeAtATimeOut) {
  const RunOutput output =
      caissonWithout("namespaces", {"run", "--tier", "landlock", "--workspace", ":none", "--timeout", "1s", "--", "sh",
                                    "-c", "setsid sleep 15 & sleep 15"});
  EXPECT_EQ(output.exit_status, 124) << output.describe();
  EXPECT_LT(output.duration, std::chrono::seconds(8)) << output.describe();
}

}  // namespace
}  // namespace caisson::test
