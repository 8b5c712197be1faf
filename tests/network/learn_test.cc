// Learn mode and hosts: denied hosts are proposed, and reachable once a user accepts the proposal.
#include "network/network.h"

namespace caisson::test {
namespace {

class LearnHosts : public NetworkTest {
 protected:
  [[nodiscard]] RunOutput fetch(const std::string& policy, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words{"run", "--policy", policy, "--workspace", ":none"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "curl", "-sSf", "--max-time", "10", "http://example.org/learned"});
    RunOptions how;
    how.cwd = files.path();
    return runCaisson(words, how);
  }
};

TEST_F(LearnHosts, AreProposedWhenTheEgressRefusedThem) {
  const RunOutput refused = fetch(policyFor({}, ""), {"--learn", files / "learned.toml"});
  EXPECT_NE(refused.exit_status, 0);
  EXPECT_EQ(refused.out, "") << "nothing is given by asking";
  const std::string proposal = readFile(files / "learned.toml");
  EXPECT_TRUE(contains(proposal, "network.allowed_hosts = [\"example.org\"]")) << refused.describe() << proposal;
  EXPECT_EQ(fetch(files / "learned.toml").out, "example.org /learned from 80\n");
}

TEST_F(LearnHosts, AreProposedWhenThereWasNoNetwork) {
  const std::string base = files.write("base.toml", "extends = \"bash\"\nnetwork.dns_servers = [\"93.184.0.2\"]\n");
  const RunOutput refused = fetch(base, {"--learn", files / "learned.toml"});
  EXPECT_NE(refused.exit_status, 0);
  const std::string proposal = readFile(files / "learned.toml");
  EXPECT_TRUE(contains(proposal, "network.mode = \"proxy\"")) << refused.describe() << proposal;
  EXPECT_TRUE(contains(proposal, "network.allowed_hosts = [\"example.org\"]")) << proposal;
  EXPECT_EQ(fetch(files / "learned.toml").out, "example.org /learned from 80\n");
}

}  // namespace
}  // namespace caisson::test
