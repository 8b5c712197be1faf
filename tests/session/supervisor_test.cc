// A session's limits, timeouts and escape response hold against hostile processes in its sandbox; other sessions are
// not affected.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>

#include <thread>

#include "session/supervisor_fixture.h"
#include "support/conforms.h"
#include "support/environment.h"
#include "support/processes.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

using StopLoop = SupervisorTest;
using SessionCpuLimit = SupervisorTest;
using SessionMemoryLimit = SupervisorTest;
using DescriptorsInFlight = SupervisorTest;
using SessionEscape = SupervisorTest;
using SupervisorCrash = SupervisorTest;
using SessionQuota = SupervisorTest;
using SessionClients = SupervisorTest;
using SessionCommit = SupervisorTest;

TEST_F(StopLoop, ExecTimeoutEndsStoppedCommand) {
  const std::string id = cli.create();
  stopEverything(id);
  // Repeated: whether the attacker hits the right moment is random.
  for (int round = 0; round < 4 && !HasFailure(); ++round) {
    const RunOutput output = cli.exec(id, {"sleep", "60"}, {"--timeout", "1s"}, seconds(6));
    EXPECT_FALSE(output.timed_out) << "the client waits for ever";
    EXPECT_EQ(output.exit_status, 124) << output.describe();
  }
}

TEST_F(StopLoop, WaitingClientEndsOnSigterm) {
  const std::string id = cli.create();
  stopEverything(id);
  const auto client = startClient(id);
  client->signal(SIGTERM);
  // The command gets 4 s after SIGTERM, and a moment to be killed.
  EXPECT_TRUE(client->wait(seconds(10))) << "still there 10 s after SIGTERM";
}

TEST_F(StopLoop, TtlEndsSandboxWhileClientWaits) {
  const std::string id = cli.create("", {"--ttl", "8s"});
  stopEverything(id);
  const auto client = startClient(id);
  EXPECT_TRUE(eventually([&] { return allGone(); }, seconds(13))) << "the loop lives 5 s longer than its session";
  EXPECT_TRUE(client->wait(seconds(5))) << "the client waits for a session that has ended";
}

TEST_F(StopLoop, TtlEndsSandboxAfterClientDied) {
  const std::string id = cli.create("", {"--ttl", "8s"});
  stopEverything(id);
  startClient(id).reset();
  EXPECT_TRUE(eventually([&] { return allGone(); }, seconds(13))) << "the loop lives 5 s longer than its session";
}

TEST_F(StopLoop, CpuLimitEndsLoopWhileClientWaits) {
  const std::string id = cli.create("[resources]\ncpu_seconds = \"2s\"\n");
  // Several processes share the work, so that each stays below RLIMIT_CPU, and wake each other.
  cli.start(id, {"sh", "-c",
                 "for i in 1 2 3 4; do (while :; do kill -STOP -1; kill -CONT -1; done) & done; "
                 "while :; do kill -STOP -1; kill -CONT -1; done",
                 cli.marker()});
  ASSERT_TRUE(eventually([&] { return !allGone(); }));
  const auto client = startClient(id);
  // By CPU time: on a busy machine this takes long.
  EXPECT_TRUE(eventually([&] { return allGone() || cpuSeconds() > 5; }, seconds(90)));
  EXPECT_TRUE(allGone()) << "2 s of CPU time are allowed, " << cpuSeconds() << " s were used";
}

TEST_F(StopLoop, DiskQuotaEndsWriterWhileClientWaits) {
  const std::string id = cli.create("[filesystem]\nmax_total_size = \"20M\"\n");
  cli.start(id, {"sh", "-c",
                 "trap go=1 USR1; while [ -z \"$go\" ]; do kill -STOP -1; done; i=0; while [ $i -lt 250 ]; do "
                 "head -c 1000000 /dev/zero > fill$i; kill -STOP -1; i=$((i+1)); done; sleep 600; :",
                 cli.marker()});
  ASSERT_TRUE(eventually([&] { return cpuSeconds() > 0.05; })) << "the loop does not run";
  const auto client = startClient(id);
  ASSERT_TRUE(signalProcess(firstLiveProcess(cli.marker()), SIGUSR1));
  EXPECT_TRUE(eventually([&] { return allGone(); }, seconds(10))) << cli.storedKib() << " KiB are stored";
  EXPECT_LT(cli.storedKib(), 100 * 1024);
}

TEST_F(StopLoop, EscapeAttemptEndsSandboxWhileClientWaits) {
  const std::string id = cli.create();
  cli.start(id, {"./payload", "sibling", "stop-all", cli.marker()});
  ASSERT_TRUE(eventually([&] { return cpuSeconds() > 0.05; })) << "the loop does not run";
  const auto client = startClient(id);
  ASSERT_TRUE(signalProcess(firstLiveProcess(cli.marker()), SIGUSR1));
  EXPECT_TRUE(eventually([&] { return allGone(); }));
  EXPECT_TRUE(eventually([&] { return cli.events("escape_attempt").size() == 1; }));
}

/// The kernel counts them per user and compares with the sender's limit on open files, which is 1024 for most users.
TEST_F(DescriptorsInFlight, DoNotBreakAnotherSession) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit usual{std::min<rlim_t>(1024, before.rlim_max), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  const std::string hostile = cli.create("[resources]\nopen_files = 4096\n");
  const std::string other = cli.create();
  ASSERT_EQ(cli.caisson({"session", "write", other, "note"}, seconds(20), "content").exit_status, 0);
  cli.start(hostile, {"./payload", "sibling", "descriptors", cli.marker()});
  EXPECT_TRUE(eventually([&] {
    const auto state = processState(firstLiveProcess(cli.marker()));
    return state && state->name == "sibling-ready";
  }));
  const RunOutput ran = cli.exec(other, {"echo", "works"}, {}, seconds(5));
  EXPECT_EQ(ran.out, "works\n") << ran.describe();
  const RunOutput read = cli.caisson({"session", "read", other, "note"}, seconds(5));
  EXPECT_EQ(read.out, "content") << read.describe();
  const std::string third = cli.create();
  const RunOutput first = cli.exec(third, {"echo", "works"}, {}, seconds(5));
  EXPECT_EQ(first.out, "works\n") << first.describe();
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

// Four processes of 0.9 s each: none of them reaches RLIMIT_CPU.
TEST_F(SessionCpuLimit, HoldsForUndumpableBackgroundCommand) {
  const std::string id = cli.create("[resources]\ncpu_seconds = \"1s\"\n");
  cli.start(id, {"sh", "-c", "./payload burn-undumpable 3.6; ./payload burn-undumpable 3.6", cli.marker()});
  ASSERT_TRUE(eventually([&] { return !allGone(); }));
  ASSERT_TRUE(eventually([&] { return allGone(); }, seconds(40)));
  EXPECT_EQ(cli.caisson({"session", "logs", id, "1"}).out, "") << "it used 3.6 s of CPU time, 1 s is allowed";
}

TEST_F(SessionCpuLimit, HoldsForUndumpableForegroundCommand) {
  const std::string id = cli.create("[resources]\ncpu_seconds = \"1s\"\n");
  const RunOutput output = cli.exec(id, {"./payload", "burn-undumpable", "3.6", cli.marker()}, {"--json"}, seconds(40));
  const json result = output.json();
  ASSERT_TRUE(result.is_object()) << output.describe();
  EXPECT_EQ(result["outcome"], "limit") << result;
  EXPECT_EQ(result["limit"], "cpu") << result;
}

/// cgroup v1 has no oom.group: the kernel kills one process, and the rest of the command keeps running.
TEST_F(SessionMemoryLimit, NamesLimitWhenOneChildIsKilledOnCgroupV1) {
  requireOrSkip(runsAsRoot(), "only root has a cgroup v1 here");
  requireOrSkip(exists("/sys/fs/cgroup/memory/memory.limit_in_bytes"), "no cgroup v1 memory controller");
  const std::string id = cli.create("[resources]\nmemory = \"64M\"\n");
  const std::string parent = "./payload take-anonymous 200 & wait; sleep 2; echo survived";
  const RunOutput captured = cli.script(id, parent, {"--json"});
  const json result = captured.json();
  ASSERT_TRUE(result.is_object()) << captured.describe();
  EXPECT_EQ(result["outcome"], "limit") << result;
  EXPECT_EQ(result["limit"], "memory") << result;
  EXPECT_EQ(result["stdout"].get<std::string>().find("survived"), std::string::npos) << result;
  const RunOutput shown = cli.script(id, parent);
  EXPECT_NE(shown.exit_status, 0) << shown.describe();
  EXPECT_NE(shown.err.find("memory"), std::string::npos) << shown.describe();
}

std::string escapeCall() {
#if defined(__x86_64__)
  return "./payload call 321 99 0 0";
#else
  return "./payload call 280 99 0 0";
#endif
}

TEST_F(SessionEscape, RollsBackFilesToStateBeforeCommand) {
  CONFORMS("R-SYSCALL-8");
  cli.workspace.write("of-host", "original\n", 0666);
  const std::string id = cli.create();
  ASSERT_EQ(cli.script(id, "echo earlier > earlier; echo earlier > deleted; echo one > changed").exit_status, 0);
  ASSERT_EQ(cli.script(id, "echo two > changed").exit_status, 0);
  const RunOutput attack = cli.script(
      id, "echo evil > planted; echo evil > changed; rm deleted; echo evil > of-host; " + escapeCall(), {"--json"});
  const json result = attack.json();
  ASSERT_TRUE(result.is_object()) << attack.describe();
  ASSERT_EQ(result["outcome"], "denied") << result;
  const RunOutput after = cli.script(id, "cat earlier deleted changed of-host; ls planted");
  EXPECT_EQ(after.out, "earlier\nearlier\ntwo\noriginal\n") << after.describe();
}

TEST_F(SessionEscape, RollsBackWithFullMetadata) {
  constexpr std::size_t kMaxMetadata = std::size_t{1024} * 1024, kLeft = 500;  // for some pieces of evidence
  const std::string id = cli.create();
  const std::string file = cli.home / ("state/sessions/" + id + "/meta.json");
  std::string text = readFile(file);
  const std::size_t at = text.find("\"policy\":{");
  ASSERT_NE(at, std::string::npos);
  text.insert(at, "\"typed\":[\"" + std::string(kMaxMetadata - text.size() - kLeft, 't') + "\"],");
  std::ofstream(file, std::ios::binary) << text;
  ASSERT_EQ(cli.script(id, "echo earlier > earlier").exit_status, 0);
  for (int round = 1; round <= 6; ++round) {
    const RunOutput attack =
        cli.script(id, "echo " + std::to_string(round) + " > planted; " + escapeCall(), {"--json"});
    ASSERT_EQ(attack.json()["outcome"], "denied") << attack.describe();
    const RunOutput after = cli.script(id, "cat earlier; ls planted");
    EXPECT_EQ(after.out, "earlier\n") << round << ": " << after.describe();
  }
  const RunOutput kept = cli.caisson({"session", "checkpoints", id});
  EXPECT_NE(kept.out.find("evidence-"), std::string::npos) << kept.describe();
}

TEST_F(SessionEscape, RollsBackFilesOfBackgroundCommand) {
  CONFORMS("R-SYSCALL-8");
  const std::string id = cli.create();
  ASSERT_EQ(cli.script(id, "echo earlier > earlier").exit_status, 0);
  cli.start(id, {"sh", "-c", "echo evil > planted; " + escapeCall() + "; sleep 60; :", cli.marker()});
  ASSERT_TRUE(eventually([&] { return cli.events("escape_attempt").size() == 1; }));
  ASSERT_TRUE(eventually([&] { return allGone(); }));
  const RunOutput after = cli.script(id, "cat earlier; ls");
  EXPECT_EQ(after.out.find("earlier\n"), 0U) << after.describe();
  EXPECT_EQ(after.out.find("planted"), std::string::npos) << after.describe();
}

/// Adds every string in `value` to `texts`.
void collectStrings(const json& value, std::vector<std::string>& texts) {
  if (value.is_string()) texts.push_back(value.get<std::string>());
  if (!value.is_structured()) return;
  for (const json& part : value) collectStrings(part, texts);
}

TEST_F(SessionEscape, KeepsDiscardedChangesAsEvidence) {
  const std::string id = cli.create();
  const RunOutput attack = cli.script(id, "echo evidence > planted; " + escapeCall(), {"--json"});
  const json result = attack.json();
  ASSERT_TRUE(result.is_object()) << attack.describe();
  const std::string rollback = result["escape"].value("rollback", "");
  const std::size_t at = rollback.find("evidence-");
  ASSERT_NE(at, std::string::npos) << rollback;
  const std::string checkpoint = rollback.substr(at, rollback.find(' ', at) - at);
  EXPECT_NE(cli.script(id, "cat planted").exit_status, 0) << "it is not in the workspace";
  ASSERT_EQ(cli.caisson({"session", "restore", id, checkpoint}).exit_status, 0);
  EXPECT_EQ(cli.script(id, "cat planted").out, "evidence\n");
}

TEST_F(SessionEscape, EmptiesTheCachesAndNamesWhatIsLeft) {
  const TempDir shared;
  const std::string cached =
      "[[filesystem.tmpfs]]\npath = '/cache'\nstore = 'disk'\nsize = '10M'\ncache = 'workspace'\n";
  const std::string id = cli.create(cached, {"--rw", shared.path()});
  ASSERT_EQ(cli.script(id, "echo earlier > /cache/earlier").exit_status, 0);
  const RunOutput attack =
      cli.script(id,
                 "echo evil > /cache/evil; echo evil > /tmp/evil; echo evil > ~/.evil; echo evil > " + shared.path() +
                     "/evil; " + escapeCall(),
                 {"--json"});
  const json result = attack.json();
  ASSERT_TRUE(result.is_object()) << attack.describe();
  ASSERT_EQ(result["outcome"], "denied") << result;
  const std::string rollback = result["escape"].value("rollback", "");
  EXPECT_NE(rollback.find("temporary directories were discarded"), std::string::npos) << rollback;
  EXPECT_NE(rollback.find("writable directly (" + shared.path() + ")"), std::string::npos) << rollback;
  const std::string emptied = "the cache /cache was emptied, its content is kept in ";
  const std::size_t at = rollback.find(emptied);
  ASSERT_NE(at, std::string::npos) << rollback;
  EXPECT_EQ(readFile(rollback.substr(at + emptied.size()) + "/evil"), "evil\n") << rollback;
  EXPECT_NE(cli.events("escape_attempt").at(0).dump().find(emptied), std::string::npos) << "in the audit log, too";

  const RunOutput after = cli.script(id, "ls -A /cache /tmp; ls ~/.evil");
  EXPECT_EQ(after.out.find("evil"), std::string::npos) << after.describe();
  EXPECT_EQ(after.out.find("earlier"), std::string::npos) << after.describe();
  EXPECT_NE(after.err.find("temporary directories (/tmp, the home), content of caches and processes are gone"),
            std::string::npos)
      << after.describe();
  const std::string next = cli.create(cached);
  EXPECT_EQ(cli.script(next, "ls -A /cache").out.find("evil"), std::string::npos) << "a later session of the workspace";
}

TEST_F(SessionEscape, OrdinaryCommandsKeepTmpAndHome) {
  const std::string id = cli.create();
  ASSERT_EQ(cli.script(id, "echo tmp > /tmp/note; echo home > ~/note; echo x > file").exit_status, 0);
  ASSERT_EQ(cli.script(id, "echo y > file").exit_status, 0);
  const RunOutput output = cli.script(id, "cat /tmp/note ~/note");
  EXPECT_EQ(output.out, "tmp\nhome\n") << output.describe();
}

TEST_F(SupervisorCrash, KillsSandboxKeepsFilesAndNextExecRestarts) {
  CONFORMS("R-SYSCALL-17");
  const std::string id = cli.create();
  ASSERT_EQ(cli.script(id, "echo kept > file").exit_status, 0);
  cli.start(id, {"sh", "-c", "setsid sleep 600 & sleep 600; :", cli.marker()});
  ASSERT_TRUE(eventually([&] { return !allGone(); }));
  const pid_t init = sandboxInit(liveProcesses(cli.marker()).front());
  ASSERT_GT(init, 1);
  const json info = cli.caisson({"session", "info", id, "--json"}).json();
  const bool informed = info.is_object() && info.contains("supervisor") && info["supervisor"].is_number();
  const pid_t supervisor = informed ? info["supervisor"].get<pid_t>() : sessionSupervisor(id);
  ASSERT_GT(supervisor, 1) << "no process supervises the session";
  ASSERT_TRUE(signalProcess(supervisor, SIGKILL));
  EXPECT_TRUE(eventually([&] { return allGone() && !processState(init); }, seconds(2)));
  const RunOutput next = cli.script(id, "cat file");
  EXPECT_EQ(next.exit_status, 0) << next.describe();
  EXPECT_EQ(next.out, "kept\n");
  EXPECT_NE(next.err.find("restarted"), std::string::npos) << next.describe();
}

TEST_F(SupervisorCrash, WaitingClientEndsWithReason) {
  const std::string id = cli.create();
  BackgroundProgram client({caissonBinary(), "session", "exec", id, "--", "sh", "-c", "sleep 600; :", cli.marker()},
                           cli.options());
  ASSERT_TRUE(eventually([&] { return liveProcesses(cli.marker()).size() > 1; }));
  const pid_t supervisor = sessionSupervisor(id);
  ASSERT_GT(supervisor, 1) << "no process supervises the session";
  ASSERT_TRUE(signalProcess(supervisor, SIGKILL));
  const auto status = client.wait(seconds(5));
  ASSERT_TRUE(status) << "still waiting 5 s after its supervisor died";
  EXPECT_EQ(*status, 125);
}

TEST_F(SessionEscape, IsRecordedAndRolledBackWhileOtherCommandsWait) {
  const std::string id = cli.create();
  // The attacker stops one newborn; the commands behind it are queued when the attempt comes.
  cli.start(id, {"sh", "-c",
                 "trap go=1 USR1; echo evil > evil; while [ -z \"$go\" ]; do kill -STOP -1; done; " + escapeCall(),
                 cli.marker()});
  ASSERT_TRUE(eventually([&] { return cpuSeconds() > 0.05; }));
  std::vector<std::unique_ptr<BackgroundProgram>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<BackgroundProgram>(
        std::vector<std::string>{caissonBinary(), "session", "exec", id, "--", "sleep", "60"}, cli.options()));
  }
  ASSERT_TRUE(eventually([&] { return cli.events("sandbox_execute").size() == 4; }));
  ASSERT_TRUE(signalProcess(firstLiveProcess(cli.marker()), SIGUSR1));
  EXPECT_TRUE(eventually([&] { return !cli.events("escape_attempt").empty(); }, seconds(8)));
  for (const auto& client : clients) EXPECT_TRUE(client->wait(seconds(8))) << "a client waits for ever";
  EXPECT_NE(cli.script(id, "cat evil").exit_status, 0) << "the attacker's file is still there";
}

TEST_F(SessionEscape, IsRolledBackAlsoWhileTheSessionIsLocked) {
  const std::string id = cli.create();
  const int lock = ::open((cli.home / ("state/sessions/" + id + "/lock")).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(lock, 0);
  ASSERT_EQ(::flock(lock, LOCK_EX), 0);
  const RunOutput attack = cli.script(id, "echo evil > evil; " + escapeCall());
  EXPECT_EQ(attack.exit_status, 125) << attack.describe();
  ::close(lock);
  EXPECT_NE(cli.script(id, "cat evil").exit_status, 0) << "the attacker's file is still there";
  EXPECT_EQ(cli.caisson({"session", "restore", id, "evidence-1"}).exit_status, 0);
}

TEST_F(SessionEscape, IsSeenUnderATightLimitOnOpenFiles) {
  const std::string id = cli.create("[resources]\nopen_files = 10\n");
  const RunOutput attack = cli.script(id, escapeCall());
  EXPECT_EQ(attack.exit_status, 125) << attack.describe();
  EXPECT_FALSE(cli.events("escape_attempt").empty());
}

TEST_F(SessionQuota, CountsClosedDirectories) {
  const std::string id = cli.create("[filesystem]\nmax_total_size = \"8M\"\n");
  const auto writeClosed = [&](const std::string& name, const std::string& then) {
    return cli.script(id,
                      "mkdir " + name + "; head -c 6000000 /dev/zero > " + name + "/f; chmod 000 " + name + "; " + then,
                      {}, seconds(60));
  };
  EXPECT_EQ(writeClosed("one", "true").exit_status, 0);
  // The supervisor ends the command when it has counted both; a loaded machine delays that.
  const RunOutput second = writeClosed("two", "sleep 600");
  EXPECT_FALSE(second.timed_out);
  EXPECT_NE(second.exit_status, 0) << "8 MiB are allowed";
}

TEST_F(SessionClients, DyingDuringTheStartOfACommandDoesNotAffectOthers) {
  const std::string id = cli.create();
  cli.start(id, {"sh", "-c", "sleep 600; :", cli.marker()});
  for (int i = 0; i < 30; ++i) {
    BackgroundProgram client({caissonBinary(), "session", "exec", id, "--", "sleep", "60"}, cli.options());
    std::this_thread::sleep_for(milliseconds(i % 6));
    client.signal(SIGKILL);
    client.wait(seconds(5));
  }
  std::this_thread::sleep_for(milliseconds(2500));  // longer than the timeout of one command
  EXPECT_FALSE(allGone()) << "a background command died with a client that had nothing to do with it";
  EXPECT_EQ(cli.script(id, "echo fine").out, "fine\n");
}

TEST_F(SessionCommit, DoesNotWaitForALockThatAPayloadMayHold) {
  const std::string id = cli.create();
  ASSERT_EQ(cli.script(id, "echo new > file").exit_status, 0);
  const int held = ::open(cli.workspace.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(held, 0);
  ASSERT_EQ(::flock(held, LOCK_SH), 0);
  const RunOutput refused = cli.caisson({"session", "commit", id}, seconds(12));
  EXPECT_FALSE(refused.timed_out);
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  ::close(held);
  EXPECT_EQ(cli.caisson({"session", "commit", id}).exit_status, 0);
}

}  // namespace
}  // namespace caisson::test
