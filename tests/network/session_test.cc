// The network of a live session: its own egress, changed while it runs.
#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class SessionNetwork : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    home_ = files.makeDir("home", 0700);
    const RunOutput made = caisson({"session", "create", "--policy",
                                    policyFor({"example.org"}, "exposed_ports = [\"53\", \"3000\", \"3128-3129\"]"),
                                    "--workspace", ":none"});
    ASSERT_EQ(made.exit_status, 0) << made.describe();
    id_ = made.out.substr(0, made.out.find('\n'));
  }
  void TearDown() override {
    if (!id_.empty()) caisson({"session", "destroy", id_});
  }
  RunOutput caisson(const std::vector<std::string>& words) const {
    RunOptions how;
    how.cwd = files.path();
    how.env["CAISSON_HOME"] = home_;
    return runCaisson(words, how);
  }
  RunOutput exec(const std::string& script, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words{"session", "exec", id_};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "bash", "-c", script});
    return caisson(words);
  }
  RunOutput network(const std::string& word, const std::string& host) const {
    return caisson({"session", "network", id_, word, host});
  }

  std::string home_, id_;
};

TEST_F(SessionNetwork, ReachesAllowedHostsAndReportsDeniedOnes) {
  EXPECT_EQ(exec("curl -sS http://example.org/a").out, "example.org /a from 80\n");
  const RunOutput refused = exec("curl -sS http://evil.test/", {"--json"});
  const auto result = refused.json();
  ASSERT_TRUE(result.is_object()) << refused.describe();
  EXPECT_TRUE(denied(result, "evil.test:80", "connect")) << result;
}

TEST_F(SessionNetwork, AHostCanBeAllowedAndDeniedAgain) {
  CONFORMS("R-NETWORK-22");
  EXPECT_FALSE(contains(exec("curl -sS http://evil.test/").out, "from 80"));
  EXPECT_EQ(network("allow", "evil.test").exit_status, 0);
  EXPECT_EQ(exec("curl -sS http://evil.test/").out, "evil.test / from 80\n");
  EXPECT_EQ(network("deny", "evil.test").exit_status, 0);
  EXPECT_FALSE(contains(exec("curl -sS http://evil.test/").out, "from 80"));
  EXPECT_EQ(network("allow", "example.org:5432").exit_status, 0);
  EXPECT_EQ(exec("exec 3<>/dev/tcp/example.org/5432; head -1 <&3").out, "welcome\n");
}

TEST_F(SessionNetwork, ConnectionsThatAreNoLongerAllowedAreClosed) {
  CONFORMS("R-NETWORK-22");
  EXPECT_EQ(network("allow", "example.org:5432").exit_status, 0);
  const RunOutput started =
      caisson({"session", "exec", id_, "--background", "--", "bash", "-c",
               "exec 3<>/dev/tcp/example.org/5432; head -1 <&3; touch /tmp/open; cat <&3; touch /tmp/cut; sleep 60"});
  ASSERT_EQ(started.exit_status, 0) << started.describe();
  ASSERT_TRUE(eventually([&] { return exec("test -e /tmp/open").exit_status == 0; }));
  EXPECT_NE(exec("test -e /tmp/cut").exit_status, 0);
  EXPECT_EQ(network("deny", "example.org:5432").exit_status, 0);
  EXPECT_TRUE(eventually([&] { return exec("test -e /tmp/cut").exit_status == 0; }));
}

TEST_F(SessionNetwork, DeniedAddressCutsEveryNameThatLeadsThere) {
  EXPECT_EQ(network("allow", ".example.org:5432").exit_status, 0);
  const auto hold = [&](const std::string& host) {
    return caisson({"session", "exec", id_, "--background", "--", "bash", "-c",
                    "exec 3<>/dev/tcp/" + host + "/5432; head -1 <&3; touch /tmp/open-" + host +
                        "; cat <&3; touch /tmp/cut-" + host + "; sleep 60"});
  };
  for (const char* host : {"other.example.org", "www.example.org"}) {
    ASSERT_EQ(hold(host).exit_status, 0);
    ASSERT_TRUE(eventually([&] { return exec(std::string("test -e /tmp/open-") + host).exit_status == 0; })) << host;
  }
  EXPECT_EQ(network("deny", "93.184.0.3").exit_status, 0);
  EXPECT_TRUE(eventually([&] { return exec("test -e /tmp/cut-other.example.org").exit_status == 0; }));
  EXPECT_NE(exec("test -e /tmp/cut-www.example.org").exit_status, 0);
  EXPECT_EQ(exec("exec 3<>/dev/tcp/other.example.org/5432; head -1 <&3").out, "");
  EXPECT_EQ(exec("exec 3<>/dev/tcp/www.example.org/5432; head -1 <&3").out, "welcome\n");
}

TEST_F(SessionNetwork, DeniedNameCutsConnectionsThatItsAliasesMade) {
  EXPECT_EQ(network("allow", ".example.org:5432").exit_status, 0);
  ASSERT_EQ(caisson({"session", "exec", id_, "--background", "--", "bash", "-c",
                     "exec 3<>/dev/tcp/chain.example.org/5432; head -1 <&3; touch /tmp/open; cat <&3; touch /tmp/cut; "
                     "sleep 60"})
                .exit_status,
            0);
  ASSERT_TRUE(eventually([&] { return exec("test -e /tmp/open").exit_status == 0; }));
  EXPECT_EQ(network("deny", "evil.test:80").exit_status, 0);
  EXPECT_NE(exec("sleep 1; test -e /tmp/cut").exit_status, 0) << "denied for another port";
  EXPECT_EQ(network("deny", "EVIL.test.").exit_status, 0);
  EXPECT_TRUE(eventually([&] { return exec("test -e /tmp/cut").exit_status == 0; }));
}

TEST_F(SessionNetwork, PortsOfTheEgressAreNotExposed) {
  for (const char* port : {"53", "3128", "3129"}) {
    const RunOutput refused = caisson({"session", "expose", id_, port});
    EXPECT_NE(refused.exit_status, 0) << refused.describe();
    EXPECT_TRUE(contains(refused.err, "belongs to the proxy of network mode `proxy`")) << refused.describe();
  }
  EXPECT_EQ(caisson({"session", "expose", id_, "3000"}).exit_status, 0);
}

TEST_F(SessionNetwork, InvalidChangesAreRejected) {
  for (const char* host : {"", "a b", "http://example.org/", "*.*", "example.org:0", "evil.test\nallow"}) {
    EXPECT_NE(network("allow", host).exit_status, 0) << host;
  }
  EXPECT_NE(network("open", "evil.test").exit_status, 0);
  EXPECT_EQ(exec("curl -sS http://example.org/a").out, "example.org /a from 80\n");
}

}  // namespace
}  // namespace caisson::test
