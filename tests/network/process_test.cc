// The egress process: it is confined, serves one sandbox, and exits with it.
#include <dirent.h>
#include <unistd.h>

#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Egress = NetworkTest;

/// Egress processes whose parent is `parent`.
std::vector<pid_t> egressOf(pid_t parent) {
  std::vector<pid_t> found;
  DIR* proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    const std::string base = std::string("/proc/") + entry->d_name;
    if (std::atoi(entry->d_name) <= 0 || !contains(readFile(base + "/cmdline"), "__egress")) continue;
    if (contains(readFile(base + "/status"), "PPid:\t" + std::to_string(parent) + "\n")) {
      found.push_back(std::atoi(entry->d_name));
    }
  }
  closedir(proc);
  return found;
}

class Running {
 public:
  Running(const std::string& policy, const std::string& directory)
      : program_({caissonBinary(), "run", "--policy", policy, "--workspace", ":none", "--", "sleep", "60"},
                 options(directory)) {
    eventually([&] { return !egressOf(program_.pid()).empty(); });
    sleepFor(std::chrono::milliseconds(300));
  }
  BackgroundProgram& program() { return program_; }
  [[nodiscard]] pid_t egress() const {
    const auto found = egressOf(program_.pid());
    return found.size() == 1 ? found.front() : -1;
  }

 private:
  static RunOptions options(const std::string& directory) {
    RunOptions how;
    how.cwd = directory;
    how.env["SECRET_OF_THE_CALLER"] = "do-not-inherit";
    return how;
  }
  BackgroundProgram program_;
};

/// A zombie counts as ended: in a container, pid 1 may be a program that never reaps.
bool hasEnded(pid_t pid) {
  const std::string stat = readFile("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat.rfind(") ");
  return name_end == std::string::npos || stat.substr(name_end + 2, 1) == "Z";
}

TEST_F(Egress, IsConfined) {
  Running running(policyFor({"example.org"}, ""), files.path());
  const pid_t pid = running.egress();
  ASSERT_GT(pid, 0);
  const std::string status = readFile("/proc/" + std::to_string(pid) + "/status");
  EXPECT_TRUE(contains(status, "Seccomp:\t2")) << status;
  EXPECT_TRUE(contains(status, "NoNewPrivs:\t1")) << status;
  EXPECT_TRUE(contains(status, "CapEff:\t0000000000000000")) << status;
  EXPECT_FALSE(contains(status, "Uid:\t0\t")) << status;
  EXPECT_FALSE(contains(readFile("/proc/" + std::to_string(pid) + "/environ"), "do-not-inherit"));
}

TEST_F(Egress, KillingItEndsTheRun) {
  Running running(policyFor({"example.org"}, ""), files.path());
  const pid_t pid = running.egress();
  ASSERT_GT(pid, 0);
  ::kill(pid, SIGKILL);
  const auto ended = running.program().wait(std::chrono::seconds(5));
  ASSERT_TRUE(ended);
  EXPECT_EQ(*ended, 125);
}

TEST_F(Egress, EndsWithTheRun) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    Running running(policyFor({"example.org"}, ""), files.path());
    const pid_t pid = running.egress();
    ASSERT_GT(pid, 0);
    running.program().signal(signal);
    EXPECT_TRUE(eventually([&] { return hasEnded(pid); })) << signal;
  }
}

TEST_F(Egress, EveryRequestIsInTheAuditLog) {
  CONFORMS("R-NETWORK-9", "R-AUDIT-14");
  RunOptions how;
  how.cwd = files.path();
  how.env["CAISSON_HOME"] = files.makeDir("home", 0700);
  const RunOutput output =
      runCaisson({"run", "--policy", policyFor({"example.org"}, ""), "--workspace", ":none", "--", "bash", "-c",
                  std::string("curl -sS http://example.org/x; curl -sS http://evil.test/; curl -sS "
                              "--socks5-hostname 127.0.0.1:3128 http://socks.evil.test:8080/; ") +
                      kDirect + "curl -sS http://93.184.0.3:8081/; true"},
                 how);
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  // By the fields of the events: the names are also in the preview of the command.
  const auto event = [&](const std::string& type, const std::string& host) {
    std::istringstream lines(runCaisson({"audit", "show", "--json", "--event", type}, how).out);
    for (std::string line; std::getline(lines, line);) {
      const auto one = nlohmann::json::parse(line, nullptr, false);
      if (one["data"].value("host", "") == host) return one["data"];
    }
    return nlohmann::json();
  };
  EXPECT_GT(runCaisson({"stats", "--json"}, how).json()["network_bytes"], 0);
  const auto allowed = event("proxy_request", "example.org");
  ASSERT_TRUE(allowed.is_object());
  EXPECT_EQ(allowed["port"], 80) << allowed;
  EXPECT_EQ(allowed["allowed"], true) << allowed;
  const auto denied = event("proxy_denied", "evil.test");
  ASSERT_TRUE(denied.is_object());
  EXPECT_EQ(denied["allowed"], false) << denied;
  EXPECT_EQ(denied["port"], 80) << denied;
  for (const auto& [host, port] : {std::pair{"socks.evil.test", 8080}, std::pair{"93.184.0.3", 8081}}) {
    const auto other = event("proxy_denied", host);
    ASSERT_TRUE(other.is_object()) << host;
    EXPECT_EQ(other["port"], port) << other;
    EXPECT_EQ(other["allowed"], false) << other;
  }
  EXPECT_FALSE(event("proxy_opened", "evil.test").is_object());
}

}  // namespace
}  // namespace caisson::test
