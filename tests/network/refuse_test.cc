// Forbidden hosts are denied at once and listed in the result, and no packet leaves. Covers hosts, protocols, names and
// relays. Each test also shows that the same action works where the policy allows it, so that a denial for the wrong
// reason fails the test.
#include <sstream>

#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Refuse = NetworkTest;

TEST_F(Refuse, AnEmptyListAllowsNothing) {
  CONFORMS("R-NETWORK-2");
  forgetQueries();
  for (const std::string& url : {std::string("http://example.org/"), std::string("http://93.184.0.4/")}) {
    const auto result = json({}, {"curl", "-sS", url});
    EXPECT_FALSE(contains(result["stdout"], "from 80")) << result;
    EXPECT_EQ(result["denials"].size(), 1U) << result;
  }
  EXPECT_EQ(queries(), "");
}

TEST_F(Refuse, ADeniedNameIsNeverLookedUp) {
  CONFORMS("R-NETWORK-10", "R-NETWORK-2");
  forgetQueries();
  for (const char* script :
       {"curl -sS http://evil.test/", "curl -sSk https://evil.test/", "curl -sS --noproxy '*' http://evil.test/",
        "curl -sS --socks5-hostname 127.0.0.1:3128 http://evil.test/", "getent hosts evil.test",
        "getent ahostsv6 secret.evil.test"}) {
    const RunOutput output = run({"example.org"}, {"bash", "-c", script}, "", {"--json"});
    const auto result = output.json();
    ASSERT_TRUE(result.is_object()) << output.describe();
    EXPECT_FALSE(contains(result["stdout"], "from")) << script << result;
    ASSERT_GE(result["denials"].size(), 1U) << script << result;
    EXPECT_EQ(result["denials"][0]["remedy"].get<std::string>().substr(0, 12), "--allow-host") << result;
  }
  EXPECT_EQ(queries(), "");
  EXPECT_TRUE(contains(shell({"evil.test"}, "curl -sS http://evil.test/").out, "evil.test / from 80"));
}

TEST_F(Refuse, PortsThatAreNotPermitted) {
  CONFORMS("R-NETWORK-2");
  const auto result = json({"example.org"}, {"curl", "-sS", "http://example.org:8080/"});
  EXPECT_TRUE(denied(result, "example.org:8080", "connect")) << result;
  const RunOutput captured = python({"example.org"}, R"(
import socket
try:
    s = socket.create_connection(("example.org", 5432), timeout=5); print(s.recv(10))
except OSError as error: print(type(error).__name__))");
  EXPECT_TRUE(contains(captured.out, "ConnectionReset") || contains(captured.out, "ConnectionRefused") ||
              captured.out == "b''\n")
      << captured.describe();
  EXPECT_FALSE(contains(captured.out, "welcome"));
  EXPECT_TRUE(contains(shell({"example.org"}, "curl -sS http://example.org:8080/", "allowed_ports = [\"8080\"]").out,
                       "from 8080"));
}

TEST_F(Refuse, AShellProtocolUnlessItsPortIsNamed) {
  CONFORMS("R-NETWORK-13");
  const std::string script = R"(
import socket
try:
    s = socket.create_connection(("example.org", 22), timeout=5); print(s.recv(8))
except OSError as error: print(type(error).__name__))";
  EXPECT_FALSE(contains(python({"example.org"}, script, "allowed_ports = [\"1-65535\"]").out, "welcome"));
  EXPECT_EQ(python({"example.org"}, script, "allowed_ports = [\"22\"]").out, "b'welcome\\n'\n");
}

TEST_F(Refuse, EachGuardedProtocolUnlessItsPortIsNamed) {
  CONFORMS("R-NETWORK-13");
  for (const char* port : {"21", "22", "23", "25", "465", "587"}) {
    const std::string script = std::string("import socket\ntry: socket.create_connection(('example.org', ") + port +
                               "), timeout=5).recv(1)\nexcept OSError: pass";
    const auto result = json({"example.org"}, {"/usr/bin/python3", "-c", script}, "allowed_ports = [\"1-65535\"]");
    EXPECT_TRUE(denied(result, std::string("example.org:") + port)) << result;
    const auto named = json({"example.org"}, {"/usr/bin/python3", "-c", script},
                            "allowed_ports = [\"1-65535\", \"" + std::string(port) + "\"]");
    EXPECT_FALSE(denied(named, std::string("example.org:") + port)) << named;
  }
}

/// Credentials of the whole machine: neither a list, nor an exception, nor the owner's configuration opens them.
TEST_F(Refuse, CloudMetadataHoweverItIsNamed) {
  CONFORMS("R-NETWORK-5");
  const auto attempt = [&](const std::string& host, const std::string& more) {
    const std::string url = "http://" + (host.find(':') != std::string::npos ? "[" + host + "]" : host) + "/";
    return run({host}, {"curl", "-sS", "--globoff", "--max-time", "10", url}, more, {"--json"});
  };
  for (const std::string host : {"169.254.169.254", "100.100.100.200", "fd00:ec2::254", "metadata.google.internal"}) {
    for (const std::string& more : {std::string(), "private_hosts = [\"" + host + "\"]"}) {
      const RunOutput output = attempt(host, more);
      const auto result = output.json();
      ASSERT_TRUE(result.is_object()) << host << output.describe();
      EXPECT_FALSE(contains(result["stdout"].is_string() ? result["stdout"].get<std::string>() : "", "from 80"))
          << host << result;
      if (output.exit_status == 125) continue;  // the policy itself is refused
      ASSERT_GE(result["denials"].size(), 1U) << host << result;
      for (const auto& denial : result["denials"]) EXPECT_EQ(denial["remedy"], "") << host << result;
    }
  }
  const auto by_name = json({".example.org"}, {"curl", "-sS", "http://metadata.example.org/"},
                            "private_hosts = [\"metadata.example.org\"]");
  EXPECT_TRUE(denied(by_name, "metadata.example.org:80")) << by_name;
  EXPECT_EQ(by_name["denials"][0]["remedy"], "") << by_name;
  files.write("config/caisson/config.toml", "[network]\nprivate_hosts = ['169.254.169.254']\n");
  ::setenv("XDG_CONFIG_HOME", (files / "config").c_str(), 1);
  const RunOutput owned = attempt("169.254.169.254", "");
  ::unsetenv("XDG_CONFIG_HOME");
  EXPECT_FALSE(contains(owned.out, "from 80")) << owned.describe();
}

/// Queries that leave count, for allowed names too; the answer of a name that is known costs nothing.
TEST_F(Refuse, MoreQueriesThanPermitted) {
  CONFORMS("R-NETWORK-11");
  const std::string script = R"(
import socket, struct
codes = []
for i in range(9):
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\1%d\4wild\7example\3org\0" % i + struct.pack(">HH", 1, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.sendto(q, ("8.8.8.8", 53))
    codes.append(s.recv(512)[3] & 15)
print(codes.count(0), len(codes) - codes.count(0)))";
  EXPECT_EQ(python({".example.org"}, script, "dns_queries_per_minute = 6").out, "6 3\n");
  EXPECT_EQ(python({".example.org"}, script).out, "9 0\n");
}

TEST_F(Refuse, HostNamesThatParsersReadDifferently) {
  CONFORMS("R-NETWORK-3");
  // NUL, CR LF, userinfo, percent-encoding, backslash: sent as raw protocol bytes.
  const RunOutput output = python({"example.org"}, R"(
import socket
def ask(data):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(5); s.sendall(data)
    out = b""
    try:
        while True:
            piece = s.recv(4096)
            if not piece: break
            out += piece
    except OSError: pass
    return out
for target in (b"evil.test\0.example.org", b"evil.test%00.example.org", b"example.org@evil.test", b"evil.test#.example.org",
               b"evil.test\\.example.org", b"evil.test:80@example.org", b"[::ffff:93.184.0.3]", b"0x5db80003", b"1572339715",
               b"93.184.3", b"evil.test.", b"EVIL.TEST", b"xn--evil-.test", b"evil\xc2\xad.test", b"example.org.evil.test"):
    for request in (b"GET http://" + target + b"/ HTTP/1.1\r\nHost: " + target + b"\r\nConnection: close\r\n\r\n",
                    b"CONNECT " + target + b":80 HTTP/1.1\r\n\r\n",
                    b"\5\1\0\5\1\0\3" + bytes([len(target)]) + target + b"\0\x50"):
        out = ask(request)
        if b"200" in out[:20] or (out[:4] == b"\5\0\5\0") or b" from 80" in out: print("REACHED", target, out)
print("asked"))");
  EXPECT_EQ(output.out, "asked\n") << output.describe();
}

TEST_F(Refuse, NamesThatResolveToPrivateAddresses) {
  CONFORMS("R-NETWORK-7");
  for (const char* name : {"rebind", "mixed", "seventeen", "metadata", "mapped", "nat64", "own"}) {
    const std::string host = std::string(name) + ".example.org";
    const auto by_proxy = json({".example.org"}, {"curl", "-sS", "http://" + host + "/"});
    EXPECT_TRUE(denied(by_proxy, host + ":80", "connect")) << by_proxy;
    const auto by_name = json({".example.org"}, {"bash", "-c", "getent hosts " + host});
    EXPECT_TRUE(denied(by_name, host, "resolve")) << by_name;
  }
}

TEST_F(Refuse, NameThatRebindsToAPrivateAddress) {
  CONFORMS("R-NETWORK-7");
  // The first response is public and may be used; a later one must not replace it unchecked.
  const RunOutput output = shell({".example.org"}, R"(
curl -sS http://flip.example.org/first
sleep 6
curl -sS http://flip.example.org/second)");
  EXPECT_TRUE(contains(output.out, "flip.example.org /first from 80")) << output.describe();
  EXPECT_TRUE(contains(output.out, "loopback addresses are always blocked")) << output.describe();
}

TEST_F(Refuse, BlockedRangesWhateverTheListSays) {
  CONFORMS("R-NETWORK-4");
  for (const char* address : {"127.0.0.1", "169.254.169.254", "10.0.0.1", "100.100.100.200", "[::1]", "[fd00:ec2::254]",
                              "[::ffff:169.254.169.254]", "0.0.0.0", "2130706433", "93.184.0.1"}) {
    const RunOutput output = run(
        {"*"}, {"curl", "-sS", "-x", "http://127.0.0.1:3128", "--noproxy", "", std::string("http://") + address + "/"},
        "", {"--json"});
    const auto result = output.json();
    ASSERT_TRUE(result.is_object()) << output.describe();
    EXPECT_EQ(result["denials"].size(), 1U) << address << result;
    EXPECT_FALSE(contains(result["stdout"], "from 80")) << address << result;
  }
}

TEST_F(Refuse, AllowedHostThatDoesNotResolveIsReported) {
  for (const std::string& prefix : {std::string(), std::string(kDirect)}) {
    const std::vector<std::string> command{"bash", "-c", prefix + "curl -sS --fail http://nosuch.example.net/"};
    const RunOutput output = run({"nosuch.example.net"}, command);
    EXPECT_NE(output.exit_status, 0) << output.describe();
    EXPECT_TRUE(contains(output.err, "nosuch.example.net")) << output.describe();
    EXPECT_TRUE(contains(output.err, "could not be reached: the name does not exist")) << output.describe();
    const auto result = json({"nosuch.example.net"}, command);
    ASSERT_EQ(result["notices"].size(), 1U) << result;
    EXPECT_TRUE(contains(result["notices"][0], "the name does not exist")) << result;
    EXPECT_EQ(result["usage"]["network_denied"], 0) << "it was not denied: " << result;
  }
  const RunOutput log = runCaisson({"audit", "show", "--json", "--event", "proxy_failed"});
  EXPECT_TRUE(contains(log.out, "nosuch.example.net")) << log.describe();
}

TEST_F(Refuse, OwnersExceptionAppliesToThatHostOnly) {
  CONFORMS("R-NETWORK-6");
  EXPECT_TRUE(denied(json({"registry.local"}, {"curl", "-sS", "http://registry.local/"}), "registry.local:80"));
  EXPECT_TRUE(
      contains(shell({"registry.local"}, "curl -sS http://registry.local/", "private_hosts = [\"registry.local\"]").out,
               "registry.local / from 80"));
  const auto other = json({"*"}, {"curl", "-sS", "http://own.example.org/"}, "private_hosts = [\"registry.local\"]");
  EXPECT_TRUE(denied(other, "own.example.org:80")) << other;
  forgetQueries();
  for (const std::string host : {"localhost", "db.localhost", "db.internal"}) {
    // curl resolves localhost by itself: the proxy is asked by name.
    const auto result = json({"*"}, {"curl", "-sS", "--noproxy", "", "http://" + host + "/"});
    EXPECT_TRUE(denied(result, host + ":80")) << result;
  }
  EXPECT_EQ(queries(), "") << "a local name was looked up";
  EXPECT_EQ(shell({"*"}, "curl -sS http://db.internal/", "private_hosts = [\"db.internal\"]").out,
            "db.internal / from 80\n");
}

TEST_F(Refuse, OwnersExceptionAppliesToEveryPolicy) {
  CONFORMS("R-NETWORK-6");
  files.write("config/caisson/config.toml", "[network]\nprivate_hosts = ['registry.local']\n");
  const std::string servers = files.write("resolv.conf", "nameserver 93.184.0.2\n");
  const RunOptions how{.env = {{"XDG_CONFIG_HOME", files / "config"}}, .cwd = files.path()};
  // With the host's name servers, in a view of the files where those are this internet's.
  const auto fetch = [&](const std::string& network) {
    const std::string policy = files.write("p.toml", "extends = 'bash'\n[network]\nmode = 'proxy'\n" + network);
    return runProgram({"unshare", "--mount", "sh", "-c", "mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"", servers,
                       caissonBinary(), "run", "--policy", policy, "--workspace", ":none", "--json", "--", "curl",
                       "-sS", "http://registry.local/"},
                      how)
        .json();
  };
  const auto reached = fetch("allowed_hosts = ['registry.local']\n");
  EXPECT_TRUE(contains(reached["stdout"], "registry.local / from 80")) << reached;
  const auto unlisted = fetch("allowed_hosts = ['example.org']\n");
  EXPECT_TRUE(denied(unlisted, "registry.local:80")) << "the policy still has to allow the host: " << unlisted;
  const auto elsewhere = fetch("allowed_hosts = ['registry.local']\ndns_servers = ['93.184.0.2']\n");
  EXPECT_TRUE(denied(elsewhere, "registry.local:80")) << "the policy chooses where the name leads: " << elsewhere;
}

TEST_F(Refuse, TheServerNameOfTlsMustBeTheHost) {
  CONFORMS("R-NETWORK-18");
  const std::string fetch = "curl -sSk --connect-to evil.test:443:example.org:443 https://evil.test/";
  for (const std::string& prefix : {std::string(), std::string(kDirect)}) {
    const RunOutput output = run({"example.org"}, {"bash", "-c", prefix + fetch}, "", {"--json"});
    const auto result = output.json();
    ASSERT_TRUE(result.is_object()) << output.describe();
    EXPECT_TRUE(denied(result, "example.org:443", "tls")) << result;
    EXPECT_FALSE(contains(result["stdout"], "from 443")) << result;
  }
}

constexpr const char* kTlsClient = R"(
import socket, ssl, sys
def fetch(name, pieces):
    context = ssl.create_default_context(); context.check_hostname = False; context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=name)
    s = socket.create_connection(("example.org", 443)); s.settimeout(5)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    def flush():
        data = outgoing.read()
        if pieces:
            for i in range(0, len(data), pieces): s.sendall(data[i:i+pieces])
        else: s.sendall(data)
    try:
        while True:
            try: tls.do_handshake(); break
            except ssl.SSLWantReadError:
                flush(); data = s.recv(65536)
                if not data: return "ended"
                incoming.write(data)
        return "handshake"
    except (OSError, ssl.SSLError) as error: return type(error).__name__
)";

TEST_F(Refuse, AHelloWithoutAName) {
  CONFORMS("R-NETWORK-18");
  const std::string script = std::string(kTlsClient) + "print(fetch(None, 0))";
  EXPECT_NE(python({"example.org"}, script).out, "handshake\n");
  EXPECT_EQ(python({"example.org"}, script, "allow_missing_server_name = true").out, "handshake\n");
}

TEST_F(Refuse, ASplitHelloHidesNothing) {
  const RunOutput output =
      python({"example.org"}, std::string(kTlsClient) + "print(fetch('example.org', 7), fetch('evil.test', 7))");
  EXPECT_TRUE(output.out.starts_with("handshake ")) << output.describe();
  EXPECT_FALSE(contains(output.out, "handshake handshake")) << output.describe();
}

constexpr const char* kRawHttp = R"(
import socket
def ask(data, host="example.org", port=80):
    s = socket.create_connection((host, port)); s.settimeout(5); s.sendall(data)
    out = b""
    try:
        while True:
            piece = s.recv(4096)
            if not piece: break
            out += piece
    except OSError: pass
    return out
)";

TEST_F(Refuse, EveryRequestOfAConnectionIsChecked) {
  CONFORMS("R-NETWORK-18");
  const RunOutput output = python({"example.org"}, std::string(kRawHttp) + R"(
both = b"GET /one HTTP/1.1\r\nHost: example.org\r\n\r\nGET /two HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n"
print(ask(both))
absolute = both.replace(b"GET /one", b"GET http://example.org/one").replace(b"GET /two", b"GET http://evil.test/two")
print(ask(absolute, "127.0.0.1", 3128)))");
  EXPECT_TRUE(contains(output.out, "example.org /one from 80")) << output.describe();
  EXPECT_FALSE(contains(output.out, "/two from")) << output.describe();
  EXPECT_TRUE(contains(output.out, "403 Forbidden")) << output.describe();
}

TEST_F(Refuse, SmuggledRequests) {
  CONFORMS("R-NETWORK-18");
  const RunOutput output = python({"example.org"}, std::string(kRawHttp) + R"(
hidden = b"GET /hidden HTTP/1.1\r\nHost: evil.test\r\n\r\n"
size = str(len(hidden)).encode()
for fields in (b"Content-Length: 0\r\nContent-Length: " + size, b"Content-Length: " + size + b"\r\nTransfer-Encoding: chunked",
               b"Transfer-Encoding: xchunked\r\nContent-Length: 0", b"Transfer-Encoding : chunked", b"Content-Length: +0",
               b"X: y\nContent-Length: 0", b" Content-Length: 0"):
    out = ask(b"POST / HTTP/1.1\r\nHost: example.org\r\n" + fields + b"\r\n\r\n" + hidden)
    print(b"400 Bad Request" in out, b"/hidden" in out)
out = ask(b"\r\n\r\nGET /odd HTTP/1.1\r\nHost: evil.test\r\n\r\n"); print(b"400" in out, b"/odd" in out)
out = ask(b"GET\t/odd HTTP/1.1\r\nHost: evil.test\r\n\r\n"); print(b"400" in out, b"/odd from" in out)
out = ask(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"); print(b"400" in out, False))");
  std::string expected;
  for (int i = 0; i < 10; ++i) expected += "True False\n";
  EXPECT_EQ(output.out, expected) << output.describe();
}

TEST_F(Refuse, OtherProtocolsOnTheWebsPorts) {
  const RunOutput output = python({"example.org"}, std::string(kRawHttp) + R"(
print(ask(b"\0\1\2\3garbage\r\n"), ask(b"SSH-2.0-x\r\n", port=443)))");
  EXPECT_EQ(output.out, "b'' b''\n") << output.describe();
}

TEST_F(Refuse, RedirectsToHostsThatAreNotPermitted) {
  CONFORMS("R-NETWORK-8");
  for (const char* location : {"http://evil.test/x", "https://evil.test/", "//evil.test/", "http://169.254.169.254/",
                               "http://a@evil.test/", "http://[::1]/"}) {
    const RunOutput output =
        shell({"example.org"}, std::string("curl -sSL 'http://example.org/redirect?") + location + "'");
    EXPECT_TRUE(contains(output.out, "is refused")) << location << output.describe();
    EXPECT_FALSE(contains(output.out, "from")) << location << output.describe();
  }
  const RunOutput fine = shell({".example.org"}, "curl -sSL 'http://example.org/redirect?http://www.example.org/y'");
  EXPECT_EQ(fine.out, "www.example.org /y from 80\n") << fine.describe();
}

TEST_F(Refuse, BlockedRedirectsAndRebindingAreEvents) {
  CONFORMS("R-NETWORK-8", "R-NETWORK-7");
  RunOptions how;
  how.cwd = files.path();
  how.env["CAISSON_HOME"] = files.makeDir("home", 0700);
  (void)runCaisson({"run", "--policy", policyFor({".example.org"}, ""), "--workspace", ":none", "--", "bash", "-c",
                    "curl -sSL 'http://example.org/redirect?http://evil.test/x'; curl -sS http://rebind.example.org/"},
                   how);
  const auto hosts = [&](const std::string& event) {
    std::string found;
    std::istringstream lines(runCaisson({"audit", "show", "--json", "--event", event}, how).out);
    for (std::string line; std::getline(lines, line);)
      found += nlohmann::json::parse(line)["data"].value("host", "") + " ";
    return found;
  };
  EXPECT_EQ(hosts("redirect_blocked"), "evil.test ");
  EXPECT_TRUE(contains(hosts("dns_rebind_blocked"), "rebind.example.org")) << hosts("dns_rebind_blocked");
}

}  // namespace
}  // namespace caisson::test
