// network.denied_hosts and network.denied_ports win, whichever way a connection leads to what they name.
#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Denied = NetworkTest;

// reach() prints which of the ways to a host lead to a response.
constexpr const char* kReach = R"(
import socket
def ask(data, to=("127.0.0.1", 3128), first=()):
    out = b""
    try:
        s = socket.create_connection(to, 5); s.settimeout(5)
        for step in first: s.sendall(step); s.recv(4096)
        s.sendall(data)
        while piece := s.recv(4096): out += piece
    except OSError: pass
    return out
def reach(host, port=80):
    authority = host if port == 80 else f"{host}:{port}"
    end = f"Host: {authority}\r\nConnection: close\r\n\r\n"
    plain, number = f"GET /x HTTP/1.1\r\n{end}".encode(), port.to_bytes(2, "big")
    ways = {"http": ask(f"GET http://{authority}/x HTTP/1.1\r\n{end}".encode()),
            "connect": ask(plain, first=(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode(),)),
            "socks": ask(plain, first=(b"\5\1\0", b"\5\1\0\3" + bytes([len(host)]) + host.encode() + number)),
            "captured": ask(plain, to=(host, port))}
    print(host, port, *[way for way in ways if f"/x from {port}".encode() in ways[way]])
)";
constexpr const char* kAllWays = " http connect socks captured\n";

TEST_F(Denied, AddressIsDeniedByEveryName) {
  CONFORMS("R-NETWORK-3");
  const RunOutput output = python({"*"}, std::string(kReach) + "reach('other.example.org'); reach('www.example.org')",
                                  "denied_hosts = [\"93.184.0.3\"]");
  EXPECT_EQ(output.out, "other.example.org 80\nwww.example.org 80" + std::string(kAllWays)) << output.describe();
  const auto result = json({"*"}, {"curl", "-sS", "http://other.example.org/"}, "denied_hosts = [\"93.184.0.3\"]");
  EXPECT_TRUE(contains(result["denials"].dump(), "network.denied_hosts: 93.184.0.3")) << result;
}

TEST_F(Denied, NameIsDeniedThroughItsAliases) {
  const RunOutput output = python(
      {"*"},
      std::string(kReach) +
          "for host in ('evil.test', 'front.example.org', 'chain.example.org', 'alias.example.org'): reach(host)",
      "denied_hosts = [\"evil.test\"]");
  EXPECT_EQ(output.out,
            "evil.test 80\nfront.example.org 80\nchain.example.org 80\nalias.example.org 80" + std::string(kAllWays))
      << output.describe();
  const auto result = json({"*"}, {"getent", "hosts", "chain.example.org"}, "denied_hosts = [\"*.test\"]");
  EXPECT_TRUE(denied(result, "chain.example.org", "resolve")) << result;
}

TEST_F(Denied, PortOfAnEntryCounts) {
  const RunOutput output =
      python({"*"},
             std::string(kReach) +
                 "reach('other.example.org'); reach('other.example.org', 8080); reach('front.example.org', 8080)",
             "denied_hosts = [\"93.184.0.3:80\", \"evil.test:8080\"]\nallowed_ports = [\"80\", \"8080\"]");
  EXPECT_EQ(output.out,
            "other.example.org 80\nother.example.org 8080" + std::string(kAllWays) + "front.example.org 8080\n")
      << output.describe();
}

TEST_F(Denied, AddressIsDeniedThroughATranslatingGateway) {
  const RunOutput output = run({"*"}, {"/usr/bin/python3", "-c", R"(
import socket
for target in ("[64:ff9b::5db8:3]", "[2002:5db8:0003::1]", "[::ffff:5db8:3]"):
    s = socket.create_connection(("127.0.0.1", 3128)); s.sendall(f"CONNECT {target}:80 HTTP/1.1\r\n\r\n".encode())
    print(s.recv(4096).split(b"\r\n")[0], flush=True))"},
                               "denied_hosts = [\"93.184.0.3\"]", {"--json"});
  const auto result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_EQ(result["stdout"], "b'HTTP/1.1 403 Forbidden'\nb'HTTP/1.1 403 Forbidden'\nb'HTTP/1.1 403 Forbidden'\n");
}

TEST_F(Denied, PortWinsOverAHostThatNamesIt) {
  const std::string reach = std::string(kReach) + "reach('example.org', 8080)";
  const std::vector<std::string> hosts{"example.org:8080"};
  const std::string reached = "example.org 8080" + std::string(kAllWays), refused = "example.org 8080\n";
  EXPECT_EQ(python(hosts, reach).out, reached);
  EXPECT_EQ(python(hosts, reach, "denied_ports = [\"8080\"]").out, refused);
  EXPECT_EQ(python(hosts, reach, "denied_ports = [\"8000-8090\"]").out, reached) << "the narrower entry wins";
}

}  // namespace
}  // namespace caisson::test
