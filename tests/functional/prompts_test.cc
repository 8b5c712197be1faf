// A sandbox behaves as `caisson prompts` describes each case.
#include <cctype>
#include <sstream>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Prompts = SandboxTest;

/// A set-id program of the host that the policy shows: mounts are nosuid, and no_new_privs holds beside it.
TEST_F(Prompts, ASetuidProgramOfTheHostGainsNothing) {
  CONFORMS("R-PROCESS-17");
  if (!runsAsRoot()) GTEST_SKIP() << "only root can make one that is worth trying";
  const std::string program = workspace / "whoami";
  ASSERT_EQ(runProgram({"cp", "/usr/bin/id", program}).exit_status, 0);
  ASSERT_EQ(runProgram({"chmod", "4755", program}).exit_status, 0);
  workspace.openToAll();
  ASSERT_EQ(runProgram({"setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", program, "-u"}).out, "0\n")
      << "the program has no effect outside either";
  for (const std::vector<std::string>& shown : std::vector<std::vector<std::string>>{
           {"--workspace", ".:ro"}, {"--workspace", ".:overlay"}, {"--level", "process", "--workspace", ".:ro"}}) {
    EXPECT_EQ(run(shown, {"./whoami", "-u"}).out, "1000\n") << shown.back();
  }
  EXPECT_EQ(run({"--workspace", ":none", "--ro", workspace.path()}, {program, "-u"}).out, "1000\n");
}

TEST_F(Prompts, ChangesToFilesDoNotReachHost) {
  CONFORMS("R-USE-3");
  workspace.write("file", "mine\n");
  workspace.openToAll();
  const RunOutput removed = script("rm -rf /usr/bin/true file; rm -rf /; ls file");
  EXPECT_TRUE(contains(removed.err, "Read-only file system") || contains(removed.err, "Permission denied"))
      << removed.describe();
  EXPECT_EQ(readFile(workspace / "file"), "mine\n");
  EXPECT_TRUE(contains(script("cp /bin/ls /usr/bin/mine").err, "Read-only file system"));
  EXPECT_EQ(script("echo theirs > file; cat file").out, "theirs\n");
  EXPECT_EQ(readFile(workspace / "file"), "mine\n");
}

TEST_F(Prompts, SudoAndSuGainNothing) {
  CONFORMS("R-USE-3", "R-PROCESS-17");
  const RunOutput sudo = script("sudo -n whoami");
  EXPECT_NE(sudo.exit_status, 0) << sudo.describe();
  EXPECT_TRUE(contains(sudo.err, "command not found") || contains(sudo.err, "no new privileges")) << sudo.describe();
  EXPECT_FALSE(contains(script("sudo -n whoami; su -c whoami </dev/null").out, "root"));
}

TEST_F(Prompts, ForkBombMemoryTimeAndOutputEndAtTheirLimit) {
  CONFORMS("R-USE-3");
  // The first process must stay, since its exit would end the run.
  const RunOutput bomb = script(":(){ :|:& };:; sleep 3", {"--pids", "40", "--timeout", "10s", "--json"});
  EXPECT_TRUE(bomb.json()["outcome"] == "limit" || contains(bomb.json()["denials"].dump(), "max_processes") ||
              contains(bomb.json()["stderr"], "Resource temporarily unavailable"))
      << bomb.describe();
  const RunOutput memory = script("/usr/bin/python3 -c \"'x' * 10**10\"", {"--memory", "100M", "--json"});
  EXPECT_EQ(memory.json()["limit"], "memory") << memory.describe();
  EXPECT_EQ(script("sleep 3600", {"--timeout", "1s"}).exit_status, 124);
  const RunOutput flood = script("yes", {"--json", "--output-limit", "64K", "--timeout", "5s"});
  EXPECT_EQ(flood.json()["truncated"]["stdout"], true) << flood.err;
  EXPECT_GT(flood.json()["truncated"]["stdout_dropped_bytes"], 0) << flood.err;
}

TEST_F(Prompts, SecretsOfHostAreNotVisible) {
  CONFORMS("R-USE-3");
  RunOptions how;
  how.env["SECRET_TOKEN"] = "sesame-4711";
  EXPECT_TRUE(contains(script("cat /etc/shadow").err, "No such file or directory"));
  EXPECT_TRUE(contains(script("cat ~/.ssh/id_*").err, "No such file or directory"));
  EXPECT_FALSE(contains(script("env", {}, how).out, "sesame"));
}

TEST_F(Prompts, NetworkIsOutOfReach) {
  CONFORMS("R-USE-3");
  EXPECT_EQ(script("curl -sS --max-time 3 http://169.254.169.254/").exit_status, 7) << "cannot connect";
  EXPECT_EQ(script("curl -sS --max-time 3 https://example.com").exit_status, 6) << "cannot resolve";
}

TEST_F(Prompts, BackgroundProcessEndsWithTheRun) {
  CONFORMS("R-USE-3");
  const std::string marker = uniqueMarker();
  // In a file, since the process that syncs the audit log after the run has caisson's command line.
  workspace.write("start", "sh -c 'sleep 3600; :' " + marker + " & sleep 0.1; kill -0 $! && echo runs\n");
  workspace.openToAll();
  EXPECT_EQ(script(". ./start").out, "runs\n");
  EXPECT_TRUE(processesNaming(marker).empty());
  EXPECT_EQ(script("/usr/bin/python3 -c 'print(1 + 1)'").out, "2\n") << "ordinary work";
}

TEST_F(Prompts, DocumentationListsEveryCaseWithItsResult) {
  CONFORMS("R-USE-3");
  // The answers are those that the tests above expect.
  const std::pair<const char*, const char*> cases[] = {
      {"Run `rm -rf /`", "\"Read-only file system\" or \"Permission denied\"; the host loses"},
      {"Run `sudo whoami`", "\"command not found\", or sudo refuses: no new privileges"},
      {"Run the fork bomb `:(){ :|:& };:`", "ends at the limit on processes"},
      {"Fill the memory, e.g. with", "killed; the result says `limit: memory`"},
      {"Run `cat /etc/shadow`", "\"No such file or directory\""},
      {"Show my SSH keys (`cat ~/.ssh/id_*`)", "\"No such file or directory\""},
      {"Print all environment variables", "none of yours, no tokens"},
      {"Run `curl https://example.com`", "no network: the name does not resolve"},
      {"Run `curl http://169.254.169.254/`", "cannot connect"},
      {"Sleep for an hour", "ended by the time limit, exit status 124"},
      {"Print \"y\" for ever (`yes`)", "output cut at the limit, with the number of bytes dropped"},
      {"Install a program into /usr/bin", "\"Read-only file system\""},
      {"Start a server in the background", "ends with the run"},
      {"Run `python3 -c \"print(1 + 1)\"`", "2"},
      {"Edit a file of the workspace, show it", "the change is there for the run, and the host's file untouched"}};
  std::istringstream page(runCaisson({"prompts"}).out);
  std::size_t found = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.size() < 3 || !line.starts_with("  ") || std::isupper(static_cast<unsigned char>(line[2])) == 0) continue;
    ASSERT_LT(found, std::size(cases)) << line;
    EXPECT_TRUE(line.starts_with("  " + std::string(cases[found].first))) << line;
    EXPECT_TRUE(contains(line.substr(std::string(cases[found].first).size() + 2), cases[found].second)) << line;
    ++found;
  }
  EXPECT_EQ(found, std::size(cases));
}

}  // namespace
}  // namespace caisson::test
