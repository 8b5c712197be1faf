#include "policy/rules/network_client.h"

#include <gtest/gtest.h>

#include "policy/profiles/presets.h"
#include "support/conforms.h"

namespace caisson::policy {
namespace {

using Argv = std::vector<std::string>;

TEST(NetworkClient, IsDetectedByTheProgramThatIsStarted) {
  CONFORMS("R-NETWORK-16");
  EXPECT_EQ(networkClient(Argv{"curl", "-sS", "https://Example.org:8443/x"}), (NetworkClient{"curl", {"example.org"}}));
  EXPECT_EQ(networkClient(Argv{"/usr/bin/git", "clone", "https://user:pw@git.example.com/a.git"}),
            (NetworkClient{"git clone", {"git.example.com"}}));
  EXPECT_EQ(networkClient(Argv{"npm", "--silent", "ci"}), (NetworkClient{"npm ci", {"preset:npm"}}));
  EXPECT_EQ(networkClient(Argv{"sh", "-c", "LANG=C pip install flask && echo done"}),
            (NetworkClient{"pip install", {"preset:pip"}}));
  EXPECT_EQ(networkClient(Argv{"ssh", "host"}), (NetworkClient{"ssh", {}}));
}

/// Prompts for mere mentions of a client would train users to answer without reading.
TEST(NetworkClient, IsNotDetectedByItsMentionInArguments) {
  CONFORMS("R-NETWORK-16");
  for (const Argv& argv : {Argv{"grep", "curl", "README"}, Argv{"echo", "https://example.org"}, Argv{"git", "status"},
                           Argv{"npm", "test"}, Argv{"curl", "--version"}, Argv{"sh", "-c", "echo curl https://x.org"},
                           Argv{"sh", "-c", ""}, Argv{"sh"}, Argv{}}) {
    EXPECT_FALSE(networkClient(argv)) << testing::PrintToString(argv);
  }
}

/// A hint how to allow such hosts would be wrong: they stay blocked in any case.
TEST(NetworkClient, IsNotDetectedForAddressesAndLocalNames) {
  CONFORMS("R-NETWORK-5");
  for (const char* url : {"http://[::1]/", "http://a b.org/", "http://\x1b[2J.org/", "http://169.254.169.254/latest",
                          "http://metadata.google.internal/", "http://printer.local", "file:///workspace/f",
                          "http://0x7f.1/", "http://localhost:8080/"}) {
    EXPECT_FALSE(networkClient(Argv{"curl", url})) << url;
  }
}

TEST(NetworkClient, NamesPresetsThatExist) {
  for (const char* preset : {"npm", "pip", "cargo", "go", "git", "rubygems", "debian"})
    EXPECT_NE(findPreset("preset:" + std::string(preset)), nullptr) << preset;
}

TEST(NetworkClient, IsDescribedWithTheFlagsThatAllowIt) {
  EXPECT_EQ(
      describeNetworkNeed({"curl", {"example.org"}}, "fix-login"),
      "`curl` uses the network, and this sandbox has none; allow it with `caisson session network fix-login allow "
      "example.org`");
  EXPECT_EQ(describeNetworkNeed({"curl", {"example.org"}}),
            "`curl` uses the network, and this sandbox has none; allow it with --net proxy --allow-host example.org");
}

TEST(NetworkClient, GetsANetworkWithoutTheHostsOfThePolicy) {
  Network network;
  network.allowed_hosts = {"*"};
  network.denied_hosts = {"bad.example.org"};
  network.private_hosts = {"10.0.0.1"};
  network.allowed_ports = {"1-65535"};
  network.dns_servers = {"198.51.100.1"};
  network.upstream_proxy = "http://198.51.100.2:3128";
  network.credentials = {{}};
  network.allow_missing_server_name = network.allow_encrypted_hello = true;
  network.max_bytes = 5;
  openNetwork(network, {"registry.local"});
  EXPECT_EQ(network.mode, NetworkMode::proxy);
  EXPECT_TRUE(network.allowed_hosts.empty());
  EXPECT_EQ(network.denied_hosts, (std::vector<std::string>{"bad.example.org"}));
  EXPECT_EQ(network.private_hosts, (std::vector<std::string>{"registry.local"}));
  EXPECT_EQ(network.allowed_ports, Network().allowed_ports);
  EXPECT_EQ(network.dns_servers, (std::vector<std::string>{"198.51.100.1"}));
  EXPECT_EQ(network.upstream_proxy, "http://198.51.100.2:3128");
  EXPECT_TRUE(network.credentials.empty());
  EXPECT_FALSE(network.allow_missing_server_name || network.allow_encrypted_hello);
  EXPECT_EQ(network.max_bytes, 5U);
}

}  // namespace
}  // namespace caisson::policy
