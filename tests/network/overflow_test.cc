// A flood of denied requests: none is missing in the audit log, and none hides an attempt at an internal address.
#include <filesystem>
#include <map>

#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Json = nlohmann::json;

constexpr int kNames = 3000;
constexpr std::uint64_t kRefused = kNames + 1;

/// Requests 3000 unlisted names from the proxy, one after the other, and then the metadata service.
constexpr const char* kFlood = R"(
import socket
def ask(target):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(20)
    s.sendall(b"CONNECT " + target + b" HTTP/1.1\r\nHost: " + target + b"\r\n\r\n")
    answer = s.recv(4096)
    s.close()
    return answer.split(b" ")[1]
answers = [ask(b"n%d.test:443" % i) for i in range(3000)]
print(answers.count(b"403"), ask(b"169.254.169.254:80").decode())
)";

class RefusalFlood : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    home_ = files.makeDir("home", 0700);
  }
  [[nodiscard]] RunOutput caisson(const std::vector<std::string>& words) const {
    RunOptions how;
    how.cwd = files.path();
    how.env["CAISSON_HOME"] = home_;
    return runCaisson(words, how);
  }
  [[nodiscard]] std::vector<Json> events() const {
    std::vector<Json> found;
    for (const auto& entry : std::filesystem::directory_iterator(home_ + "/audit")) {
      if (entry.path().extension() != ".jsonl") continue;
      std::istringstream lines(readFile(entry.path()));
      for (std::string line; std::getline(lines, line);) found.push_back(Json::parse(line));
    }
    return found;
  }
  /// Denials with an individual record; for repeated ones the last record has the count.
  [[nodiscard]] std::uint64_t recorded() const {
    std::map<std::string, std::uint64_t> counts;
    for (const Json& event : events()) {
      const Json& data = event["data"];
      if (!data.contains("operation") || data.value("allowed", true)) continue;
      auto& count = counts[data["operation"].get<std::string>() + " " + data["host"].get<std::string>() + ":" +
                           std::to_string(data.value("port", 0))];
      count = std::max(count, data.value("count", std::uint64_t{1}));
    }
    std::uint64_t total = 0;
    for (const auto& [what, count] : counts) total += count;
    return total;
  }
  [[nodiscard]] std::vector<Json> overflows() const {
    std::vector<Json> found;
    for (const Json& event : events()) {
      if (event["event"] == "proxy_overflow") found.push_back(event["data"]);
    }
    return found;
  }
  [[nodiscard]] std::uint64_t overflowed() const {
    std::uint64_t total = 0;
    for (const Json& data : overflows()) total += data["count"].get<std::uint64_t>();
    return total;
  }
  void expectNothingIsMissing() const {
    EXPECT_EQ(recorded() + overflowed(), kRefused);
    ASSERT_FALSE(overflows().empty());
    for (const Json& data : overflows()) {
      EXPECT_EQ(data["class"], "host");
      EXPECT_EQ(data["allowed"], false);
      EXPECT_LE(data["first_time"].get<std::string>(), data["last_time"].get<std::string>());
      EXPECT_TRUE(data["first_time"].get<std::string>().starts_with("20")) << data;
    }
    int metadata = 0;
    for (const Json& event : events()) {
      if (event["data"].value("host", "") != "169.254.169.254") continue;
      ++metadata;
      EXPECT_EQ(event["data"]["class"], "metadata");
      EXPECT_EQ(event["data"]["port"], 80);
    }
    EXPECT_EQ(metadata, 1);
  }

  std::string home_;
};

TEST_F(RefusalFlood, OfARunIsFullyAccountedFor) {
  CONFORMS("R-AUDIT-15", "R-NETWORK-21");
  const RunOutput output = caisson({"run", "--json", "--policy", policyFor({"example.org"}, ""), "--workspace", ":none",
                                    "--", "/usr/bin/python3", "-c", kFlood});
  const Json result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_EQ(result["stdout"], "3000 403\n") << output.describe();
  expectNothingIsMissing();
  EXPECT_TRUE(denied(result, "169.254.169.254:80", "connect")) << "not hidden by the first hundred either";
  EXPECT_EQ(result["usage"]["network_denied"], kRefused);
  EXPECT_EQ(caisson({"audit", "verify"}).exit_status, 0);
}

TEST_F(RefusalFlood, OfASessionIsFullyAccountedFor) {
  CONFORMS("R-NETWORK-21");
  const RunOutput made =
      caisson({"session", "create", "--policy", policyFor({"example.org"}, ""), "--workspace", ":none"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  const RunOutput output = caisson({"session", "exec", id, "--", "/usr/bin/python3", "-c", kFlood});
  EXPECT_EQ(output.out, "3000 403\n") << output.describe();
  expectNothingIsMissing();
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

TEST_F(RefusalFlood, OfABackgroundCommandIsRecordedWhileItRuns) {
  const RunOutput made =
      caisson({"session", "create", "--policy", policyFor({"example.org"}, ""), "--workspace", ":none"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  const RunOutput started = caisson({"session", "exec", id, "--background", "--", "/usr/bin/python3", "-c", kFlood});
  ASSERT_EQ(started.exit_status, 0) << started.describe();
  const std::string command = started.out.substr(0, started.out.find('\n'));
  EXPECT_TRUE(eventually([&] { return contains(caisson({"session", "logs", id, command}).out, "3000 403"); },
                         std::chrono::seconds(60)));
  EXPECT_TRUE(eventually([&] { return recorded() >= 1000; })) << "they are recorded while the command runs";
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
  expectNothingIsMissing();
}

/// The kernel drops messages that it cannot deliver; gaps in its numbering reveal how many.
TEST_F(RefusalFlood, PacketsFasterThanTheyCanBeReadAreCountedExactly) {
  CONFORMS("R-AUDIT-15");
  const RunOutput output = caisson({"run", "--json", "--policy", policyFor({"example.org"}, ""), "--workspace", ":none",
                                    "--", "/usr/bin/python3", "-c", R"(
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
refused = 0
def send(host):
    global refused
    try: s.sendto(b"x", (host, 9))
    except PermissionError: refused += 1
for i in range(30000): send("10.1.2.3")
time.sleep(0.5)
send("169.254.169.254")
print(refused)
)"});
  const Json result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  ASSERT_EQ(result["stdout"], "30001\n") << output.describe();
  EXPECT_EQ(recorded() + overflowed(), 30001U);
  EXPECT_EQ(result["usage"]["network_denied"], 30001);
  for (const Json& data : overflows()) EXPECT_EQ(data["class"], "unknown");
  EXPECT_TRUE(denied(result, "169.254.169.254:9", "udp")) << result;
}

TEST_F(RefusalFlood, RepetitionsOfOneRequestAreCountedExactly) {
  const RunOutput output =
      caisson({"run", "--policy", policyFor({"example.org"}, ""), "--workspace", ":none", "--", "bash", "-c",
               "for i in $(seq 57); do curl -s -o /dev/null http://evil.test/; done; true"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(recorded(), 57U);
  EXPECT_EQ(overflowed(), 0U);
}

}  // namespace
}  // namespace caisson::test
