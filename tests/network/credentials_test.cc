// A secret that requests carry and the program never has: where it is sent, and where not.
#include <sys/stat.h>

#include <chrono>

#include "network/credentials.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Credentials = CredentialsTest;

TEST_F(Credentials, ReachTheirHostAndNoOther) {
  CONFORMS("R-NETWORK-23");
  const RunOutput output =
      shell(credential("example.org"),
            "curl -sS https://example.org/own && curl -sS --noproxy '*' https://example.org/captured"
            " && curl -sSk https://www.example.org/other");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(contains(output.out, "example.org /own from 443")) << output.describe();
  EXPECT_TRUE(arrivedWithSecret("/own")) << seen();
  EXPECT_TRUE(arrivedWithSecret("/captured")) << seen();
  EXPECT_TRUE(arrivedWithout("/other")) << seen();
}

/// The kernel counts descriptors in flight per user and compares with the sender's limit on open files. The egress
/// passes each connection to the broker that way.
TEST_F(Credentials, WorkWhileAnotherSandboxKeepsDescriptorsInFlight) {
  const TempDir shared;
  ASSERT_EQ(chmod(shared.path().c_str(), 0777), 0);
  const BackgroundProgram hostile({caissonBinary(), "run", "--workspace", shared.path() + ":rw", "--ro", payloadPath(),
                                   "--", payloadPath(), "hold-in-flight", "1250", "/workspace/holds", "60"});
  ASSERT_TRUE(eventually([&] { return exists(shared / "holds"); }, std::chrono::seconds(20)));
  RunOptions options = how();
  options.timeout = std::chrono::seconds(20);
  const auto began = std::chrono::steady_clock::now();
  const RunOutput output = runProgram(
      {"sh", "-c", "ulimit -Sn 1024; exec \"$@\"", "sh", caissonBinary(), "run", "--policy",
       policy(credential("example.org")), "--workspace", ":none", "--", "curl", "-sS", "https://example.org/flight"},
      options);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(5)) << output.describe();
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(arrivedWithSecret("/flight")) << output.describe() << seen();
}

/// Plain HTTP does not authenticate the host.
TEST_F(Credentials, AreNeverSentOverPlainHttp) {
  (void)shell(credential("example.org"), "curl -sS http://example.org/plain; curl -sS http://example.org:443/ ");
  EXPECT_TRUE(arrivedWithout("/plain")) << seen();
  EXPECT_FALSE(contains(seen(), kSecret)) << seen();
}

TEST_F(Credentials, PolicySetsTheHeaderAndItsFormat) {
  const RunOutput output = shell(credential("example.org", "header = \"X-Api-Key\"\nvalue = \"key={secret}\""),
                                 "curl -sS -H 'x-api-key: mine' https://example.org/key");
  EXPECT_TRUE(contains(seen(), std::string("/key None ['key=") + kSecret + "']")) << seen() << output.describe();
}

TEST_F(Credentials, APlaceholderIsReplacedForItsHostAndUselessElsewhere) {
  const RunOutput output = shell(credential("example.org", "name = \"api\"\nenv = \"TOKEN\""),
                                 "echo \"[$TOKEN]\"; for host in example.org www.example.org; do curl -sSk -H "
                                 "\"Authorization: Bearer $TOKEN\" https://$host/at-$host; done");
  EXPECT_TRUE(contains(output.out, "[caisson-credential-api]")) << output.describe();
  EXPECT_TRUE(arrivedWithSecret("/at-example.org")) << seen();
  EXPECT_TRUE(contains(seen(), "/at-www.example.org ['Bearer caisson-credential-api'] None")) << seen();
}

TEST_F(Credentials, ARedirectElsewhereCarriesNothing) {
  const RunOutput output =
      shell(credential("example.org"),
            "curl -sSkL --location-trusted https://example.org/redirect?https://www.example.org/x");
  EXPECT_TRUE(contains(output.out, "www.example.org /x")) << output.describe();
  EXPECT_TRUE(arrivedWithout("/x")) << seen();
}

TEST_F(Credentials, DoNotPermitTheirHost) {
  hosts = {"www.example.org"};
  const RunOutput output = shell(credential("example.org"), "curl -sS https://example.org/a", {"--json"});
  EXPECT_TRUE(denied(output.json(), "example.org:443")) << output.describe();
  EXPECT_EQ(seen(), "");
}

/// The certificate is for another name, expired, or of an untrusted authority.
TEST_F(Credentials, HostWithoutAValidCertificateGetsNothing) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"example.org:8445", "wrong"}, {"example.org:8444", "ca"}, {"example.org", "wrong"}};
  for (const auto& [host, authority] : cases) {
    hosts = {host};
    const std::string url = "https://" + host + "/never";
    const RunOutput output =
        shell(credential(host, {}, authority), "curl -sS " + url + " -w '%{http_code}'", {"--json"});
    const auto result = output.json();
    ASSERT_TRUE(result.is_object()) << output.describe();
    EXPECT_TRUE(contains(result["stdout"], "did not prove who it is")) << output.describe();
    EXPECT_TRUE(contains(result["stdout"], "502")) << output.describe();
    EXPECT_TRUE(denied(result, contains(host, ":") ? host : host + ":443", "tls")) << output.describe();
  }
  EXPECT_EQ(seen(), "");
}

/// The same with a valid certificate, so that each denial above has only one reason.
TEST_F(Credentials, AnotherPortIsAnotherHost) {
  hosts = {"example.org", "example.org:8443"};
  (void)shell(credential("example.org:8443"),
              "curl -sSk https://example.org/first; curl -sS https://example.org:8443/second");
  EXPECT_TRUE(arrivedWithout("/first")) << seen();
  EXPECT_TRUE(arrivedWithSecret("/second")) << seen();
}

TEST_F(Credentials, HostThatRepeatsThemInAHeaderIsMasked) {
  const RunOutput output = shell(credential("example.org"), "curl -sSi https://example.org/cookie");
  EXPECT_TRUE(arrivedWithSecret("/cookie")) << seen();
  EXPECT_TRUE(contains(output.out, "t=Bearer ***")) << output.describe();
  EXPECT_FALSE(contains(output.out, kSecret)) << output.describe();
}

TEST_F(Credentials, WorkForPython) {
  const RunOutput output =
      run(credential("example.org"),
          {"/usr/bin/python3", "-c",
           "import urllib.request as r\nprint(r.urlopen('https://example.org/python').read())\n"
           "q = r.Request('https://example.org/post', data=b'x' * 300000)\nprint(r.urlopen(q).read())"});
  EXPECT_TRUE(arrivedWithSecret("/python")) << seen() << output.describe();
  EXPECT_TRUE(contains(output.out, "got 300000 bytes")) << output.describe();
}

TEST_F(Credentials, WorkForNode) {
  requireOrSkip(exists("/usr/bin/node"), "node is not installed");
  const RunOutput output =
      run(credential("example.org"),
          {"/usr/bin/node", "-e", "fetch('https://example.org/node').then(r => r.text()).then(t => console.log(t))"});
  EXPECT_TRUE(arrivedWithSecret("/node")) << seen() << output.describe();
  EXPECT_TRUE(contains(output.out, "/node from 443")) << output.describe();
}

TEST_F(Credentials, WorkForGit) {
  requireOrSkip(exists("/usr/bin/git"), "git is not installed");
  const RunOutput output =
      shell(credential("example.org"), "cd /tmp && git clone -q https://example.org/repo.git && cat repo/file");
  EXPECT_TRUE(contains(output.out, "from git")) << output.describe();
  EXPECT_TRUE(contains(seen(), std::string("Bearer ") + kSecret)) << seen();
}

constexpr const char* kRawClient = R"(
import socket, ssl, sys
context = ssl.create_default_context()
def talk(data):
    raw = socket.create_connection(('example.org', 443))
    line = context.wrap_socket(raw, server_hostname='example.org')
    line.sendall(data)
    line.settimeout(10)
    answer = b''
    try:
        while piece := line.recv(65536): answer += piece
    except OSError: pass
    return answer
host = b'Host: example.org\r\n'
for name, data in {
    'both lengths': b'POST /evil HTTP/1.1\r\n' + host + b'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'bare line feed': b'GET /evil HTTP/1.1\n' + host + b'\n\n',
    'folded': b'GET /evil HTTP/1.1\r\n' + host + b'X: a\r\n b\r\n\r\n',
    'preface': b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    'other host': b'GET /evil HTTP/1.1\r\nHost: www.example.org\r\n\r\n',
    'trace': b'TRACE /evil HTTP/1.1\r\n' + host + b'\r\n',
    'pipelined': b'GET /fine HTTP/1.1\r\n' + host + b'\r\nGET /evil HTTP/1.1\r\nHost: www.example.org\r\n\r\n',
    'after a body': b'POST /fine HTTP/1.1\r\n' + host + b'Content-Length: 1\r\n\r\nxGET /evil HTTP/1.1\r\nHost: evil.test\r\n\r\n',
}.items():
    print(name, 'refused' if b'HTTP/1.1 400' in talk(data) else 'PASSED')
context.set_alpn_protocols(['h2'])
try:
    talk(b'')
    print('h2 PASSED')
except ssl.SSLError:
    print('h2 refused')
)";

TEST_F(Credentials, SmuggledRequestsAreRefused) {
  const RunOutput output = run(credential("example.org"), {"/usr/bin/python3", "-c", kRawClient});
  EXPECT_FALSE(contains(output.out, "PASSED")) << output.describe();
  EXPECT_TRUE(contains(output.out, "h2 refused")) << output.describe();
  EXPECT_FALSE(contains(seen(), "/evil")) << seen();
  EXPECT_TRUE(arrivedWithSecret("/fine")) << seen();
}

TEST_F(Credentials, ByteLimitAppliesToThem) {
  const RunOutput output =
      shell("max_bytes = \"1M\"\n" + credential("example.org"),
            "curl -sS -o /dev/null -w '%{size_download}' https://example.org/bytes/30000000", {"--json"});
  EXPECT_TRUE(denied(output.json(), "example.org:443", "connect")) << output.describe();
  EXPECT_NE(output.json()["exit_code"], 0) << output.describe();
}

TEST_F(Credentials, AnIdleConnectionIsEndedAndCounted) {
  const RunOutput output =
      shell("idle_seconds = 3\n" + credential("example.org"), "curl -sS https://example.org/slow", {"--json"});
  const auto result = output.json();
  EXPECT_TRUE(arrivedWithSecret("/slow")) << seen();
  EXPECT_NE(result["exit_code"], 0) << output.describe();
  EXPECT_LT(output.duration, std::chrono::seconds(20));
  EXPECT_EQ(result["usage"]["network_connections"], 1) << output.describe();
  EXPECT_GT(result["usage"]["network_bytes"], 500) << output.describe();
}

TEST_F(Credentials, ASecretCanComeFromAPrivateFile) {
  const std::string file = files.write("secret", std::string(kSecret) + "\n", 0600);
  const auto with = [&](const std::string& path) {
    return credential("example.org", "secret_file = \"" + path + "\"");
  };
  EXPECT_EQ(shell(with(file), "curl -sS https://example.org/file").exit_status, 0);
  EXPECT_TRUE(arrivedWithSecret("/file")) << seen();

  const std::string open = files.write("open", kSecret, 0644);
  const RunOutput readable = shell(with(open), "true");
  EXPECT_EQ(readable.exit_status, 125);
  EXPECT_TRUE(contains(readable.err, "others may read it")) << readable.describe();

  const std::string little = files.write("short", "s3cr3t7\n", 0600);
  const RunOutput refused = shell(with(little), "true");
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_TRUE(contains(refused.err, "too short to be masked")) << refused.describe();

  ASSERT_EQ(::symlink(file.c_str(), (files / "link").c_str()), 0);
  EXPECT_EQ(shell(with(files / "link"), "true").exit_status, 125) << "the creator of the link chooses what is sent";

  const RunOutput shown = shell(with(file), "true", {"--ro", files.path()});
  EXPECT_EQ(shown.exit_status, 125);
  EXPECT_TRUE(contains(shown.err, "would be seen inside")) << shown.describe();
}

TEST_F(Credentials, UnsupportedSettingsAreRefusedWithTheReason) {
  RunOptions without = how();
  without.env.erase("TOKEN");
  without.unset = {"TOKEN"};
  const RunOutput unset =
      runCaisson({"run", "--policy", policy(credential("example.org")), "--workspace", ":none", "--", "true"}, without);
  EXPECT_EQ(unset.exit_status, 125);
  EXPECT_TRUE(contains(unset.err, "TOKEN is not set")) << unset.describe();
  const RunOutput process = shell(credential("example.org"), "true", {"--level", "process"});
  EXPECT_EQ(process.exit_status, 125);
  EXPECT_TRUE(contains(process.err, "use level full")) << process.describe();
}

/// A repository must not decide which secrets are sent where.
TEST_F(Credentials, ProjectPolicyCannotDeclareThem) {
  files.write("project/caisson.toml", "[network]\nmode = \"proxy\"\n" + credential("example.org"));
  RunOptions there = how();
  there.cwd = files / "project";
  const RunOutput project = runCaisson({"policy", "trust"}, there);
  EXPECT_NE(project.exit_status, 0);
  EXPECT_TRUE(contains(project.err, "cannot name network.credentials")) << project.describe();
}

}  // namespace
}  // namespace caisson::test
