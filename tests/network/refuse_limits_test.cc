// Other protocols than TCP, tunnels in DNS, and limits on connections: denied at once and listed in the result.
#include <sstream>

#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Refuse = NetworkTest;

TEST_F(Refuse, DatagramsAtOnceAndInTheResult) {
  CONFORMS("R-NETWORK-20");
  const RunOutput output = run({"example.org"}, {"/usr/bin/python3", "-c", R"(
import socket, time
start = time.monotonic()
for address in ("93.184.0.2", socket.gethostbyname("example.org")):
    for connected in (False, True):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            if connected: s.connect((address, 443)); s.send(b"quic")
            else: s.sendto(b"quic", (address, 443))
            print("sent")
        except OSError as error: print(type(error).__name__)
print(time.monotonic() - start < 2))"},
                               "", {"--json"});
  const auto result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_EQ(result["stdout"], "PermissionError\nPermissionError\nPermissionError\nPermissionError\nTrue\n") << result;
  EXPECT_TRUE(denied(result, "93.184.0.2:443", "udp")) << result;
  EXPECT_TRUE(denied(result, "example.org:443", "udp")) << result;
}

TEST_F(Refuse, IcmpAndRawSocketsAtOnceAndInTheResult) {
  CONFORMS("R-NETWORK-20");
  const RunOutput output = run({"example.org", "93.184.0.2"}, {"/usr/bin/python3", "-c", R"(
import socket, time
start = time.monotonic()
for family, kind, protocol in ((socket.AF_INET, socket.SOCK_DGRAM, 1), (socket.AF_INET6, socket.SOCK_DGRAM, 58),
                               (socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_INET6, socket.SOCK_RAW, 58),
                               (socket.AF_INET, socket.SOCK_RAW, 255)):
    try:
        s = socket.socket(family, kind, protocol)
        s.sendto(b"\x08\0\xf7\xff\0\0\0\0", ("93.184.0.2" if family == socket.AF_INET else "2606:4700:aa::2", 0))
        print("sent")
    except OSError as error: print(type(error).__name__)
print(time.monotonic() - start < 2))"},
                               "", {"--json"});
  const auto result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  std::string expected;
  for (int i = 0; i < 5; ++i) expected += "PermissionError\n";
  EXPECT_EQ(result["stdout"], expected + "True\n") << result;
  for (const char* object : {"socket(AF_INET, type 2, protocol 1)", "socket(AF_INET6, type 2, protocol 58)",
                             "socket(AF_INET, type 3, protocol 1)", "socket(AF_INET6, type 3, protocol 58)"}) {
    EXPECT_TRUE(contains(result["denials"].dump(), object)) << object << result;
  }
}

TEST_F(Refuse, PingAtOnce) {
  requireOrSkip(hasProgram("ping"), "no ping here");
  const RunOutput output = shell({"*"}, "time ping -c 1 -W 20 93.184.0.2; ping -6 -c 1 -W 20 2606:4700:aa::2");
  EXPECT_NE(output.exit_status, 0) << output.describe();
  EXPECT_LT(output.duration, std::chrono::seconds(10)) << output.describe();
  EXPECT_FALSE(contains(output.out, "bytes from")) << output.describe();
}

TEST_F(Refuse, SocksUdpAndOldSocks) {
  const RunOutput output = python({"example.org"}, R"(
import socket
def ask(*steps):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(5); out = b""
    for step in steps:
        s.sendall(step)
        try: out += s.recv(100)
        except OSError: pass
    return out
print(ask(b"\5\1\0", b"\5\3\0\1\0\0\0\0\0\0")[2:4], ask(b"\5\1\0", b"\5\2\0\3\x0bexample.org\0\x50")[2:4])
print(ask(b"\4\1\0\x50\x5d\xb8\0\2\0")[1:2] == b"\x5a"))");
  EXPECT_EQ(output.out, "b'\\x05\\x07' b'\\x05\\x07'\nFalse\n") << output.describe();
}

TEST_F(Refuse, RecordTypesThatCouldCarryATunnel) {
  CONFORMS("R-NETWORK-11");
  forgetQueries();
  const RunOutput output = python({".example.org"}, R"(
import socket, struct
def ask(kind, name=b"\7example\3org\0"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.connect(("127.0.0.1", 53))
    s.send(struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + name + struct.pack(">HH", kind, 1))
    reply = s.recv(512)
    return reply[3] & 15, struct.unpack(">H", reply[6:8])[0]
print([ask(kind) for kind in (16, 15, 33, 65, 64, 255, 10, 6, 2)]))");
  EXPECT_EQ(output.out, "[(0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]\n")
      << output.describe();
  EXPECT_EQ(queries(), "");
}

TEST_F(Refuse, TunnelInTheLabelsOfAnAllowedDomain) {
  CONFORMS("R-NETWORK-11");
  forgetQueries();
  const RunOutput output = run({"*.wild.example.org"}, {"/usr/bin/python3", "-c", R"(
import socket
for i in range(100):
    name = ("%060d" % i) + ".wild.example.org"
    try: socket.getaddrinfo(name, 80)
    except OSError: pass
    s = socket.create_connection(("127.0.0.1", 3128))
    s.sendall(("CONNECT " + ("%058dxx" % i) + ".wild.example.org:80 HTTP/1.1\r\n\r\n").encode()); s.recv(100))"},
                               "", {"--json"});
  std::size_t out = 0, lines = 0;
  const std::string asked = queries();
  for (std::size_t at = 0; (at = asked.find(".wild.example.org 1\n", at)) != std::string::npos; ++at) {
    out += 60;
    ++lines;
  }
  EXPECT_GT(lines, 0U) << output.describe();
  EXPECT_LE(out, 1000U) << asked;
  EXPECT_TRUE(contains(output.out, "DNS tunnel")) << output.describe();
}

TEST_F(Refuse, MalformedDnsAnswers) {
  for (const char* host : {"garbage", "lie", "silent", "loop"}) {
    const RunOutput output = shell({".example.org"}, std::string("curl -sS -m 20 http://") + host + ".example.org/");
    EXPECT_FALSE(contains(output.out, "from 80")) << host << output.describe();
  }
}

TEST_F(Refuse, MoreConnectionsThanPermitted) {
  CONFORMS("R-NETWORK-12");
  const RunOutput output = run({"example.org:5432"}, {"/usr/bin/python3", "-c", R"(
import socket
open_ones, refused = [], 0
for i in range(12):
    try:
        s = socket.create_connection(("example.org", 5432)); s.settimeout(5)
        if s.recv(10): open_ones.append(s)
        else: refused += 1
    except OSError: refused += 1
print(len(open_ones), refused))"},
                               "max_connections = 8", {"--json"});
  const auto result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_EQ(result["stdout"], "8 4\n") << result;
  EXPECT_TRUE(contains(result["denials"].dump(), "network.max_connections")) << result;
}

TEST_F(Refuse, MoreBytesThanPermitted) {
  CONFORMS("R-NETWORK-19");
  const RunOutput output =
      run({"example.org"},
          {"curl", "-sSk", "-o", "/dev/null", "-w", "%{size_download}", "https://example.org/bytes/50000000"},
          "max_bytes = \"1 MiB\"", {"--json"});
  const auto result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_NE(result["exit_code"], 0) << result;
  EXPECT_LT(result["usage"]["network_bytes"], 20000000) << result;
  EXPECT_TRUE(contains(result["denials"].dump(), "network.max_bytes")) << result;
}

TEST_F(Refuse, MoreBytesThanPermittedWhileOnlyTheServerSpeaks) {
  CONFORMS("R-NETWORK-19");
  for (const char* first : {"", "CONNECT example.org:8088 HTTP/1.1\\r\\n\\r\\n"}) {
    const std::string script = std::string(R"(
import socket
first = b")") + first + R"("
s = socket.create_connection(("127.0.0.1", 3128) if first else ("example.org", 8088)); s.settimeout(20); count = 0
try:
    s.sendall(first)
    while data := s.recv(1 << 20): count += len(data)
except OSError: pass
print(count))";
    const RunOutput output =
        run({"example.org:8088"}, {"/usr/bin/python3", "-c", script}, "max_bytes = \"1 MiB\"", {"--json"});
    const auto result = output.json();
    ASSERT_TRUE(result.is_object()) << output.describe();
    const int received = std::stoi(result["stdout"].get<std::string>());
    EXPECT_GT(received, 1000) << result;
    EXPECT_LE(received, 1 << 20) << result;
    EXPECT_LE(result["usage"]["network_bytes"], 1 << 20) << result;
    EXPECT_TRUE(contains(result["denials"].dump(), "network.max_bytes")) << result;
  }
}

TEST_F(Refuse, ConnectionsThatDoNothing) {
  CONFORMS("R-NETWORK-19");
  const RunOutput output = python({"example.org:5432"}, R"(
import socket, time
s = socket.create_connection(("example.org", 5432)); s.recv(10); start = time.monotonic()
try: data = s.recv(10)
except OSError: data = b""
print(data, time.monotonic() - start < 10))",
                                  "idle_seconds = 2");
  EXPECT_EQ(output.out, "b'' True\n") << output.describe();
}

TEST_F(Refuse, InvalidNetworkPolicies) {
  EXPECT_EQ(run({"exa mple.org"}, {"true"}).exit_status, 125);
  EXPECT_EQ(run({"example.org"}, {"true"}, "allowed_host = [\"*\"]").exit_status, 125);
  EXPECT_EQ(run({"example.org"}, {"true"}, "private_hosts = [\"*.local\"]").exit_status, 125);
}

}  // namespace
}  // namespace caisson::test
