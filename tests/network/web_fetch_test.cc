// The profile web-fetch with its intended programs: a download from a listed host, and nothing else.
#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class WebFetch : public NetworkTest {
 protected:
  /// The profile, except for the DNS servers of the fake internet.
  [[nodiscard]] RunOutput fetch(const std::vector<std::string>& options,
                                const std::vector<std::string>& command) const {
    const std::string policy =
        files.write("policy.toml", "extends = \"web-fetch\"\nnetwork.dns_servers = [\"93.184.0.2\"]\n");
    std::vector<std::string> words{"run", "--policy", policy, "--level", "process", "--ro", certificate()};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    words.insert(words.end(), command.begin(), command.end());
    RunOptions how;
    how.cwd = files.path();
    return runCaisson(words, how);
  }

  const std::vector<std::string> named{"--allow-host", "example.org"};
};

TEST_F(WebFetch, CurlDownloadsFromAHostThatIsNamed) {
  CONFORMS("R-POLICY-11");
  EXPECT_EQ(fetch(named, {"curl", "-sS", "http://example.org/page"}).out, "example.org /page from 80\n");
  const RunOutput secure = fetch(named, {"curl", "-sS", "--cacert", certificate(), "https://example.org/page"});
  EXPECT_EQ(secure.out, "example.org /page from 443\n") << secure.describe();
  const RunOutput direct = fetch(named, {"curl", "-sS", "--noproxy", "*", "http://example.org/direct"});
  EXPECT_EQ(direct.out, "example.org /direct from 80\n") << direct.describe();
}

TEST_F(WebFetch, WgetDownloadsFromAHostThatIsNamed) {
  requireOrSkip(hasProgram("wget"), "no wget here");
  EXPECT_EQ(fetch(named, {"wget", "-qO-", "http://example.org/page"}).out, "example.org /page from 80\n");
  const RunOutput secure =
      fetch(named, {"wget", "-qO-", "--ca-certificate=" + certificate(), "https://example.org/page"});
  EXPECT_EQ(secure.out, "example.org /page from 443\n") << secure.describe();
}

TEST_F(WebFetch, PythonDownloadsFromAHostThatIsNamed) {
  const RunOutput output =
      fetch(named, {"/usr/bin/python3", "-c",
                    "import urllib.request as u; print(len(u.urlopen('http://example.org/bytes/3000000').read()))"});
  EXPECT_EQ(output.out, "3000000\n") << output.describe();
}

TEST_F(WebFetch, AWholeFileComesOutOnStandardOutput) {
  const RunOutput output = fetch(named, {"curl", "-sS", "http://example.org/bytes/5000000"});
  EXPECT_EQ(output.exit_status, 0) << output.err;
  EXPECT_EQ(output.out, std::string(5'000'000, 'x'));
}

TEST_F(WebFetch, OtherHostsAreDeniedInEveryForm) {
  CONFORMS("R-POLICY-11");
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"curl", "-sS", "http://evil.test/"},
                                             {"curl", "-sS", "--noproxy", "*", "http://evil.test/"},
                                             {"curl", "-sS", "--noproxy", "*", "http://93.184.0.3/"},
                                             {"curl", "-sS", "-L", "http://example.org/redirect?http://evil.test/"},
                                             {"curl", "-sS", "http://example.org:8080/"},
                                             {"wget", "-qO-", "http://evil.test/"}}) {
    if (!hasProgram(command.front())) continue;  // not installed: proves nothing
    std::vector<std::string> options = named;
    options.emplace_back("--json");
    const RunOutput output = fetch(options, command);
    const nlohmann::json result = output.json();
    EXPECT_FALSE(contains(result["stdout"], "from ")) << output.describe();
    EXPECT_FALSE(result["denials"].empty()) << output.describe();
  }
  const RunOutput unnamed = fetch({"--json"}, {"curl", "-sSf", "http://example.org/page"});
  EXPECT_NE(unnamed.json()["exit_code"], 0) << "without a name no host is allowed" << unnamed.describe();
  EXPECT_TRUE(denied(unnamed.json(), "example.org:80")) << unnamed.describe();
}

/// Downloads are data: they cannot be written to the host, nor be executed.
TEST_F(WebFetch, FetchedFilesCanNeitherRunNorPersist) {
  const RunOutput kept = fetch(named, {"curl", "-sS", "-o", files.path() + "/kept", "http://example.org/page"});
  EXPECT_NE(kept.exit_status, 0) << kept.describe();
  EXPECT_FALSE(exists(files / "kept"));
  EXPECT_EQ(fetch(named, {"curl", "-sS", "-o", "/tmp/fetched", "http://example.org/page"}).exit_status, 0);
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"sh", "-c", "echo ran"},
                                             {"env", "bash", "-c", "echo ran"},
                                             {"/usr/bin/python3", "-c",
                                              "import shutil, subprocess; shutil.copy('/usr/bin/true', '/tmp/t'); "
                                              "subprocess.run(['/tmp/t']); print('ran')"}}) {
    const RunOutput output = fetch(named, command);
    EXPECT_FALSE(contains(output.out, "ran")) << output.describe();
    EXPECT_NE(output.exit_status, 0) << output.describe();
  }
}

}  // namespace
}  // namespace caisson::test
