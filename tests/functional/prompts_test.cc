// A sandbox behaves as `caisson prompts` describes each case.
#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Prompts = SandboxTest;

TEST_F(Prompts, AreWhatASandboxAnswers) {
  CONFORMS("R-USE-3");
  workspace.write("file", "mine\n");
  workspace.openToAll();
  RunOptions how;
  how.env["SECRET_TOKEN"] = "sesame-4711";

  const RunOutput removed = script("rm -rf /usr/bin/true file; rm -rf /; ls file", {}, how);
  EXPECT_TRUE(contains(removed.err, "Read-only file system") || contains(removed.err, "Permission denied"))
      << removed.describe();
  EXPECT_EQ(readFile(workspace / "file"), "mine\n");

  EXPECT_NE(script("sudo -n whoami").exit_status, 0);
  EXPECT_FALSE(contains(script("sudo -n whoami; su -c whoami </dev/null").out, "root"));

  // The first process must stay, since its exit would end the run.
  const RunOutput bomb = script(":(){ :|:& };:; sleep 3", {"--pids", "40", "--timeout", "10s", "--json"});
  EXPECT_TRUE(bomb.json()["outcome"] == "limit" || contains(bomb.json()["denials"].dump(), "max_processes") ||
              contains(bomb.json()["stderr"], "Resource temporarily unavailable"))
      << bomb.describe();

  const RunOutput memory = script("/usr/bin/python3 -c \"'x' * 10**10\"", {"--memory", "100M", "--json"});
  EXPECT_NE(memory.json()["exit_code"], 0) << memory.describe();

  EXPECT_TRUE(contains(script("cat /etc/shadow").err, "No such file or directory"));
  EXPECT_TRUE(contains(script("cat ~/.ssh/id_*").err, "No such file or directory"));
  EXPECT_FALSE(contains(script("env", {}, how).out, "sesame"));
  EXPECT_NE(script("curl -sS --max-time 3 http://169.254.169.254/").exit_status, 0);
  EXPECT_NE(script("curl -sS --max-time 3 https://example.com").exit_status, 0);
  EXPECT_EQ(script("sleep 3600", {"--timeout", "1s"}).exit_status, 124);
  const RunOutput flood = script("yes", {"--json", "--output-limit", "64K", "--timeout", "5s"});
  EXPECT_EQ(flood.json()["truncated"]["stdout"], true) << flood.err;
  EXPECT_TRUE(contains(script("cp /bin/ls /usr/bin/mine").err, "Read-only file system"));
  const std::string marker = uniqueMarker();
  EXPECT_EQ(script("sleep 3600 " + marker + " & exit 0").exit_status, 0);
  EXPECT_TRUE(processesNaming(marker).empty());
  EXPECT_EQ(script("/usr/bin/python3 -c 'print(1 + 1)'").out, "2\n");
  EXPECT_EQ(script("echo theirs > file; cat file").out, "theirs\n");
  EXPECT_EQ(readFile(workspace / "file"), "mine\n");

  const std::string page = runCaisson({"prompts"}).out;
  for (const char* part : {"rm -rf /", "sudo whoami", ":(){ :|:& };:", "limit: memory"}) {
    EXPECT_TRUE(contains(page, part)) << part;
  }
}

}  // namespace
}  // namespace caisson::test
