// The weaker levels and the landlock tier report what they lack, and keep their promises.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <sstream>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;

class Levels : public SandboxTest {};

TEST_F(Levels, FullNamesEveryLayerInForce) {
  const json layers = run({"--json"}, {"true"}).json()["layers"];
  EXPECT_EQ(layers["level"], "full");
  for (const char* space : {"user", "pid", "mount", "network", "ipc", "uts"}) {
    EXPECT_TRUE(contains(layers["namespaces"].get<std::string>(), space)) << layers.dump();
  }
  EXPECT_TRUE(contains(layers["seccomp"].get<std::string>(), "allowlist")) << layers.dump();
  const std::string identity = layers["identity"];
  EXPECT_TRUE(runsAsRoot() ? identity == "separate user id" : identity == "shared with caller") << identity;
}

TEST_F(Levels, ProcessRunsOnTheHostsRootSeenThroughLandlock) {
  CONFORMS("R-LEVEL-5", "R-FILES-9");
  const TempDir elsewhere;
  const Canary canary(elsewhere / "canary");
  // The host's root, the caller's working directory and the promised limits, in private namespaces.
  const std::string system = "stat -c %d:%i /usr /usr/bin; ";
  const RunOutput root = script(system + "pwd; ulimit -n; ulimit -c", {"--profile", "bash", "--level", "process"});
  EXPECT_EQ(root.out, onHost(system).out + workspace.path() + "\n1024\n0\n") << root.describe();
  const std::string spaces = "for n in user pid mnt net ipc uts; do readlink /proc/self/ns/$n; done";
  std::istringstream inside(script(spaces, {"--level", "process"}).out), outside(onHost(spaces).out);
  int count = 0;
  for (std::string one, other; std::getline(inside, one) && std::getline(outside, other); ++count)
    EXPECT_NE(one, other);
  EXPECT_EQ(count, 6);
  const RunOutput output = script("id -u; hostname; cat " + canary.path() + "; echo x > " + canary.path() +
                                      "; ls /proc | grep -c '^[0-9]'; "
                                      "echo x > /usr/intruder; cat /etc/shadow; pwd; echo new > file; cat file",
                                  {"--level", "process", "--json"});
  const json result = output.json();
  ASSERT_FALSE(result.is_discarded()) << output.describe();
  EXPECT_EQ(result["layers"]["level"], "process");
  const std::string out = result["stdout"];
  EXPECT_TRUE(out.starts_with("1000\nsandbox\n")) << output.describe();
  EXPECT_TRUE(out.ends_with("new\n")) << output.describe();
  EXPECT_FALSE(canary.leakedInto(output.out)) << output.describe();
  EXPECT_TRUE(canary.untouched());
  EXPECT_FALSE(exists("/usr/intruder"));
  EXPECT_FALSE(exists(workspace / "file")) << "the workspace is an overlay";
}

TEST_F(Levels, ProcessShowsTheWorkspaceAtItsOwnPathInEveryMode) {
  CONFORMS("R-FILES-9");
  workspace.write("file", "content\n");
  workspace.openToAll();
  const std::string look = "pwd; cat file; touch new 2>/dev/null && echo written || echo refused";
  const auto inMode = [&](const std::string& mode) {
    return script(look, {"--level", "process", "--workspace", ".:" + mode});
  };
  EXPECT_EQ(inMode("ro").out, workspace.path() + "\ncontent\nrefused\n");
  EXPECT_EQ(inMode("overlay").out, workspace.path() + "\ncontent\nwritten\n");
  EXPECT_FALSE(exists(workspace / "new")) << "the overlay's change reached the host";
  EXPECT_EQ(inMode("rw").out, workspace.path() + "\ncontent\nwritten\n");
  EXPECT_TRUE(exists(workspace / "new"));
  const std::string path = workspace.path();
  const RunOutput none =
      script("cat " + path + "/file; ls " + path + "; echo end", {"--level", "process", "--workspace", ":none"});
  EXPECT_EQ(none.out, "end\n") << none.describe();
}

TEST_F(Levels, ProcessShowsNeitherTheHostsNameNorItsUsers) {
  CONFORMS("R-LEVEL-6");
  const RunOutput output = script(
      "id -un; uname -n; hostname; cat /etc/hostname /etc/hosts; cut -d: -f1 /etc/passwd; getent passwd | cut -d: -f1; "
      "cut -d: -f1 /etc/group; ls -A /home /root 2>/dev/null",
      {"--level", "process"});
  const std::string users = "root\nsandbox\nnobody\n";
  EXPECT_EQ(output.out, "sandbox\nsandbox\nsandbox\nsandbox\n127.0.0.1 localhost sandbox\n::1 localhost sandbox\n" +
                            users + users + "root\ntty\nsandbox\nnogroup\n")
      << output.describe();
}

TEST_F(Levels, AnAppArmorProfileOnAHostWithoutAppArmorIsExplained) {
  CONFORMS("R-LEVEL-15");
  if (exists("/proc/self/attr/apparmor/exec")) GTEST_SKIP() << "this host has AppArmor";
  workspace.write("apparmor.toml", "isolation.apparmor_profile = 'some-profile'\n");
  for (const char* level : {"full", "process"}) {
    const RunOutput output = run({"--policy", "apparmor.toml", "--level", level}, {"echo", "ran"});
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_EQ(output.out, "") << output.describe();
    EXPECT_TRUE(contains(output.err, "AppArmor is not active on this host")) << output.describe();
  }
}

TEST_F(Levels, AnOciSeccompProfileNarrowsTheFilter) {
  CONFORMS("R-LEVEL-16");
  const TempDir home;
  const RunOptions how{.env = {{"CAISSON_HOME", home.path()}}, .cwd = workspace.path()};
  workspace.write("profile.json", R"({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
      {"names": ["chmod", "fchmodat", "fchmodat2"], "action": "SCMP_ACT_ERRNO", "errnoRet": 28}]})");
  const std::string policy =
      workspace.write("p.toml", "extends = 'bash'\nsyscalls.oci_profile = '" + (workspace / "profile.json") + "'\n");
  workspace.openToAll();
  const std::string change = "cd /tmp && : > f && chmod 600 f 2>&1; unshare -r true 2>&1; echo end";
  for (const std::string level : {"full", "process"}) {
    const RunOutput output = run({"--json", "--policy", policy, "--level", level}, {"sh", "-c", change}, how);
    const std::string out = output.json()["stdout"];
    EXPECT_TRUE(contains(out, "No space left on device")) << level << output.describe();
    EXPECT_TRUE(contains(out, "Operation not permitted")) << "a profile allows nothing more: " << output.describe();
    EXPECT_TRUE(out.ends_with("end\n")) << level << output.describe();
    EXPECT_TRUE(contains(output.json()["violations"].dump(), "fchmodat")) << level << output.describe();
    EXPECT_TRUE(contains(output.json()["layers"]["seccomp"], "profile.json")) << level << output.describe();
    EXPECT_FALSE(contains(run({"--level", level}, {"sh", "-c", change}, how).out, "No space left"));
  }
  const RunOutput made = runCaisson({"session", "create", "--policy", policy, "--workspace", ":none"}, how);
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  const RunOutput output = runCaisson({"session", "exec", id, "--", "sh", "-c", change}, how);
  EXPECT_TRUE(contains(output.out, "No space left on device")) << output.describe();
  EXPECT_EQ(runCaisson({"session", "destroy", id}, how).exit_status, 0);
}

/// An allowlist as container engines have it: everything that it does not name is denied.
TEST_F(Levels, AnOciSeccompAllowlistDeniesWhatItDoesNotName) {
  CONFORMS("R-LEVEL-16");
  const json calls =
      runCaisson({"plan", "--json", "--profile", "bash", "--", "true"}, {.cwd = workspace.path()}).json()["syscalls"];
  json names = json::array();
  for (const auto& [name, action] : calls.items()) {
    if (name != "mkdirat" && name != "mkdir" && name != "socket") names.push_back(name);
  }
  const json profile{
      {"defaultAction", "SCMP_ACT_ERRNO"},
      {"archMap", json::array({{{"architecture", "SCMP_ARCH_X86_64"}}, {{"architecture", "SCMP_ARCH_AARCH64"}}})},
      {"syscalls",
       {{{"names", names}, {"action", "SCMP_ACT_ALLOW"}},
        {{"names", {"socket"}},
         {"action", "SCMP_ACT_ALLOW"},
         {"args", {{{"index", 0}, {"value", 1}, {"op", "SCMP_CMP_EQ"}}}}}}}};
  workspace.write("profile.json", profile.dump());
  const std::string policy =
      workspace.write("p.toml", "extends = 'bash'\nsyscalls.oci_profile = '" + (workspace / "profile.json") + "'\n");
  workspace.openToAll();
  const std::string inside =
      "mkdir d; python3 -c 'import socket; socket.socket(socket.AF_UNIX); print(\"local\"); "
      "socket.socket(socket.AF_INET)'; echo end";
  const RunOutput narrowed = script(inside, {"--policy", policy});
  EXPECT_EQ(narrowed.out, "local\nend\n") << narrowed.describe();
  EXPECT_TRUE(contains(narrowed.err, "mkdir: cannot create directory")) << narrowed.describe();
  EXPECT_TRUE(contains(narrowed.err, "PermissionError")) << narrowed.describe();
  const RunOutput whole = script(inside, {"--profile", "bash"});
  EXPECT_FALSE(contains(whole.err, "not permitted")) << whole.describe();
}

/// Optional extras are applied or refused, never ignored.
TEST_F(Levels, ExtrasThatCannotBeAppliedAreRefused) {
  CONFORMS("R-LEVEL-16");
  workspace.write("traced.json", R"({"defaultAction": "SCMP_ACT_TRACE"})");
  workspace.write("closed.json", R"({"defaultAction": "SCMP_ACT_KILL"})");
  std::vector<std::pair<std::string, std::string>> cases{
      {"syscalls.oci_profile = '/no/such/profile.json'\n", "ENOENT"},
      {"syscalls.oci_profile = '/dev/null'\n", "syscalls.oci_profile"},
      {"syscalls.oci_profile = '" + (workspace / "traced.json") + "'\n", "SCMP_ACT_TRACE"},
      {"syscalls.oci_profile = '" + (workspace / "closed.json") + "'\n", "which starting the program needs"}};
  if (!contains(readFile("/proc/filesystems"), "selinuxfs")) {
    cases.emplace_back("isolation.selinux_label = 'system_u:system_r:container_t:s0'\n",
                       "SELinux is not active on this host");
  }
  for (const auto& [line, reason] : cases) {
    workspace.write("extra.toml", line);
    workspace.openToAll();
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"run", "--policy", "extra.toml", "--", "echo", "ran"},
                                               {"plan", "--policy", "extra.toml", "--", "echo", "ran"},
                                               {"session", "create", "--policy", "extra.toml"}}) {
      const RunOutput output = runCaisson(words, {.cwd = workspace.path()});
      EXPECT_EQ(output.exit_status, 125) << words[0] << output.describe();
      EXPECT_EQ(output.out, "") << words[0] << output.describe();
      EXPECT_TRUE(contains(output.err, reason)) << words[0] << output.describe();
    }
  }
}

TEST_F(Levels, ProcessHasNoNetworkAndACleanEnvironment) {
  CONFORMS("R-LEVEL-5", "R-NETWORK-1");
  const RunOutput output =
      script("cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' '; env | grep -c TOKEN; ps -e | wc -l",
             {"--level", "process"}, {.env = {{"TOKEN", "x"}}});
  EXPECT_TRUE(output.out.starts_with("lo\n0\n")) << output.describe();
}

/// `sec` is denied in every mode and by every way to name it; `plan` names the path that is really hidden.
TEST_F(Levels, ProcessHidesDeniedPathsOfTheWorkspace) {
  CONFORMS("R-FILES-14");
  workspace.write("sec/key", "hidden-content\n");
  workspace.write("open", "open\n");
  workspace.write(
      "deny.toml",
      "extends = \"bash\"\n[isolation]\nlevel = \"process\"\n[filesystem]\ndenied = [\"/workspace/sec\"]\n");
  const std::vector<std::vector<std::string>> ways{{"--level", "process", "--deny", "sec"},
                                                   {"--level", "process", "--deny", workspace / "sec"},
                                                   {"--profile", "files", "--deny", "sec"},
                                                   {"--policy", "deny.toml", "--level", "process"}};
  for (const std::string mode : {"overlay", "ro", "rw"}) {
    for (std::vector<std::string> options : ways) {
      options.insert(options.end(), {"--workspace", ".:" + mode});
      const RunOutput output = run(options, {"cat", "open", "sec/key", workspace / "sec/key"});
      EXPECT_EQ(output.out, "open\n") << mode << output.describe();
      EXPECT_NE(output.exit_status, 0) << mode << output.describe();
      std::vector<std::string> words{"plan"};
      words.insert(words.end(), options.begin(), options.end());
      words.insert(words.end(), {"--", "cat", "sec/key"});
      const RunOutput plan = runCaisson(words, {.cwd = workspace.path()});
      EXPECT_TRUE(contains(plan.out, "masked     " + workspace / "sec") || contains(plan.out, "hidden: sec"))
          << mode << plan.describe();
      EXPECT_FALSE(contains(plan.out, "/workspace/sec")) << mode << plan.describe();
    }
  }
  EXPECT_EQ(readFile(workspace / "sec/key"), "hidden-content\n");
}

TEST_F(Levels, ProcessHidesDeniedPathsInSessions) {
  CONFORMS("R-FILES-14");
  workspace.write("sec/key", "hidden-content\n");
  workspace.write("open", "open\n");
  const TempDir home;
  const RunOptions how{.env = {{"CAISSON_HOME", home.path()}}};
  const RunOutput output = onHost(
      "id=$($CAISSON session create --workspace . --level process --deny sec) && $CAISSON session exec $id -- cat "
      "open sec/key; $CAISSON session read $id sec/key; $CAISSON session exec $id -- sh -c 'echo mine > sec/key && cat "
      "sec/key'; $CAISSON session destroy $id",
      how);
  EXPECT_TRUE(output.out.starts_with("open\n")) << output.describe();
  EXPECT_FALSE(contains(output.out, "hidden-content")) << output.describe();
}

TEST_F(Levels, ProcessRefusesToDenyWhatDoesNotExistYetInADirectTree) {
  const RunOutput output = run({"--level", "process", "--workspace", ".:rw", "--deny", "later"}, {"true"});
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_TRUE(contains(output.err, "does not exist")) << output.describe();
}

/// Both names of a file in the workspace deny it, whatever the level.
TEST_F(Levels, FullHidesAPathDeniedByItsHostName) {
  workspace.write("sec/key", "hidden-content\n");
  for (const std::string mode : {"overlay", "ro", "rw"}) {
    const RunOutput output = run({"--workspace", ".:" + mode, "--deny", workspace / "sec"}, {"cat", "sec/key"});
    EXPECT_EQ(output.out, "") << mode << output.describe();
  }
}

TEST_F(Levels, ProcessHasLowerCeilings) {
  CONFORMS("R-LIMIT-7");
  for (const auto& [line, status] : std::vector<std::pair<std::string, int>>{
           {"wall_seconds = 301", 125}, {"wall_seconds = 300", 0}, {"output = '11M'", 125}, {"output = '10M'", 0}}) {
    workspace.write("p.toml", "[resources]\n" + line + "\n");
    EXPECT_EQ(run({"--policy", "p.toml", "--level", "process"}, {"true"}).exit_status, status) << line;
    EXPECT_EQ(run({"--policy", "p.toml"}, {"true"}).exit_status, 0) << line << " at level full";
  }
}

TEST_F(Levels, BashDefaultLimits) {
  CONFORMS("R-LIMIT-1");
  const json limits =
      runCaisson({"plan", "--json", "--profile", "bash", "--", "true"}, {.cwd = workspace.path()}).json()["limits"];
  EXPECT_EQ(limits["memory_bytes"], 512 << 20);
  EXPECT_EQ(limits["max_tasks"], 100);
  EXPECT_EQ(limits["nofile"], 1024);
  EXPECT_EQ(limits["wall_seconds"], 120.0);
}

TEST_F(Levels, ProcessDefaultLimits) {
  CONFORMS("R-LIMIT-7");
  const auto limits = [&](const std::string& profile) {
    return runCaisson({"plan", "--json", "--profile", profile, "--level", "process", "--", "true"},
                      {.cwd = workspace.path()})
        .json()["limits"];
  };
  for (const char* profile : {"bash", "shell", "files", "python", "node"}) {
    const json found = limits(profile);
    EXPECT_EQ(found["wall_seconds"], 60.0) << profile << found;
    EXPECT_EQ(found["output_bytes"], 1 << 20) << profile << found;
  }
  EXPECT_EQ(limits("web-fetch")["wall_seconds"], 60.0);
  EXPECT_EQ(limits("web-fetch")["output_bytes"], 10 << 20);
  EXPECT_FALSE(limits("dev").contains("wall_seconds"));
}

TEST_F(Levels, ProcessCutsCapturedOutputAtOneMebibyteByDefault) {
  CONFORMS("R-PROCESS-15", "R-LIMIT-7");
  const nlohmann::json result = run({"--level", "process", "--json"}, {"head", "-c", "3M", "/dev/zero"}).json();
  EXPECT_EQ(result["stdout"].get<std::string>().size(), 1U << 20);
}

TEST_F(Levels, NoneIsRefusedWithoutATerminal) {
  CONFORMS("R-LEVEL-7");
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--level", "none"}, {"--level", "none", "--approve", "level:none"}}) {
    const RunOutput output = run(options, {"echo", "ran"});
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_EQ(output.out, "");
    EXPECT_TRUE(contains(output.err, "approv")) << output.describe();
  }
  workspace.write("none.toml", "[isolation]\nlevel = \"none\"\n");
  EXPECT_EQ(run({"--policy", "none.toml"}, {"echo", "ran"}).exit_status, 125) << "not through a policy file either";
}

TEST_F(Levels, HostNetworkIsRefusedWithoutApproval) {
  CONFORMS("R-LEVEL-7");
  const RunOutput output = run({"--net", "host"}, {"true"});
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_TRUE(contains(output.err, "approv")) << output.describe();
}

TEST_F(Levels, LandlockTierWorksAndReportsWhatItDoesNotProtect) {
  workspace.openToAll();  // nothing maps root's files to the payload's uid in this tier
  workspace.write("file", "content\n");
  const TempDir elsewhere;
  const Canary canary(elsewhere / "canary");
  const RunOutput output =
      script("cat file; touch new; cat " + canary.path() + "; echo x > " + canary.path() + "; exit 3",
             {"--tier", "landlock", "--workspace", ".:ro", "--json"});
  EXPECT_EQ(output.exit_status, 3) << output.describe();
  const json result = output.json();
  EXPECT_EQ(result["stdout"], "content\n") << output.describe();
  EXPECT_FALSE(canary.leakedInto(output.out));
  EXPECT_TRUE(canary.untouched());
  EXPECT_FALSE(exists(workspace / "new"));
  EXPECT_TRUE(contains(result["warnings"].dump(), "landlock tier")) << result.dump();
  EXPECT_TRUE(contains(result["layers"]["namespaces"].get<std::string>(), "none")) << result.dump();
}

TEST_F(Levels, LandlockTierPrintsAWarningToo) {
  CONFORMS("R-LEVEL-24");
  workspace.openToAll();
  const RunOutput output = run({"--tier", "landlock", "--workspace", ".:ro"}, {"true"});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  for (const char* word : {"landlock tier: no namespaces. Not protected:", "process list", "resource use"}) {
    EXPECT_TRUE(contains(output.err, word)) << word << output.describe();
  }
  EXPECT_FALSE(contains(run({"--workspace", ".:ro"}, {"true"}).err, "Not protected"));
}

TEST_F(Levels, LandlockTierWritesOnlyWhereAllowedAndKillsItsTree) {
  ASSERT_EQ(chmod(workspace.path().c_str(), 0777), 0);
  const std::string marker = uniqueMarker();
  const RunOutput output = script("echo kept > new; (exec -a " + marker + " setsid sleep 300) & sleep 300",
                                  {"--tier", "landlock", "--workspace", ".:rw", "--timeout", "1s"});
  EXPECT_EQ(output.exit_status, 124) << output.describe();
  EXPECT_EQ(readFile(workspace / "new"), "kept\n");
  EXPECT_TRUE(eventually([&] { return processesNaming(marker).empty(); }, seconds(3)));
}

TEST_F(Levels, TheLandlockTierRefusesToDenyPaths) {
  CONFORMS("R-FILES-14");
  workspace.write("sec/key", "hidden-content\n");
  workspace.openToAll();
  const RunOutput output =
      run({"--tier", "landlock", "--workspace", ".:ro", "--deny", "sec"}, {"cat", workspace / "sec/key"});
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_EQ(output.out, "") << "it ran";
  EXPECT_TRUE(contains(output.err, "filesystem.denied")) << output.describe();
}

TEST_F(Levels, TheLandlockTierIsNeverAnOverlay) {
  const RunOutput output = run({"--tier", "landlock", "--workspace", ".:overlay"}, {"true"});
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_TRUE(contains(output.err, "overlay")) << output.describe();
}

TEST_F(Levels, ProfilesStartTheirPrograms) {
  EXPECT_EQ(run({"--profile", "bash"}, {"echo", "ran"}).out, "ran\n");
  EXPECT_EQ(run({"--profile", "shell"}, {"echo", "ran"}).out, "ran\n");
  EXPECT_EQ(run({"--profile", "strict"}, {"/bin/echo", "ran"}).out, "ran\n");
}

TEST_F(Levels, StrictAllowsNoSecondExec) {
  CONFORMS("R-POLICY-12", "R-PROCESS-6");
  const RunOutput output = run({"--profile", "strict"}, {"sh", "-c", "echo shell; /bin/echo second"});
  EXPECT_EQ(output.out, "shell\n") << output.describe();
  EXPECT_NE(output.exit_status, 0);
}

TEST_F(Levels, StrictHasFewResourcesAndAShortListOfCalls) {
  CONFORMS("R-POLICY-12");
  const RunOutput files = run({"--profile", "strict"}, {"sh", "-c", "ulimit -n; ulimit -t"});
  EXPECT_EQ(files.out, "100\n5\n") << files.describe();
  const std::vector<std::string> shown{"--profile", "strict", "--json", "--ro", payloadPath()};
  const json memory = run(shown, {payloadPath(), "take-anonymous", "80"}).json();
  EXPECT_EQ(memory["limit"], "memory") << memory.dump();
  // An ordinary call that every other profile allows.
  const std::vector<std::string> open_socket{payloadPath(), "socket", "1", "1", "0"};
  EXPECT_EQ(run({"--ro", payloadPath()}, open_socket).out.substr(0, 4), "done");
  const json refused = run(shown, open_socket).json();
  EXPECT_EQ(refused["stdout"], "refused: socket: EPERM\n") << refused.dump();
}

}  // namespace
}  // namespace caisson::test
