// Through an upstream proxy: all rules apply as before, and the proxy receives only checked addresses.
#include <fstream>

#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class Upstream : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    std::ofstream(record(), std::ios::trunc).flush();
  }
  static std::string record() { return std::string(std::getenv("CAISSON_TEST_INTERNET")) + "/proxied"; }
  /// What was requested from the proxy.
  static std::string proxied() { return readFile(record()); }

  static constexpr const char* kProxy = "upstream_proxy = \"http://93.184.0.3:3128\"";
};

TEST_F(Upstream, EveryConnectionUsesIt) {
  CONFORMS("R-NETWORK-14", "R-NETWORK-7");
  const RunOutput output = shell({"example.org", "example.org:5432"},
                                 std::string("curl -sS http://example.org/a; curl -sS --cacert ") + certificate() +
                                     " https://example.org/b; " + kDirect + "curl -sS http://example.org/c; " +
                                     "curl -sS --socks5-hostname 127.0.0.1:3128 http://example.org/d; " +
                                     "exec 3<>/dev/tcp/example.org/5432; head -1 <&3",
                                 kProxy);
  EXPECT_EQ(
      output.out,
      "example.org /a from 80\nexample.org /b from 443\nexample.org /c from 80\nexample.org /d from 80\nwelcome\n")
      << output.describe();
  EXPECT_EQ(proxied(),
            "CONNECT 93.184.0.2:80\nCONNECT 93.184.0.2:443\nCONNECT 93.184.0.2:80\nCONNECT 93.184.0.2:80\n"
            "CONNECT 93.184.0.2:5432\n");
}

TEST_F(Upstream, ByItsNameAndToAnIpv6Address) {
  const RunOutput output =
      shell({".example.org"}, "curl -sS http://six.example.org/a", "upstream_proxy = \"http://proxy.inside:3128\"");
  EXPECT_EQ(output.out, "six.example.org /a from 80\n") << output.describe();
  EXPECT_EQ(proxied(), "CONNECT [2606:4700:aa::2]:80\n");
}

TEST_F(Upstream, GetsNoDeniedRequest) {
  const RunOutput output = shell({".example.org"},
                                 "curl -sS http://evil.test/; curl -sS http://rebind.example.org/; "
                                 "curl -sS http://93.184.0.3:3128/; curl -sS http://127.0.0.1:3128/; "
                                 "curl -sS http://metadata.example.org/",
                                 kProxy);
  EXPECT_EQ(proxied(), "") << output.describe();
  EXPECT_FALSE(contains(output.out, "from 80")) << output.describe();
}

TEST_F(Upstream, RefusalTimeoutAndAbsenceAreReported) {
  const RunOutput refused = shell({"example.org:8085"}, "curl -sS http://example.org:8085/", kProxy);
  EXPECT_TRUE(contains(refused.out, "the upstream proxy refused with 403")) << refused.describe();
  const RunOutput silent = shell({"example.org:8080"}, "curl -sS http://example.org:8080/", kProxy);
  EXPECT_TRUE(contains(silent.out, "the upstream proxy does not answer")) << silent.describe();
  const RunOutput absent =
      shell({"example.org"}, "curl -sS http://example.org/", "upstream_proxy = \"http://93.184.0.3:3129\"");
  EXPECT_TRUE(contains(absent.out, "cannot reach")) << absent.describe();
  const RunOutput nameless =
      shell({"example.org"}, "curl -sS http://example.org/", "upstream_proxy = \"http://nowhere.inside:3128\"");
  EXPECT_TRUE(contains(nameless.out, "leads nowhere")) << nameless.describe();
}

}  // namespace
}  // namespace caisson::test
