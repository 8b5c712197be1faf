// Allowed hosts are reachable in every way that a program can use.
#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Reach = NetworkTest;

TEST_F(Reach, ByHttpProxy) {
  CONFORMS("R-NETWORK-2");
  const RunOutput output = shell({"example.org"}, "curl -sS http://example.org/a http://example.org/b");
  EXPECT_EQ(output.out, "example.org /a from 80\nexample.org /b from 80\n") << output.describe();
}

TEST_F(Reach, ByConnectWithTls) {
  CONFORMS("R-NETWORK-2");
  const RunOutput output = shell({"example.org"}, "curl -sS --cacert " + certificate() + " https://example.org/x");
  EXPECT_EQ(output.out, "example.org /x from 443\n") << output.describe();
}

TEST_F(Reach, BySocksWithNamesAndAddresses) {
  for (const char* way : {"--socks5-hostname", "--socks5"}) {
    const RunOutput output =
        shell({"example.org"}, std::string("curl -sS ") + way + " 127.0.0.1:3128 http://example.org/s");
    EXPECT_EQ(output.out, "example.org /s from 80\n") << way << output.describe();
  }
}

TEST_F(Reach, WithoutAnyProxySetting) {
  const RunOutput output = shell({".example.org"}, std::string(kDirect) + "curl -sS --cacert " + certificate() +
                                                       " http://www.example.org/a https://example.org/b");
  EXPECT_EQ(output.out, "www.example.org /a from 80\nexample.org /b from 443\n") << output.describe();
}

TEST_F(Reach, OverIpv6) {
  const RunOutput output = shell({".example.org"}, std::string(kDirect) + "curl -6 -sS http://six.example.org/a; " +
                                                       kDirect + "curl -4 -sS http://six.example.org/b");
  EXPECT_EQ(output.out, "six.example.org /a from 80\nsix.example.org /b from 80\n") << output.describe();
}

TEST_F(Reach, ServersThatSpeakFirst) {
  const RunOutput output = python({"example.org:5432"}, R"(
import socket
s = socket.create_connection(("example.org", 5432))
print(s.recv(100).decode(), end="")
s.sendall(b"question\n")
print(s.recv(100).decode(), end=""))");
  EXPECT_EQ(output.out, "welcome\nquestion\n") << output.describe();
}

TEST_F(Reach, AHostThatIsAnAddress) {
  const RunOutput output = shell({"93.184.0.4"}, std::string(kDirect) + "curl -sS http://93.184.0.4/a");
  EXPECT_EQ(output.out, "93.184.0.4 /a from 80\n") << output.describe();
}

TEST_F(Reach, BodiesInBothDirections) {
  const RunOutput output = shell({"example.org"}, R"(
curl -sS http://example.org/chunked
head -c 300000 /dev/zero | curl -sS --data-binary @- http://example.org/post
curl -sS http://example.org/bytes/3000000 | wc -c
curl -sSI http://example.org/bytes/10 | grep -ci content-length)");
  EXPECT_EQ(output.out, "one two three\ngot 300000 bytes\n3000000\n1\n") << output.describe();
}

TEST_F(Reach, ALargeTransferThroughATunnelIsWhole) {
  const RunOutput output =
      shell({"example.org"}, "curl -sS --cacert " + certificate() + " https://example.org/bytes/30000000 | sha256sum");
  const RunOutput expected = runProgram({"bash", "-c", "head -c 30000000 /dev/zero | tr '\\0' x | sha256sum"});
  EXPECT_EQ(output.out, expected.out) << output.describe();
}

TEST_F(Reach, APresetIsItsHosts) {
  CONFORMS("R-NETWORK-17");
  const auto reached = [&](const std::string& preset, const std::string& host) {
    return shell({"preset:" + preset}, "curl -sS http://" + host + "/").out == host + " / from 80\n";
  };
  EXPECT_TRUE(reached("npm", "any.npmjs.org"));
  EXPECT_TRUE(reached("npm", "any.yarnpkg.com"));
  EXPECT_FALSE(reached("npm", "any.evil-npmjs.org"));
  EXPECT_FALSE(reached("npm", "any.pypi.org"));
  EXPECT_TRUE(reached("pip", "any.pypi.org"));
  EXPECT_TRUE(reached("pip", "any.pypi.python.org"));
}

/// The programs are changed to one that shows what the network allows.
TEST_F(Reach, TheCargoProfileHasNoNetworkUntilItsRegistryIsNamed) {
  CONFORMS("R-CARGO-9");
  const std::string policy = files.write(
      "cargo.toml",
      "extends = 'cargo'\n[process]\nallowed_executables = ['curl']\nblocked_executables = []\n"
      "[commands]\nallowed_patterns = ['^curl\\s']\nblocked_patterns = []\n[network]\ndns_servers = ['93.184.0.2']\n");
  const auto fetch = [&](std::vector<std::string> options, const std::string& host) {
    options.insert(options.begin(), {"run", "--policy", policy, "--workspace", ":none"});
    options.insert(options.end(), {"--", "curl", "-sS", "http://" + host + "/"});
    return runCaisson(options, {.cwd = files.path()}).out;
  };
  EXPECT_EQ(fetch({}, "any.crates.io"), "");
  const std::vector<std::string> opened{"--net", "proxy", "--allow-host", "preset:cargo"};
  EXPECT_EQ(fetch(opened, "any.crates.io"), "any.crates.io / from 80\n");
  EXPECT_FALSE(contains(fetch(opened, "example.org"), "from 80"));
}

/// The networks of imported `shell-toml` and `cargo` files.
TEST_F(Reach, WithImportedPolicies) {
  CONFORMS("R-POLICY-7", "R-POLICY-9");
  const auto imported = [&](const std::string& name, const std::string& text) {
    const RunOutput output = runCaisson({"policy", "import", files.write(name, text)});
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    return files.write(name + ".json", output.out);
  };
  const auto fetch = [&](const std::string& policy, const std::string& url) {
    return runCaisson({"run", "--policy", policy, "--workspace", ":none", "--", "curl", "-sS", "--max-time", "10", url},
                      {.cwd = files.path()})
        .out;
  };
  const std::string bridge = imported(
      "shell.toml", "[sandbox]\nnetwork_mode = 'bridge'\nworkspace_access = 'ro'\ndns_servers = ['93.184.0.2']\n");
  EXPECT_EQ(fetch(bridge, "http://example.org/"), "example.org / from 80\n");
  EXPECT_TRUE(contains(fetch(bridge, "http://10.0.0.1/"), "always blocked"));
  (void)imported("cargo.yaml", R"(
network_allowlist: ["example.org"]
port_restrictions: {allowed_ports: [80, 443], blocked_ranges: ["1-1023", "8080-8090"]}
execution_policy:
  allowed_executables: ["curl"]
  command_validation: [{regex: "^curl\\s", description: "Fetching"}]
sandbox_config: {network: {enabled: true, allowlist: ["example.org"], ports: [80, 443]}}
)");
  const std::string cargo =
      files.write("cargo.toml", "extends = './cargo.yaml.json'\n[network]\ndns_servers = ['93.184.0.2']\n");
  EXPECT_EQ(fetch(cargo, "http://example.org/"), "example.org / from 80\n");
  EXPECT_FALSE(contains(fetch(cargo, "http://example.org:8080/"), "from 8080"));
  EXPECT_FALSE(contains(fetch(cargo, "http://www.example.org/"), "from 80"));
}

TEST_F(Reach, AliasesTruncatedAnswersAndSeveralAddresses) {
  const RunOutput output = shell({".example.org"}, R"(
for host in alias large dual; do curl -sS http://$host.example.org/; done)");
  EXPECT_EQ(output.out, "alias.example.org / from 80\nlarge.example.org / from 80\ndual.example.org / from 80\n")
      << output.describe();
}

/// The second request arrives while the client still reads the first response.
TEST_F(Reach, PipelinedRequestsToTwoHosts) {
  const RunOutput output = python({".example.org"}, R"(
import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
s.connect(("127.0.0.1", 3128))
s.sendall(b"GET http://example.org/bytes/3000000 HTTP/1.1\r\nHost: example.org\r\n\r\n"
          b"GET http://www.example.org/b HTTP/1.1\r\nHost: www.example.org\r\nConnection: close\r\n\r\n")
whole = b""
while piece := s.recv(2000): whole += piece
print(whole.count(b"x") >= 3000000, whole.endswith(b"www.example.org /b from 80\n")))");
  EXPECT_EQ(output.out, "True True\n") << output.describe();
}

TEST_F(Reach, AnyDnsServerGivesTheSameAnswers) {
  CONFORMS("R-NETWORK-10");
  const RunOutput output = python({"example.org"}, R"(
import socket, struct
q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\7example\3org\0" + struct.pack(">HH", 1, 1)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect(("8.8.8.8", 53))
s.send(q)
print(socket.inet_ntoa(s.recv(512)[-4:]))
t = socket.create_connection(("8.8.4.4", 53))
t.sendall(struct.pack(">H", len(q)) + q)
print(socket.inet_ntoa(t.recv(512)[-4:])))");
  EXPECT_EQ(output.out, "198.18.0.1\n198.18.0.1\n") << output.describe();
}

/// Names are looked up at the servers of the policy, and nowhere else.
TEST_F(Reach, OnlyThroughTheDnsServersOfThePolicy) {
  CONFORMS("R-NETWORK-14");
  RunOptions how;
  how.cwd = files.path();
  const auto with = [&](const std::string& server) {
    const std::string policy = files.write("dns.toml",
                                           "extends = \"bash\"\n[network]\nmode = \"proxy\"\nallowed_hosts = "
                                           "[\"example.org\"]\ndns_servers = [\"" +
                                               server + "\"]\n");
    return runCaisson(
        {"run", "--policy", policy, "--workspace", ":none", "--", "curl", "-sS", "-m", "8", "http://example.org/x"},
        how);
  };
  forgetQueries();
  EXPECT_FALSE(contains(with("93.184.0.1").out, "from 80")) << "a server that does not answer";
  EXPECT_EQ(queries(), "");
  EXPECT_EQ(with("93.184.0.2").out, "example.org /x from 80\n");
  EXPECT_TRUE(contains(queries(), "example.org")) << queries();
}

TEST_F(Reach, TheResultCountsWhatWasUsed) {
  CONFORMS("R-LIMIT-11");
  const auto result = json({"example.org"}, {"curl", "-sS", "http://example.org/bytes/5000"});
  EXPECT_GE(result["usage"]["network_bytes"], 5000) << result;
  EXPECT_EQ(result["usage"]["network_connections"], 1) << result;
  EXPECT_EQ(result["usage"]["network_denied"], 0) << result;
  EXPECT_TRUE(contains(result["layers"]["network"], "proxy")) << result;
}

TEST_F(Reach, LevelProcessHasTheSameEgress) {
  const RunOutput output = run({"example.org"}, {"curl", "-sS", "http://example.org/p"}, "", {"--level", "process"});
  EXPECT_EQ(output.out, "example.org /p from 80\n") << output.describe();
}

TEST_F(Reach, TheSandboxsOwnLoopbackWorks) {
  CONFORMS("R-NETWORK-1");
  const RunOutput output = python({}, R"(
import socket
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    server = socket.socket(family); server.bind((address, 8000)); server.listen()
    client = socket.create_connection((address, 8000)); peer = server.accept()[0]
    client.sendall(b"x"); print(peer.recv(1))
    a = socket.socket(family, socket.SOCK_DGRAM); a.bind((address, 8001))
    b = socket.socket(family, socket.SOCK_DGRAM); b.sendto(b"y", (address, 8001)); print(a.recv(1)))");
  EXPECT_EQ(output.out, "b'x'\nb'y'\nb'x'\nb'y'\n") << output.describe();
}

}  // namespace
}  // namespace caisson::test
