// Ports between a run and this machine's loopback: `--host-port` inward, `--publish` outward.
#include <sys/resource.h>

#include "functional/audit_fixture.h"
#include "support/conforms.h"
#include "support/loopback.h"

namespace caisson::test {
namespace {

using namespace std::chrono_literals;

class Ports : public AuditTest {
 protected:
  void SetUp() override {
    AuditTest::SetUp();
    if (IsSkipped()) return;
    requireOrSkip(systemHas("python3"), "no python3 to serve with");
  }
  [[nodiscard]] RunOutput runWith(const std::vector<std::string>& flags,
                                  const std::vector<std::string>& command) const {
    return run(flags, command, options());
  }
  /// What a client inside gets from the host's port.
  [[nodiscard]] std::string ask(const std::vector<std::string>& flags, std::uint16_t port,
                                const std::string& host = "127.0.0.1") const {
    const RunOutput output = runWith(flags, {"python3", "-c", kClient, host, std::to_string(port), "hi"});
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    return output.out;
  }
  static bool answers(std::uint16_t port) {
    return eventually([&] { return converse(port, "up?") == "echo:up?"; }, 20s);
  }
};

/// A service of this machine, as a database would be.
struct Service {
  Service() {
    EXPECT_TRUE(eventually([&] { return converse(port, "up?") == "echo:up?"; }, 20s));
  }
  const std::uint16_t port = freePort();
  const std::string number = std::to_string(port);
  const BackgroundProgram server{{"python3", "-c", kEchoServer, number}};
};

using HostPort = Ports;
using Publish = Ports;

TEST_F(HostPort, ReachesAServiceOfThisMachineAsLocalhost) {
  CONFORMS("R-NETWORK-24");
  const Service service;
  EXPECT_EQ(ask({}, service.port), "refused\n");
  EXPECT_EQ(ask({"--host-port", service.number}, service.port), "echo:hi\n");
  EXPECT_EQ(ask({"--host-port", service.number}, service.port, "localhost"), "echo:hi\n");
  EXPECT_EQ(ask({"--host-port", service.number, "--net", "proxy", "--allow-host", "example.org"}, service.port),
            "echo:hi\n");
  EXPECT_EQ(ask({"--host-port", service.number, "--level", "process"}, service.port), "echo:hi\n");
  const RunOutput six =
      runWith({"--host-port", service.number}, {"python3", "-c", kClient, "::1", service.number, "hi"});
  EXPECT_EQ(six.out, "echo:hi\n") << six.describe();
}

TEST_F(HostPort, OpensNoOtherPort) {
  CONFORMS("R-NETWORK-24");
  const Service granted, other;
  for (const char* mode : {"none", "proxy"}) {
    EXPECT_EQ(ask({"--host-port", granted.number, "--net", mode}, other.port), "refused\n") << mode;
  }
  // The other addresses of the machine are not a way around.
  const RunOutput proxied = runWith({"--host-port", granted.number, "--net", "proxy", "--allow-host", "*"},
                                    {"python3", "-c", kClient, "127.0.0.2", other.number, "hi"});
  EXPECT_EQ(proxied.out, "refused\n") << proxied.describe();
}

TEST_F(HostPort, OfAPolicyFileWorksWithRun) {
  const Service service;
  workspace.write("p.toml", "extends = \"bash\"\n[network]\nhost_ports = [" + service.number + "]\n");
  EXPECT_EQ(ask({"--policy", workspace / "p.toml"}, service.port), "echo:hi\n");
}

TEST_F(HostPort, EachConnectionIsRecorded) {
  const Service service;
  ASSERT_EQ(ask({"--host-port", service.number}, service.port), "echo:hi\n");
  const auto opened = events({"--event", "proxy_opened"});
  ASSERT_EQ(opened.size(), 1U);
  const auto closed = events({"--event", "proxy_request"});
  ASSERT_EQ(closed.size(), 1U);
  const auto& data = closed[0].contains("data") ? closed[0]["data"] : closed[0];
  EXPECT_EQ(data["host"], "localhost") << closed[0];
  EXPECT_EQ(data["port"], service.port) << closed[0];
  EXPECT_EQ(data["rule"], "network.host_ports") << closed[0];
  EXPECT_EQ(data["sent_bytes"], 2) << closed[0];
  EXPECT_EQ(data["received_bytes"], 7) << closed[0];
  const auto started = events({"--event", "sandbox_execute"});
  ASSERT_EQ(started.size(), 1U);
  EXPECT_NE(started[0].dump().find("host_ports"), std::string::npos) << "the decision is on record: " << started[0];
}

TEST_F(HostPort, WithoutAServiceSaysWhatFailed) {
  const std::uint16_t port = freePort();
  const std::string number = std::to_string(port);
  const RunOutput output = runWith({"--host-port", number}, {"python3", "-c", kClient, "127.0.0.1", number, "hi"});
  EXPECT_TRUE(output.out.starts_with("failed:")) << output.describe();
  EXPECT_TRUE(contains(output.err, "nothing on this machine listens at 127.0.0.1:" + number)) << output.describe();
}

TEST_F(HostPort, ConnectionsAreLimitedAndARunWithManyEnds) {
  const Service service;
  const char* const kMany =
      "import socket, sys\n"
      "held = []\n"
      "for i in range(400):\n"
      "  try: held.append(socket.create_connection(('127.0.0.1', int(sys.argv[1])), 10))\n"
      "  except ConnectionResetError: pass\n"
      "served = 0\n"
      "for s in held:\n"
      "  try:\n"
      "    if s.recv(5) == b'echo:': served += 1\n"
      "  except OSError: pass\n"
      "print(served)\n";
  const RunOutput output = runWith({"--host-port", service.number}, {"python3", "-c", kMany, service.number});
  ASSERT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_GT(std::stoi(output.out), 0) << output.describe();
  EXPECT_LE(std::stoi(output.out), 64) << "network.max_connections";
  EXPECT_TRUE(contains(output.err, "network.max_connections")) << output.describe();
  EXPECT_FALSE(events({"--event", "proxy_denied"}).empty()) << "refused connections are not on record";
  EXPECT_LT(output.duration, 30s);
}

TEST_F(HostPort, PayloadHasNoDescriptorOfThePorts) {
  const Service service;
  const RunOutput output =
      runWith({"--host-port", service.number, "--publish", std::to_string(freePort())}, {"ls", "/proc/self/fd"});
  EXPECT_EQ(output.out, "0\n1\n2\n3\n") << "3 is the directory that ls reads: " << output.describe();
}

TEST_F(HostPort, InvalidPortsAreRejected) {
  for (const char* bad : {"0", "65536", "x", "5432/tcp", "1-40"}) {
    const RunOutput output = runWith({"--host-port", bad}, {"true"});
    EXPECT_EQ(output.exit_status, 125) << bad;
    EXPECT_TRUE(contains(output.err, "host")) << output.describe();
  }
  const RunOutput proxy = runWith({"--net", "proxy", "--host-port", "3128"}, {"true"});
  EXPECT_EQ(proxy.exit_status, 125);
  EXPECT_TRUE(contains(proxy.err, "3128")) << proxy.describe();
}

TEST_F(HostPort, IsSuggestedForLocalhostInHostLists) {
  for (const char* host : {"localhost:8123", "127.0.0.1:8123", "[::1]:8123", "LOCALHOST:8123"}) {
    const RunOutput output = runWith({"--net", "proxy", "--allow-host", host}, {"true"});
    EXPECT_EQ(output.exit_status, 125) << host;
    EXPECT_TRUE(contains(output.err, "--host-port 8123")) << output.describe();
  }
  workspace.write("p.toml", "extends = \"bash\"\n[network]\nmode = \"proxy\"\nprivate_hosts = [\"localhost\"]\n");
  const RunOutput policy = runWith({"--policy", workspace / "p.toml"}, {"true"});
  EXPECT_EQ(policy.exit_status, 125);
  EXPECT_TRUE(contains(policy.err, "--host-port")) << policy.describe();
}

TEST_F(Publish, MakesAServerInsideReachable) {
  CONFORMS("R-NETWORK-24");
  for (const char* address : {"127.0.0.1", "0.0.0.0", "::1", "::"}) {
    const std::uint16_t port = freePort();
    const std::string number = std::to_string(port);
    const BackgroundProgram server(
        {caissonBinary(), "run", "-q", "--publish", number, "--", "python3", "-c", kEchoServer, number, address},
        options());
    ASSERT_TRUE(answers(port)) << address;
    const std::string much(4 << 20, 'm');
    EXPECT_EQ(converse(port, much), "echo:" + much) << address;
  }
}

TEST_F(Publish, WorksWithTheProxyNetworkToo) {
  const std::uint16_t port = freePort();
  const std::string number = std::to_string(port);
  const BackgroundProgram server({caissonBinary(), "run", "-q", "--net", "proxy", "--allow-host", "example.org",
                                  "--publish", number, "--", "python3", "-c", kEchoServer, number},
                                 options());
  EXPECT_TRUE(answers(port));
}

TEST_F(Publish, IsOnLoopbackOnlyAndEndsWithTheRun) {
  CONFORMS("R-NETWORK-24");
  const std::uint16_t port = freePort();
  const std::string number = std::to_string(port);
  BackgroundProgram server(
      {caissonBinary(), "run", "-q", "--publish", number, "--", "python3", "-c", kEchoServer, number}, options());
  ASSERT_TRUE(answers(port));
  const Socket other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopbackAddress(port);
  address.sin_addr.s_addr = htonl(0x7f000002);
  EXPECT_NE(::connect(other.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  server.signal(SIGTERM);
  ASSERT_TRUE(server.wait(20s));
  EXPECT_FALSE(connectTo(port)) << "the port outlives the run";
}

TEST_F(Publish, DoesNotReachOtherSandboxes) {
  const std::uint16_t port = freePort();
  const std::string number = std::to_string(port);
  const BackgroundProgram server(
      {caissonBinary(), "run", "-q", "--publish", number, "--", "python3", "-c", kEchoServer, number}, options());
  ASSERT_TRUE(answers(port));
  for (const char* mode : {"none", "proxy"}) EXPECT_EQ(ask({"--net", mode}, port), "refused\n") << mode;
  EXPECT_EQ(ask({"--host-port", number}, port), "echo:hi\n") << "both users' decisions together";
}

TEST_F(Publish, OfAPortInUseIsRefusedBeforeTheProgramStarts) {
  const Service service;
  const RunOutput output = runWith({"--publish", service.number}, {"echo", "started"});
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_EQ(output.out, "") << output.describe();
  EXPECT_TRUE(contains(output.err, service.number)) << output.describe();
  EXPECT_TRUE(contains(output.err, "try:")) << output.describe();
}

TEST_F(Publish, DeliversTheLastResponseOfAServerThatExits) {
  const char* const kOnce =
      "import socket, sys\n"
      "s = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
      "c = s.accept()[0]\n"
      "c.recv(100)\n"
      "c.sendall(b'x' * 200000)\n";
  const std::uint16_t port = freePort();
  const std::string number = std::to_string(port);
  BackgroundProgram server({caissonBinary(), "run", "-q", "--publish", number, "--", "python3", "-c", kOnce, number},
                           options());
  std::string answer;
  ASSERT_TRUE(eventually([&] { return !(answer = converse(port, "q")).empty() && answer != "no connection"; }, 20s));
  EXPECT_EQ(answer, std::string(200000, 'x'));
  EXPECT_EQ(server.wait(20s), 0);
}

TEST_F(Publish, ManyConnectionsNeitherBlockNorBreakTheRun) {
  const char* const kDeaf =
      "import socket, sys, time\n"
      "s = socket.create_server(('127.0.0.1', int(sys.argv[1])))\n"
      "time.sleep(3)\n"
      "s.setblocking(False)\n"
      "n = 0\n"
      "while True:\n"
      "  try: s.accept(); n += 1\n"
      "  except BlockingIOError: break\n"
      "print('alive')\n";
  const std::uint16_t port = freePort();
  const std::string number = std::to_string(port);
  std::vector<Socket> held;
  std::jthread crowd([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && held.size() < 600) {
      if (Socket one = connectTo(port)) {
        held.push_back(std::move(one));
      } else {
        sleepFor(10ms);
      }
    }
  });
  const RunOutput output = runWith({"--publish", number, "--timeout", "60s"}, {"python3", "-c", kDeaf, number});
  crowd.request_stop();
  crowd.join();
  EXPECT_EQ(output.out, "alive\n") << output.describe();
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_LT(output.duration, 30s) << "the run waits for its clients";
  EXPECT_GT(held.size(), 100U) << "the test did not load the port";
}

TEST_F(Publish, AndHostPortAreInThePlan) {
  const RunOutput plan = runCaisson({"plan", "--host-port", "5432", "--publish", "8000", "--", "true"}, options());
  EXPECT_TRUE(contains(plan.out, "5432 of 127.0.0.1")) << plan.describe();
  EXPECT_TRUE(contains(plan.out, "8000 at 127.0.0.1")) << plan.describe();
  const RunOutput both = runWith({"--host-port", "8000", "--publish", "8000"}, {"true"});
  EXPECT_EQ(both.exit_status, 125) << both.describe();
}

}  // namespace
}  // namespace caisson::test
