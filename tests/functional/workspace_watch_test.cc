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

TEST_P(WorkspaceWatch, NameIsJudgedBeforeTheWholeWorkspaceIsSearched) {
  CONFORMS("R-FILES-25");
  requireOrSkip(systemHas("python3"), "no python3 here");
  // Only a search knows that these files are secret, and it hides them in the order of their names.
  std::string links;
  for (char letter = 'a'; letter <= 'z'; ++letter) {
    workspace.write(std::string("made/") + letter, "plain\n");
    links += std::string("ln -s new/") + letter + " .env." + letter + "; ";
  }
  workspace.write("made/zz/.env", "canary\n");
  workspace.write("plain.txt", "plain\n");
  workspace.write("inside.sh", "exec python3 inside.py");
  // The end of a new link is hidden by a search that nothing else follows: the watch has begun, and waits for events.
  workspace.write("inside.py", R"(
import os, time
print('started', flush=True)
def hidden(path):
    try:
        os.close(os.open(path, os.O_RDONLY))
        return False
    except PermissionError:
        return True
while not hidden('plain.txt'):
    time.sleep(0.001)
print('watched', flush=True)
while 'new' not in os.listdir('.'):
    pass
while not hidden('new/a'):
    pass
print('hidden' if hidden('new/zz/.env') else 'visible', flush=True)
)");
  const RunOutput out =
      onHost("mv made " + scratch.path() + "/made; " + links + beside(GetParam(), "") +
             "sleep 0.2; ln -s plain.txt .env.first; until grep -q watched $T/out; do sleep 0.01; done; "
             "mv $T/made new; wait $P; cat $T/out");
  EXPECT_EQ(out.out, "started\nwatched\nhidden\n") << out.describe();
}

TEST_P(WorkspaceWatch, SecretIsHiddenWhileTheHostKeepsTheFileOpen) {
  CONFORMS("R-FILES-25");
  workspace.write("ops/deploy_key", "");
  // The first file proves that the watch has begun; without the pause, a search for it might find the other.
  const RunOutput out =
      runBeside(readUntilHidden(".env") + "echo once; read again; " + readUntilHidden("ops/deploy_key") + "true",
                "echo canary > .env; echo done >&3; until grep -q once $T/out; do sleep 0.01; done; "
                "sleep 0.3; exec 4>> ops/deploy_key; "
                "printf -- '-----BEGIN OPENSSH PRIVATE KEY-----\\ncanary\\n' >&4");
  EXPECT_NE(out.out.find("status 0"), std::string::npos) << out.out;
  EXPECT_EQ(out.out.find("visible"), std::string::npos) << out.out;
  EXPECT_NE(out.out.find("hidden while the program ran"), std::string::npos) << out.out;
}

TEST_P(WorkspaceWatch, ProgramWhoseFirstThreadExitedCannotPreventIt) {
  CONFORMS("R-FILES-25");
  requireOrSkip(systemHas("python3"), "no python3 here");
  workspace.write("backend/app.py", "code\n");
  workspace.write("inside.sh", "exec python3 inside.py");
  workspace.write("inside.py", R"(
import ctypes, os, sys, threading, time
def work():
    while 'State:\tZ' not in open('/proc/self/task/%d/status' % os.getpid()).read():
        time.sleep(0.01)
    print('started', flush=True)
    sys.stdin.readline()
    for i in range(500):
        try:
            os.close(os.open('backend/.env', os.O_RDONLY))
        except OSError:
            os._exit(0)
        time.sleep(0.01)
    print('visible', flush=True)
    os._exit(0)
threading.Thread(target=work).start()
ctypes.CDLL(None).syscall(93 if os.uname().machine == 'aarch64' else 60, 0)
)");
  for (const std::string flags : {"", "--level process"}) {
    const RunOutput out = onHost("rm -rf backend/.env " + scratch.path() + "/*; " + beside(GetParam(), flags) +
                                 "echo canary > backend/.env; echo done >&3; wait $P; echo status $?; "
                                 "cat $T/out $T/err");
    EXPECT_NE(out.out.find("status 0\nstarted\n"), std::string::npos) << flags << out.describe();
    EXPECT_EQ(out.out.find("visible"), std::string::npos) << flags << out.describe();
    EXPECT_NE(out.out.find("hidden while the program ran"), std::string::npos) << flags << out.describe();
  }
}

TEST_P(WorkspaceWatch, ShowSecretsLeavesThemVisible) {
  CONFORMS("R-FILES-25");
  workspace.write("inside.sh", "echo started; read done; cat .env");
  const RunOutput out =
      onHost(beside(GetParam(), "--show-secrets") + "echo canary > .env; echo done >&3; wait $P; cat $T/out");
  EXPECT_EQ(out.out, "started\ncanary\n") << out.describe();
}

TEST_P(WorkspaceWatch, FileWithTheNumberOfARemovedOneIsHidden) {
  if (std::string(GetParam()) != "ro") return;  // elsewhere a removed file keeps its mask
  // While it is stopped, it learns of the removal and of the new file at once. The file system reuses the number.
  const RunOutput out =
      runBeside(readUntilHidden("n/.env") + "echo once; read again; " + readUntilHidden("n/.env"),
                "mkdir n; echo canary > n/.env; echo done >&3; until grep -q once $T/out; do sleep 0.01; done; "
                "kill -STOP $P; rm -r n; mkdir n; echo canary > n/.env; kill -CONT $P");
  EXPECT_NE(out.out.find("once"), std::string::npos) << out.out;
  EXPECT_EQ(out.out.find("canary"), std::string::npos) << out.out;
}

struct LateSecret {
  const char* name;
  const char* before;
  const char* change;
  const char* workspace = ".";
};

class LateSecretWatch : public WorkspaceWatch {
 protected:
  void expectHidden(const LateSecret& one) const {
    const std::string inside =
        "echo started; read done; i=0; while cat $F > /dev/null 2>&1 && [ $i -lt 500 ]; do "
        "i=$((i+1)); sleep 0.01; done; cat $F && echo visible; true";
    const RunOutput out = onHost("rm -rf d " + scratch.path() + "/*; mkdir -p d/src; cd d; git init -q; " + one.before +
                                 "; cd " + one.workspace + "; echo '" + inside + "' > inside.sh; sed -i \"s|\\$F|" +
                                 (std::string(one.workspace) == "." ? "src/main.c" : "main.c") + "|g\" inside.sh; " +
                                 beside(GetParam(), "") + "sleep 0.3; cd $OLDPWD; cd " + std::string(workspace.path()) +
                                 "/d; " + one.change + "; echo done >&3; wait $P; cat $T/out");
    EXPECT_EQ(out.out, "started\n") << one.name << out.describe();
  }
};
INSTANTIATE_TEST_SUITE_P(Modes, LateSecretWatch, testing::Values("overlay", "ro", "session"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST_P(LateSecretWatch, FileWithAnOrdinaryNameIsHidden) {
  requireOrSkip(systemHas("git"), "no git here");
  constexpr LateSecret kCases[] = {
      {"hard link of a hidden file", "echo K=canary > .env", "ln .env src/main.c"},
      {"end of a link that existed", "ln -s src/main.c .env", "echo K=canary > .env"},
      {"file that a configuration includes", "git config include.path ../src/main.c",
       "printf '[http]\\n extraHeader = Authorization: canary\\n' > src/main.c"},
      {"hard link of a configuration", "git remote add o https://u:canary@host.example/x", "ln .git/config src/main.c"},
      {"file written through another name", "echo 'a: b' > c.yaml; ln c.yaml src/main.c",
       "echo 'password: Xk29canary-hlaB3dE5fG' >> src/main.c"},
      {"link above the workspace", "echo K=canary > src/main.c", "ln -s src/main.c .env", "src"},
  };
  for (const LateSecret& one : kCases) expectHidden(one);
}

class WritablePart : public WorkspaceWatch {};
INSTANTIATE_TEST_SUITE_P(Modes, WritablePart, testing::Values("overlay", "session"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST_P(WritablePart, SecretStaysHiddenWhenTheHostReplacesIt) {
  workspace.write("sub/.env", "canary old\n");
  workspace.write("inside.sh", "cat sub/.env; echo started; read done; " + readUntilHidden("sub/.env"));
  const RunOutput out = onHost(beside(GetParam(), "--rw sub") +
                               "sleep 0.3; echo canary new > sub/.new; mv sub/.new sub/.env; echo done >&3; wait $P; "
                               "cat $T/out");
  EXPECT_EQ(out.out, "started\n") << out.describe();
}

class SecondView : public WorkspaceWatch {};
INSTANTIATE_TEST_SUITE_P(Modes, SecondView, testing::Values("overlay", "ro", "session"),
                         [](const auto& mode) { return std::string(mode.param); });

TEST_P(SecondView, NewSecretIsHiddenAtEveryPathThatShowsTheWorkspace) {
  CONFORMS("R-FILES-25");
  workspace.write("p/sub/b", "plain\n");
  const std::string p = workspace / "p";
  workspace.write("p/inside.sh", "echo started; read done; " + readUntilHidden("/workspace/sub/.env") +
                                     readUntilHidden(p + "/sub/.env") + readUntilHidden(p + "/sub/new.dump") +
                                     readUntilHidden(p + "/sub/hl") + "cat " + p + "/sub/b");
  for (const std::string& flags :
       {"--ro " + workspace.path(), "--ro " + p, "--ro " + p + "/sub", "--rw " + p + "/sub"}) {
    const bool patterns = !flags.starts_with("--rw");  // which cannot be enforced there
    const std::string all = flags + (patterns ? " --deny 'sub/*.dump'" : "");
    const RunOutput out =
        onHost("cd p; rm -rf sub/.env sub/hl sub/*.dump " + scratch.path() + "/*; " + beside(GetParam(), all) +
               "sleep 0.3; echo canary > sub/.env; ln sub/.env sub/hl; " +
               (patterns ? "echo canary > sub/new.dump; " : "") + "echo done >&3; wait $P; cat $T/out");
    EXPECT_EQ(out.out, "started\nplain\n") << flags << out.describe();
  }
}

class SessionWatch : public SandboxTest {
 protected:
  /// A script for the host in which `$EXEC` runs a shell command in a session.
  [[nodiscard]] RunOutput inSession(const std::string& flags, const std::string& text) const {
    return onHost("export CAISSON_HOME=" + scratch.path() + "/state; S=$($CAISSON session create " + flags +
                  " --workspace . 2> /dev/null); trap '$CAISSON session destroy $S > /dev/null 2>&1' EXIT; "
                  "EXEC=\"$CAISSON session exec $S -- sh -c\"; " +
                  text);
  }
  const TempDir scratch;
};

TEST_F(SessionWatch, SecretBelowAWritablePartStaysHiddenWhenItIsReplacedBetweenCommands) {
  workspace.write("sub/.env", "canary old\n");
  const std::string read = "$EXEC 'cat sub/.env; echo done' 2> /dev/null; ";
  const RunOutput out = inSession("--rw sub", read + "echo canary new > sub/.new; mv sub/.new sub/.env; " + read +
                                                  "ln sub/.env sub/same; rm sub/.env; mv sub/same sub/.env; " + read);
  EXPECT_EQ(out.out, "done\ndone\ndone\n") << out.describe();
}

TEST_F(SessionWatch, NewSecretIsHiddenFromLaterCommandsAtItsOwnPathToo) {
  workspace.write("sub/b", "plain\n");
  for (const std::string flags : {"--ro sub", "--rw sub"}) {
    const std::string read = "$EXEC \"cat sub/.env sub/b $PWD/sub/.env $PWD/sub/b\" 2> /dev/null; ";
    const RunOutput out = inSession(flags, "$EXEC true; echo canary > sub/.env; " + read + read + "rm sub/.env");
    EXPECT_EQ(out.out, "plain\nplain\nplain\nplain\n") << flags << out.describe();
  }
}

TEST_F(SessionWatch, BothPathsOfTheWorkspaceShowTheSameChanges) {
  workspace.write("p/f", "host\n");
  const RunOutput out = onHost(
      "export CAISSON_HOME=" + scratch.path() +
      "/state; S=$($CAISSON session create --ro . --workspace p 2> /dev/null); trap '$CAISSON session destroy $S > "
      "/dev/null 2>&1' EXIT; EXEC=\"$CAISSON session exec $S -- sh -c\"; $EXEC 'echo one > f'; "
      "$EXEC \"echo two > $PWD/p/f; cat /workspace/f\"; $EXEC \"echo three > f; cat $PWD/p/f\"; cat p/f");
  EXPECT_EQ(out.out, "two\nthree\nhost\n") << out.describe();
}

TEST_F(SessionWatch, MovedFilesAreNotReadUnderTheirOldNamesByTheNextCommand) {
  workspace.write("notes.c", "plain\n");
  workspace.write("mv/a.c", "plain\n");
  workspace.write("data/a.c", "plain\n");
  workspace.write("kept.c", "kept\n");
  const RunOutput out = inSession(
      "--deny priv",
      "$EXEC 'stat notes.c mv data > /dev/null; echo mine > own; echo done'; mv notes.c .env; echo canary >> .env; "
      "mv mv " +
          scratch.path() + "/mv; echo canary > " + scratch.path() +
          "/mv/new.c; mv data priv; "
          "echo canary > priv/new.c; $EXEC 'cat notes.c mv/new.c data/new.c; cat kept.c own' 2> /dev/null; "
          "$CAISSON session read $S notes.c 2> /dev/null; echo end");
  EXPECT_EQ(out.out, "done\nkept\nmine\nend\n") << out.describe();
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

TEST_P(WorkspaceWatchOverlay, MovedFileIsHiddenUnderItsOldName) {
  workspace.write("notes.c", "plain\n");
  workspace.write("mv/a.c", "plain\n");
  workspace.write("data/a.c", "plain\n");
  workspace.write("kept.c", "kept\n");
  workspace.write("inside.sh", "stat notes.c mv data kept.c > /dev/null; echo started; read done; " +
                                   readUntilHidden("notes.c") + readUntilHidden("mv/new.c") +
                                   readUntilHidden("data/.env") + "cat kept.c");
  const RunOutput out =
      onHost(beside(GetParam(), "") +
             "sleep 0.3; mv notes.c .env; echo canary >> .env; mv mv $T/mv; echo canary > $T/mv/new.c; mv data data2; "
             "echo canary > data2/.env; mv kept.c kept2.c; echo done >&3; wait $P; cat $T/out");
  EXPECT_EQ(out.out, "started\nkept\n") << out.describe();
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
