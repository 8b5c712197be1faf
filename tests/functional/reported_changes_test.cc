// In a `rw` workspace a program may change files that hooks and settings call, and git's index. Neither happens unseen.
#include <gtest/gtest.h>

#include "functional/sandbox.h"
#include "support/temp_dir.h"

namespace caisson::test {
namespace {

constexpr const char* kNotShown = "git does not show changes of these files any more";
constexpr const char* kRunByHost = "changed while the program ran, and run by the host: ";

class ReportedChanges : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    workspace.write("scripts/check.sh", "exit 0\n", 0755);
    workspace.write("scripts/other.sh", "exit 0\n", 0755);
    const RunOutput made = onHost(
        "git init -q -b main . && echo x > f && echo x > g && git add . && "
        "git -c user.name=a -c user.email=a@b commit -q -m first && chmod -R a+rwX .");
    ASSERT_EQ(made.exit_status, 0) << made.describe();
  }
  RunOutput attempt(const std::string& text) { return script(text, {"--workspace", ".:rw"}); }
};

TEST_F(ReportedChanges, FlagThatKeepsAChangeOutOfGitStatusIsNamed) {
  RunOutput output = attempt("git update-index --assume-unchanged f && echo evil >> f");
  EXPECT_TRUE(contains(output.err, kNotShown) && contains(output.err, "f (.git/index)")) << output.describe();
  output = attempt("git update-index --skip-worktree g && echo evil >> g");
  EXPECT_TRUE(contains(output.err, "g (.git/index)")) << output.describe();
  EXPECT_FALSE(contains(output.err, "f (.git/index)")) << "it had the flag before: " << output.describe();
  output = attempt("git update-index --no-assume-unchanged f; git add -A; git status");
  EXPECT_FALSE(contains(output.err, kNotShown)) << output.describe();
}

TEST_F(ReportedChanges, FlagInASplitIndexIsNamed) {
  const RunOutput output = attempt("git update-index --split-index && git update-index --assume-unchanged f");
  EXPECT_TRUE(contains(output.err, kNotShown)) << output.describe();
}

TEST_F(ReportedChanges, FlagInTheIndexOfASubdirectoryIsNamed) {
  ASSERT_EQ(onHost("git init -q sub && cd sub && echo x > f && git add f && chmod -R a+rwX .").exit_status, 0);
  const RunOutput output = attempt("cd sub && git update-index --assume-unchanged f");
  EXPECT_TRUE(contains(output.err, "sub/.git/index")) << output.describe();
}

TEST_F(ReportedChanges, FilesThatHooksAndSettingsCallAreNamed) {
  workspace.write(".git/hooks/pre-commit", "#!/bin/sh\nexec \"$(git rev-parse --show-toplevel)/scripts/check.sh\"\n",
                  0755);
  RunOutput output = attempt("echo evil >> scripts/check.sh; echo x >> scripts/other.sh");
  EXPECT_TRUE(contains(output.err, std::string(kRunByHost) + "scripts/check.sh (called by .git/hooks/pre-commit)"))
      << output.describe();
  EXPECT_FALSE(contains(output.err, "other.sh")) << output.describe();
  output = attempt("cat scripts/check.sh; echo x >> scripts/other.sh");
  EXPECT_FALSE(contains(output.err, kRunByHost)) << "nothing changed: " << output.describe();

  workspace.write(".claude/settings.json",
                  R"({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "sh scripts/other.sh"}]}]}})");
  workspace.write("lefthook.yml", "pre-push:\n  commands:\n    x:\n      run: ./tools/made.sh\n");
  output = attempt("mv f scripts/other.sh; mkdir tools; echo x > tools/made.sh");
  EXPECT_TRUE(contains(output.err, "scripts/other.sh (called by .claude/settings.json)")) << output.describe();
  EXPECT_TRUE(contains(output.err, "tools/made.sh (called by lefthook.yml)"))
      << "made by the run: " << output.describe();
}

TEST_F(ReportedChanges, KilledRunIsReportedByTheNextOne) {
  workspace.write(".git/hooks/pre-commit", "scripts/check.sh\n", 0755);
  const RunOutput output = onHost(
      "\"$CAISSON\" run -q --workspace .:rw -- sh -c 'git update-index --assume-unchanged f; "
      "echo evil >> scripts/check.sh; touch started; sleep 100' & "
      "until test -e started; do sleep 0.02; done; kill -9 $!; wait $! 2>/dev/null; "
      "for i in 1 2 3 4 5 6 7 8 9 10; do \"$CAISSON\" run --workspace :none -- true; sleep 0.2; done");
  EXPECT_TRUE(contains(output.err, "scripts/check.sh (called by .git/hooks/pre-commit)")) << output.describe();
  EXPECT_TRUE(contains(output.err, "f (.git/index)")) << output.describe();
}

}  // namespace
}  // namespace caisson::test
