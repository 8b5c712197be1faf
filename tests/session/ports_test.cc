// Ports between a session and the host's loopback: limited by the policy, in both directions, without root.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "egress/process.h"
#include "functional/session.h"
#include "sys/fd.h"

namespace caisson::test {
namespace {

using sys::Fd;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Fd connectTo(std::uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{10, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const sockaddr_in address = loopback(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) socket.reset();
  return socket;
}

/// Sends everything, shuts down its side, and returns the response.
std::string converse(std::uint16_t port, const std::string& text) {
  const Fd socket = connectTo(port);
  if (!socket) return "no connection";
  std::jthread sender([&] {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t sent = ::send(socket.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) break;
      done += static_cast<std::size_t>(sent);
    }
    ::shutdown(socket.get(), SHUT_WR);
  });
  std::string answer;
  char piece[65536];
  for (ssize_t got; (got = ::recv(socket.get(), piece, sizeof(piece), 0)) > 0;) {
    answer.append(piece, static_cast<std::size_t>(got));
  }
  return answer;
}

/// A free port of the host.
std::uint16_t freePort() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

/// Answers each connection with "echo:" and the received data.
const char* const kServer =
    "import socket, sys, threading\n"
    "s = socket.socket()\n"
    "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
    "s.bind(('127.0.0.1', int(sys.argv[1])))\n"
    "s.listen(50)\n"
    "print('ready', flush=True)\n"
    "def serve(c):\n"
    "  c.sendall(b'echo:')\n"
    "  while True:\n"
    "    b = c.recv(65536)\n"
    "    if not b: break\n"
    "    c.sendall(b)\n"
    "  c.close()\n"
    "while True:\n"
    "  threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()\n";

class SessionPorts : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    if (IsSkipped()) return;
    requireOrSkip(hasProgram("python3"), "no python3 to serve with");
    egress::useProgram(caissonBinary());
  }
  Session createWith(const std::string& key, const std::vector<std::string>& ports) {
    SessionOptions wish = options();
    EXPECT_TRUE(wish.policy.set(key, "[]"));
    for (const std::string& port : ports) EXPECT_TRUE(wish.policy.append(key, port));
    auto made = store->create(wish);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
  static void serve(Session& session, const std::string& port) {
    const auto server = session.start({.command = {"python3", "-c", kServer, port}});
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

TEST_F(SessionPorts, OfTheHostAreReachedOnlyWhenGranted) {
  const std::uint16_t port = freePort();
  const std::string number = std::to_string(port);
  const TempDir scratch;
  const pid_t server = ::fork();
  if (server == 0) {
    ::execlp("python3", "python3", "-c", kServer, number.c_str(), nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 200 && converse(port, "up?") != "echo:up?"; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  Session session = createWith("network.host_ports", {number});
  const std::string client = "python3 -c \"import socket\ntry:\n s=socket.create_connection(('127.0.0.1'," + number +
                             "),5); s.sendall(b'hi'); s.shutdown(1); d=b''\n while True:\n  b=s.recv(100)\n  if not b: "
                             "break\n  d+=b\n print(d.decode())\nexcept OSError as e: print('refused')\"";
  EXPECT_EQ(output(session, client), "refused\n");
  const auto granted = session.openPort(port, 0, true);
  ASSERT_TRUE(granted) << granted.error().message();
  EXPECT_EQ(output(session, client), "echo:hi\n");
  ASSERT_TRUE(session.checkpoint("c"));
  std::string again;
  for (int i = 0; i < 50 && again != "echo:hi\n"; ++i) {
    again = output(session, client);  // the new sandbox's port opens within half a second
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(again, "echo:hi\n");
  ASSERT_TRUE(session.closePort(port, true));
  EXPECT_EQ(output(session, client), "refused\n");
  EXPECT_NE(recorded().find("network.host_ports"), std::string::npos) << "each connection is on record";
  ::kill(server, SIGKILL);
  ::waitpid(server, nullptr, 0);
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

}  // namespace
}  // namespace caisson::test
