// Documented values and layers, measured from inside a sandbox or on the host, never read from caisson's own report.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <set>
#include <sstream>

#include "functional/audit_fixture.h"
#include "support/conforms.h"
#include "support/processes.h"

namespace caisson::test {
namespace {

using Promises = AuditTest;

/// "name: value" lines, as in /proc/self/status.
std::map<std::string, std::string> fieldsOf(const std::string& text) {
  std::map<std::string, std::string> fields;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t value = line.find_first_not_of(" \t", colon + 1);
    fields[line.substr(0, colon)] = value == std::string::npos ? "" : line.substr(value);
  }
  return fields;
}

std::string linkOf(const std::string& path) {
  char target[256];
  const ssize_t length = ::readlink(path.c_str(), target, sizeof(target));
  return length > 0 ? std::string(target, static_cast<std::size_t>(length)) : std::string();
}

TEST_F(Promises, FullHasPrivateNamespaces) {
  CONFORMS("R-LEVEL-1", "R-LEVEL-2");
  const RunOutput output =
      script("for n in user pid mnt net ipc uts cgroup; do echo $n: $(readlink /proc/self/ns/$n); done");
  const auto inside = fieldsOf(output.out);
  for (const char* space : {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"}) {
    const auto found = inside.find(space);
    ASSERT_NE(found, inside.end()) << space << output.describe();
    EXPECT_TRUE(found->second.starts_with(std::string(space) + ":[")) << output.describe();
    EXPECT_NE(found->second, linkOf(std::string("/proc/self/ns/") + space)) << "the host's " << space;
  }
}

TEST_F(Promises, DefaultNetworkIsAPrivateLoopback) {
  CONFORMS("R-NETWORK-1");
  for (const std::string level : {"full", "process"}) {
    const RunOutput output = run({"--level", level}, {"python3", "-c", R"(
import socket
print(*sorted(name for _, name in socket.if_nameindex()))
for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try: socket.socket(family, kind).connect((address, 9)); print("reached")
        except OSError as error: print(error.strerror)
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()); server.accept()[0].send(b"x"); print("own loopback"))"});
    const std::string none = "Network is unreachable\n";
    EXPECT_EQ(output.out, "lo\n" + none + none + none + none + "own loopback\n") << level << output.describe();
  }
}

TEST_F(Promises, FullAppliesFilterPrivilegesAndCapabilities) {
  CONFORMS("R-LEVEL-4");
  const RunOutput output = run({}, {"cat", "/proc/self/status"});
  auto status = fieldsOf(output.out);
  EXPECT_EQ(status["Seccomp"], "2") << output.describe();
  EXPECT_EQ(status["NoNewPrivs"], "1") << output.describe();
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    EXPECT_EQ(status[set], "0000000000000000") << set << output.describe();
  EXPECT_EQ(status["Uid"], "1000\t1000\t1000\t1000") << output.describe();
}

TEST_F(Promises, FullHasAPrivateRoot) {
  CONFORMS("R-LEVEL-3");
  workspace.write("here", "x");
  workspace.openToAll();
  EXPECT_EQ(script("ls -A /workspace").out, "here\n");
  const std::set<std::string> own{"cache", "dev", "etc", "home", "proc",     "root",
                                  "run",   "tmp", "usr", "var",  "workspace"};
  const std::set<std::string> system{"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
  const auto wordsOf = [](const std::string& text) {
    std::istringstream words(text);
    std::set<std::string> found;
    for (std::string word; words >> word;) found.insert(word);
    return found;
  };
  const std::set<std::string> root = wordsOf(script("ls -A /").out);
  for (const std::string& name : root) EXPECT_TRUE(own.contains(name) || system.contains(name)) << name;
  for (const std::string& name : own) EXPECT_TRUE(root.contains(name)) << name;
  EXPECT_EQ(wordsOf(script("ls -A /home /var").out),
            (std::set<std::string>{"/home:", "/var:", "run", "sandbox", "tmp"}));

  // Every mount of the host's files: where it is, and that it cannot be written.
  const RunOptions without_toolchains{.env = {{"PATH", "/usr/bin:/bin"}}};
  std::istringstream mounts(script("cut -d' ' -f3,4,5,6 /proc/self/mountinfo", {}, without_toolchains).out);
  int shown = 0;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string device, source, point, options;
    words >> device >> source >> point >> options;
    const bool of_sandbox = point == "/" || point == "/tmp" || point == "/var/tmp" || point == "/home/sandbox" ||
                            point == "/run" || point == "/cache" || point == "/workspace" || point == "/dev/shm" ||
                            point == "/dev/pts" || point == "/proc" || point.starts_with("/proc/");
    if (of_sandbox) continue;
    ++shown;
    const bool known = system.contains(point.substr(1)) || point == "/usr" || point.starts_with("/etc/") ||
                       point.starts_with("/dev/") || point == "/workspace/lower";
    EXPECT_TRUE(known) << line;
    if (!point.starts_with("/dev/")) {
      EXPECT_TRUE(options.starts_with("ro,")) << line;
    }
  }
  EXPECT_GE(shown, 7) << "/usr and six devices at least";
}

/// Sizes of directories in bytes and their mount options, by path.
struct Mounted {
  std::uint64_t bytes = 0;
  std::string options;
};

std::map<std::string, Mounted> mountsOf(const std::string& mounts) {
  std::map<std::string, Mounted> found;
  std::istringstream lines(mounts);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string source, path, type, options;
    words >> source >> path >> type >> options;
    if (type != "tmpfs") continue;
    Mounted one{.options = options};
    const std::size_t size = options.find("size=");
    if (size != std::string::npos) one.bytes = std::stoull(options.substr(size + 5)) * 1024;
    found[path] = one;
  }
  return found;
}

void expectDirectory(const std::map<std::string, Mounted>& mounts, const std::string& path, std::uint64_t mib,
                     bool executable) {
  const auto found = mounts.find(path);
  ASSERT_NE(found, mounts.end()) << path;
  EXPECT_EQ(found->second.bytes, mib << 20) << path;
  EXPECT_EQ(!contains("," + found->second.options + ",", ",noexec,"), executable) << path;
  EXPECT_TRUE(contains(found->second.options, "nosuid") && contains(found->second.options, "nodev")) << path;
}

TEST_F(Promises, ShellProfileHasItsDirectorySizesAndNoexec) {
  CONFORMS("R-FILES-5");
  const RunOutput output = run({"--profile", "shell"}, {"cat", "/proc/mounts"});
  const auto mounts = mountsOf(output.out);
  expectDirectory(mounts, "/tmp", 64, false);
  expectDirectory(mounts, "/home/sandbox", 64, false);
  expectDirectory(mounts, "/var/tmp", 32, false);
  expectDirectory(mounts, "/run", 16, false);
  const RunOutput tried =
      script("for d in /tmp /home/sandbox /var/tmp /run; do cp /bin/true $d/copy && ! $d/copy && echo $d refused; done",
             {"--profile", "shell"});
  EXPECT_EQ(tried.out, "/tmp refused\n/home/sandbox refused\n/var/tmp refused\n/run refused\n") << tried.describe();
}

TEST_F(Promises, BashProfileHasItsDirectorySizes) {
  CONFORMS("R-FILES-6");
  const RunOutput output = run({"--profile", "bash"}, {"cat", "/proc/mounts"});
  const auto mounts = mountsOf(output.out);
  expectDirectory(mounts, "/tmp", 100, true);
  expectDirectory(mounts, "/var/tmp", 50, false);
  expectDirectory(mounts, "/home/sandbox", 64, true);
  expectDirectory(mounts, "/run", 16, false);
}

TEST_F(Promises, BashProfileHoldsMemoryAtHalfAGibibyte) {
  CONFORMS("R-LIMIT-1");
  const auto use = [&](int mib) {
    return run({"--profile", "bash", "--json"},
               {"python3", "-c", "import time; x = b'x' * (" + std::to_string(mib) + " << 20); time.sleep(1)"},
               options());
  };
  const RunOutput within = use(450);
  EXPECT_EQ(within.json()["outcome"], "exited") << within.describe();
  const RunOutput beyond = use(540);
  EXPECT_EQ(beyond.json()["outcome"], "limit") << beyond.describe();
  EXPECT_EQ(beyond.json()["limit"], "memory") << beyond.describe();
}

/// Starts threads and children, as named in its arguments, until one of each fails; prints how many there were.
constexpr const char* kCountChildrenAndThreads = R"(
import os, sys, threading, time
def thread(): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
def child():
    if os.fork() == 0: time.sleep(60)
for name, start in (("threads", thread), ("children", child)):
    if name not in sys.argv: continue
    count = 0
    try:
        while count < 200: start(); count += 1
    except (RuntimeError, BlockingIOError): pass
    print(count, name, flush=True)
os._exit(0)
)";

TEST_F(Promises, BashProfileLimitsOpenFilesAndProcesses) {
  CONFORMS("R-PROCESS-4", "R-LIMIT-1");
  const RunOutput output = run({"--profile", "bash"}, {"bash", "-c", "ulimit -n; ulimit -Hn"});
  EXPECT_EQ(output.out, "1024\n1024\n") << output.describe();
  const RunOutput many = run({"--profile", "bash"}, {"python3", "-c", kCountChildrenAndThreads, "children"});
  EXPECT_EQ(many.out, "99 children\n") << "the program itself is the hundredth: " << many.describe();
}

/// The values of the profile `cargo`, seen by a program in it: the list of programs is changed, nothing else.
TEST_F(Promises, CargoProfileHasItsLimitsInside) {
  CONFORMS("R-CARGO-4");
  const std::string policy = workspace.write("cargo.toml",
                                             "extends = 'cargo'\n[process]\nallowed_executables = ['cat']\n"
                                             "[commands]\nallowed_patterns = ['^cat\\s']\nblocked_patterns = []\n");
  workspace.openToAll();
  const RunOutput output =
      run({"--policy", policy}, {"cat", "/proc/self/limits", "/proc/mounts", "/metadata/sandbox.json"}, options());
  ASSERT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(contains(output.out, "Max open files            500                  500")) << output.describe();
  const std::string counting =
      workspace.write("count.toml",
                      "extends = 'cargo'\n[process]\nallowed_executables = ['python3']\nblocked_executables = []\n"
                      "[commands]\nallowed_patterns = ['^python3\\s']\nblocked_patterns = []\n");
  const RunOutput counted =
      run({"--policy", counting}, {"python3", "-c", kCountChildrenAndThreads, "threads", "children"}, options());
  EXPECT_EQ(counted.out, "50 threads\n24 children\n") << "the program itself is the 25th: " << counted.describe();
  const auto mounts = mountsOf(output.out);
  expectDirectory(mounts, "/logs", 100, false);
  // The others are on disk: their sizes are watched.
  for (const std::string path : {"/tmp", "/cargo-home"}) {
    const std::size_t at = output.out.find(" " + path + " ");
    ASSERT_NE(at, std::string::npos) << path;
    EXPECT_TRUE(contains(output.out.substr(at, output.out.find('\n', at) - at), "nosuid,nodev,noexec")) << path;
  }
  const nlohmann::json result =
      run({"--json", "--policy", policy}, {"cat", "/metadata/sandbox.json"}, options()).json();
  const std::string quota = result["layers"]["disk_quota"];
  EXPECT_TRUE(contains(quota, "watched: /target 5 GiB, /cargo-home 1 GiB, /tmp 1 GiB")) << quota;
}

/// Reading a file of the system and reaching a host are denials that name the rule.
TEST_F(Promises, CargoProfileDeniesCommandsOutsideItsList) {
  CONFORMS("R-CARGO-7");
  int recorded = 0;
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"cat", "/etc/passwd"}, {"curl", "example.com"}}) {
    const RunOutput output = run({"--profile", "cargo", "--json"}, command, options());
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    const nlohmann::json result = output.json();
    EXPECT_EQ(result["outcome"], "denied") << result;
    EXPECT_EQ(result["stdout"], "") << result;
    EXPECT_EQ(result["denials"][0]["rule"], "commands.allowed_patterns") << result;
    EXPECT_EQ(events({"--event", "policy_violation"}).size(), static_cast<std::size_t>(++recorded)) << result;
  }
}

TEST_F(Promises, EachCommandOfASessionIsRecordedAsEntered) {
  CONFORMS("R-AUDIT-3");
  const std::string id = caisson({"session", "create", "--workspace", ":none"}).out;
  const std::string session = id.substr(0, id.find('\n'));
  const auto count = [&](const std::string& event) {
    return std::ranges::count_if(events({"--event", event}),
                                 [&](const nlohmann::json& one) { return one["sandbox"] == session; });
  };
  EXPECT_EQ(count("sandbox_created"), 1);
  for (int commands = 1; commands <= 2; ++commands) {
    EXPECT_EQ(caisson({"session", "exec", session, "--", "true"}).exit_status, 0);
    EXPECT_EQ(count("sandbox_entered"), commands);
    EXPECT_EQ(count("sandbox_exited"), commands);
  }
  EXPECT_EQ(caisson({"session", "exec", session, "--background", "--", "true"}).exit_status, 0);
  EXPECT_TRUE(eventually([&] { return count("sandbox_entered") == 3 && count("sandbox_exited") == 3; }))
      << "a background command";
  EXPECT_EQ(caisson({"session", "destroy", session}).exit_status, 0);
  EXPECT_EQ(count("sandbox_created"), 1);
}

TEST_F(Promises, RunRecordsItsLifecycleStates) {
  CONFORMS("R-AUDIT-16");
  workspace.write("states.toml", "[audit]\nlifecycle = true\n");
  workspace.openToAll();
  const auto statesOf = [&](std::vector<std::string> flags, const std::vector<std::string>& command) {
    flags.insert(flags.end(), {"--json", "--policy", "states.toml"});
    const nlohmann::json result = run(flags, command, options()).json();
    std::string states, recorded;
    for (const auto& step : result["lifecycle"]) states += step["state"].get<std::string>() + " ";
    for (const auto& event : events({"--event", "lifecycle"})) {
      if (event["sandbox"] == result["sandbox_id"]) recorded += event["data"]["state"].get<std::string>() + " ";
    }
    EXPECT_EQ(recorded, states) << "the record differs from the result";
    return states;
  };
  const std::string begin = "Created Initialized Running Monitoring ";
  EXPECT_EQ(statesOf({}, {"true"}), begin + "Completed Cleanup ");
  EXPECT_EQ(statesOf({}, {"false"}), begin + "Completed Cleanup ");
  EXPECT_EQ(statesOf({"--timeout", "300ms"}, {"sleep", "30"}), begin + "Timeout Cleanup ");
  EXPECT_EQ(statesOf({}, {"/no/such/program"}), begin + "Error Cleanup ");
}

TEST_F(Promises, ForwardedSignalIsRecorded) {
  CONFORMS("R-PROCESS-11");
  BackgroundProgram program(
      {caissonBinary(), "run", "--quiet", "--workspace", workspace.path() + ":rw", "--", "sh", "-c",
       "trap 'echo x >> got' USR1; trap 'exit 3' TERM; touch ready; while :; do sleep 0.05; done"},
      options());
  ASSERT_TRUE(eventually([&] { return exists(workspace / "ready"); }));
  program.signal(SIGUSR1);
  ASSERT_TRUE(eventually([&] { return exists(workspace / "got"); }));
  program.signal(SIGTERM);
  EXPECT_EQ(program.wait(std::chrono::seconds(20)), 3);
  std::vector<std::string> signals;
  for (const auto& event : events({"--event", "signal_sent"})) {
    EXPECT_EQ(event["data"]["sent_by"], "caisson");
    signals.push_back(event["data"]["signal"]);
  }
  EXPECT_EQ(signals, (std::vector<std::string>{"SIGUSR1", "SIGTERM"}));
}

}  // namespace
}  // namespace caisson::test
