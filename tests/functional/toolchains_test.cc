// Toolchains in the caller's home, as version managers lay them out.
#include <unistd.h>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class HomeToolchains : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (IsSkipped()) return;
    home_.write(".nvm/versions/node/v99.0.0/bin/node99", "#!/bin/sh\necho node99 of $0\n", 0755);
    home_.write(".nvm/versions/node/v99.0.0/etc/npmrc", "//registry/:_authToken=secret\n");
    home_.write(".cargo/bin/cargo99", "#!/bin/sh\necho cargo99\n", 0755);
    home_.write(".cargo/credentials.toml", "secret\n");
    home_.openToAll();
    how_.env["HOME"] = home_.path();
    how_.env["PATH"] = (home_ / ".nvm/versions/node/v99.0.0/bin") + ":" + (home_ / ".cargo/bin") + ":/usr/bin:/bin";
    how_.env["CAISSON_HOME"] = state_.path();
    policy_ = {"--policy", workspace.write("p.toml", "extends = 'bash'\n[filesystem]\ntoolchains = 'auto'\n")};
    workspace.openToAll();
  }

  TempDir home_, state_;
  RunOptions how_;
  std::vector<std::string> policy_;
};

TEST_F(HomeToolchains, RunAndCannotBeChanged) {
  CONFORMS("R-FILES-20");
  const RunOutput ran = run(policy_, {"sh", "-c", "node99 && cargo99"}, how_);
  EXPECT_EQ(ran.out, "node99 of " + (home_ / ".nvm/versions/node/v99.0.0/bin/node99") + "\ncargo99\n")
      << ran.describe();
  const RunOutput written = run(policy_, {"sh", "-c", "echo x > \"$0\"", home_ / ".cargo/bin/cargo99"}, how_);
  EXPECT_NE(written.exit_status, 0) << written.describe();
  EXPECT_EQ(readFile(home_ / ".cargo/bin/cargo99"), "#!/bin/sh\necho cargo99\n");
}

TEST_F(HomeToolchains, ComeWithoutTheCredentialsBesideThem) {
  CONFORMS("R-FILES-20");
  for (const char* secret : {".nvm/versions/node/v99.0.0/etc/npmrc", ".cargo/credentials.toml"}) {
    const RunOutput read = run(policy_, {"cat", home_ / secret}, how_);
    EXPECT_NE(read.exit_status, 0) << read.describe();
    EXPECT_FALSE(contains(read.out, "secret")) << read.describe();
  }
}

TEST_F(HomeToolchains, ComeWithoutTheSecretsInThem) {
  CONFORMS("R-FILES-20");
  const std::string node = ".nvm/versions/node/v99.0.0/";
  const std::string python = ".pyenv/versions/3.99/";
  const std::vector<std::string> secrets{
      node + "bin/.env",
      node + "lib/node_modules/.npmrc",
      node + "lib/node_modules/npm/npmrc",
      node + "lib/node_modules/tool/.env.production",
      node + "lib/node_modules/@scope/tool/.npmrc",
      python + "lib/python3.99/distutils/distutils.cfg",
      python + "lib/python3.99/site-packages/.pypirc",
      python + "lib/python3.99/site-packages/pip.conf",
      "sdk/go1.99/go.env",
  };
  for (const std::string& one : secrets) home_.write(one, "GOPROXY=https://user:secret@proxy.example.org\n");
  home_.write(node + "lib/node_modules/tool/index.js", "shown\n");
  home_.write("sdk/go1.99/VERSION", "shown\n");
  home_.write(python + "bin/python3.99", "#!/bin/sh\n", 0755);
  home_.write("sdk/go1.99/bin/go", "#!/bin/sh\n", 0755);
  home_.openToAll();
  how_.env["PATH"] += ":" + (home_ / (python + "bin")) + ":" + (home_ / "sdk/go1.99/bin");
  for (const std::string& one : secrets) {
    const RunOutput read = run(policy_, {"cat", home_ / one}, how_);
    EXPECT_FALSE(contains(read.out, "secret")) << one << read.describe();
  }
  for (const std::string& one : {node + "lib/node_modules/tool/index.js", std::string("sdk/go1.99/VERSION")})
    EXPECT_EQ(run(policy_, {"cat", home_ / one}, how_).out, "shown\n") << one;
  const RunOutput planned = runCaisson({"plan", policy_[0], policy_[1], "--", "true"}, how_);
  EXPECT_TRUE(contains(planned.out, home_ / secrets[3])) << planned.describe();
}

TEST_F(HomeToolchains, AWorkspaceInThemHidesTheSameAtItsOwnPath) {
  const std::string package = home_ / ".nvm/versions/node/v99.0.0/lib/node_modules/package";
  home_.write(".nvm/versions/node/v99.0.0/lib/node_modules/package/config/.pgpass", "canary\n");
  home_.write(".nvm/versions/node/v99.0.0/lib/node_modules/package/denied", "canary\n");
  home_.write(".nvm/versions/node/v99.0.0/lib/node_modules/package/index.js", "shown\n");
  ASSERT_EQ(::link((package + "/config/.pgpass").c_str(), (package + "/config/other").c_str()), 0);
  home_.openToAll();
  for (const std::string mode : {"overlay", "ro", "rw"}) {
    const RunOutput read =
        run({policy_[0], policy_[1], "--workspace", package + ":" + mode, "--deny", "/workspace/denied"},
            {"sh", "-c", "cd " + package + " && cat index.js && find . /workspace -type f -exec cat {} +"}, how_);
    EXPECT_TRUE(contains(read.out, "shown")) << mode << read.describe();
    EXPECT_FALSE(contains(read.out, "canary")) << mode << read.describe();
  }
}

TEST_F(HomeToolchains, InTheWorkspaceHideTheSameAtTheirOwnPaths) {
  const std::string node = home_ / ".nvm/versions/node/v99.0.0";
  home_.write(".nvm/versions/node/v99.0.0/lib/x.dump", "canary\n");
  home_.openToAll();
  const RunOutput read = run({policy_[0], policy_[1], "--workspace", home_ / ".nvm", "--deny", "**/*.dump"},
                             {"sh", "-c", "node99; find " + node + "/lib -type f -exec cat {} +"}, how_);
  EXPECT_TRUE(contains(read.out, "node99 of ")) << read.describe();
  EXPECT_FALSE(contains(read.out, "canary")) << read.describe();
}

TEST_F(HomeToolchains, AreListedByThePlanAndShownOnlyIfThePolicyAllowsIt) {
  CONFORMS("R-FILES-20");
  const RunOutput planned = runCaisson({"plan", policy_[0], policy_[1], "--", "true"}, how_);
  EXPECT_TRUE(contains(planned.out, home_ / ".nvm/versions/node/v99.0.0/bin")) << planned.describe();
  const RunOutput without = run({"--profile", "bash"}, {"sh", "-c", "node99"}, how_);
  EXPECT_EQ(without.exit_status, 127) << without.describe();
}

}  // namespace
}  // namespace caisson::test
