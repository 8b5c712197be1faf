// No request makes the egress connect more often than the request was worth, however its host is named and however it
// ends. The servers count the connections.
#include "network/network.h"

namespace caisson::test {
namespace {

class Attempts : public NetworkTest {
 protected:
  /// The servers count a connection when they accept it, perhaps after its client is gone.
  static void expectConnections(std::uint16_t port, std::size_t count) {
    EXPECT_TRUE(eventually([&] { return connectionsSeen(port) >= count; })) << connectionsSeen(port);
    EXPECT_EQ(connectionsSeen(port), count);
  }
};

// ask() sends `data` to the proxy or to `to`, reads until the end or `quiet` seconds of silence, and closes.
constexpr const char* kAsk = R"(
import socket, time
def ask(data, to=("127.0.0.1", 3128), first=(), quiet=1):
    s = socket.create_connection(to); s.settimeout(quiet); out = b""
    try:
        for step in first: s.sendall(step); s.recv(4096)
        s.sendall(data)
        while piece := s.recv(4096): out += piece
    except OSError: pass
    s.close()
    return out
def get(host, path="/x", more=""):
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode()
four = socket.gethostbyname("example.org")
six = socket.getaddrinfo("six.example.org", 80, socket.AF_INET6)[0][4][0]
assert four.startswith("198.18.") and six.startswith("fdca:"), (four, six)
)";

TEST_F(Attempts, AbsoluteRequestForASyntheticAddressConnectsOnce) {
  const std::size_t before = connectionsSeen(80);
  const RunOutput output = python({".example.org"}, std::string(kAsk) + R"(
print(b"/x from 80" in ask(get(four, f"http://{four}/x")))
print(b"/x from 80" in ask(get(f"[{six}]", f"http://[{six}]/x")))
s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(get(four, f"http://{four}/x")); s.close()   # without reading
time.sleep(2))");
  EXPECT_EQ(output.out, "True\nTrue\n") << output.describe();
  EXPECT_TRUE(eventually([&] { return connectionsSeen(80) >= before + 2; }));
  EXPECT_LE(connectionsSeen(80), before + 3);
}

TEST_F(Attempts, EveryWayToNameAHostIsTheSameTarget) {
  const std::size_t before = connectionsSeen(80);
  const RunOutput output = python({".example.org"}, std::string(kAsk) + R"(
number = socket.inet_aton(four)
port = b"\0\x50"
end = "Connection: close\r\n"
greeting = b"\5\1\0"
for host in ("example.org", four):
    print([b"/x from 80" in reply for reply in (
        ask(get(host, f"http://{host}/x", end)),
        ask(get(host, "/x", end), first=(f"CONNECT {four}:80 HTTP/1.1\r\n\r\n".encode(),)),
        ask(get(host, "/x", end), first=(b"CONNECT example.org:80 HTTP/1.1\r\n\r\n",)),
        ask(get(host, "/x", end), first=(greeting, b"\5\1\0\1" + number + port)),
        ask(get(host, "/x", end), first=(greeting, b"\5\1\0\3\x0bexample.org" + port)),
        ask(get(host, "/x", end), to=(four, 80)))])
for host in ("www.example.org", "198.18.77.77", "93.184.0.2"):   # another name, no name, the address itself
    print([b"/x from 80" in reply for reply in (
        ask(get(host, "/x", end), first=(f"CONNECT {four}:80 HTTP/1.1\r\n\r\n".encode(),)),
        ask(get(host, "/x", end), first=(greeting, b"\5\1\0\1" + number + port)),
        ask(get(host, "/x", end), to=(four, 80)))]))");
  const std::string all = "[True, True, True, True, True, True]\n", none = "[False, False, False]\n";
  EXPECT_EQ(output.out, all + all + none + none + none) << output.describe();
  expectConnections(80, before + 21);
}

TEST_F(Attempts, KeptConnectionIsReusedForEveryNameOfItsHost) {
  const std::size_t before = connectionsSeen(80);
  const RunOutput output = python({".example.org"}, std::string(kAsk) + R"(
requests = b"".join(get(host, f"http://{host}/{i}") for i, host in enumerate(("example.org", four, "EXAMPLE.org.", four)))
print(ask(requests).count(b" from 80")))");
  EXPECT_EQ(output.out, "4\n") << output.describe();
  expectConnections(80, before + 1);
}

TEST_F(Attempts, TlsNamedByAddressConnectsOnce) {
  const std::size_t before = connectionsSeen(443);
  const RunOutput output = python({".example.org"}, std::string(kAsk) + R"(
import ssl
context = ssl._create_unverified_context()
def secure(host, first=()):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(5)
    try:
        for step in first: s.sendall(step); s.recv(4096)
        t = context.wrap_socket(s, server_hostname=host); t.sendall(get("example.org", "/x", "Connection: close\r\n"))
        return b"/x from 443" in t.recv(4096) + t.recv(4096)
    except OSError: return False
tunnel = (f"CONNECT {four}:443 HTTP/1.1\r\n\r\n".encode(),)
print(secure("example.org", tunnel), secure("www.example.org", tunnel), secure("evil.test", tunnel))
time.sleep(1))");
  EXPECT_EQ(output.out, "True False False\n") << output.describe();
  expectConnections(443, before + 3);
}

TEST_F(Attempts, HostThatOnlyClosesIsNotAskedAgain) {
  const std::size_t before = connectionsSeen(8087);
  const RunOutput output = python({"example.org:8087"}, R"(
import socket, time
def ask(data):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(3); s.sendall(data); out = b""
    try:
        while piece := s.recv(4096): out += piece
    except OSError: pass
    return out
host = socket.gethostbyname("example.org")
for name in ("example.org", host):
    print(b" 502 " in ask(f"GET http://{name}:8087/ HTTP/1.1\r\nHost: {name}:8087\r\n\r\n".encode())[:20])
time.sleep(1))");
  EXPECT_EQ(output.out, "True\nTrue\n") << output.describe();
  expectConnections(8087, before + 2);
}

TEST_F(Attempts, ClientThatIsGoneWhenItsTunnelIsReadyGetsNone) {
  // The connection is given up while the host's name is being looked up: the DNS server answers after the client left.
  const std::size_t before = connectionsSeen(443);
  const RunOutput output = python({".example.org"}, R"(
import socket, time
for i in range(20):
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(b"CONNECT late.example.org:443 HTTP/1.1\r\n\r\n"); s.close()
time.sleep(3))");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(contains(queries(), "late.example.org")) << queries();
  EXPECT_EQ(connectionsSeen(443), before);
}

TEST_F(Attempts, FloodDoesNotTakeAllPortsOfTheMachine) {
  // Each connection is ended by the client: it would keep a port of this machine for a minute.
  const RunOutput output = run({"example.org:8085"}, {"/usr/bin/python3", "-c", R"(
import socket, threading, time
host = socket.gethostbyname("example.org"); end = time.monotonic() + 8; done = []
def flood():
    count = 0
    while time.monotonic() < end:
        try:
            s = socket.create_connection((host, 8085), 2); s.settimeout(2); s.recv(100); s.shutdown(socket.SHUT_WR)
            while s.recv(100): pass
            s.close(); count += 1
        except OSError: pass
    done.append(count)
threads = [threading.Thread(target=flood) for i in range(16)]
for t in threads: t.start()
for t in threads: t.join()
print(sum(done)))"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_LE(std::stoul(output.out), 5600U + 64U) << output.describe();
  EXPECT_LE(lingeringPorts(8085), 5600U + 64U);
  EXPECT_GT(lingeringPorts(8085), 100U) << "the test made no connections";
}

}  // namespace
}  // namespace caisson::test
