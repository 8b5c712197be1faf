// Denials are reported on standard error and as data; ordinary programs cause none; learning proposes and never widens.
#include <gtest/gtest.h>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using nlohmann::json;

class Denials : public SandboxTest {
 protected:
  const TempDir home;
  RunOptions how{.env = {{"CAISSON_HOME", home.path() + "/state"}}};
};

TEST_F(Denials, NameRuleObjectAndRemedyOnStandardError) {
  CONFORMS("R-USE-5", "R-SYSCALL-18");
  const RunOutput output = run({}, {"unshare", "-r", "true"}, how);
  EXPECT_EQ(output.exit_status, 1);
  EXPECT_TRUE(
      contains(output.err, "caisson: denied: change namespaces or mounts: unshare (syscalls: no policy allows it)"))
      << output.describe();
  EXPECT_TRUE(contains(output.err, "--no-sandbox"));
}

TEST_F(Denials, AreReportedAlsoWhenTheProgramSucceeds) {
  const RunOutput output = script("unshare -r true 2>/dev/null; true", {}, how);
  EXPECT_EQ(output.exit_status, 0);
  EXPECT_TRUE(contains(output.err, "denied: ")) << output.describe();
}

TEST_F(Denials, NameTheLimitThatWasMet) {
  CONFORMS("R-LIMIT-8");
  const RunOutput output = run({"--json", "--timeout", "300ms"}, {"sleep", "30"}, how);
  const json result = output.json();
  ASSERT_EQ(result["denials"].size(), 1U) << output.describe();
  EXPECT_EQ(result["denials"][0]["rule"], "resources.wall_seconds");
}

/// A notification costs a round trip: ordinary programs must not cause any.
TEST_F(Denials, DoNotOccurForOrdinaryPrograms) {
  CONFORMS("R-SYSCALL-18");
  const std::pair<const char*, const char*> programs[] = {
      {"bash", "for i in 1 2 3; do (echo $i); done | sort | tail -1"},
      {"python3",
       "python3 -c 'import subprocess, threading, ssl, multiprocessing, socket, tempfile; "
       "t = threading.Thread(target=print); t.start(); t.join(); subprocess.run([\"true\"])'"},
      {"node", "node -e 'require(\"fs\").readdirSync(\"/\"); setTimeout(() => console.log(1), 10)'"},
      {"git", "cd /tmp && git init -q r && cd r && git -c user.name=a -c user.email=b commit -q --allow-empty -m m"},
      {"java", "java -version"},
      {"perl", "perl -e 'use Socket; print 1'"},
      {"gcc", "cd /tmp && printf 'int main(void){return 0;}' > a.c && gcc a.c && ./a.out"},
      {"tar", "cd /tmp && tar cf x.tar /etc/passwd 2>/dev/null && tar xf x.tar"},
      {"go", "cd /tmp && printf 'package main\\nfunc main(){}' > m.go && HOME=/tmp GOFLAGS=-mod=mod go run m.go"},
  };
  for (const auto& [program, text] : programs) {
    if (!systemHas(program)) continue;
    const RunOutput output = script(text, {"--json", "--memory", "2G", "--pids", "400"}, how);
    const json result = output.json();
    EXPECT_EQ(result["exit_code"], 0) << program << output.describe();
    EXPECT_EQ(result["violations"].size(), 0U) << program << ": " << result["violations"];
  }
}

class Learn : public Denials {};

TEST_F(Learn, ProposesAPolicyThatAllowsTheProgram) {
  home.write("base.toml", "format_version = 1\nextends = \"bash\"\nprocess.allow_exec = false\n");
  const std::string base = home.path() + "/base.toml";
  const std::string learned = home.path() + "/learned.toml";
  const std::vector<std::string> command{"bash", "-c", "/bin/echo through"};
  const RunOutput output = run({"--policy", base, "--learn", learned}, command, how);
  EXPECT_NE(output.exit_status, 0);
  EXPECT_TRUE(contains(output.err, "+ process.allow_exec = true")) << output.describe();
  EXPECT_FALSE(contains(readFile(learned), "allow_fork")) << readFile(learned);
  EXPECT_EQ(runCaisson({"policy", "check", learned}, how).exit_status, 0) << readFile(learned);
  EXPECT_NE(run({"--policy", base}, command, how).exit_status, 0) << "nothing was widened by learning";
  EXPECT_EQ(run({"--policy", learned}, command, how).out, "through\n");
}

TEST_F(Learn, UnknownSystemCallIsReported) {
  const std::string learned = home.path() + "/learned.toml";
  requireOrSkip(systemHas("python3"), "no python3");
  const RunOutput output = run({"--learn", learned, "--json"},
                               {"python3", "-c", "import ctypes; print(ctypes.CDLL(None).syscall(9999))"}, how);
  EXPECT_EQ(output.json()["stdout"], "-1\n") << output.describe();
  EXPECT_TRUE(contains(readFile(learned), "call 9999")) << readFile(learned);
  EXPECT_FALSE(contains(readFile(learned), "syscalls.allow =")) << "a call without a name can't be in a policy";
  EXPECT_EQ(runCaisson({"policy", "check", learned}, how).exit_status, 0) << readFile(learned);
}

TEST_F(Learn, ProposesNothingForAProgramThatNeedsNothing) {
  const std::string learned = home.path() + "/learned.toml";
  const RunOutput output = run({"--learn", learned}, {"true"}, how);
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(contains(output.err, "nothing to change"));
  EXPECT_TRUE(contains(readFile(learned), "extends = \"dev\""));
}

TEST_F(Learn, IsRefusedAtLevelProcess) {
  EXPECT_EQ(run({"--level", "process", "--learn", home.path() + "/x.toml"}, {"true"}, how).exit_status, 125);
}

}  // namespace
}  // namespace caisson::test
