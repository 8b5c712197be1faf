// Runs with an OCI runtime: the same promises as without, and what is weaker is named (docs/runtimes.md).
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "functional/busybox_root.h"
#include "functional/sandbox.h"
#include "functional/terminal.h"
#include "support/conforms.h"
#include "support/processes.h"
#include "support/scripts.h"

namespace caisson::test {
namespace {

using std::chrono::seconds;

class Runtime : public SandboxTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (IsSkipped()) return;
    requireOrSkip(exists("/usr/sbin/" + name()) || exists("/usr/bin/" + name()), "no " + name() + " here");
    how.env = {{"CAISSON_HOME", state / "home"}, {"XDG_CONFIG_HOME", state.makeDir("config", 0700)}};
    how.cwd = workspace.path();
  }
  [[nodiscard]] static std::string name() { return GetParam(); }
  [[nodiscard]] static std::vector<std::string> flags() { return {"--runtime", name(), "--allow-weaker", "runtime"}; }

  [[nodiscard]] RunOutput inContainer(const std::string& text, std::vector<std::string> options = {}) const {
    const std::vector<std::string> own = flags();
    options.insert(options.begin(), own.begin(), own.end());
    return script(text, options, how);
  }
  /// An attempt of the hostile payload program.
  [[nodiscard]] RunOutput attempt(const std::vector<std::string>& verb) const {
    std::vector<std::string> options = flags();
    options.insert(options.end(), {"--json", "--ro", payloadPath()});
    return run(options, payload(verb), how);
  }
  /// Runs with a policy file, which the flags accept.
  [[nodiscard]] RunOutput withPolicy(const std::string& text, const std::vector<std::string>& command) const {
    std::vector<std::string> options{"--policy", state.write("policy.toml", text)};
    const std::vector<std::string> own = flags();
    options.insert(options.end(), own.begin(), own.end());
    return run(options, command, how);
  }

  const TempDir state;
  RunOptions how;
};

INSTANTIATE_TEST_SUITE_P(Runtimes, Runtime, testing::Values("runc", "crun"),
                         [](const auto& runtime) { return std::string(runtime.param); });

TEST_P(Runtime, StatusAndStreamsAreTheProgramsOwn) {
  CONFORMS("R-LEVEL-19", "R-RUNTIME-1");
  how.stdin_data = "input\n";
  const RunOutput output = inContainer("cat; echo error >&2; exit 7");
  EXPECT_EQ(output.exit_status, 7) << output.describe();
  EXPECT_EQ(output.out, "input\n");
  EXPECT_TRUE(contains(output.err, "error\n"));
  EXPECT_EQ(run(flags(), {"no-such-program"}, how).exit_status, 127);
  EXPECT_EQ(run(flags(), {"/etc/hostname"}, how).exit_status, 126);
  const RunOutput signaled = inContainer("kill -SEGV $$", {"--json"});
  EXPECT_EQ(signaled.json()["outcome"], "signaled") << signaled.describe();
  EXPECT_EQ(signaled.json()["signal"], SIGSEGV);
  EXPECT_EQ(inContainer("head -c 3000000 /dev/zero").out.size(), 3000000U);
}

TEST_P(Runtime, WeakerLayersAreRefusedUnlessAcceptedAndNamed) {
  CONFORMS("R-RUNTIME-2");
  const RunOutput refused = script("echo ran", {"--runtime", name()}, how);
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_EQ(refused.out, "");
  EXPECT_TRUE(contains(refused.err, "not reported")) << refused.describe();
  EXPECT_TRUE(contains(refused.err, "--allow-weaker runtime"));
  const RunOutput output = inContainer("id -u", {"--json"});
  const nlohmann::json result = output.json();
  ASSERT_EQ(result["outcome"], "exited") << output.describe();
  EXPECT_EQ(result["stdout"], "0\n");
  EXPECT_TRUE(contains(result["layers"]["runtime"], name())) << result["layers"];
  EXPECT_TRUE(contains(result["layers"]["user"], "root inside")) << result["layers"];
  EXPECT_TRUE(contains(result["layers"]["proc"], "/proc/version")) << result["layers"];
  EXPECT_TRUE(contains(result["layers"]["seccomp_notify"], "only calls")) << result["layers"];
  EXPECT_TRUE(contains(result["warnings"].dump(), "blocked by name are not reported")) << result["warnings"];
  EXPECT_TRUE(contains(result["warnings"].dump(), "uid 0 of the sandbox")) << result["warnings"];
}

TEST_P(Runtime, UnsupportedOptionsAreRefused) {
  CONFORMS("R-RUNTIME-2");
  for (const std::vector<std::string>& options :
       {std::vector<std::string>{"--level", "process"}, {"--level", "process", "--tier", "landlock"}}) {
    const RunOutput output = inContainer("echo ran", options);
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_EQ(output.out, "");
  }
  const RunOutput passed = withPolicy("[process]\npass_descriptors = ['9']\n", {"echo", "ran"});
  EXPECT_EQ(passed.exit_status, 125) << passed.describe();
  EXPECT_TRUE(contains(passed.err, "pass_descriptors")) << passed.describe();
  const RunOutput session = runCaisson({"session", "create", "--runtime", name(), "--allow-weaker", "runtime"}, how);
  EXPECT_EQ(session.exit_status, 125) << session.describe();
  EXPECT_TRUE(contains(session.err, "a session cannot use " + name())) << session.describe();
}

TEST_P(Runtime, TimeLimitEndsEveryProcess) {
  CONFORMS("R-RUNTIME-1");
  const std::string marker = uniqueMarker();
  const RunOutput output =
      inContainer("(exec -a " + marker + " sleep 300) & (trap '' TERM; exec -a " + marker + " sleep 300)",
                  {"--json", "--timeout", "1s"});
  EXPECT_EQ(output.exit_status, 124) << output.describe();
  EXPECT_EQ(output.json()["limit"], "time");
  EXPECT_TRUE(eventually([&] { return processesNaming(marker).empty(); }));
}

TEST_P(Runtime, SignalsReachTheProgram) {
  CONFORMS("R-RUNTIME-1");
  std::vector<std::string> command{caissonBinary(), "run", "--workspace", ".:rw"};
  for (const std::string& flag : flags()) command.push_back(flag);
  const std::string text = "trap 'exit 9' TERM; touch ready; while :; do sleep 0.05; done";
  command.insert(command.end(), {"--", "sh", "-c", text});
  BackgroundProgram handled(command, how);
  ASSERT_TRUE(eventually([&] { return exists(workspace / "ready"); }, seconds(20)));
  handled.signal(SIGTERM);
  EXPECT_EQ(handled.wait(seconds(20)), 9);
  command.back() = "touch again; exec sleep 300";  // not pid 1, so the default action applies
  BackgroundProgram unhandled(command, how);
  ASSERT_TRUE(eventually([&] { return exists(workspace / "again"); }, seconds(20)));
  unhandled.signal(SIGTERM);
  EXPECT_EQ(unhandled.wait(seconds(20)), 128 + SIGTERM);
}

TEST_P(Runtime, LimitsEndTheRunAndAreNamed) {
  CONFORMS("R-RUNTIME-1");
  requireOrSkip(systemHas("python3"), "no python3 here");
  std::vector<std::string> options = flags();
  options.insert(options.end(), {"--json", "--memory", "64M"});
  // It waits: without a cgroup the supervisor polls.
  const RunOutput memory =
      run(options, {"python3", "-c", "import time; x = bytearray(600 << 20); time.sleep(60); print(len(x))"}, how);
  EXPECT_EQ(memory.json()["limit"], "memory") << memory.describe();
  EXPECT_EQ(memory.json()["stdout"], "");
  const RunOutput processes =
      inContainer("i=0; while [ $i -lt 60 ]; do sleep 2 & i=$((i+1)); done; wait", {"--json", "--pids", "20"});
  EXPECT_EQ(processes.json()["limit"], "processes") << processes.describe();
  const RunOutput output = inContainer("head -c 100000 /dev/zero", {"--json", "--output-limit", "10K"});
  EXPECT_EQ(output.json()["truncated"]["stdout"], true) << output.describe();
  EXPECT_EQ(output.json()["outcome"], "exited");
  const RunOutput size = inContainer("head -c 30M /dev/zero > /run/file", {"--json"});
  EXPECT_EQ(size.json()["limit"], "disk") << size.describe();
}

TEST_P(Runtime, HostFilesAreInvisible) {
  CONFORMS("R-RUNTIME-3");
  const TempDir outside;
  const Canary canary(outside / "canary");
  workspace.write(".env", "SECRET=" + canary.secret());
  workspace.write("denied/file", canary.secret());
  const RunOutput output = inContainer(
      "cat " + canary.path() +
          " .env denied/file; ls /bundle /proc/1/root /proc/1/fd /proc/1/environ; "
          "cat /proc/version /proc/sys/kernel/random/boot_id /proc/cmdline /proc/kallsyms; ls /proc/fs; echo end",
      {"--deny", "denied"});
  EXPECT_EQ(output.out, "end\n") << output.describe();
  EXPECT_FALSE(canary.leakedInto(output.describe()));
  EXPECT_TRUE(canary.untouched());
  const RunOutput written = inContainer("echo x > new; echo x > /etc/x; echo x > /usr/x; echo x > /x; cat new");
  EXPECT_EQ(written.out, "x\n") << written.describe();
  EXPECT_FALSE(exists(workspace / "new")) << "the overlay is discarded";
}

TEST_P(Runtime, ProgramHasNoPrivileges) {
  CONFORMS("R-RUNTIME-3");
  const RunOutput output = inContainer(
      "grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t\\n'; "
      "ls /proc/self/fd | tr '\\n' ' '");
  const std::string none(16, '0');
  EXPECT_TRUE(contains(output.out, "CapInh:" + none + "CapPrm:" + none + "CapEff:" + none + "CapBnd:" + none +
                                       "CapAmb:" + none + "NoNewPrivs:1Seccomp:2"))
      << output.describe();
  EXPECT_TRUE(contains(output.out, "0 1 2 3 ")) << "0 to 2, and the one of ls: " << output.describe();
  EXPECT_FALSE(contains(output.out, " 4 ")) << output.describe();
}

TEST_P(Runtime, EscapeAttemptsAreDenied) {
  CONFORMS("R-RUNTIME-3");
  const std::vector<std::vector<std::string>> attempts{
      {"unshare", "user"},
      {"unshare", "mnt"},
      {"clone", "user"},
      {"clone3", "user"},
      {"setns", "mnt"},
      {"mount", "tmpfs"},
      {"mount", "remount"},
      {"umount", "/proc"},
      {"fsopen"},
      {"open-tree"},
      {"move-mount"},
      {"pivot-root"},
      {"chroot"},
      {"trace", "1"},
      {"read-memory", "1"},
      {"borrow-descriptor", "1"},
      {"signal-init", "9"},
      {"limit", "1"},
      {"write", "/proc/sys/kernel/domainname"},
      {"socket", "17", "3", "0"},
      {"socket", "40", "1", "0"},
      {"read", "/proc/1/environ"},
  };
  for (const std::vector<std::string>& verb : attempts) {
    const RunOutput output = attempt(verb);
    const nlohmann::json result = output.json();
    ASSERT_FALSE(result.is_discarded()) << output.describe();
    const bool ended = result["outcome"] == "denied";
    const bool refused = result["outcome"] == "exited" && result["exit_code"] == 1;
    EXPECT_TRUE(ended || refused) << verb[0] << ": " << output.describe();
  }
}

TEST_P(Runtime, ArgumentsAreFilteredAndReported) {
  CONFORMS("R-RUNTIME-2");
  const nlohmann::json by_argument = attempt({"socket", "17", "3", "0"}).json();
  ASSERT_EQ(by_argument["violations"].size(), 1U) << by_argument;
  EXPECT_EQ(by_argument["violations"][0]["syscall"], "socket");
  const nlohmann::json by_name = attempt({"mount", "tmpfs"}).json();
  EXPECT_EQ(by_name["exit_code"], 1) << by_name;
  EXPECT_TRUE(by_name["violations"].empty()) << "named as missing in layers and warnings: " << by_name;
}

TEST_P(Runtime, LandlockAndProgramRulesHold) {
  CONFORMS("R-RUNTIME-3");
  const std::string level = "[isolation]\nlevel = 'full'\n";
  // The access of a directory rests on Landlock alone.
  const RunOutput landlock = withPolicy(level + "[[filesystem.tmpfs]]\npath = '/run'\nsize = '1M'\naccess = 'ro'\n",
                                        {"sh", "-c", "echo x > /run/x"});
  EXPECT_NE(landlock.exit_status, 0) << landlock.describe();
  EXPECT_TRUE(contains(landlock.err, "ermission denied")) << landlock.describe();
  const RunOutput exec = withPolicy(level + "[process]\nallow_exec = false\n", {"sh", "-c", "echo one; exec true"});
  EXPECT_EQ(exec.out, "one\n") << exec.describe();
  EXPECT_NE(exec.exit_status, 0);
  const RunOutput listed =
      withPolicy(level + "[process]\nallowed_executables = ['sh']\n", {"sh", "-c", "echo one; /usr/bin/id; echo $?"});
  EXPECT_TRUE(listed.out == "one\n127\n" || listed.out == "one\n126\n") << listed.describe();
}

TEST_P(Runtime, SecretThatAppearsIsHidden) {
  CONFORMS("R-RUNTIME-3");
  workspace.write("inside.sh", "echo started; read done; " + readUntilHidden(".env") + "echo end");
  const RunOutput out =
      onHost("T=" + state.path() + "; mkfifo $T/words; touch $T/out; $CAISSON run --runtime " + name() +
                 " --allow-weaker runtime -- sh inside.sh < $T/words > $T/out 2> $T/err & P=$!; "
                 "exec 3> $T/words; until grep -q started $T/out; do sleep 0.01; done; "
                 "echo canary > .env; echo done >&3; wait $P; echo status $?; cat $T/out $T/err",
             how);
  EXPECT_TRUE(contains(out.out, "status 0\nstarted\nend\n")) << out.describe();
  EXPECT_FALSE(contains(out.out, "visible")) << out.describe();
}

TEST_P(Runtime, NetworkIsNoneOrTheProxy) {
  CONFORMS("R-RUNTIME-4");
  requireOrSkip(systemHas("python3"), "no python3 here");
  const std::string connect =
      "import socket\ntry:\n  socket.create_connection(('192.0.2.1', 80), 3)\n  print('connected')\n"
      "except OSError as error:\n  print(error.strerror)\n";
  EXPECT_EQ(run(flags(), {"python3", "-c", connect}, how).out, "Network is unreachable\n");
  std::vector<std::string> options = flags();
  options.insert(options.end(), {"--json", "--net", "proxy", "--allow-host", "allowed.example"});
  const RunOutput output = run(options,
                               {"python3", "-c",
                                "import urllib.request, urllib.error\n"
                                "try:\n  urllib.request.urlopen('http://other.example/', timeout=5)\n"
                                "except urllib.error.HTTPError as error:\n  print(error.code)\n"},
                               how);
  EXPECT_EQ(output.json()["stdout"], "403\n") << output.describe();
  EXPECT_TRUE(contains(output.json()["denials"].dump(), "other.example")) << output.describe();
}

TEST_P(Runtime, ImageIsTheRoot) {
  CONFORMS("R-RUNTIME-3");
  requireOrSkip(hasBusybox(), "no /bin/busybox on this machine");
  const TempDir root;
  installBusybox(root);
  root.write("srv/file", "data\n");
  root.openToAll();
  const std::string text = "cat /srv/file; echo x > /srv/file; ls /usr/share 2>/dev/null; echo end";
  std::vector<std::string> options = flags();
  options.insert(options.end(), {"--image", root.path(), "--workspace", ":none"});
  const RunOutput output = run(options, {"sh", "-c", text}, how);
  EXPECT_EQ(output.out, "data\nend\n") << output.describe();
  EXPECT_TRUE(contains(output.err, "Read-only file system")) << output.describe();
  options.insert(options.end(), {"--user", "root"});
  const RunOutput changed = run(options, {"sh", "-c", "echo x > /srv/file; cat /srv/file"}, how);
  EXPECT_EQ(changed.out, "x\n") << changed.describe();
  EXPECT_EQ(readFile(root / "srv/file"), "data\n");
}

TEST_P(Runtime, TerminalHasJobControl) {
  CONFORMS("R-RUNTIME-1");
  std::vector<std::string> command{caissonBinary(), "run"};
  for (const std::string& flag : flags()) command.push_back(flag);
  command.insert(command.end(),
                 {"--", "bash", "--norc", "-c", "tty; set -m; sleep 0.01 & fg; read -r line; echo got $line"});
  Terminal terminal(command, workspace.path());
  ASSERT_TRUE(terminal.shows("/dev/pts/0")) << terminal.screen();
  terminal.type("typed\n");
  EXPECT_TRUE(terminal.shows("got typed")) << terminal.screen();
  EXPECT_FALSE(contains(terminal.screen(), "no job control")) << terminal.screen();
  EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
}

TEST_P(Runtime, NothingIsLeftWhenCaissonIsKilled) {
  CONFORMS("R-RUNTIME-5");
  const std::string marker = uniqueMarker();
  const std::string mounts = readFile("/proc/self/mountinfo");
  const std::string errors = state / "errors";
  std::vector<std::string> command{"sh",          "-c",  "exec \"$@\" 2> \"$0\"", errors, caissonBinary(), "run",
                                   "--workspace", ".:rw"};
  for (const std::string& flag : flags()) command.push_back(flag);
  command.insert(command.end(), {"--", "bash", "-c", "touch ready; exec -a " + marker + " sleep 300"});
  pid_t killed = -1;
  {
    BackgroundProgram program(command, how);
    ASSERT_TRUE(eventually([&] { return exists(workspace / "ready"); }, seconds(20))) << readFile(errors);
    const std::vector<pid_t> tree = processTree(program.pid());
    EXPECT_GT(tree.size(), 3U) << "pid 1, the runtime, its container";
    killed = tree.back();
    program.signal(SIGKILL);
    ASSERT_TRUE(program.wait(seconds(5)));
  }
  EXPECT_TRUE(eventually([&] { return processesNaming(marker).empty(); }));
  EXPECT_TRUE(eventually([&] { return !processState(killed); }));
  EXPECT_EQ(readFile("/proc/self/mountinfo"), mounts);
  EXPECT_EQ(inContainer("true").exit_status, 0);
  EXPECT_EQ(runProgram({"ls", "-A", state / "home/runs"}).out, "") << "the next run removed what was left";
}

TEST_P(Runtime, FailingRuntimeIsAnErrorAndNeverReplaced) {
  CONFORMS("R-RUNTIME-5");
  const auto configure = [&](const std::string& text) { state.write("config/caisson/config.toml", text, 0600); };
  const std::string canary = state / "canary";
  state.write("bin/" + name(), "#!/bin/sh\ntouch " + canary + "\n", 0755);
  how.env["PATH"] = state / "bin:/usr/bin:/bin";
  EXPECT_EQ(inContainer("echo ran").out, "ran\n");
  EXPECT_FALSE(exists(canary)) << "a program of the caller's PATH was started";

  configure("[runtimes]\npaths = ['" + name() + "=/usr/bin/false']\n");
  const RunOutput failed = inContainer("echo ran", {"--json"});
  EXPECT_EQ(failed.exit_status, 125) << failed.describe();
  EXPECT_EQ(failed.json()["outcome"], "setup_failed");
  EXPECT_EQ(failed.json()["stdout"], "");
  EXPECT_TRUE(contains(failed.json()["error"]["reason"], "exit status 1")) << failed.describe();

  configure("[runtimes]\npaths = ['" + name() + "=" + state.path() + "/missing']\n");
  const RunOutput missing = inContainer("echo ran", {"--json"});
  EXPECT_EQ(missing.json()["outcome"], "setup_failed") << missing.describe();
  EXPECT_EQ(missing.exit_status, 125);

  configure("[runtimes]\nallowed = []\n");
  const RunOutput forbidden = inContainer("echo ran");
  EXPECT_EQ(forbidden.exit_status, 125) << forbidden.describe();
  EXPECT_TRUE(contains(forbidden.err, "does not allow " + name())) << forbidden.describe();
}

TEST_P(Runtime, HangingRuntimeIsEndedByTheTimeLimit) {
  CONFORMS("R-RUNTIME-5");
  // In the home directory: a runtime in a directory that others can write is refused.
  const passwd* user = getpwuid(geteuid());
  std::string home = std::string(user != nullptr ? user->pw_dir : "") + "/caisson-test-XXXXXX";
  requireOrSkip(mkdtemp(home.data()) != nullptr, "no home directory to write");
  const std::string program = home + "/" + name();
  std::ofstream(program) << "#!/bin/sh\nsleep 300\n";
  chmod(program.c_str(), 0755);
  state.write("config/caisson/config.toml", "[runtimes]\npaths = ['" + name() + "=" + program + "']\n", 0600);
  const RunOutput output = inContainer("echo ran", {"--json", "--timeout", "1s"});
  unlink(program.c_str());
  rmdir(home.c_str());
  EXPECT_EQ(output.exit_status, 124) << output.describe();
  EXPECT_LT(output.duration, seconds(15));
  EXPECT_EQ(output.json()["stdout"], "");

  const std::string open = state.makeDir("open", 0777);
  chmod(open.c_str(), 0777);
  state.write("open/" + name(), "#!/bin/sh\nsleep 300\n", 0755);
  state.write("config/caisson/config.toml", "[runtimes]\npaths = ['" + name() + "=" + open + "/" + name() + "']\n",
              0600);
  const RunOutput unsafe = inContainer("echo ran", {"--json"});
  EXPECT_EQ(unsafe.json()["outcome"], "setup_failed") << unsafe.describe();
  EXPECT_TRUE(contains(unsafe.json()["error"]["reason"], "may change")) << unsafe.describe();
}

/// gVisor is in no Debian release, so no test runs it: its command line and bundle are checked in
/// src/runtime/outer_plan_test.cc.
TEST(RuntimeRunsc, MissingIsAnError) {
  CONFORMS("R-RUNTIME-5");
  requireOrSkip(!exists("/usr/bin/runsc") && !exists("/usr/local/bin/runsc"), "runsc is installed here");
  const RunOutput output =
      runCaisson({"run", "--json", "--runtime", "runsc", "--allow-weaker", "runtime", "--", "echo", "ran"});
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_EQ(output.json()["outcome"], "setup_failed") << output.describe();
  EXPECT_TRUE(contains(output.json()["error"]["reason"], "not installed")) << output.describe();
}

}  // namespace
}  // namespace caisson::test
