// With a protection removed, the same attempts succeed; with a kernel feature missing, they are still denied.
#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class WeakenedEgress : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    requireOrSkip(!runsAsRoot(), "a weakened sandbox is never given to root");
  }
};

TEST_F(WeakenedEgress, DeniedHostIsReachedWithoutRules) {
  CONFORMS("R-NETWORK-2");
  const std::string script = std::string("curl -sS http://evil.test/; ") + kDirect + "curl -sS http://evil.test/";
  EXPECT_FALSE(contains(shell({"example.org"}, script).out, "from 80"));
  EXPECT_EQ(weakened("egress-rules", {"example.org"}, script).out, "evil.test / from 80\nevil.test / from 80\n");
}

TEST_F(WeakenedEgress, DenialAndGuardedPortHaveNoEffectWithoutRules) {
  CONFORMS("R-NETWORK-3", "R-NETWORK-13");
  const std::string denial = "denied_hosts = [\"evil.test\"]";
  const std::string script = "curl -sS http://evil.test/; exec 3<>/dev/tcp/example.org/22; head -1 <&3";
  EXPECT_EQ(shell({"*"}, script, denial).out.find("from 80"), std::string::npos);
  EXPECT_FALSE(contains(shell({"*"}, script, denial).out, "welcome"));
  EXPECT_EQ(weakened("egress-rules", {"*"}, script, denial).out, "evil.test / from 80\nwelcome\n");
}

TEST_F(WeakenedEgress, MoreConnectionsAndQueriesAreMadeWithoutLimits) {
  CONFORMS("R-NETWORK-11", "R-NETWORK-12");
  const std::string script = R"(/usr/bin/python3 -c '
import socket
every = []
for i in range(6):
    try:
        s = socket.create_connection(("example.org", 5432)); s.settimeout(5)
        if s.recv(10): every.append(s)
    except OSError: pass
found = 0
for i in range(6):
    try: socket.getaddrinfo("%d.wild.example.org" % i, 80, socket.AF_INET); found += 1
    except OSError: pass
print(len(every), found > 4)')";
  const std::vector<std::string> hosts{"example.org:5432", "*.wild.example.org"};
  const std::string limits = "max_connections = 4\ndns_queries_per_minute = 4";
  EXPECT_EQ(shell(hosts, script, limits).out, "4 False\n");
  EXPECT_EQ(weakened("egress-limits", hosts, script, limits).out, "6 True\n");
}

TEST_F(WeakenedEgress, NumericAddressIsReachedWithoutRules) {
  const std::string script = std::string(kDirect) + "curl -sS http://93.184.0.3/; curl -sS http://0x5db80003/";
  EXPECT_FALSE(contains(shell({"example.org"}, script).out, "from 80"));
  const RunOutput output = weakened("egress-rules", {"example.org"}, script);
  EXPECT_TRUE(contains(output.out, "93.184.0.3 / from 80")) << output.describe();
}

TEST_F(WeakenedEgress, EverythingIsReachedWithoutTheNetworkNamespace) {
  CONFORMS("R-NETWORK-2");
  const std::string script = std::string(kDirect) + "curl -sS --resolve evil.test:80:93.184.0.3 http://evil.test/";
  EXPECT_FALSE(contains(shell({"example.org"}, script).out, "from 80"));
  EXPECT_EQ(weakened("network-namespace", {"example.org"}, script).out, "evil.test / from 80\n");
}

TEST_F(WeakenedEgress, AllowedHostsAreReachedWithoutThePacketFilter) {
  const RunOutput output = weakened("packet-filter", {".example.org"},
                                    std::string("curl -sS http://example.org/a; ") + kDirect + "curl -sS --cacert " +
                                        certificate() + " http://www.example.org/b https://example.org/c; " + kDirect +
                                        "curl -6 -sS http://six.example.org/d");
  EXPECT_EQ(output.out,
            "example.org /a from 80\nwww.example.org /b from 80\nexample.org /c from 443\nsix.example.org /d from 80\n")
      << output.describe();
}

TEST_F(WeakenedEgress, OtherHostsAreDeniedAtOnceWithoutThePacketFilter) {
  const RunOutput output = weakened("packet-filter", {"example.org"}, R"(/usr/bin/python3 -c '
import socket, time
start = time.monotonic()
def tried(work):
    try: work(); print("reached")
    except OSError as error: print(type(error).__name__)
tried(lambda: socket.create_connection(("93.184.0.3", 80), 5).recv(1) or (_ for _ in ()).throw(ConnectionResetError()))
tried(lambda: socket.create_connection(("93.184.0.2", 5432), 5))
tried(lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"quic", ("93.184.0.2", 443)))
tried(lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b"quic", ("2606:4700:aa::2", 443)))
tried(lambda: socket.getaddrinfo("evil.test", 80))
print(time.monotonic() - start < 3)
')");
  EXPECT_EQ(output.out,
            "ConnectionResetError\nConnectionRefusedError\nPermissionError\nPermissionError\ngaierror\nTrue\n")
      << output.describe();
}

}  // namespace
}  // namespace caisson::test
