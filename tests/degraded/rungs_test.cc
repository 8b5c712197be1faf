// Weaker rungs: taken only when named, each with exactly its documented loss.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>

#include "degraded/degraded.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

constexpr const char* kStrict =
    "[isolation]\nmay_be_missing = [\"landlock_scoping\", \"time_namespace\", \"cgroup\"]\n";

std::string hostName() {
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

bool anyContains(const std::vector<std::string>& texts, const std::string& part) {
  for (const std::string& text : texts) {
    if (contains(text, part)) return true;
  }
  return false;
}

/// The layers of both are the same but for those that `changed` names.
void expectOnlyChanged(const Ending& ending, const Ending& whole, const std::vector<std::string>& changed) {
  nlohmann::json before = whole.result.value("layers", nlohmann::json::object());
  nlohmann::json after = ending.result.value("layers", nlohmann::json::object());
  for (const std::string& name : changed) {
    EXPECT_NE(before.value(name, ""), after.value(name, "")) << name << ending.describe();
    before.erase(name);
    after.erase(name);
  }
  EXPECT_EQ(before, after);
}

using HostnameRung = DegradedTest;

TEST_F(HostnameRung, KeepsTheHostNameAndNothingElse) {
  CONFORMS("R-LEVEL-9");
  const Ending ending = probe("sethostname,setdomainname:EPERM");
  EXPECT_EQ(ending.output.exit_status, 0) << ending.describe();
  EXPECT_EQ(ending.layer("hostname"), "kept: EPERM") << ending.describe();
  EXPECT_TRUE(anyContains(ending.warnings(), "host name cannot be set")) << ending.describe();
  expectOnlyChanged(ending, probe(), {"hostname"});
  std::string expected = probe().text("stdout");
  const std::size_t at = expected.find("\nsandbox\n");
  ASSERT_NE(at, std::string::npos) << expected;
  EXPECT_EQ(ending.text("stdout"), expected.replace(at + 1, 7, hostName()));
}

TEST_F(HostnameRung, HasAPrivateUtsNamespace) {
  const RunOutput output =
      caissonWithout("sethostname:EPERM", {"run", "--workspace", ":none", "--", "readlink", "/proc/self/ns/uts"});
  char own[64] = {};
  ASSERT_GT(readlink("/proc/self/ns/uts", own, sizeof(own) - 1), 0);
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_NE(output.out, std::string(own) + "\n");
}

TEST_F(HostnameRung, IsRefusedWhereThePolicyDoesNotListIt) {
  CONFORMS("R-LEVEL-9");
  const std::string strict = policy(kStrict);
  EXPECT_EQ(probe({"--policy", strict}).output.exit_status, 0);
  expectRefusal(probe("sethostname:EPERM", {"--policy", strict}), {"sethostname", "--allow-weaker hostname"});
  EXPECT_EQ(probe("sethostname:EPERM", {"--policy", strict, "--allow-weaker", "hostname"}).layer("hostname"),
            "kept: EPERM");
}

TEST_F(HostnameRung, DoesNotCoverOtherErrors) { expectRefusal(probe("sethostname:EACCES"), {"sethostname", "EACCES"}); }

/// A process of the caller with a secret in its environment and memory.
class Victim {
 public:
  Victim() {
    pid_ = fork();
    if (pid_ != 0) return;
    setenv("CAISSON_TEST_SECRET", "of-the-caller", 1);
    execlp("sleep", "sleep", "1000", nullptr);
    _exit(127);
  }
  ~Victim() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);  // our own child, not yet waited for
    waitpid(pid_, nullptr, 0);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  [[nodiscard]] bool valid() const { return pid_ > 0; }
  [[nodiscard]] std::string directory() const { return "/proc/" + std::to_string(pid_); }
  /// Waits until it executes its program.
  void await() const {
    while (!contains(readFile(directory() + "/environ"), "CAISSON_TEST_SECRET")) usleep(1000);
  }

 private:
  pid_t pid_ = -1;
};

class MaskedProc : public DegradedTest {
 protected:
  void SetUp() override {
    DegradedTest::SetUp();
    const RunOutput masked = runProgram({"/proc/self/exe", kWithoutFlag, "masked_proc", "--", "true"});
    requireOrSkip(masked.exit_status == 0, "/proc cannot be masked here: " + masked.describe());
  }

  [[nodiscard]] RunOutput inside(std::vector<std::string> options, const std::string& script) const {
    options.insert(options.begin(), {"run", "--workspace", ":none"});
    options.insert(options.end(), {"--", "bash", "-c", script});
    return caissonWithout("masked_proc", options);
  }
};

TEST_F(MaskedProc, IsRefusedWithItsCauseAndRemedies) {
  CONFORMS("R-LEVEL-9");
  for (const char* level : {"full", "process"}) {
    expectRefusal(probe("masked_proc", {"--level", level}),
                  {"/proc", "covered", "--allow-weaker proc_bound", "systempaths=unconfined", "unmask=ALL",
                   "procMount: Unmasked"});
  }
  expectRefusal(probe("masked_proc", {"--allow-weaker", "hostname"}), {"--allow-weaker proc_bound"});
}

TEST_F(MaskedProc, BoundRungChangesNothingButProcAndItsQuotas) {
  const Ending ending = probe("masked_proc", {"--allow-weaker", "proc_bound"});
  EXPECT_EQ(ending.output.exit_status, 0) << ending.describe();
  EXPECT_TRUE(ending.ran) << ending.describe();
  EXPECT_TRUE(ending.layer("proc").starts_with("proc_bound")) << ending.describe();
  EXPECT_TRUE(anyContains(ending.warnings(), "Not protected: the names")) << ending.describe();
  expectOnlyChanged(ending, probe(), {"proc", "kernel_quotas"});
}

TEST_F(MaskedProc, RungsAreAcceptedWithDashesAndInLists) {
  for (const char* rungs : {"proc-bound", "hostname,proc_bound", "proc-subset,proc-bound"}) {
    EXPECT_TRUE(probe("masked_proc", {"--allow-weaker", rungs}).ran) << rungs;
  }
}

TEST_F(MaskedProc, SubsetRungHasProcessesOnlyOrIsRefused) {
  const Ending ending = probe("masked_proc", {"--allow-weaker", "proc_subset"});
  if (!ending.ran) return expectRefusal(ending, {"covered", "--allow-weaker proc_bound"});  // before Linux 7.2
  EXPECT_TRUE(ending.layer("proc").starts_with("proc_subset")) << ending.describe();
  EXPECT_TRUE(anyContains(ending.warnings(), "proc_subset")) << ending.describe();
  const RunOutput output = inside({"--allow-weaker", "proc_subset"}, "cd /proc; echo [!0-9]*; echo $$; echo [0-9]*");
  EXPECT_EQ(output.out, "self thread-self\n2\n2\n") << output.describe();
}

TEST_F(MaskedProc, BoundRungDeniesTheSecretsOfOtherProcesses) {
  const Victim victim;
  ASSERT_TRUE(victim.valid());
  victim.await();
  const std::string script =
      "cd " + victim.directory() +
      "; for f in environ mem maps smaps auxv syscall stack pagemap io personality; do head -c 1 $f >/dev/null 2>&1 && "
      "echo read $f; done; for f in cwd root exe fd/0 ns/net ns/user; do readlink $f >/dev/null && echo followed $f; "
      "done; ls root/ >/dev/null 2>&1 && echo listed root; ls map_files 2>/dev/null | grep -q . && echo listed maps; "
      "echo end";
  for (const char* level : {"full", "process"}) {
    const RunOutput output = inside({"--allow-weaker", "proc_bound", "--level", level}, script);
    EXPECT_EQ(output.out, "end\n") << level << output.describe();
  }
}

TEST_F(MaskedProc, BoundRungShowsNamesAndCommandLines) {  // the documented loss
  const Victim victim;
  ASSERT_TRUE(victim.valid());
  victim.await();
  const RunOutput output =
      inside({"--allow-weaker", "proc_bound"},
             "cat " + victim.directory() + "/comm; tr '\\0' ' ' < " + victim.directory() + "/cmdline");
  EXPECT_EQ(output.out, "sleep\nsleep 1000 ") << output.describe();
}

TEST_F(MaskedProc, BoundRungIsReadOnlyAndMasked) {
  const Victim victim;
  ASSERT_TRUE(victim.valid());
  victim.await();
  const std::string before = readFile(victim.directory() + "/oom_score_adj");
  const std::string script =
      "for f in oom_score_adj coredump_filter autogroup clear_refs; do (echo 5 >> " + victim.directory() +
      "/$f) 2>/dev/null && echo wrote $f; done; for f in kcore keys timer_list sched_debug diskstats cmdline modules; "
      "do "
      "head -c 1 /proc/$f >/dev/null 2>&1 && echo read $f; done; (echo 1 >> /proc/sys/kernel/core_pattern) 2>/dev/null "
      "&& echo wrote sys; grep -c '^processor' /proc/cpuinfo > /dev/null && echo end";
  const RunOutput output = inside({"--allow-weaker", "proc_bound"}, script);
  EXPECT_EQ(output.out, "end\n") << output.describe();
  EXPECT_EQ(readFile(victim.directory() + "/oom_score_adj"), before);
  const char* weakened = std::getenv("CAISSON_WEAKENED");
  if (geteuid() == 0 || weakened == nullptr) return;  // root runs no weakened sandbox
  const RunOutput open =
      runProgram({"/proc/self/exe", kWithoutFlag, "masked_proc", "--", weakened, "bound-proc", "--workspace", ":none",
                  "--allow-weaker", "proc_bound", "--", "bash", "-c", script});
  EXPECT_TRUE(contains(open.out, "wrote oom_score_adj\n")) << open.describe();
}

TEST_F(MaskedProc, BoundRungGivesProgramsTheirOwnEntries) {
  const RunOutput output = inside(
      {"--allow-weaker", "proc_bound"},
      "cat /proc/self/comm /proc/thread-self/comm; ls /proc/self/fd | wc -l; readlink /proc/self/cwd; cat <(echo "
      "substituted); cat /proc/self/environ | tr '\\0' '\\n' | grep -c ^PATH=");
  EXPECT_EQ(output.out, "cat\ncat\n4\n/home/sandbox\nsubstituted\n1\n") << output.describe();
}

TEST_F(MaskedProc, SessionsUseTheSameRungAndReportIt) {
  RunOptions how;
  how.env["CAISSON_HOME"] = home.path();
  const auto session = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "session");
    return caissonWithout("masked_proc,sethostname:EPERM", arguments, how);
  };
  const RunOutput refused = session({"create", "--workspace", workspace.path()});
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_TRUE(contains(refused.err, "--allow-weaker proc_bound")) << refused.describe();
  const RunOutput created = session({"create", "--workspace", workspace.path(), "--allow-weaker", "proc_bound"});
  ASSERT_EQ(created.exit_status, 0) << created.describe();
  const std::string id = created.out.substr(0, created.out.find('\n'));
  const RunOutput ran = session({"exec", id, "--json", "--", "cat", "/proc/self/comm"});
  EXPECT_EQ(ran.exit_status, 0) << ran.describe();
  const nlohmann::json result = ran.json();
  EXPECT_EQ(result.value("stdout", ""), "cat\n") << ran.describe();
  EXPECT_TRUE(result["layers"].value("proc", "").starts_with("proc_bound")) << ran.describe();
  EXPECT_EQ(result["layers"].value("hostname", ""), "kept: EPERM") << ran.describe();
  EXPECT_EQ(session({"destroy", id}).exit_status, 0);
}

}  // namespace
}  // namespace caisson::test
