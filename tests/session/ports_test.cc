// Ports between a session and the host's loopback: limited by the policy, in both directions, without root.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "functional/session.h"
#include "support/loopback.h"

namespace caisson::test {
namespace {

class SessionPorts : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    if (IsSkipped()) return;
    requireOrSkip(hasProgram("python3"), "no python3 to serve with");
  }
  Session createWith(const std::string& key, const std::vector<std::string>& ports) {
    SessionOptions wanted = options();
    EXPECT_TRUE(wanted.policy.set(key, "[]"));
    for (const std::string& port : ports) EXPECT_TRUE(wanted.policy.append(key, port));
    auto made = store->create(wanted);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
  static void serve(Session& session, const std::string& port) {
    const auto server = session.start({.command = {"python3", "-c", kEchoServer, port}});
    ASSERT_TRUE(server) << server.error().message();
    for (int i = 0; i < 200; ++i) {
      if (session.logs(*server, OutputStreamKind::out, 0, 100)->data == "ready\n") return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    FAIL() << session.logs(*server, OutputStreamKind::err, 0, 10000)->data;
  }
  [[nodiscard]] std::string recorded() const { return runProgram({"sh", "-c", "cat " + home_path + "/audit/*"}).out; }
};

TEST_F(SessionPorts, ExposedOneReachesTheSessionsServer) {
  Session session = create();
  const auto early = session.openPort(8000);
  ASSERT_TRUE(early) << early.error().message();
  EXPECT_NE(early->host_port, 0);
  EXPECT_EQ(converse(early->host_port, "x"), "") << "no server listens yet";
  serve(session, "8000");
  EXPECT_EQ(converse(early->host_port, "hello"), "echo:hello");
  const std::string much(8 << 20, 'm');
  EXPECT_EQ(converse(early->host_port, much), "echo:" + much);
  std::vector<std::jthread> crowd;
  for (int i = 0; i < 20; ++i) {
    crowd.emplace_back(
        [&, i] { EXPECT_EQ(converse(early->host_port, std::to_string(i)), "echo:" + std::to_string(i)); });
  }
  crowd.clear();
  EXPECT_FALSE(session.openPort(8000)) << "it is open already";
  const auto open = session.openPorts();
  ASSERT_TRUE(open);
  ASSERT_EQ(open->size(), 1U);
  EXPECT_EQ(open->front().host_port, early->host_port);

  ASSERT_TRUE(session.checkpoint("c", WhenBusy::stop));
  EXPECT_EQ(converse(early->host_port, "x"), "") << "the sandbox is down";
  serve(session, "8000");
  EXPECT_EQ(converse(early->host_port, "again"), "echo:again");

  ASSERT_TRUE(session.closePort(8000));
  EXPECT_FALSE(connectTo(early->host_port));
  EXPECT_TRUE(session.openPorts()->empty());
  EXPECT_NE(recorded().find("port exposed"), std::string::npos);
  EXPECT_NE(recorded().find("port closed"), std::string::npos);
}

TEST_F(SessionPorts, AreWhatThePolicyLists) {
  Session session = createWith("network.exposed_ports", {"3000-3010"});
  EXPECT_TRUE(session.openPort(3005));
  const auto other = session.openPort(3011);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message().find("network.exposed_ports"), std::string::npos) << other.error().message();
  const auto inward = session.openPort(5432, 0, true);
  ASSERT_FALSE(inward) << "none of the host's unless the policy says so";
  EXPECT_NE(inward.error().message().find("network.host_ports"), std::string::npos);
  EXPECT_FALSE(session.openPort(0));
}

TEST_F(SessionPorts, EndWithTheSession) {
  Session session = create();
  const auto open = session.openPort(8000);
  ASSERT_TRUE(open) << open.error().message();
  ASSERT_TRUE(connectTo(open->host_port));
  ASSERT_TRUE(session.destroy());
  bool refused = false;
  for (int i = 0; i < 50 && !refused; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    refused = !connectTo(open->host_port);
  }
  EXPECT_TRUE(refused);
}

/// A service of this machine, as a database would be.
struct Service {
  Service() {
    EXPECT_TRUE(eventually([&] { return converse(port, "up?") == "echo:up?"; }, std::chrono::seconds(20)));
  }
  [[nodiscard]] std::string client(const std::string& host = "127.0.0.1") const {
    return "python3 -c \"" + std::string(kClient) + "\" " + host + " " + number + " hi";
  }
  const std::uint16_t port = freePort();
  const std::string number = std::to_string(port);
  const BackgroundProgram server{{"python3", "-c", kEchoServer, number}};
};

TEST_F(SessionPorts, OfTheHostAreReachedOnlyWhenGranted) {
  const Service service, other;
  Session without = create();
  EXPECT_EQ(output(without, service.client()), "refused\n");
  Session session = createWith("network.host_ports", {service.number});
  EXPECT_EQ(output(session, service.client()), "echo:hi\n");
  EXPECT_EQ(output(session, service.client("::1")), "echo:hi\n");
  EXPECT_EQ(output(session, other.client()), "refused\n");
  const auto again = session.openPort(service.port, 0, true);
  EXPECT_TRUE(again) << "opening it once more changes nothing: " << again.error().message();
  ASSERT_TRUE(session.checkpoint("c"));
  EXPECT_EQ(output(session, service.client()), "echo:hi\n");
  ASSERT_TRUE(session.restore("c"));
  EXPECT_EQ(output(session, service.client()), "echo:hi\n");
  ASSERT_TRUE(session.closePort(service.port, true));
  EXPECT_EQ(output(session, service.client()), "refused\n");
  ASSERT_TRUE(session.openPort(service.port, 0, true));
  EXPECT_EQ(output(session, service.client()), "echo:hi\n");
  EXPECT_NE(recorded().find("network.host_ports"), std::string::npos) << "each connection is on record";
}

TEST_F(SessionPorts, OfTheHostCanHaveAnotherNumberInside) {
  const Service service;
  const std::uint16_t inside = freePort();
  Session session = createWith("network.host_ports", {service.number});
  ASSERT_TRUE(session.openPort(inside, service.port, true));
  EXPECT_EQ(output(session, "python3 -c \"" + std::string(kClient) + "\" 127.0.0.1 " + std::to_string(inside) + " hi"),
            "echo:hi\n");
}

TEST_F(SessionPorts, ArePublishedFromTheBeginning) {
  const std::uint16_t port = freePort();
  const std::string number = std::to_string(port);
  Session session = createWith("network.published_ports", {number});
  serve(session, number);
  EXPECT_EQ(converse(port, "hello"), "echo:hello");
  const auto second = store->create([&] {
    SessionOptions wanted = options();
    EXPECT_TRUE(wanted.policy.append("network.published_ports", number));
    return wanted;
  }());
  ASSERT_FALSE(second) << "two sessions share a port";
  EXPECT_NE(second.error().message().find(number), std::string::npos) << second.error().message();
  auto fork = session.fork({.when_busy = WhenBusy::stop});
  ASSERT_TRUE(fork) << fork.error().message();
  EXPECT_EQ(output(*fork, "echo runs"), "runs\n") << "a fork does not ask for the same port";
  ASSERT_TRUE(session.destroy());
  EXPECT_TRUE(eventually([&] { return !connectTo(port); }, std::chrono::seconds(5)));
}

TEST_F(SessionPorts, OnTheCommandLine) {
  const RunOutput made = cli({"create", "--name", "web"});
  ASSERT_EQ(made.exit_status, 0) << made.err;
  const RunOutput open = cli({"expose", "web", "3000"});
  ASSERT_EQ(open.exit_status, 0) << open.err;
  EXPECT_TRUE(open.out.starts_with("127.0.0.1:")) << open.out;
  EXPECT_EQ(cli({"expose", "web"}).out, open.out.substr(0, open.out.size() - 1) + " -> session 3000\n");
  EXPECT_EQ(cli({"expose", "web", "0"}).exit_status, 125);
  EXPECT_EQ(cli({"expose", "--close", "web", "3000"}).exit_status, 0);
  EXPECT_EQ(cli({"expose", "web"}).out, "");
  EXPECT_NE(cli({"expose", "--close", "web", "3000"}).exit_status, 0);
}

TEST_F(SessionPorts, OfCreateFlags) {
  const Service service;
  const std::uint16_t port = freePort();
  const std::string number = std::to_string(port);
  const RunOutput made = cli({"create", "--name", "web", "--host-port", service.number, "--publish", number});
  ASSERT_EQ(made.exit_status, 0) << made.err;
  EXPECT_EQ(cli({"exec", "web", "--", "sh", "-c", service.client()}).out, "echo:hi\n");
  ASSERT_EQ(cli({"exec", "--background", "web", "--", "python3", "-c", kEchoServer, number, "::1"}).exit_status, 0);
  EXPECT_TRUE(eventually([&] { return converse(port, "x") == "echo:x"; }, std::chrono::seconds(20)));
  const std::string open = cli({"expose", "web"}).out;
  EXPECT_NE(open.find("127.0.0.1:" + number + " -> session " + number), std::string::npos) << open;
  EXPECT_NE(open.find("session " + service.number + " -> host 127.0.0.1:" + service.number), std::string::npos) << open;
  const RunOutput taken = cli({"create", "--publish", service.number});
  EXPECT_EQ(taken.exit_status, 125);
  EXPECT_NE(taken.err.find("try:"), std::string::npos) << taken.err;
}

}  // namespace
}  // namespace caisson::test
