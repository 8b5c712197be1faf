// Unmodified programs inside the sandbox; only the environment tells them about the proxy.
#include "network/network.h"

namespace caisson::test {
namespace {

using Clients = NetworkTest;

bool has(const std::string& program) { return hasProgram(program); }

TEST_F(Clients, WgetWorksThroughProxyAndDirectly) {
  requireOrSkip(has("wget"), "no wget here");
  const RunOutput output =
      shell({"example.org"}, "wget -qO- http://example.org/w; wget -qO- --ca-certificate=" + certificate() +
                                 " https://example.org/s; " + kDirect + "wget -qO- http://example.org/d");
  EXPECT_EQ(output.out, "example.org /w from 80\nexample.org /s from 443\nexample.org /d from 80\n")
      << output.describe();
}

TEST_F(Clients, CurlWithHttp2AndWithoutAProxy) {
  const RunOutput output = shell(
      {"example.org"}, std::string(kDirect) + "curl -sS --http2 --cacert " + certificate() + " https://example.org/h");
  EXPECT_EQ(output.out, "example.org /h from 443\n") << output.describe();
}

TEST_F(Clients, GitClonesThroughProxyAndDirectly) {
  requireOrSkip(has("git"), "no git here");
  for (const std::string& prefix : {std::string(), std::string(kDirect)}) {
    const RunOutput output =
        shell({"example.org"}, "cd /tmp && " + prefix + "git clone -q http://example.org/repo.git && cat repo/file");
    EXPECT_EQ(output.out, "from git\n") << output.describe();
    const RunOutput secure = shell({"example.org"}, "cd /tmp && " + prefix + "git -c http.sslCAInfo=" + certificate() +
                                                        " clone -q https://example.org/repo.git && cat repo/file");
    EXPECT_EQ(secure.out, "from git\n") << secure.describe();
  }
}

TEST_F(Clients, PythonUrllibAndRawSockets) {
  const RunOutput output = python({"example.org"}, R"(
import urllib.request, http.client
print(urllib.request.urlopen("http://example.org/u").read().decode(), end="")
c = http.client.HTTPConnection("example.org")
for path in ("/1", "/2"):
    c.request("GET", path); print(c.getresponse().read().decode(), end=""))");
  EXPECT_EQ(output.out, "example.org /u from 80\nexample.org /1 from 80\nexample.org /2 from 80\n")
      << output.describe();
}

TEST_F(Clients, NodeFetchAndRawSockets) {
  requireOrSkip(has("node"), "no node here");
  const RunOutput output = run({"example.org"}, {"node", "-e", R"(
const net = require("net"), dns = require("dns");
let all = "";
(async () => {
  process.stdout.write(await (await fetch("http://example.org/f")).text());
  await new Promise(done => dns.resolve4("example.org", (error, list) => { console.log(list); done(); }));
  await new Promise(done => dns.resolve4("evil.test", (error) => { console.log(error.code); done(); }));
  net.connect(80, "example.org", function () { this.write("GET /r HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"); })
    .on("data", data => all += data).on("end", () => process.stdout.write(all.split("\r\n\r\n")[1]));
})();)"});
  EXPECT_EQ(output.out, "example.org /f from 80\n[ '198.18.0.1' ]\nENOTFOUND\nexample.org /r from 80\n")
      << output.describe();
}

TEST_F(Clients, AGoProgramThatIgnoresTheProxy) {
  requireOrSkip(has("go"), "no go here");
  files.write("main.go", R"(package main
import ("fmt"; "io"; "net/http")
func main() {
  client := http.Client{Transport: &http.Transport{Proxy: nil}}
  for _, url := range []string{"http://example.org/go", "http://evil.test/"} {
    reply, failure := client.Get(url)
    if failure != nil { fmt.Println("refused"); continue }
    body, _ := io.ReadAll(reply.Body); fmt.Print(string(body))
  }
})");
  const RunOutput built =
      runProgram({"go", "build", "-o", files / "program", files / "main.go"},
                 {.env = {{"CGO_ENABLED", "0"}, {"GOCACHE", files / "cache"}, {"GOFLAGS", "-mod=mod"}}});
  requireOrSkip(built.exit_status == 0, "go does not build here: " + built.describe());
  const RunOutput output = run({"example.org"}, {files / "program"}, "", {"--ro", files / "program"});
  EXPECT_EQ(output.out, "example.org /go from 80\nrefused\n") << output.describe();
}

TEST_F(Clients, DigReachesThePolicysResolverForAnyServer) {
  requireOrSkip(has("dig"), "no dig here");
  const RunOutput output = shell({"example.org"}, R"(
dig +short example.org; dig +short @8.8.8.8 example.org; dig +short +tcp @9.9.9.9 example.org AAAA; dig +short -x 198.18.0.1
dig example.org TXT | grep -c 'status: NOERROR'; dig +short example.org TXT; dig +short example.org HTTPS)");
  EXPECT_EQ(output.out, "198.18.0.1\n198.18.0.1\nfdca:1550::1\nexample.org.\n1\n") << output.describe();
  forgetQueries();
  const RunOutput refused =
      shell({"example.org"}, "dig evil.test; dig +tcp @8.8.8.8 data.evil.test; dig evil.test TXT");
  EXPECT_EQ(queries(), "");
  EXPECT_TRUE(contains(refused.out, "status: NXDOMAIN")) << refused.describe();
  EXPECT_FALSE(contains(refused.out, "status: NOERROR")) << refused.describe();
  EXPECT_TRUE(contains(refused.out, "caisson: no entry of network.allowed_hosts")) << refused.describe();
}

TEST_F(Clients, OpensslClient) {
  const RunOutput output = shell({"example.org"}, R"(
printf 'GET /o HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n' |
  openssl s_client -quiet -connect example.org:443 -servername example.org 2>/dev/null | tail -1
openssl s_client -connect example.org:443 -servername evil.test </dev/null 2>&1 | grep -c 'access denied')");
  EXPECT_EQ(output.out, "example.org /o from 443\n1\n") << output.describe();
}

TEST_F(Clients, NpmReadsFromAllowedRegistry) {
  requireOrSkip(has("npm"), "no npm here");
  const RunOutput output =
      shell({"example.org"}, "npm view leaf version --registry http://example.org/npm/ --cache /tmp/npm");
  EXPECT_EQ(output.out, "1.2.3\n") << output.describe();
}

TEST_F(Clients, AptGetUpdatesFromAllowedHost) {
  requireOrSkip(has("apt-get"), "no apt-get here");
  const RunOutput output = shell({"example.org"}, R"(
mkdir -p /tmp/apt/lists/partial /tmp/apt/cache/archives/partial /tmp/apt/parts; touch /tmp/apt/status
echo 'deb [trusted=yes] http://example.org/apt ./' > /tmp/apt/sources
o="-o Dir::Etc::sourcelist=/tmp/apt/sources -o Dir::Etc::sourceparts=/tmp/apt/parts -o Dir::State::lists=/tmp/apt/lists"
o="$o -o Dir::State::status=/tmp/apt/status -o Dir::Cache=/tmp/apt/cache -o APT::Sandbox::User= -o Debug::NoLocking=1"
apt-get $o -qq update 2>&1 | grep -v '^W:'; apt-cache $o show leaf | grep Version)");
  EXPECT_EQ(output.out, "Version: 1.2.3\n") << output.describe();
}

}  // namespace
}  // namespace caisson::test
