// The interface of `caisson run`: exit statuses, the JSON object, the result file, environment.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <set>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using nlohmann::json;

class ExitStatus : public SandboxTest {};
class JsonResult : public SandboxTest {};
class Environment : public SandboxTest {};

TEST_F(ExitStatus, IsTheProgramsOwn) {
  CONFORMS("R-PROCESS-15", "R-PROCESS-20");
  for (const int status : {0, 1, 2, 42, 123, 124, 125, 126, 127, 200, 255}) {
    EXPECT_EQ(run({}, {"sh", "-c", "exit " + std::to_string(status)}).exit_status, status);
  }
}

TEST_F(ExitStatus, Is128PlusTheSignal) {
  CONFORMS("R-PROCESS-10", "R-PROCESS-20");
  for (const int number : {SIGTERM, SIGKILL, SIGSEGV, SIGABRT, SIGHUP, SIGUSR1}) {
    const RunOutput output = run({}, {"sh", "-c", "kill -" + std::to_string(number) + " $$"});
    EXPECT_EQ(output.exit_status, 128 + number) << output.describe();
    EXPECT_EQ(output.signal, 0) << "caisson itself must exit, not die";
  }
}

TEST_F(ExitStatus, Is124AfterATimeout) {
  CONFORMS("R-PROCESS-3", "R-PROCESS-20");
  const RunOutput output = run({"--timeout", "300ms"}, {"sleep", "30"});
  EXPECT_EQ(output.exit_status, 124) << output.describe();
  EXPECT_LT(output.duration, std::chrono::seconds(10));
  EXPECT_TRUE(contains(output.err, "time")) << output.describe();
}

TEST_F(ExitStatus, Is125WhenCaissonWillNotRunIt) {
  CONFORMS("R-PROCESS-20");
  for (const std::vector<std::string>& options : std::vector<std::vector<std::string>>{
           {"--no-such-option"}, {"--memory", "many"}, {"--workspace", "/does/not/exist"}}) {
    const RunOutput output = run(options, {"true"});
    EXPECT_EQ(output.exit_status, 125) << options[0] << output.describe();
    EXPECT_TRUE(output.err.starts_with("caisson: ")) << output.describe();
    EXPECT_EQ(output.out, "");
  }
}

TEST_F(ExitStatus, Is126WhenNotExecutableAnd127WhenNotFound) {
  CONFORMS("R-PROCESS-20");
  workspace.write("plain", "x");
  EXPECT_EQ(run({}, {"./plain"}).exit_status, 126);
  EXPECT_EQ(run({}, {"no-such-program-anywhere"}).exit_status, 127);
  EXPECT_EQ(run({}, {"/no/such/program"}).exit_status, 127);
}

TEST_F(ExitStatus, QuietSuppressesNotices) {
  EXPECT_NE(script("touch f").err, "");
  EXPECT_EQ(script("touch f", {"--quiet"}).err, "");
  EXPECT_EQ(script("true").err, "") << "nothing happened that a person should know";
}

void expectResultShape(const json& result) {
  ASSERT_TRUE(result.is_object());
  EXPECT_EQ(result["version"], 1);
  for (const char* key : {"sandbox_id", "outcome", "exit_code", "signal", "limit", "stdout", "stderr", "truncated",
                          "duration_ms", "usage", "denials", "violations", "layers", "warnings"}) {
    EXPECT_TRUE(result.contains(key)) << key << " is missing in " << result.dump();
  }
  EXPECT_TRUE(result["sandbox_id"].is_string());
  static const std::set<std::string> kOutcomes{"exited", "signaled", "limit", "denied", "setup_failed", "cancelled"};
  EXPECT_TRUE(kOutcomes.contains(result["outcome"].get<std::string>())) << result["outcome"];
  EXPECT_TRUE(result["exit_code"].is_number_integer() || result["exit_code"].is_null());
  EXPECT_TRUE(result["signal"].is_number_integer() || result["signal"].is_null());
  EXPECT_TRUE(result["limit"].is_string() || result["limit"].is_null());
  EXPECT_TRUE(result["stdout"].is_string());
  EXPECT_TRUE(result["stderr"].is_string());
  EXPECT_TRUE(result["truncated"]["stdout"].is_boolean());
  EXPECT_TRUE(result["truncated"]["stderr"].is_boolean());
  EXPECT_TRUE(result["duration_ms"].is_number());
  EXPECT_TRUE(result["usage"].is_object());
  EXPECT_TRUE(result["denials"].is_array());
  EXPECT_TRUE(result["violations"].is_array());
  EXPECT_TRUE(result["layers"].is_object());
  EXPECT_TRUE(result["warnings"].is_array());
}

TEST_F(JsonResult, OfAnOrdinaryRun) {
  CONFORMS("R-PROCESS-20");
  const RunOutput output = run({"--json"}, {"sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(output.exit_status, 3);
  const json result = output.json();
  expectResultShape(result);
  EXPECT_EQ(result["outcome"], "exited");
  EXPECT_EQ(result["exit_code"], 3);
  EXPECT_TRUE(result["signal"].is_null());
  EXPECT_TRUE(result["limit"].is_null());
  EXPECT_EQ(result["stdout"], "out\n");
  EXPECT_EQ(result["stderr"], "err\n");
  EXPECT_EQ(result["truncated"]["stdout"], false);
  EXPECT_NE(result["sandbox_id"], "");
  for (const char* layer : {"level", "namespaces", "seccomp", "capabilities", "no_new_privs"}) {
    EXPECT_TRUE(result["layers"].contains(layer)) << layer;
  }
  for (const char* key : {"wall_ms", "user_cpu_ms", "system_cpu_ms", "peak_memory_bytes"}) {
    EXPECT_TRUE(result["usage"][key].is_number()) << key;
  }
  EXPECT_EQ(output.out.back(), '\n');
  EXPECT_EQ(std::count(output.out.begin(), output.out.end(), '\n'), 1) << "one object on one line";
}

TEST_F(JsonResult, OfEveryOtherOutcome) {
  CONFORMS("R-PROCESS-20");
  const json signaled = run({"--json"}, {"sh", "-c", "kill -SEGV $$"}).json();
  expectResultShape(signaled);
  EXPECT_EQ(signaled["outcome"], "signaled");
  EXPECT_EQ(signaled["signal"], SIGSEGV);
  EXPECT_TRUE(signaled["exit_code"].is_null());

  const json late = run({"--json", "--timeout", "200ms"}, {"sh", "-c", "echo before; sleep 30"}).json();
  expectResultShape(late);
  EXPECT_EQ(late["outcome"], "limit");
  EXPECT_EQ(late["limit"], "time");
  EXPECT_EQ(late["stdout"], "before\n");

  const RunOutput refused = run({"--json", "--workspace", "/does/not/exist"}, {"true"});
  expectResultShape(refused.json());
  EXPECT_EQ(refused.json()["outcome"], "setup_failed");
  EXPECT_EQ(refused.exit_status, 125);

  const RunOutput missing = run({"--json"}, {"no-such-program"});
  expectResultShape(missing.json());
  EXPECT_EQ(missing.exit_status, 127);
}

TEST_F(JsonResult, IdsDifferBetweenRuns) {
  EXPECT_NE(run({"--json"}, {"true"}).json()["sandbox_id"], run({"--json"}, {"true"}).json()["sandbox_id"]);
}

TEST_F(JsonResult, MarksBytesThatAreNotText) {
  const json binary = run({"--json"}, {"printf", R"(\377\000\001abc)"}).json();
  EXPECT_EQ(binary["stdout"], "/wABYWJj");
  EXPECT_EQ(binary["stdout_encoding"], "base64");
  const json text = run({"--json"}, {"printf", R"(\303\244 "\\" \t\000\033[1m)"}).json();
  EXPECT_EQ(text["stdout"], std::string("\xC3\xA4 \"\\\" \t\0\x1b[1m", 13));
  EXPECT_EQ(text["stdout_encoding"], "utf-8");
  const json both = run({"--json"}, {"sh", "-c", R"(printf fine; printf '\377' >&2)"}).json();
  EXPECT_EQ(both["stdout"], "fine");
  EXPECT_EQ(both["stderr_encoding"], "base64");
}

TEST_F(JsonResult, TruncatedInsideACharacterIsStillValid) {
  const RunOutput output = run({"--json", "--output-limit", "4"}, {"printf", R"(abc\303\244)"});
  const json result = output.json();
  ASSERT_FALSE(result.is_discarded()) << output.describe();
  EXPECT_EQ(result["truncated"]["stdout"], true);
}

TEST_F(JsonResult, HasCpuTimeMemoryAndWallTime) {
  const json busy = run({"--json"}, {"sh", "-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"}).json();
  EXPECT_GT(busy["usage"]["user_cpu_ms"].get<double>() + busy["usage"]["system_cpu_ms"].get<double>(), 20);
  const json slow = run({"--json"}, {"sleep", "0.3"}).json();
  EXPECT_GE(slow["duration_ms"].get<double>(), 295);
  EXPECT_LT(slow["usage"]["user_cpu_ms"].get<double>(), 200);
  // Of a run long enough to be polled: a short one reports less if caisson itself is large (sanitizers).
  EXPECT_GT(slow["usage"]["peak_memory_bytes"].get<std::uint64_t>(), 100000U);
}

TEST_F(JsonResult, GoesToAFileBesideTheNormalOutput) {
  const std::string file = workspace / "result.json";
  const RunOutput output = run({"--result", file}, {"sh", "-c", "echo out; echo err >&2; exit 4"});
  EXPECT_EQ(output.exit_status, 4) << output.describe();
  EXPECT_EQ(output.out, "out\n");
  EXPECT_EQ(output.err, "err\n");
  const json result = json::parse(readFile(file), nullptr, false);
  expectResultShape(result);
  EXPECT_EQ(result["exit_code"], 4);
}

TEST_F(JsonResult, FileIsWrittenForFailuresTooAndReplacedNotAppended) {
  const std::string file = workspace.write("result.json", std::string(100000, 'x'));
  EXPECT_EQ(run({"--result", file}, {"no-such-program"}).exit_status, 127);
  EXPECT_FALSE(json::parse(readFile(file), nullptr, false).is_discarded());
  EXPECT_EQ(run({"--result", file, "--timeout", "100ms"}, {"sleep", "9"}).exit_status, 124);
  EXPECT_EQ(json::parse(readFile(file), nullptr, false)["limit"], "time");
}

TEST_F(JsonResult, PayloadCannotChangeTheResultFileInTheWorkspace) {
  const TempDir elsewhere;
  const Canary canary(elsewhere / "canary");
  const RunOutput output = run({"--workspace", ".:rw", "--result", workspace / "result.json"},
                               {"ln", "-sf", canary.path(), "/workspace/result.json"});
  EXPECT_TRUE(canary.untouched()) << output.describe();
}

TEST_F(Environment, IsClean) {
  CONFORMS("R-PROCESS-14");
  const RunOutput output = run({}, {"env"},
                               {.env = {{"SECRET_TOKEN", "leak"},
                                        {"LD_PRELOAD", ""},
                                        {"LD_LIBRARY_PATH", "/x"},
                                        {"BASH_ENV", "/x"},
                                        {"NODE_OPTIONS", "-x"},
                                        {"PYTHONSTARTUP", "/x"},
                                        {"SSH_AUTH_SOCK", "/x"},
                                        {"DISPLAY", ":0"},
                                        {"DBUS_SESSION_BUS_ADDRESS", "unix:x"},
                                        {"HTTP_PROXY", "http://x"},
                                        {"EDITOR", "ed"},
                                        {"PATH", "/usr/bin:/bin"}}});
  for (const char* name : {"SECRET_TOKEN", "LD_", "BASH_ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "SSH_", "DISPLAY",
                           "DBUS", "PROXY", "EDITOR", "OLDPWD", "leak"}) {
    EXPECT_FALSE(contains(output.out, name)) << name << output.describe();
  }
  for (const char* line : {"HOME=/home/sandbox\n", "USER=sandbox\n", "TMPDIR=/tmp\n", "PATH=/usr/local/sbin:"}) {
    EXPECT_TRUE(contains("\n" + output.out, line)) << line << output.describe();
  }
}

TEST_F(Environment, HasWhatWasNamed) {
  CONFORMS("R-PROCESS-14");
  const RunOutput output = run({"--env", "A=1", "--env", "EMPTY=", "--env", "PASSED", "--env", "B=x=y z", "--env",
                                "HOME=/tmp", "--env", "LD_BIND_NOW=1"},
                               {"env"}, {.env = {{"PASSED", "from outside"}}});
  for (const char* line :
       {"\nA=1\n", "\nEMPTY=\n", "\nPASSED=from outside\n", "\nB=x=y z\n", "\nHOME=/tmp\n", "\nLD_BIND_NOW=1\n"}) {
    EXPECT_TRUE(contains("\n" + output.out, line)) << line << output.describe();
  }
  EXPECT_FALSE(contains(output.out, "HOME=/home/sandbox"));
}

TEST_F(Environment, HasWhatAPolicyFileNames) {
  CONFORMS("R-PROCESS-14");
  const auto shown = [&](const std::string& policy) {
    workspace.write("environment.toml", policy);
    const RunOutput output =
        run({"--policy", "environment.toml"}, {"sh", "-c", "env | grep -E '^(A=|FOO|BAZ|LD_)' | sort"},
            {.env = {{"FOO", "bar"}, {"BAZ", "1"}, {"LD_DEBUG_OUTPUT", "/x"}}});
    return output.out;
  };
  EXPECT_EQ(shown(""), "");
  EXPECT_EQ(shown("environment.pass = ['FOO']\n"), "FOO=bar\n");
  EXPECT_EQ(shown("environment.set = {A = '1'}\n"), "A=1\n");
  EXPECT_EQ(shown("environment.mode = 'inherit'\n"), "BAZ=1\nFOO=bar\n") << "without variables of the loader";
}

TEST_F(Environment, PathVariableDecidesWhereProgramsAreFound) {
  workspace.write("bin/tool", "#!/bin/sh\necho mine\n", 0755);
  EXPECT_EQ(run({"--env", "PATH=/workspace/bin:/usr/bin:/bin"}, {"tool"}).out, "mine\n");
}

TEST_F(Environment, NoDescriptorBeyondTheStandardOnes) {
  CONFORMS("R-PROCESS-13");
  const RunOutput output =
      onHost(R"(exec 7</etc/hostname 9>held; "$CAISSON" run -- sh -c 'ls /proc/self/fd | wc -l; echo x >&9')");
  EXPECT_TRUE(output.out.starts_with("4\n")) << "0, 1, 2 and ls's own " << output.describe();
  EXPECT_EQ(readFile(workspace / "held"), "");
}

/// With the same numbers, also those that caisson itself uses; a descriptor that is not named is not passed.
TEST_F(Environment, HasTheDescriptorsThatThePolicyNames) {
  CONFORMS("R-PROCESS-13");
  workspace.write("input", "passed in\n");
  workspace.write("secret", "not named\n");
  workspace.write("pass.toml", "extends = 'bash'\nprocess.pass_descriptors = [3, 4, '9', 63]\n");
  workspace.openToAll();
  const TempDir other;
  const std::string inside =
      "cat <&3; echo out >&4; cat <&9; echo x >&63; cat <&7; for f in 3 4 5 6 7 9 63; do "
      "test -e /proc/self/fd/$f && printf \"$f \"; done; echo x > /proc/self/fd/3; echo; grep -c . /proc/self/fd/3";
  for (const std::string level : {"full", "process"}) {
    const RunOutput output = onHost(
        "rm -f output; (echo from a pipe | \"$CAISSON\" run -q --policy pass.toml --level " + level + " --workspace " +
        other.path() + ":ro -- bash -c '" + inside + "' 3< input 4> output 7< secret 9<&0 63> /dev/null < /dev/null)");
    EXPECT_EQ(output.out, "passed in\nfrom a pipe\n3 4 9 63 \n1\n") << level << output.describe();
    EXPECT_EQ(readFile(workspace / "output"), "out\n") << level;
    EXPECT_EQ(readFile(workspace / "input"), "passed in\n") << level << ": it was opened again for writing";
  }
  const RunOutput result =
      onHost("\"$CAISSON\" run --json --policy pass.toml -- true 3< input 4< input 9< input 63< input");
  EXPECT_EQ(result.json()["layers"]["descriptors"], "0 1 2 3 4 9 63") << result.describe();
}

/// Not open, or a way out of the sandbox: a directory, a socket that could be connected, a device.
TEST_F(Environment, DescriptorsThatCannotBePassedAreRefused) {
  CONFORMS("R-PROCESS-13");
  workspace.write("pass.toml", "extends = 'bash'\nprocess.pass_descriptors = [7]\n");
  workspace.openToAll();
  for (const auto& [how, reason] : std::vector<std::pair<std::string, std::string>>{
           {"", "descriptor 7 is not open"},
           {"7< /", "descriptor 7 is not a file, pipe or connected UNIX stream socket"},
           {"7<> /dev/ptmx", "descriptor 7 is not a file"}}) {
    for (const std::string verb : {"run", "plan"}) {
      const RunOutput output = onHost("\"$CAISSON\" " + verb + " --policy pass.toml -- echo ran " + how);
      EXPECT_EQ(output.exit_status, 125) << how << output.describe();
      EXPECT_EQ(output.out, "") << how;
      EXPECT_TRUE(contains(output.err, reason)) << output.describe();
    }
  }
  const RunOutput session = onHost("\"$CAISSON\" session create --policy pass.toml 7< pass.toml");
  EXPECT_EQ(session.exit_status, 125) << session.describe();
  EXPECT_TRUE(contains(session.err, "process.pass_descriptors")) << session.describe();
  workspace.write("low.toml", "process.pass_descriptors = [2]\n");
  const RunOutput low = run({"--policy", "low.toml"}, {"echo", "ran"});
  EXPECT_EQ(low.exit_status, 125) << low.describe();
  EXPECT_TRUE(contains(low.err, "low.toml:1: process.pass_descriptors[0]")) << low.describe();
}

TEST_F(Environment, IdentityIsAnOrdinaryUserOfTheSandbox) {
  CONFORMS("R-LEVEL-13", "R-LEVEL-4");
  const RunOutput output = script(
      "id -u; id -g; id -G; id -un; hostname; cat /etc/hostname; umask; ulimit -n; ulimit -c; "
      "grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp):' /proc/self/status | cut -f2 | paste -sd' '",
      {"--profile", "bash"});
  EXPECT_EQ(output.out,
            "1000\n1000\n1000\nsandbox\nsandbox\nsandbox\n0022\n1024\n0\n"
            "0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 1 2\n")
      << output.describe();
}

TEST_F(Environment, AnOrdinaryUserNeedsNoHelper) {
  CONFORMS("R-LEVEL-23");
  struct stat status{};
  ASSERT_EQ(::stat(caissonBinary().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & (S_ISUID | S_ISGID), 0U);
  const TempDir state;
  state.openToAll();
  workspace.openToAll();
  ASSERT_EQ(::chmod(state.path().c_str(), 0777), 0);
  std::vector<std::string> words;
  if (runsAsRoot()) words = {"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--no-new-privs"};
  words.insert(words.end(),
               {caissonBinary(), "run", "--workspace", workspace.path(), "--", "sh", "-c", "id -u; echo x > f; cat f"});
  const RunOutput output =
      runProgram(words, {.env = {{"CAISSON_HOME", state / "home"}, {"HOME", state.path()}}, .cwd = workspace.path()});
  EXPECT_EQ(output.out, "1000\nx\n") << output.describe();
}

TEST_F(Environment, CpuCountMatchesTheLimit) {
  CONFORMS("R-LIMIT-2", "R-LIMIT-1");
  EXPECT_EQ(run({"--cpus", "1"}, {"nproc"}).out, "1\n");
  EXPECT_EQ(run({"--profile", "bash"}, {"nproc"}).out, "1\n") << "its default is one core";
  EXPECT_EQ(run({"--profile", "dev"}, {"nproc"}).out, runProgram({"nproc"}).out) << "its default is all of them";
}

}  // namespace
}  // namespace caisson::test
