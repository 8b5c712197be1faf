// Blocked calls of a payload are recorded, and kill the sandbox if severe.
#include <signal.h>

#include <fstream>
#include <sstream>

#include "base/syscall_names.h"
#include "security/attack.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using nlohmann::json;

std::string numberOf(const char* call) { return std::to_string(*syscallNumber(call)); }

/// The JSON result of an attack.
json resultOf(Attack attack) {
  attack.options.emplace_back("--json");
  const RunOutput output = inSandbox(attack);
  json result = output.json();
  EXPECT_TRUE(result.is_object()) << output.describe();
  return result.is_object() ? result : json::object();
}

std::uint64_t total(const json& result, const std::string& call) {
  std::uint64_t count = 0;
  for (const json& violation : result["violations"]) {
    if (violation["syscall"] == call) count += violation["count"].get<std::uint64_t>();
  }
  return count;
}

TEST(Violation, IsRecordedWithNameNumberArgumentsPidAndProgram) {
  CONFORMS("R-SYSCALL-4", "R-SYSCALL-18");
  const json result =
      resultOf({.verb = {"call", numberOf("keyctl"), "0x123456789abc", "2", "3", "4", "5", "0xffffffffffffffff"}});
  ASSERT_EQ(result["violations"].size(), 1U) << result;
  const json& seen = result["violations"][0];
  EXPECT_EQ(seen["syscall"], "keyctl");
  EXPECT_EQ(seen["number"], *syscallNumber("keyctl"));
  EXPECT_EQ(seen["arguments"], json({"0x123456789abc", "0x2", "0x3", "0x4", "0x5", "0x0"}))
      << "keyctl takes five, the sixth register is not an argument";
  EXPECT_GT(seen["pid"].get<int>(), 0);
  EXPECT_EQ(seen["program"], payloadPath());
  EXPECT_EQ(seen["severity"], "HIGH");
  EXPECT_EQ(seen["errno"], "EPERM");
  ASSERT_EQ(result["denials"].size(), 1U);
  for (const char* key : {"rule", "object", "operation", "remedy"}) EXPECT_NE(result["denials"][0][key], "") << key;
}

/// S3: calls that no list has, known to the kernel or not, are probes: counted, and answered as by a kernel without
/// them.
TEST(Violation, OfAnUnlistedCallIsCountedAsLow) {
  CONFORMS("R-SYSCALL-4");
  for (const std::string& number : {numberOf("remap_file_pages"), std::string("9999")}) {
    const json result = resultOf({.verb = {"repeat-call", "3", number}});
    EXPECT_EQ(result["stdout"], "refused: 3 calls: ENOSYS\n") << result;
    EXPECT_EQ(result["outcome"], "exited") << result;
    ASSERT_EQ(result["violations"].size(), 1U) << result;
    const json& seen = result["violations"][0];
    EXPECT_EQ(seen["number"], std::stoi(number));
    EXPECT_EQ(seen["severity"], "LOW");
    EXPECT_EQ(seen["count"], 3);
    EXPECT_EQ(seen["errno"], "ENOSYS");
    EXPECT_EQ(result["denials"][0]["rule"], "syscalls.allow") << result;
  }
}

/// A payload that walks through all numbers makes the record no longer than a few entries.
TEST(Violation, OfManyUnknownNumbersTakesFewEntries) {
  std::string walk = "import ctypes\nfor n in range(5000, 5200): ctypes.CDLL(None).syscall(n)\n";
  const TempDir state;
  const RunOutput output = runCaisson({"run", "--json", "--workspace", ":none", "--", "python3", "-c", walk},
                                      {.env = {{"CAISSON_HOME", state.path()}}});
  const json result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_LE(result["violations"].size(), 8U) << result;
  std::uint64_t total = 0;
  for (const json& one : result["violations"]) total += one["count"].get<std::uint64_t>();
  EXPECT_EQ(total, 200U) << result;
}

/// The probes that docs/syscalls.md names are made by ordinary programs at every start: they leave nothing.
TEST(Violation, SilentProbesAreNotRecorded) {
  CONFORMS("R-SYSCALL-4");
  const TempDir state;
  for (const std::vector<std::string>& verb :
       std::vector<std::vector<std::string>>{{"call", numberOf("clone3")},
                                             {"call", numberOf("openat2"), "-100"},
                                             {"call", numberOf("memfd_secret")},
                                             {"call", numberOf("io_setup")},
                                             {"call", numberOf("ioctl"), "0", "0x1234"}}) {
    Attack attack{.verb = verb, .options = {}, .how = {.env = {{"CAISSON_HOME", state.path()}}}};
    const json result = resultOf(attack);
    EXPECT_EQ(result["stdout"].get<std::string>().substr(0, 8), "refused:") << result;
    EXPECT_TRUE(result["violations"].empty()) << result;
    EXPECT_TRUE(result["denials"].empty()) << result;
  }
  EXPECT_EQ(runCaisson({"audit", "show", "--event", "syscall_blocked"}, {.env = {{"CAISSON_HOME", state.path()}}}).out,
            "");
}

/// Without a listener the call is denied in the same way, but not reported.
TEST(Violation, IsDeniedInTheSameWayWithoutAListener) {
  const Attack attack{.verb = {"call", numberOf("keyctl"), "999"}};
  const RunOutput with_listener = inSandbox(attack);
  if (!mayWeaken()) return;
  const RunOutput without_listener = weakened("reported-violations", attack);
  EXPECT_EQ(with_listener.out, without_listener.out);
  EXPECT_EQ(weakened("nothing", {.verb = {"call", numberOf("bpf"), "99"}}).exit_status, 125);
  EXPECT_EQ(weakened("reported-violations", {.verb = {"call", numberOf("bpf"), "99"}}).exit_status, 1);
}

struct Place {
  const char* name;
  Attack (*at)(Attack);
};

class ViolationAtLevel : public testing::TestWithParam<Place> {};

TEST_P(ViolationAtLevel, IsReported) {
  const json result = resultOf(GetParam().at({.verb = {"call", numberOf("setns"), "-1"}}));
  EXPECT_EQ(total(result, "setns"), 1U) << result;
  EXPECT_EQ(result["layers"]["seccomp_notify"], "on");
}

TEST_P(ViolationAtLevel, EndsTheSandbox) {
  const json result = resultOf(GetParam().at({.verb = {"call", numberOf("bpf"), "99"}}));
  EXPECT_EQ(result["outcome"], "denied") << result;
  EXPECT_EQ(result["stdout"], "");
}

INSTANTIATE_TEST_SUITE_P(Everywhere, ViolationAtLevel,
                         testing::Values(Place{"Full", [](Attack attack) { return attack; }},
                                         Place{"Process", atLevelProcess},
                                         Place{"LandlockTier",
                                               [](Attack attack) {
                                                 attack.workspace =
                                                     payloadPath().substr(0, payloadPath().rfind('/')) + ":ro";
                                                 attack.options.insert(attack.options.end(), {"--tier", "landlock"});
                                                 return attack;
                                               }},
                                         Place{"Strict",
                                               [](Attack attack) {
                                                 attack.options.insert(attack.options.end(), {"--profile", "strict"});
                                                 return attack;
                                               }}),
                         [](const auto& test) { return test.param.name; });

TEST(GraveViolations, TenWithinAMinuteEndTheSandbox) {
  CONFORMS("R-SYSCALL-5");
  const json nine = resultOf({.verb = {"repeat-call", "9", numberOf("unshare")}});
  EXPECT_EQ(nine["outcome"], "exited") << nine;
  EXPECT_EQ(total(nine, "unshare"), 9U);
  EXPECT_EQ(nine["stdout"], "refused: 9 calls: EPERM\n") << nine;
  const json many = resultOf({.verb = {"repeat-call", "30", numberOf("unshare")}});
  EXPECT_EQ(many["outcome"], "denied") << many;
  EXPECT_EQ(many["stdout"], "") << "it lived to make all of its calls";
  EXPECT_EQ(total(many, "unshare"), 10U);
  EXPECT_EQ(many["escape"]["severity"], "HIGH");
  if (!mayWeaken()) return;
  EXPECT_EQ(weakened("reported-violations", {.verb = {"repeat-call", "30", numberOf("unshare")}}).out,
            "refused: 30 calls: EPERM\n");
}

struct Indicator {
  const char* name;
  const char* call;
  std::vector<std::string> arguments;
};

std::ostream& operator<<(std::ostream& out, const Indicator& indicator) { return out << indicator.call; }

class EscapeIndicator : public testing::TestWithParam<Indicator> {};

TEST_P(EscapeIndicator, IsRaisedByAPayload) {
  CONFORMS("R-SYSCALL-6");
  std::vector<std::string> verb{"call", numberOf(GetParam().call)};
  verb.insert(verb.end(), GetParam().arguments.begin(), GetParam().arguments.end());
  const json result = resultOf({.verb = verb});
  ASSERT_EQ(result["violations"].size(), 1U) << result;
  EXPECT_EQ(result["violations"][0]["indicator"], GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(
    All, EscapeIndicator,
    testing::Values(Indicator{"FILESYSTEM", "open_by_handle_at", {"-1"}}, Indicator{"FILESYSTEM", "mount", {}},
                    Indicator{"FILESYSTEM", "fchmodat", {"-1", "@x", "04755"}},
                    Indicator{"PROCESS", "ptrace", {"16", "1"}}, Indicator{"PROCESS", "unshare", {"0x10000000"}},
                    Indicator{"NETWORK", "socket", {"17", "3", "0"}}, Indicator{"SYSCALL", "bpf", {"99"}}),
    [](const auto& test) { return std::string(test.param.name) + "_" + test.param.call; });

TEST(Violations, OfManyThreadsAreAllRefusedAndAllCounted) {
  CONFORMS("R-SYSCALL-4");
  const json result = resultOf({.verb = {"threaded-calls", "8", "100", numberOf("perf_event_open")}});
  EXPECT_EQ(result["stdout"], "refused: 800 calls: EPERM\n") << result;
  EXPECT_EQ(total(result, "perf_event_open"), 800U);
  EXPECT_LE(result["violations"].size(), 64U);
}

/// A signal must not make the kernel repeat, and us count, a call that was already read; and none may be allowed.
TEST(Violations, AmongSignalsAreAllRefused) {
  const json result = resultOf({.verb = {"signalled-calls", "300", numberOf("perf_event_open")}});
  EXPECT_EQ(result["stdout"], "refused: 300 calls: EPERM\n") << result;
  EXPECT_GE(total(result, "perf_event_open"), 300U);
  EXPECT_LE(total(result, "perf_event_open"), 400U);
}

/// Processor time of a process so far, in clock ticks of 10 ms.
long ticksOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  long user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

TEST(FloodOfViolations, CostsLittleCpuTime) {
  if (slowness() > 1) GTEST_SKIP() << "a share of an emulated processor says nothing about a real one";
  std::vector<std::string> command{caissonBinary(), "run", "--quiet", "--workspace", ":none", "--ro", payloadPath()};
  command.insert(command.end(), {"--", payloadPath(), "flood-calls", "20000", numberOf("perf_event_open")});
  BackgroundProgram caisson(command);
  sleepFor(std::chrono::milliseconds(500));
  const long before = ticksOf(caisson.pid());
  sleepFor(std::chrono::seconds(2));
  const long spent = ticksOf(caisson.pid()) - before;
  EXPECT_LE(spent, 30) << "more than 15 % of a processor";
  EXPECT_FALSE(caisson.wait(std::chrono::milliseconds(1))) << "probes are counted, not punished";
}

TEST(FloodOfViolations, DoesNotHideAGraveViolation) {
  const std::string flood = payloadPath() + " flood-calls 20000 " + numberOf("perf_event_open");
  const std::string grave = payloadPath() + " call " + numberOf("bpf") + " 99";
  const auto begin = std::chrono::steady_clock::now();
  const TempDir state;
  const RunOutput output = runCaisson({"run", "--json", "--workspace", ":none", "--ro", payloadPath(), "--", "sh", "-c",
                                       flood + " & sleep 0.3; " + grave + "; wait"},
                                      {.env = {{"CAISSON_HOME", state.path()}}});
  EXPECT_EQ(output.json()["outcome"], "denied") << output.describe();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(8));
}

TEST(FloodOfViolations, IsEndedByTheTimeLimit) {
  const json result =
      resultOf({.verb = {"flood-calls", "60000", numberOf("perf_event_open")}, .options = {"--timeout", "1s"}});
  EXPECT_EQ(result["limit"], "time") << result;
}

// --- who may answer ---

TEST(Listener, CannotBeReplacedByThePayload) {
  const RunOutput output = inSandbox({.verb = {"take-listener"}});
  EXPECT_EQ(output.out, "refused: seccomp: EBUSY\n") << output.describe();
}

TEST(Listener, SeesCallsBelowAFilterOfThePayload) {
  const json result = resultOf({.verb = {"call-below-own-filter", numberOf("setns")}});
  EXPECT_EQ(result["stdout"], "refused: 1 calls: EPERM\n") << result;
  EXPECT_EQ(total(result, "setns"), 1U);
}

TEST(Listener, ThatIsKilledEndsTheSandbox) {
  CONFORMS("R-SYSCALL-17");
  for (const std::vector<std::string>& place :
       {std::vector<std::string>{"--workspace", ":none", "--ro", payloadPath()},
        std::vector<std::string>{"--tier", "landlock", "--workspace",
                                 payloadPath().substr(0, payloadPath().rfind('/')) + ":ro"}}) {
    const std::string marker = std::to_string(100000 + getpid());
    std::vector<std::string> command{caissonBinary(), "run", "--quiet"};
    command.insert(command.end(), place.begin(), place.end());
    command.insert(command.end(), {"--", payloadPath(), "flood-calls", marker, numberOf("perf_event_open")});
    BackgroundProgram caisson(command);
    const auto running = [&] {
      return runProgram({"pgrep", "-f", "^" + payloadPath() + " flood-calls " + marker}).exit_status == 0;
    };
    ASSERT_TRUE(eventually(running));
    sleepFor(std::chrono::milliseconds(200));  // in the middle of its blocked calls
    ::kill(caisson.pid(), SIGKILL);
    EXPECT_TRUE(eventually([&] { return !running(); })) << place[0];
  }
}

// --- the table is the policy's ---

class SeverityTable : public testing::Test {
 protected:
  [[nodiscard]] json run(const std::string& policy, const std::vector<std::string>& verb) const {
    dir.write("policy.toml", "format_version = 1\nextends = \"bash\"\n" + policy);
    std::vector<std::string> arguments{"run",         "--json",     "--policy", dir.path() + "/policy.toml",
                                       "--workspace", ":none",      "--ro",     payloadPath(),
                                       "--",          payloadPath()};
    arguments.insert(arguments.end(), verb.begin(), verb.end());
    const TempDir state;
    const RunOutput output = runCaisson(arguments, {.env = {{"CAISSON_HOME", state.path()}}});
    EXPECT_TRUE(output.json().is_object()) << output.describe();
    return output.json();
  }
  const TempDir dir;
};

TEST_F(SeverityTable, CanBeStricter) {
  CONFORMS("R-SYSCALL-16");
  EXPECT_EQ(run("syscalls.critical = [\"keyctl\"]\n", {"call", numberOf("keyctl"), "999"})["outcome"], "denied");
  EXPECT_EQ(run("syscalls.high_limit = 2\n", {"repeat-call", "2", numberOf("keyctl")})["outcome"], "denied");
  // Also for calls that are otherwise denied without notification.
  const json silent = run("", {"call", numberOf("memfd_secret")});
  EXPECT_EQ(silent["outcome"], "exited");
  EXPECT_EQ(silent["violations"].size(), 0U);
  EXPECT_EQ(run("syscalls.critical = [\"memfd_secret\"]\n", {"call", numberOf("memfd_secret")})["outcome"], "denied");
}

TEST_F(SeverityTable, CountsAttemptsAtIoUringAsLow) {
  CONFORMS("R-SYSCALL-16");
  const json result = run("", {"call", numberOf("io_uring_setup")});
  EXPECT_EQ(result["outcome"], "exited") << result;
  EXPECT_EQ(result["stdout"], "refused: call " + numberOf("io_uring_setup") + ": ENOSYS\n");
  ASSERT_EQ(result["violations"].size(), 1U) << result;
  EXPECT_EQ(result["violations"][0]["severity"], "LOW");
}

TEST_F(SeverityTable, CanBeLooserButNothingGetsThrough) {
  CONFORMS("R-SYSCALL-16");
  const json result = run("syscalls.critical = []\n", {"call", numberOf("bpf"), "99"});
  EXPECT_EQ(result["outcome"], "exited") << result;
  EXPECT_EQ(result["stdout"], "refused: call " + numberOf("bpf") + ": EPERM\n");
  EXPECT_EQ(result["violations"][0]["severity"], "LOW");
}

TEST_F(SeverityTable, DenylistDeniesCalls) {
  CONFORMS("R-SYSCALL-15");
  const std::string number = numberOf("getppid");
  EXPECT_FALSE(run("", {"call", number})["stdout"].get<std::string>().starts_with("refused")) << "it is allowed";
  const json denied =
      run("syscalls.mode = \"denylist\"\nsyscalls.names = [\"getppid\", \"clone3\"]\n", {"call", number});
  EXPECT_EQ(denied["stdout"], "refused: call " + number + ": EPERM\n") << denied;
  EXPECT_EQ(denied["denials"][0]["rule"], "syscalls.names") << denied;
  const json forbidden = run("syscalls.mode = \"denylist\"\nsyscalls.names = []\n", {"call", numberOf("keyctl")});
  EXPECT_EQ(forbidden["violations"][0]["errno"], "EPERM") << "it stays forbidden: " << forbidden;
}

TEST_F(SeverityTable, RefusesWhatEveryProgramTries) {
  dir.write("policy.toml", "format_version = 1\nextends = \"bash\"\nsyscalls.critical = [\"clone3\"]\n");
  const RunOutput output = runCaisson({"policy", "check", dir.path() + "/policy.toml"});
  EXPECT_NE(output.exit_status, 0);
  EXPECT_NE(output.err.find("clone3"), std::string::npos) << output.describe();
}

}  // namespace
}  // namespace caisson::test
