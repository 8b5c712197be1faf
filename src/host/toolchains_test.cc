#include "host/toolchains.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/temp_dir.h"

namespace caisson::host {
namespace {

using test::TempDir;

class Toolchains : public testing::Test {
 protected:
  std::vector<plan::Toolchain> find(const std::string& path, std::map<std::string, std::string> variables = {}) {
    variables["PATH"] = path;
    return findToolchains({home.path()}, variables);
  }

  TempDir home;
};

TEST_F(Toolchains, OfNvmAreShownWithoutTheirSettings) {
  home.write(".nvm/versions/node/v22.1.0/bin/node", "");
  home.write(".nvm/versions/node/v22.1.0/lib/node_modules/npm/package.json", "");
  home.write(".nvm/versions/node/v22.1.0/etc/npmrc", "token");
  home.write(".nvm/versions/node/v20.0.0/bin/node", "");
  const std::string prefix = home / ".nvm/versions/node/v22.1.0";
  const auto found = find("/usr/bin:" + prefix + "/bin:" + prefix + "/bin");
  ASSERT_EQ(found.size(), 1U) << "the same directory once, and only what PATH names";
  EXPECT_EQ(found[0].manager, "nvm");
  EXPECT_EQ(found[0].programs, prefix + "/bin");
  EXPECT_EQ(found[0].shown, (std::vector<std::string>{prefix + "/bin", prefix + "/lib"}));
}

TEST_F(Toolchains, OfRustupAreTheOnesThatSettingsName) {
  home.write(".cargo/bin/cargo", "");
  home.write(".cargo/credentials.toml", "token");
  home.write(".rustup/settings.toml", "version = \"12\"\ndefault_toolchain = \"stable-x\"\nprofile = \"minimal\"\n");
  home.write(".rustup/toolchains/stable-x/bin/cargo", "");
  home.write(".rustup/toolchains/stable-x/lib/librustc.so", "");
  home.write(".rustup/toolchains/nightly-x/bin/cargo", "");
  const auto found = find(home / ".cargo/bin");
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].programs, home / ".rustup/toolchains/stable-x/bin") << "before rustup's own";
  EXPECT_EQ(found[1].shown, (std::vector<std::string>{home / ".cargo/bin"})) << "not the credentials beside it";
  EXPECT_EQ(find(home / ".cargo/bin", {{"RUSTUP_TOOLCHAIN", "nightly-x"}})[0].programs,
            home / ".rustup/toolchains/nightly-x/bin");
  EXPECT_EQ(find(home / ".cargo/bin", {{"RUSTUP_TOOLCHAIN", "../.."}}).size(), 1U) << "not a name";
}

TEST_F(Toolchains, OfPyenvAreTheVersionsBehindItsShims) {
  home.write(".pyenv/shims/python3", "");
  home.write(".pyenv/version", "3.12.4\n");
  home.write(".pyenv/versions/3.12.4/bin/python3", "");
  home.write(".pyenv/versions/3.12.4/lib/python3.12/os.py", "");
  const auto found = find(home / ".pyenv/shims");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].programs, home / ".pyenv/versions/3.12.4/bin");
}

TEST_F(Toolchains, AreFoundThroughLinks) {
  home.write(".sdkman/candidates/java/21.0.2-tem/bin/java", "");
  home.write(".sdkman/candidates/java/21.0.2-tem/release", "");
  ASSERT_EQ(::symlink("21.0.2-tem", (home / ".sdkman/candidates/java/current").c_str()), 0);
  const auto found = find(home / ".sdkman/candidates/java/current/bin");
  ASSERT_EQ(found.size(), 1U);
  const std::string prefix = home / ".sdkman/candidates/java/21.0.2-tem";
  EXPECT_EQ(found[0].shown, (std::vector<std::string>{prefix + "/bin", prefix + "/release"}));
}

TEST_F(Toolchains, AreNotOtherDirectoriesOfTheHome) {
  home.write("bin/tool", "");
  home.write(".ssh/id_rsa", "");
  home.write(".nvm/versions/node/v1/bin/node", "");
  ASSERT_EQ(::symlink("../../../../.ssh", (home / ".nvm/versions/node/bin").c_str()), 0);
  EXPECT_TRUE(find((home / "bin") + ":" + (home / ".ssh") + ":" + (home / ".nvm/versions/node/bin")).empty());
  EXPECT_TRUE(find(".nvm/versions/node/v1/bin").empty()) << "not absolute";
  EXPECT_TRUE(findToolchains({home / "other"}, {{"PATH", home / ".nvm/versions/node/v1/bin"}}).empty())
      << "of another home";
}

}  // namespace
}  // namespace caisson::host
