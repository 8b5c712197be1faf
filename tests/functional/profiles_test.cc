// Every built-in profile with the programs it is made for, and with what it must block.
#include <sys/resource.h>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Profile = SandboxTest;

TEST_F(Profile, PythonInstallsAWheelIntoAVirtualEnvironment) {
  CONFORMS("R-POLICY-17");
  requireOrSkip(
      systemHas("python3") && runProgram({"/usr/bin/python3", "-c", "import venv, ensurepip"}).exit_status == 0,
      "python3 with venv is not installed");
  workspace.write("make_wheel.py", R"(
import zipfile
with zipfile.ZipFile("demo_pkg-1.0-py3-none-any.whl", "w") as wheel:
    info = "demo_pkg-1.0.dist-info/"
    wheel.writestr("demo_pkg.py", "def main(): print('from the wheel')\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: demo-pkg\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "entry_points.txt", "[console_scripts]\ndemo-hello = demo_pkg:main\n")
    wheel.writestr(info + "RECORD", "demo_pkg.py,,\n" + "".join(info + n + ",,\n" for n in
        ("METADATA", "WHEEL", "entry_points.txt", "RECORD")))
)");
  workspace.openToAll();
  RunOptions how;
  how.timeout = std::chrono::minutes(4);
  const RunOutput output =
      run({"--profile", "python", "--timeout", "200s"},
          {"sh", "-c",
           "/usr/bin/python3 make_wheel.py && /usr/bin/python3 -m venv env && env/bin/pip install -q "
           "demo_pkg-1.0-py3-none-any.whl && env/bin/demo-hello"},
          how);
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(contains(output.out, "from the wheel")) << output.describe();
  EXPECT_FALSE(exists(workspace / "env"));
}

TEST_F(Profile, NodeInstallsATarballWithAnInstallScript) {
  CONFORMS("R-POLICY-17");
  requireOrSkip(systemHas("node") && systemHas("npm"), "node and npm are not installed");
  workspace.write("dep/package.json",
                  R"({"name":"dep","version":"1.0.0","main":"index.js","scripts":{"install":"node script.js"}})");
  workspace.write("dep/script.js", "require('fs').writeFileSync('made.txt', 'by the install script')\n");
  workspace.write("dep/index.js", "module.exports = require('fs').readFileSync(__dirname + '/made.txt', 'utf8')\n");
  workspace.write("package.json", R"({"name":"app","version":"1.0.0"})");
  workspace.openToAll();
  RunOptions how;
  how.timeout = std::chrono::minutes(4);
  const RunOutput output =
      run({"--profile", "node", "--timeout", "200s"},
          {"sh", "-c",
           "tar czf dep.tgz --transform s,^dep,package, dep && rm -r dep && npm install ./dep.tgz && "
           "node -p 'require(\"dep\")'"},
          how);
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(contains(output.out, "by the install script")) << output.describe();
  EXPECT_FALSE(exists(workspace / "node_modules"));
}

TEST_F(Profile, FilesEditsTheWorkspaceAtLevelProcess) {
  CONFORMS("R-POLICY-10");
  workspace.write("text", "one\n");
  workspace.openToAll();
  const RunOutput edited = run({"--profile", "files"}, {"sed", "-i", "s/one/two/", "text"});
  EXPECT_EQ(edited.exit_status, 0) << edited.describe();
  EXPECT_EQ(readFile(workspace / "text"), "two\n");
  const RunOutput copied = run({"--profile", "files", "--json"}, {"cp", "text", "copy"});
  EXPECT_EQ(copied.json()["layers"]["level"], "process") << copied.describe();
  EXPECT_TRUE(exists(workspace / "copy"));
}

TEST_F(Profile, FilesHasNoShellAndRunsNothingFromTheWorkspace) {
  CONFORMS("R-POLICY-10", "R-FILES-8");
  workspace.write("tool", readFile("/usr/bin/true"), 0755);
  workspace.write("script", "#!/bin/sh\necho ran\n", 0755);
  workspace.openToAll();
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"sh", "-c", "echo ran"},
                                             {"/bin/bash", "-c", "echo ran"},
                                             {"env", "sh", "-c", "echo ran"},
                                             {"env", "dash", "-c", "echo ran"},
                                             {"find", ".", "-name", "tool", "-exec", "sh", "-c", "echo ran", ";"},
                                             {"env", "./script"},
                                             {"env", "./tool"}}) {
    const RunOutput output = run({"--profile", "files"}, command);
    EXPECT_FALSE(contains(output.out, "ran")) << output.describe();
    EXPECT_TRUE(command.front() == "find" || output.exit_status != 0) << output.describe();
  }
}

TEST_F(Profile, WebFetchReachesNoHostUntilOneIsNamed) {
  CONFORMS("R-POLICY-11");
  const RunOutput explained = runCaisson({"policy", "explain", "--profile", "web-fetch", "--json"});
  const auto policy = explained.json()["policy"];
  EXPECT_EQ(policy["network"]["mode"], "proxy") << explained.describe();
  EXPECT_TRUE(policy["network"]["allowed_hosts"].empty()) << explained.describe();
  EXPECT_EQ(policy["isolation"]["level"], "process") << explained.describe();
  EXPECT_EQ(policy["filesystem"]["workspace"]["mode"], "none") << explained.describe();
}

TEST_F(Profile, ShellRunsInstalledProgramsAndNothingWritable) {
  CONFORMS("R-POLICY-17");
  const RunOutput output = script("git --version && cp /usr/bin/true /tmp/t && /tmp/t", {"--profile", "shell"});
  EXPECT_EQ(output.exit_status, 126) << output.describe();
}

TEST_F(Profile, StrictRunsOneProgram) {
  CONFORMS("R-POLICY-12");
  RunOptions how;
  how.stdin_data = "text";
  EXPECT_EQ(run({"--profile", "strict"}, {"cat"}, how).out, "text");
  EXPECT_NE(run({"--profile", "strict"}, {"env", "true"}).exit_status, 0);
}

TEST_F(Profile, DevIsTheDefault) {
  CONFORMS("R-POLICY-16");
  const std::string show =
      "ulimit -n; df -T /tmp ~ | grep -c tmpfs; cp /usr/bin/true /tmp/t && /tmp/t && cp /tmp/t ~ && ~/t && "
      "echo executable; head -c 150M /dev/zero > ~/large && echo large";
  const RunOutput by_default = script(show, {"--json"});
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const bool may_have_so_many = limit.rlim_max / 2 >= 16384;  // else docs/limits.md says what it gets
  const std::string text = by_default.json()["stdout"];
  EXPECT_TRUE(!may_have_so_many || text.starts_with("16384\n")) << by_default.describe();
  EXPECT_EQ(text.substr(text.find('\n')), "\n0\nexecutable\nlarge\n") << by_default.describe();
  EXPECT_EQ(by_default.json()["layers"]["level"], "full");
  EXPECT_TRUE(contains(by_default.json()["layers"]["network"], "none")) << by_default.describe();
  EXPECT_EQ(script(show, {"--profile", "dev"}).out, text);
  EXPECT_EQ(script(show, {"--profile", "bash"}).out, "1024\n2\nexecutable\n");
  const RunOutput plan = runCaisson({"plan", "--json", "--", "true"}, {.cwd = workspace.path()});
  const nlohmann::json limits = plan.json()["limits"];
  EXPECT_FALSE(limits.contains("wall_seconds")) << limits.dump();
  EXPECT_EQ(limits["max_tasks"], 4096);
  EXPECT_TRUE(!may_have_so_many || limits["nofile"] == 16384) << limits.dump();
  const std::string meminfo = readFile("/proc/meminfo");
  const std::uint64_t host = std::stoull(meminfo.substr(meminfo.find_first_of("0123456789"))) * 1024;
  EXPECT_NEAR(limits["memory_bytes"].get<double>(), static_cast<double>(host) / 2, static_cast<double>(host) / 50);
}

TEST_F(Profile, PolicyFilesWithoutExtendsInheritBash) {
  workspace.write("own.toml", "[environment]\npass = []\n");
  EXPECT_EQ(script("ulimit -n", {"--policy", "own.toml"}).out, "1024\n");
}

TEST_F(Profile, CeilingsOfDevBindPolicyFilesThatExtendIt) {
  workspace.write("ok.toml", "extends = 'dev'\n[process]\nmax_processes = 4000\n[resources]\nwall_seconds = '50m'\n");
  EXPECT_EQ(script("echo ran", {"--policy", "ok.toml"}).out, "ran\n");
  for (const std::string line : {"process.max_processes = 4097", "resources.open_files = 20000",
                                 "resources.memory = '60%'", "resources.wall_seconds = '61m'"}) {
    workspace.write("wide.toml", "extends = 'dev'\n" + line + "\n");
    const RunOutput refused = script("echo ran", {"--policy", "wide.toml"});
    EXPECT_EQ(refused.exit_status, 125) << line << refused.describe();
    EXPECT_TRUE(contains(refused.err, "above the ceiling")) << refused.describe();
  }
}

TEST_F(Profile, DiskLimitsAllThatIsWritten) {
  const std::string fill =
      "head -c 20M /dev/zero > /tmp/a; head -c 20M /dev/zero > ~/b; head -c 20M /dev/zero > c; sleep 600";
  const RunOutput output = script(fill, {"--json", "--disk", "50M", "--timeout", "60s"});
  const nlohmann::json result = output.json();
  EXPECT_EQ(result["limit"], "disk") << output.describe();
  EXPECT_TRUE(contains(result.dump(), "more than 50 MiB were written")) << output.describe();
}

TEST_F(Profile, DiskLetsTheWorkspaceExceedTheMemoryLimit) {
  const std::string fill = "head -c 150M /dev/zero > large && stat -c %s large";
  const std::vector<std::string> small{"--profile", "bash", "--memory", "64M"};
  const RunOutput refused = script(fill, small);
  EXPECT_NE(refused.exit_status, 0) << refused.describe();
  EXPECT_TRUE(contains(refused.err, "files in /workspace") && contains(refused.err, "--disk")) << refused.describe();
  const RunOutput output = script(fill, {"--profile", "bash", "--memory", "64M", "--disk", "1G"});
  EXPECT_EQ(output.out, "157286400\n") << output.describe();
}

TEST_F(Profile, RemedyForAFullDirectoryWorks) {
  CONFORMS("R-POLICY-15", "R-USE-5");
  const std::string fill = "head -c 100M /dev/zero > ~/large && echo filled && ls -d /tmp /run";
  const RunOutput full = script(fill, {"--profile", "bash"});
  EXPECT_NE(full.exit_status, 0);
  const std::string line = "filesystem.tmpfs.\"/home/sandbox\".size = \"128M\"";
  ASSERT_TRUE(contains(full.err, line)) << full.describe();
  workspace.write("larger.toml", "extends = 'bash'\n" + line + "\n");
  EXPECT_EQ(script(fill, {"--policy", "larger.toml"}).out, "filled\n/run\n/tmp\n");
}

TEST_F(Profile, AllOfThemAreListedAndExplained) {
  for (const std::string name : {"dev", "bash", "shell", "files", "web-fetch", "cargo", "python", "node", "strict"}) {
    const RunOutput output = runCaisson({"policy", "explain", "--profile", name});
    EXPECT_EQ(output.exit_status, 0) << output.describe();
    EXPECT_TRUE(contains(output.out, name)) << output.describe();
  }
}

}  // namespace
}  // namespace caisson::test
