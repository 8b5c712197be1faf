// Configurations of other sandboxes: real programs run under the output of `caisson policy import`.
#include <unistd.h>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class PolicyImport : public SandboxTest {
 protected:
  /// Imports the text and writes the policy to a file; returns its name.
  [[nodiscard]] std::string imported(const std::string& file, const std::string& text) const {
    const RunOutput output = runCaisson({"policy", "import", workspace.write(file, text)}, {.cwd = workspace.path()});
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

/// `bridge` is the container engine's own network; here it is every public host, through the proxy.
TEST_F(PolicyImport, BridgeBecomesTheProxyAndIsReported) {
  CONFORMS("R-POLICY-7");
  const std::string file = workspace.write("shell.toml",
                                           "[sandbox]\nimage = 'ash-sandbox:latest'\ntimeout = 60\n"
                                           "memory_limit = '512m'\ncpu_limit = 1.0\nnetwork_mode = 'bridge'\n"
                                           "workspace_access = 'rw'\n");
  const RunOutput output = runCaisson({"policy", "import", file});
  ASSERT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(contains(output.err, "wider: sandbox.network_mode")) << output.describe();
  const std::string policy = workspace.write("imported.json", output.out);
  workspace.openToAll();
  const nlohmann::json network = runCaisson({"policy", "explain", "--json", policy}).json()["policy"]["network"];
  EXPECT_EQ(network["mode"], "proxy") << network;
  EXPECT_EQ(network["allowed_hosts"], nlohmann::json({"*"})) << network;
  const nlohmann::json ran = run({"--json", "--policy", policy}, {"nproc"}).json();
  EXPECT_EQ(ran["stdout"], "1\n") << ran;
  EXPECT_TRUE(contains(ran["layers"]["network"], "proxy")) << ran["layers"];
  EXPECT_NEAR(std::stod(run({"--policy", policy}, {"sh", "-c", "grep MemTotal: /proc/meminfo | tr -dc 0-9"}).out),
              512 * 1024, 1);
}

/// The imported values are in force inside.
TEST_F(PolicyImport, AgentAndComposeFilesRun) {
  CONFORMS("R-POLICY-6");
  const std::string user = imported("user.json", R"({"sandbox": {"bash": {"defaultNetwork": "none",
      "proxyAllowlist": ["*.company.example"], "resources": {"memory": "1g", "timeout": 300000}}}})");
  const std::string memory = "grep MemTotal: /proc/meminfo | tr -dc 0-9";
  EXPECT_NEAR(std::stod(run({"--policy", user}, {"sh", "-c", memory}).out), 1024 * 1024, 1);
  EXPECT_EQ(runCaisson({"plan", "--json", "--policy", user, "--", "true"}, {.cwd = workspace.path()})
                .json()["limits"]["wall_seconds"],
            300.0);
  const std::string container = imported("template.yaml", R"(
services:
  sandbox:
    deploy: {resources: {limits: {cpus: '1.0', memory: 512M}, reservations: {memory: 64M}}}
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true", "seccomp:unconfined"]
    pids_limit: 100
    ulimits:
      nofile: {soft: 1024, hard: 4096}
    read_only: true
    tmpfs: ["/tmp:size=100M,mode=1777", "/var/tmp:size=50M,mode=1777"]
    network_mode: none
    user: "1000:1000"
    working_dir: /workspace
    hostname: sandbox
)");
  const RunOutput inside =
      run({"--policy", container}, {"sh", "-c",
                                    "ulimit -n; id -u; hostname; pwd; df -m --output=size /tmp /var/tmp | tail -n 2 | "
                                    "tr -d ' '; grep ^Seccomp: /proc/self/status | cut -f2; " +
                                        memory});
  EXPECT_EQ(inside.out, "1024\n1000\nsandbox\n/workspace\n100\n50\n2\n524288") << inside.describe();
  const RunOutput call = run({"--policy", container, "--ro", payloadPath()}, {payloadPath(), "call", "9999"});
  EXPECT_EQ(call.out, "refused: call 9999: ENOSYS\n") << "confined all the same: " << call.describe();
}

TEST_F(PolicyImport, CargoFileKeepsLimitsSizesAndNetwork) {
  CONFORMS("R-POLICY-9");
  const std::string fragments = R"(
directory_permissions: {workspace: "ro", cargo_home: "rw", target: "rw", logs: "wo", metadata: "rw"}
size_limits: {total_workspace: "10GB", target_directory: "5GB", log_files: "100MB", temp_files: "1GB"}
process_limits: {cpu_time: "300s", wall_time: "600s", memory: "512MB", processes: 25, threads: 50, file_descriptors: 500}
network_allowlist: ["registry.example", "code.example"]
port_restrictions: {allowed_ports: [80, 443], blocked_ranges: ["1-1023", "8080-8090"]}
execution_policy:
  allowed_executables: ["cat"]
  blocked_executables: ["sh", "bash", "python", "node"]
  command_validation:
    - regex: "^cat\\s"
      description: "Reading"
sandbox_config: {network: {enabled: true, allowlist: ["registry.example"], ports: [80, 443]}}
)";
  const std::string policy = imported("cargo.yaml", fragments);
  const nlohmann::json result =
      run({"--json", "--policy", policy}, {"cat", "/proc/self/limits", "/proc/mounts"}).json();
  const std::string out = result["stdout"];
  EXPECT_TRUE(contains(out, "Max open files            500                  500")) << result;
  EXPECT_TRUE(contains(out, " /logs ")) << result;
  const std::string quota = result["layers"]["disk_quota"];
  EXPECT_TRUE(contains(quota, "/target 5 GiB") && contains(quota, "/tmp 1 GiB")) << quota;
  EXPECT_TRUE(contains(result["layers"]["network"], "proxy")) << result["layers"];
  for (const std::vector<std::string>& other :
       std::vector<std::vector<std::string>>{{"bash", "-c", "echo ran"}, {"ls"}}) {
    const RunOutput refused = run({"--policy", policy}, other);
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_EQ(refused.out, "");
  }
  const nlohmann::json network = runCaisson({"policy", "explain", "--json", policy}).json()["policy"]["network"];
  EXPECT_EQ(network["allowed_hosts"], nlohmann::json({"registry.example", "code.example"})) << network;
  EXPECT_EQ(network["allowed_ports"], nlohmann::json({"80", "443"})) << network;
  EXPECT_EQ(network["denied_ports"], nlohmann::json({"1-1023", "8080-8090"})) << network;
}

TEST_F(PolicyImport, SettingsOfOtherToolsRun) {
  CONFORMS("R-POLICY-18");
  const std::string container = imported("devcontainer.json", R"({"name": "app", "image": "debian:12",
      // a comment
      "containerEnv": {"FROM_CONTAINER": "1"}, "runArgs": ["--memory", "256m", "--network=host"]})");
  const RunOutput first =
      run({"--policy", container}, {"sh", "-c", "echo $FROM_CONTAINER; grep MemTotal: /proc/meminfo | tr -dc 0-9"});
  EXPECT_EQ(first.out, "1\n262144") << first.describe();
  workspace.write("secrets/key", "hidden-content");
  const std::string agent = imported("settings.json", R"({"network": {"allowedDomains": [], "deniedDomains": []},
      "filesystem": {"denyRead": ["secrets"], "allowWrite": [], "denyWrite": []}})");
  const RunOutput second = run({"--policy", agent}, {"sh", "-c", "cat secrets/key; touch new || echo refused"});
  EXPECT_EQ(second.out, "refused\n") << second.describe();
  const std::string compose =
      imported("compose.yaml",
               "services:\n  sandbox:\n    image: debian:12\n    deploy: {resources: {limits: {memory: 256M}}}\n");
  EXPECT_EQ(run({"--policy", compose}, {"sh", "-c", "grep MemTotal: /proc/meminfo | tr -dc 0-9"}).out, "262144");
}

TEST_F(PolicyImport, DirectoryThatMayNotBeWrittenStaysAsItIs) {
  workspace.write("vendor/f", "host\n");
  const std::string policy =
      imported("srt.json", R"({"network": {"allowedDomains": []}, "filesystem": {"denyRead": [], "allowWrite": ["."],
                "denyWrite": ["vendor/"]}})");
  const RunOutput output =
      run({"--policy", policy}, {"sh", "-c", "echo x > vendor/f; echo x > vendor/new; echo x > free"});
  EXPECT_EQ(readFile(workspace / "vendor/f"), "host\n") << output.describe();
  EXPECT_FALSE(exists(workspace / "vendor/new")) << output.describe();
  EXPECT_EQ(readFile(workspace / "free"), "x\n") << output.describe();
}

/// Rules of older settings: their patterns and directories are those of the settings.
TEST_F(PolicyImport, DeniedPatternsAndDirectoriesOfRulesHold) {
  CONFORMS("R-POLICY-18");
  workspace.write("conf/prod.yml", "canary\n");
  workspace.write("conf/prod", "canary\n");
  const std::string hidden =
      imported("read.json", R"js({"permissions": {"allow": ["Edit(.)"], "deny": ["Read(conf/prod*)"]}})js");
  const RunOutput read = run({"--policy", hidden}, {"sh", "-c", "cat conf/prod.yml conf/prod; echo x > free"});
  EXPECT_EQ(read.out, "") << read.describe();
  EXPECT_FALSE(exists(workspace / "free")) << "changes are kept apart: " << read.describe();
  for (const char* rule : {"conf/**", "conf/*", "conf/"}) {
    const std::string kept = imported("edit.json", R"js({"permissions": {"allow": ["Edit(.)"], "deny": ["Edit()js" +
                                                       std::string(rule) + R"js()"]}})js");
    const RunOutput written =
        run({"--policy", kept}, {"sh", "-c", "echo x >> conf/prod.yml; echo x > conf/new; echo x > free"});
    EXPECT_EQ(readFile(workspace / "conf/prod.yml"), "canary\n") << rule << written.describe();
    EXPECT_FALSE(exists(workspace / "conf/new")) << rule << written.describe();
    EXPECT_EQ(readFile(workspace / "free"), "x\n") << rule << written.describe();
  }
}

/// Paths of Claude Code's rules: a single slash begins one of the project.
TEST_F(PolicyImport, RuleWithASingleSlashHoldsInTheWorkspace) {
  workspace.write("keep.txt", "host\n");
  workspace.write("src/s.txt", "canary\n");
  const std::string policy = imported(
      "rules.json", R"js({"permissions": {"allow": ["Edit(.)"], "deny": ["Edit(/keep.txt)", "Read(/src/**)"]}})js");
  const RunOutput output = run({"--policy", policy}, {"sh", "-c", "echo bad > keep.txt; cat src/s.txt; echo x > free"});
  EXPECT_EQ(readFile(workspace / "keep.txt"), "host\n") << output.describe();
  EXPECT_EQ(output.out, "") << output.describe();
  EXPECT_EQ(readFile(workspace / "free"), "x\n") << output.describe();
}

/// A repository can bring a link to what no import shows.
TEST_F(PolicyImport, LinkInTheRepositoryShowsNoKeysOfTheHome) {
  const TempDir home;
  home.makeDir(".ssh");
  const Canary key(home / ".ssh/id_ed25519");
  const std::string project = home.makeDir("project");
  ASSERT_EQ(::symlink("../.ssh", (project + "/k").c_str()), 0);
  home.openToAll();
  const RunOptions at_home{.env = {{"HOME", home.path()}}, .cwd = project};
  for (const char* source : {"${localEnv:HOME}/project/k", "${localEnv:HOME}/project/k/id_ed25519"}) {
    const std::string file = home.write("project/devcontainer.json", R"({"image": "x", "mounts": ["type=bind,source=)" +
                                                                         std::string(source) + R"(,readonly"]})");
    const RunOutput imported = runCaisson({"policy", "import", file}, at_home);
    ASSERT_EQ(imported.exit_status, 0) << imported.describe();
    EXPECT_TRUE(contains(imported.err, "it leads to " + (home / ".ssh"))) << imported.describe();
    const std::string policy = home.write("project/imported.json", imported.out);
    const RunOutput output = run({"--policy", policy}, {"cat", key.path()}, at_home);
    EXPECT_FALSE(key.leakedInto(output.out)) << output.describe();
  }
}

TEST_F(PolicyImport, BlockedPathsOfTheWorkspaceCannotBeRead) {
  CONFORMS("R-POLICY-9");
  workspace.write("conf/key", "canary\n");
  for (const std::string& path : {std::string("/workspace/conf"), workspace / "conf"}) {
    const std::string policy = imported("cargo.yaml", "blocked_paths: [\"" + path +
                                                          "\"]\nexecution_policy: {allowed_executables: [cat], "
                                                          "command_validation: [{regex: \".*\"}]}\n");
    const RunOutput output = run({"--policy", policy}, {"cat", "/workspace/conf/key"});
    EXPECT_EQ(output.out, "") << path << output.describe();
    EXPECT_EQ(output.exit_status, 1) << path << output.describe();
  }
}

TEST_F(PolicyImport, ReportsEveryKeyAndRejectsUnknownFormats) {
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
