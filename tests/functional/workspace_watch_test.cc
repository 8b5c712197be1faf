// Secret files that the host creates while a sandbox runs.
#include <gtest/gtest.h>

#include "functional/sandbox.h"
#include "support/conforms.h"
#include "support/scripts.h"
#include "support/temp_dir.h"

namespace caisson::test {
namespace {

class WorkspaceWatch : public SandboxTest, public testing::WithParamInterface<const char*> {
 protected:
  /// Runs `inside` in a sandbox that is alive when `outside` runs on the host. `inside` gets a line on standard input
  /// once `outside` is done.
  RunOutput runBeside(const std::string& inside, const std::string& outside) {
    workspace.write("inside.sh", "echo started; read done; " + inside);
    return onHost(beside(GetParam(), "") + outside + "; echo done >&3; wait $P; echo status $?; cat $T/out $T/err");
  }
  /// Starts inside.sh, as process $P, and waits for its first line. $T/out and $T/err are its output.
  [[nodiscard]] std::string beside(const std::string& mode, const std::string& flags) const {
    const std::string run =
        mode == "session" ? "session exec $S --" : "run " + flags + " --workspace .:" + mode + " --";
    const std::string create = "export CAISSON_HOME=$T/state; S=$($CAISSON session create " + flags +
                               " --workspace . 2> /dev/null); "
                               "trap '$CAISSON session destroy $S > /dev/null 2>&1' EXIT; ";
    return "T=" + scratch.path() + "; mkfifo $T/words; touch $T/out; " + (mode == "session" ? create : "") +
           "$CAISSON " + run +
           " sh inside.sh < $T/words > $T/out 2> $T/err & P=$!; exec 3> $T/words; "
           "until grep -q started $T/out; do sleep 0.01; done; ";
  }

  const TempDir scratch;
};

INSTANTIATE_TEST_SUITE_P(Modes, WorkspaceWatch, testing::Values("overlay", "ro", "session"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST_P(WorkspaceWatch, NewSecretIsHiddenInARunningSandbox) {
  CONFORMS("R-FILES-25");
  workspace.write("backend/app.py", "code\n");
  const RunOutput out = runBeside(
      readUntilHidden("backend/.env") + readUntilHidden("new/deep/server.key") + "cat backend/app.py later.txt",
      "echo canary > backend/.env; mkdir -p new/deep; echo canary > new/deep/server.key; echo plain > later.txt");
  EXPECT_NE(out.out.find("status 0"), std::string::npos) << out.out;
  EXPECT_EQ(out.out.find("canary"), std::string::npos) << out.out;
  EXPECT_EQ(out.out.find("visible"), std::string::npos) << out.out;
  EXPECT_NE(out.out.find("code\nplain\n"), std::string::npos) << "other files are shown: " << out.out;
  EXPECT_NE(out.out.find("hidden while the program ran"), std::string::npos) << out.out;
  EXPECT_NE(out.out.find("backend/.env"), std::string::npos) << out.out;
}

TEST_P(WorkspaceWatch, KeyIsRecognisedByItsContent) {
  workspace.write("ops/readme", "text\n");
  const RunOutput out = runBeside(readUntilHidden("ops/deploy_key") + "cat ops/public_key",
                                  "printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\\ncanary\\n' > ops/deploy_key; "
                                  "echo public > ops/public_key");
  EXPECT_EQ(out.out.find("canary"), std::string::npos) << out.out;
  EXPECT_NE(out.out.find("public\n"), std::string::npos) << out.out;
}

TEST_P(WorkspaceWatch, StaysHiddenWhenTheHostReplacesIt) {
  CONFORMS("R-FILES-25");
  const RunOutput out = runBeside(readUntilHidden(".env") + "echo once; read again; " + readUntilHidden(".env"),
                                  "echo canary > .env; echo done >&3; until grep -q once $T/out; do sleep 0.01; done; "
                                  "echo canary > fresh; mv fresh .env");
  EXPECT_NE(out.out.find("once"), std::string::npos) << out.out;
  EXPECT_EQ(out.out.find("canary"), std::string::npos) << out.out;
}

TEST_P(WorkspaceWatch, DirectoryThatTakesTheNameOfARenamedOneIsWatched) {
  workspace.write("conf/app.toml", "old\n");
  const RunOutput out =
      runBeside(readUntilHidden("moved/.env") + "echo once; read again; " + readUntilHidden("conf/.env"),
                "mv conf moved; mkdir conf; echo canary > moved/.env; echo done >&3; "
                "until grep -q once $T/out; do sleep 0.01; done; echo canary > conf/.env");
  EXPECT_NE(out.out.find("once"), std::string::npos) << out.out;
  EXPECT_EQ(out.out.find("canary"), std::string::npos) << out.out;
}

TEST_P(WorkspaceWatch, ShowSecretsLeavesThemVisible) {
  CONFORMS("R-FILES-25");
  workspace.write("inside.sh", "echo started; read done; cat .env");
  const RunOutput out =
      onHost(beside(GetParam(), "--show-secrets") + "echo canary > .env; echo done >&3; wait $P; cat $T/out");
  EXPECT_EQ(out.out, "started\ncanary\n") << out.describe();
}

class WorkspaceWatchOverlay : public WorkspaceWatch {};
INSTANTIATE_TEST_SUITE_P(Modes, WorkspaceWatchOverlay, testing::Values("overlay", "session"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST_P(WorkspaceWatchOverlay, FileThatMatchesADeniedPatternIsHiddenWhenItAppears) {
  workspace.write("sub/old.dump", "canary\n");
  workspace.write("inside.sh", "echo started; read done; " + readUntilHidden("sub/new.dump") + readUntilHidden(".env") +
                                   "cat sub/old.dump; cat .env sub/new.text");
  for (const std::string flags : {"--deny 'sub/*.dump'", "--show-secrets --deny 'sub/*.dump' --deny .env"}) {
    const RunOutput out = onHost("rm -rf sub/new.* " + scratch.path() + "/*; " + beside(GetParam(), flags) +
                                 "echo canary > sub/new.dump; echo canary > .env; echo shown > sub/new.text; echo done "
                                 ">&3; wait $P; cat $T/out");
    EXPECT_EQ(out.out, "started\nshown\n") << flags << out.describe();
  }
}

TEST_P(WorkspaceWatchOverlay, OwnFileOfTheProgramIsLeftAlone) {
  workspace.write("inside.sh",
                  "echo mine > .env; echo started; read done; i=0; while [ $i -lt 30 ]; do cat .env || exit 1; "
                  "i=$((i+1)); sleep 0.01; done");
  const RunOutput out =
      onHost(beside(GetParam(), "") + "echo canary > .env; echo done >&3; wait $P; echo status $?; cat $T/out");
  EXPECT_NE(out.out.find("status 0"), std::string::npos) << out.describe();
  EXPECT_EQ(out.out.find("canary"), std::string::npos) << out.describe();
}

}  // namespace
}  // namespace caisson::test
