// Configurations of other sandboxes: real programs run under the output of `caisson policy import`.
#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class PolicyImport : public SandboxTest {
 protected:
  /// Imports the text and writes the policy to a file; returns its name.
  [[nodiscard]] std::string imported(const std::string& file, const std::string& text) const {
    const RunOutput output = runCaisson({"policy", "import", workspace.write(file, text)});
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    const std::string policy = workspace.write("imported.json", output.out);
    EXPECT_EQ(runCaisson({"policy", "check", policy}).exit_status, 0) << output.describe();
    workspace.openToAll();
    return policy;
  }
};

TEST_F(PolicyImport, ADeclaredPolicyRunsOneProgramAndNoSecond) {
  CONFORMS("R-POLICY-8");
  const std::string policy = imported("tool.json", R"({
    "isolationLevel": "LEVEL_2",
    "process": {"maxProcesses": 10, "allowFork": true, "allowExec": false, "allowedExecutables": []},
    "resources": {"maxCPU": 5000, "maxMemory": 52428800, "maxFileDescriptors": 100, "maxThreads": 10},
    "syscalls": {"mode": "WHITELIST", "syscalls": ["read", "write", "exit_group"]}})");
  EXPECT_EQ(run({"--policy", policy}, {"seq", "2"}).out, "1\n2\n");
  EXPECT_NE(run({"--policy", policy}, {"env", "true"}).exit_status, 0);
}

TEST_F(PolicyImport, AShellConfigurationKeepsItsLimits) {
  CONFORMS("R-POLICY-7");
  const std::string policy = imported("shell.toml",
                                      "[sandbox]\ntimeout = 1\nmemory_limit = '256m'\nnetwork_mode = 'none'\n"
                                      "workspace_access = 'ro'\n");
  EXPECT_EQ(run({"--policy", policy}, {"sh", "-c", "echo ran; touch /workspace/x || echo kept"}).out, "ran\nkept\n");
  EXPECT_EQ(run({"--policy", policy}, {"sleep", "20"}).exit_status, 124);
}

TEST_F(PolicyImport, ReportsKeyByKeyAndRefusesWhatItDoesNotKnow) {
  CONFORMS("R-POLICY-6");
  const std::string file =
      workspace.write("template.yaml", "services:\n  sandbox:\n    security_opt:\n      - seccomp:unconfined\n");
  const RunOutput spoken = runCaisson({"policy", "import", file});
  EXPECT_TRUE(contains(spoken.err, "refused as unsafe: services.sandbox.security_opt")) << spoken.describe();
  const RunOutput output = runCaisson({"policy", "import", "--json", file});
  EXPECT_EQ(output.json()["shape"], "compose") << output.describe();
  EXPECT_EQ(output.json()["notes"][0]["kind"], "refused as unsafe") << output.describe();

  const RunOutput unknown = runCaisson(
      {"policy", "import", workspace.write("privileged.yaml", "services:\n  sandbox:\n    privileged: true\n")});
  EXPECT_EQ(unknown.exit_status, 125) << unknown.describe();
  EXPECT_TRUE(contains(unknown.err, "privileged.yaml:3: services.sandbox.privileged")) << unknown.describe();
  EXPECT_EQ(unknown.out, "");
}

}  // namespace
}  // namespace caisson::test
