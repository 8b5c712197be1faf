#include "tool/consent.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "approval/store.h"
#include "policy/profiles/profiles.h"
#include "support/conforms.h"
#include "support/temp_dir.h"

namespace caisson::tool {
namespace {

using policy::Level;

Tool toolOf(std::string_view profile, std::vector<std::string> command) {
  return {.name = "t", .command = std::move(command), .policy = *policy::builtin(profile)};
}

class ToolConsent : public testing::Test {
 protected:
  ToolConsent() { ::setenv("CAISSON_HOME", home_.path().c_str(), 1); }
  ~ToolConsent() override { ::unsetenv("CAISSON_HOME"); }

  /// A tool at level process that may start only the listed program, which is its own.
  [[nodiscard]] Tool listing(const std::string& program) const {
    Tool tool = toolOf("bash", {program});
    tool.policy.isolation.level = Level::process;
    tool.policy.process.allowed_executables = {program};
    return tool;
  }

  const test::TempDir home_;
};

}  // namespace

TEST_F(ToolConsent, IsNotNeededAtFullWithoutNetworkNorForFileTools) {
  EXPECT_TRUE(needsConsent(toolOf("bash", {"bash", "-c", "{command}"})).empty());
  EXPECT_TRUE(needsConsent(toolOf("files", {"grep", "{pattern}"})).empty());
  EXPECT_TRUE(checkConsent(toolOf("files", {"grep", "{pattern}"}), 1000));
}

TEST_F(ToolConsent, IsNeededForPortsOfTheHost) {
  Tool tool = toolOf("bash", {"psql"});
  tool.policy.network.host_ports = {"5432"};
  EXPECT_EQ(needsConsent(tool).size(), 1U);
  tool.policy.network.host_ports.clear();
  tool.policy.network.published_ports = {"8000"};
  EXPECT_EQ(needsConsent(tool).size(), 1U);
}

TEST_F(ToolConsent, IsNeededForAShellBelowFull) {
  CONFORMS("R-LEVEL-8");
  Tool tool = toolOf("bash", {"grep", "x"});
  tool.policy.isolation.level = Level::process;
  EXPECT_EQ(needsConsent(tool).size(), 1U) << "grep itself is none, but nothing keeps it from starting one";
  EXPECT_EQ(needsConsent(toolOf("files", {"/bin/sh"})).size(), 1U);
  tool = toolOf("bash", {"true"});
  tool.policy.isolation.tier = policy::Tier::landlock;
  EXPECT_EQ(needsConsent(tool).size(), 1U);
}

TEST_F(ToolConsent, IsNeededForAShellUnderAnyName) {
  const std::string shell = std::filesystem::canonical("/bin/sh");
  const std::string harmless = home_ / "harmless";
  std::filesystem::copy_file("/usr/bin/true", harmless);
  EXPECT_TRUE(needsConsent(listing(harmless)).empty());

  const std::string link = home_ / "link";
  std::filesystem::create_symlink(shell, link);
  const std::string copy = home_ / "copy";
  std::filesystem::copy_file(shell, copy);
  const std::string script = home_.write("script", "#!/usr/bin/env -S sh -e\ntrue\n", 0755);
  const std::string outer = home_.write("outer", "#!" + script + "\n", 0755);
  for (const std::string& program : {shell, link, copy, script, outer})
    EXPECT_EQ(needsConsent(listing(program)).size(), 1U) << program;

  Tool tool = listing(harmless);
  tool.policy.process.allowed_executables->push_back(copy);
  EXPECT_EQ(needsConsent(tool).size(), 1U) << "it can start the copy";
  tool = listing(harmless);
  tool.policy.process.allowed_executables->push_back(home_.path());
  EXPECT_EQ(needsConsent(tool).size(), 1U) << "it can start what lies in the directory";
}

TEST_F(ToolConsent, IsNeededForNetwork) {
  Tool tool = toolOf("web-fetch", {"curl", "{url}"});
  tool.policy.network.allowed_hosts = {"example.org"};
  ASSERT_EQ(needsConsent(tool).size(), 1U);
  EXPECT_NE(needsConsent(tool)[0].find("example.org"), std::string::npos);
}

TEST_F(ToolConsent, IsValidUntilRevoked) {
  const Tool tool = toolOf("web-fetch", {"curl", "{url}"});
  EXPECT_FALSE(checkConsent(tool, 1000));
  ASSERT_TRUE(keepConsent(tool, "terminal", 1000));
  EXPECT_TRUE(checkConsent(tool, 2000));
  EXPECT_TRUE(checkConsent(tool, 3000));
  ASSERT_TRUE(dropConsent("t", 3000));
  EXPECT_FALSE(checkConsent(tool, 3000));
  ASSERT_TRUE(keepConsent(tool, "terminal", 3000));
  EXPECT_FALSE(checkConsent(tool, 3000 + approval::kMaxValidSeconds + 1)) << "nothing holds for ever";
}

}  // namespace caisson::tool
