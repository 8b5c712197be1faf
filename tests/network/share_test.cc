// A connection that always has more to send and to receive gets its share of the egress's event loop, and no more.
#include <sys/resource.h>

#include "network/network.h"

namespace caisson::test {
namespace {

/// A program that reads an endless answer of example.org:8086 and sends an endless body, for 30 s or until it is cut.
constexpr const char* kGreedy = R"(
import socket, threading, time, sys
def greedy(seconds=30):
    c = socket.create_connection(("127.0.0.1", 3128))
    c.sendall(b"POST http://example.org:8086/chunks HTTP/1.1\r\nHost: example.org:8086\r\n"
              b"Transfer-Encoding: chunked\r\n\r\n")
    piece = b"1\r\nx\r\n" * 65536  # costs the egress more than its peers
    def send():
        try:
            while True: c.sendall(piece)
        except OSError: pass
    threading.Thread(target=send, daemon=True).start()
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end and c.recv(1 << 20, socket.MSG_TRUNC): pass
    except OSError: pass
    return time.monotonic() < end
)";

using Share = NetworkTest;

TEST_F(Share, EndlessInterimAnswersGet502) {
  const RunOutput output = python({"example.org:8086"}, R"(
import socket
c = socket.create_connection(("127.0.0.1", 3128)); c.settimeout(10)
c.sendall(b"GET http://example.org:8086/interim HTTP/1.1\r\nHost: example.org:8086\r\n\r\n")
data = b""
try:
    while len(data) < 1 << 20 and (piece := c.recv(65536)): data += piece
except OSError as error: print(error)
print(data.count(b"HTTP/1.1 100"), data.count(b"HTTP/1.1 502"), data.split(b"\n")[-2]))");
  EXPECT_EQ(output.out, "32 1 b'caisson: example.org sent too many interim answers'\n") << output.describe();
}

TEST_F(Share, BytesAreCountedAgainstTheLimitDuringTransfer) {
  const auto result = json({"example.org:8086"}, {"/usr/bin/python3", "-c", std::string(kGreedy) + "print(greedy())"},
                           "max_bytes = \"1M\"");
  EXPECT_EQ(result["stdout"], "True\n") << result;
  // At most one buffer in each direction above the limit.
  EXPECT_LT(result["usage"]["network_bytes"].get<std::uint64_t>(), (1U << 20) + (1U << 18)) << result;
  EXPECT_TRUE(contains(result["denials"].dump(), "network.max_bytes is used up")) << result;
}

/// Without descriptors the egress waits for some to be free, and does not spin.
TEST_F(Share, WithoutFreeDescriptorsTheEgressDoesNotSpin) {
  const auto used = [] {
    rusage usage{};
    ::getrusage(RUSAGE_CHILDREN, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  };
  RunOptions how;
  how.cwd = files.path();
  const std::string script = R"(
import os, socket, time, urllib.request
for process in range(3):  # each of which has few descriptors, too
    if os.fork() == 0:
        many = [socket.create_connection(("127.0.0.1", 3128)) for i in range(25)]
        time.sleep(6)
        os._exit(0)
for process in range(3): print(os.wait()[1], end=" ")
print(urllib.request.urlopen("http://example.org/after", timeout=10).read().decode(), end=""))";
  const double before = used();
  const RunOutput output =
      runProgram({"/bin/sh", "-c", "ulimit -n 60; exec \"$@\"", "sh", caissonBinary(), "run", "--policy",
                  policyFor({"example.org"}, ""), "--workspace", ":none", "--", "/usr/bin/python3", "-c", script},
                 how);
  EXPECT_EQ(output.out, "0 0 0 example.org /after from 80\n") << output.describe();
  EXPECT_LT(used() - before, 2.5) << output.describe();
}

TEST_F(Share, OtherClientsAreServedDuringAGreedyTransfer) {
  const RunOutput output = python({"example.org:8086", "*.wild.example.org"}, std::string(kGreedy) + R"(
threading.Thread(target=greedy, args=(12,), daemon=True).start()
time.sleep(1)
worst = 0
for i in range(8):
    start = time.monotonic()
    print(socket.gethostbyname("h%d.wild.example.org" % i).count("."), end=" ")
    with socket.create_connection(("h%d.wild.example.org" % i, 80)) as web:
        web.sendall(b"GET / HTTP/1.0\r\n\r\n")
        print(web.recv(12), end=" ")
    worst = max(worst, time.monotonic() - start)
print(worst < 4 or worst))");
  std::string expected;
  for (int i = 0; i < 8; ++i) expected += "3 b'HTTP/1.1 200' ";
  EXPECT_EQ(output.out, expected + "True\n") << output.describe();
}

class SessionShare : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    home_ = files.makeDir("home", 0700);
    const RunOutput made =
        caisson({"session", "create", "--policy", policyFor({"example.org:8086"}, ""), "--workspace", ":none"});
    ASSERT_EQ(made.exit_status, 0) << made.describe();
    id = made.out.substr(0, made.out.find('\n'));
  }
  void TearDown() override { caisson({"session", "destroy", id}); }
  RunOutput caisson(const std::vector<std::string>& words) const {
    RunOptions how;
    how.cwd = files.path();
    how.env["CAISSON_HOME"] = home_;
    return runCaisson(words, how);
  }

  std::string id;

 private:
  std::string home_;
};

/// A program that reads fast at first, so that buffers grow, and then stops: what the host sends stays in the kernel.
TEST_F(SessionShare, BuffersOfManyConnectionsStaySmall) {
  const std::string script = R"(
import select, socket, time
many = []
for i in range(60):
    c = socket.create_connection(("127.0.0.1", 3128))
    c.sendall(b"CONNECT example.org:8086 HTTP/1.1\r\nHost: example.org:8086\r\n\r\n")
    c.recv(100)
    c.sendall(b"\1 /raw\r\n\r\n")
    many.append(c)
end = time.monotonic() + 4
while time.monotonic() < end:
    for c in select.select(many, [], [], 1)[0]: c.recv(1 << 20, socket.MSG_TRUNC)
open("/tmp/stopped", "w")
time.sleep(60)
)";
  EXPECT_EQ(caisson({"session", "exec", id, "--background", "--", "/usr/bin/python3", "-c", script}).exit_status, 0);
  ASSERT_TRUE(
      eventually([&] { return caisson({"session", "exec", id, "--", "test", "-e", "/tmp/stopped"}).exit_status == 0; },
                 std::chrono::seconds(20)));  // it reads for 4 s
  sleepFor(std::chrono::seconds(2));          // the host fills the buffers
  const std::string sockets = runProgram({"ss", "-tmnOH", "dport", "=", ":8086"}, {}).out;
  int all = 0, large = 0;
  for (std::size_t at = 0; (at = sockets.find("skmem:(r", at)) != std::string::npos; ++all) {
    at += std::string_view("skmem:(r").size();
    if (std::stoul(sockets.substr(at, 20)) > (1U << 20)) ++large;
  }
  EXPECT_EQ(all, 60) << sockets;
  EXPECT_LE(large, 4) << sockets;
}

TEST_F(SessionShare, DenialClosesTheConnectionAtOnce) {
  const std::string script =
      std::string(kGreedy) + "open('/tmp/began', 'w'); open('/tmp/cut', 'w').write(str(greedy()))";
  EXPECT_EQ(caisson({"session", "exec", id, "--background", "--", "/usr/bin/python3", "-c", script}).exit_status, 0);
  EXPECT_TRUE(
      eventually([&] { return caisson({"session", "exec", id, "--", "test", "-e", "/tmp/began"}).exit_status == 0; }));
  sleepFor(std::chrono::seconds(1));  // it is in full transfer
  const RunOutput denied = caisson({"session", "network", id, "deny", "example.org:8086"});
  EXPECT_EQ(denied.exit_status, 0) << denied.describe();
  EXPECT_TRUE(eventually([&] { return caisson({"session", "exec", id, "--", "cat", "/tmp/cut"}).out == "True"; }));
}

}  // namespace
}  // namespace caisson::test
