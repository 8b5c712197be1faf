// Every run is recorded before it starts, with what it did; the figures count it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>

#include "functional/audit_fixture.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using Audit = AuditTest;

TEST_F(Audit, RunIsRecordedFromStartToEnd) {
  CONFORMS("R-AUDIT-1");
  EXPECT_EQ(run({}, {"sh", "-c", "exit 7 # API_TOKEN=verysecretvalue"}, options()).exit_status, 7);
  const auto all = events();
  std::vector<std::string> names;
  for (const auto& event : all) names.push_back(event["event"]);
  EXPECT_EQ(names, (std::vector<std::string>{"log_started", "sandbox_created", "sandbox_execute", "sandbox_exited",
                                             "sandbox_destroyed"}));
  EXPECT_EQ(all.at(2)["data"]["command_preview"], "sh -c 'exit 7 # API_TOKEN=[redacted]'");
  EXPECT_EQ(all.at(2)["data"]["level"], "full");
  EXPECT_EQ(all.at(2)["data"]["network"], "none");
  // The words of the command, each with a terminating zero.
  const RunOutput hash = onHost("printf 'sh\\0-c\\0exit 7 # API_TOKEN=verysecretvalue\\0' | sha256sum | cut -d' ' -f1");
  EXPECT_EQ(all.at(2)["data"]["command_sha256"].get<std::string>() + "\n", hash.out);
  EXPECT_EQ(all.at(3)["data"]["exit_code"], 7);
  EXPECT_GT(all.at(3)["data"]["duration_ms"].get<double>(), 0);
  EXPECT_EQ(log().find("verysecret"), std::string::npos);
  EXPECT_EQ(audit({"verify"}).exit_status, 0);
}

TEST_F(Audit, ValuesCannotForgeOtherPairs) {
  (void)run({}, {"touch", "z' outcome=forged y="}, options());
  const RunOutput shown = caisson({"audit", "show"});
  EXPECT_TRUE(contains(shown.out, "outcome=forged")) << shown.describe();
  EXPECT_FALSE(contains(shown.out, "z' outcome=forged")) << shown.describe();
}

TEST_F(Audit, ARunRecordsTheFilesItChanged) {
  CONFORMS("R-AUDIT-6");
  workspace.write("old", "x");
  workspace.openToAll();
  EXPECT_EQ(script("true", {}, options()).exit_status, 0);
  EXPECT_TRUE(events({"--event", "files_changed"}).empty());
  EXPECT_EQ(script("rm old; mkdir -p sub; echo x > sub/new", {}, options()).exit_status, 0);
  const auto changed = events({"--event", "files_changed"});
  ASSERT_EQ(changed.size(), 1U);
  auto names = changed[0]["data"]["first"].get<std::vector<std::string>>();
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"old", "sub/new"}));
  EXPECT_EQ(changed[0]["data"]["count"], 2);
  EXPECT_EQ(changed[0]["data"]["complete"], true);
  EXPECT_EQ(script("echo x > third", {"--level", "process"}, options()).exit_status, 0);
  EXPECT_EQ(events({"--event", "files_changed"}).back()["data"]["first"].dump(), "[\"third\"]");
  // However the run ends.
  EXPECT_EQ(script("echo x > late; sleep 20", {"--timeout", "500ms"}, options()).exit_status, 124);
  EXPECT_EQ(events({"--event", "files_changed"}).back()["data"]["first"].dump(), "[\"late\"]");
  EXPECT_EQ(script("echo x > killed; kill -9 $$", {}, options()).exit_status, 137);
  EXPECT_EQ(events({"--event", "files_changed"}).back()["data"]["first"].dump(), "[\"killed\"]");
}

TEST_F(Audit, NamesThatAreNotUtf8StayDistinct) {
  workspace.openToAll();
  const std::string make = "for b in 376 377; do echo x > \"$(printf \"a\\\\$b\\\\nb\")\"; done";
  EXPECT_EQ(script(make, {}, options()).exit_status, 0);
  auto names = events({"--event", "files_changed"}).back()["data"]["first"].get<std::vector<std::string>>();
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"$'a\\376\\nb'", "$'a\\377\\nb'"}));
}

TEST_F(Audit, EachCommandOfASessionRecordsTheFilesItChanged) {
  CONFORMS("R-AUDIT-6");
  const std::string id = caisson({"session", "create", "--workspace", ":none"}).out.substr(0, 100);
  const std::string session = id.substr(0, id.find('\n'));
  const auto change = [&](const std::string& command) {
    EXPECT_EQ(caisson({"session", "exec", session, "--", "sh", "-c", command}).exit_status, 0) << command;
  };
  change("echo x > first");
  change("true");
  change("mkdir d; echo x > d/second");
  std::vector<std::string> names;
  for (const auto& event : events({"--event", "files_changed"})) {
    EXPECT_EQ(event["sandbox"], session);
    names.push_back(event["data"]["first"].dump());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"[\"first\"]", "[\"d/second\"]"}));
  EXPECT_EQ(caisson({"session", "exec", session, "--background", "--", "sh", "-c", "echo x > behind"}).exit_status, 0);
  EXPECT_TRUE(eventually([&] {
    const auto all = events({"--event", "files_changed"});
    return all.back()["data"]["first"].dump() == "[\"behind\"]";
  })) << "a background command";
  // However the command ends.
  EXPECT_EQ(caisson({"session", "exec", session, "--timeout", "500ms", "--", "sh", "-c", "echo x > late; sleep 20"})
                .exit_status,
            124);
  EXPECT_EQ(events({"--event", "files_changed"}).back()["data"]["first"].dump(), "[\"late\"]");
  EXPECT_EQ(caisson({"session", "exec", session, "--", "sh", "-c", "echo x > killed; kill -9 $$"}).exit_status, 137);
  EXPECT_EQ(events({"--event", "files_changed"}).back()["data"]["first"].dump(), "[\"killed\"]");
  EXPECT_EQ(caisson({"session", "destroy", session}).exit_status, 0);
}

/// A requested path that climbs out is refused, and that is on record as a FILESYSTEM indicator.
TEST_F(Audit, APathThatLeavesTheWorkspaceIsAnIndicator) {
  CONFORMS("R-FILES-12", "R-SYSCALL-6");
  const std::string id = caisson({"session", "create"}).out;
  const std::string session = id.substr(0, id.find('\n'));
  EXPECT_NE(caisson({"session", "read", session, "absent"}).exit_status, 0);
  EXPECT_TRUE(events({"--event", "policy_violation"}).empty());
  workspace.write("file", "x");
  const std::string outside = "../../etc/passwd";
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"read", session, outside},
                                             {"read", session, "/workspace/../etc/passwd"},
                                             {"read", session, "a/../../etc/passwd"},
                                             {"write", session, outside},
                                             {"commit", session, outside},
                                             {"cp", session + ":" + outside, workspace / "copy"},
                                             {"cp", workspace / "file", session + ":" + outside}}) {
    std::vector<std::string> command{"session"};
    command.insert(command.end(), words.begin(), words.end());
    const std::size_t before = events({"--event", "policy_violation"}).size();
    const RunOutput refused = caisson(command);
    EXPECT_NE(refused.exit_status, 0) << words[0] << refused.describe();
    const auto found = events({"--event", "policy_violation"});
    ASSERT_EQ(found.size(), before + 1) << words[0] << refused.describe();
    EXPECT_EQ(found.back()["data"]["indicator"], "FILESYSTEM") << words[0];
    EXPECT_TRUE(contains(found.back()["data"]["path"], "../etc")) << words[0];
    EXPECT_EQ(found.back()["sandbox"], session) << words[0];
  }
  EXPECT_FALSE(exists(workspace / "copy"));
  EXPECT_EQ(caisson({"session", "destroy", session}).exit_status, 0);
}

TEST_F(Audit, AttemptsAtIoUringAreRecorded) {
  CONFORMS("R-SYSCALL-4");
  for (const char* level : {"full", "process"}) {
    const RunOutput output =
        run({"--json", "--level", level, "--ro", payloadPath()}, {payloadPath(), "call", "425"}, options());
    const auto blocked = events({"--event", "syscall_blocked"});
    ASSERT_FALSE(blocked.empty()) << output.describe();
    EXPECT_EQ(blocked.back()["data"]["syscall"], "io_uring_setup");
    EXPECT_EQ(blocked.back()["data"]["grade"], "LOW");
    EXPECT_EQ(blocked.back()["data"]["number"], 425);
    EXPECT_EQ(blocked.back()["data"]["arguments"].size(), 6U);
    EXPECT_GT(blocked.back()["data"]["syscall_pid"], 0);
    EXPECT_TRUE(contains(blocked.back()["data"]["program"], "payload"));
    EXPECT_EQ(blocked.back()["sandbox"], output.json()["sandbox_id"]);
  }
}

TEST_F(Audit, SessionsCountInTheStatistics) {
  CONFORMS("R-AUDIT-13", "R-AUDIT-14");
  const std::string id = caisson({"session", "create", "--workspace", ":none"}).out;
  const std::string session = id.substr(0, id.find('\n'));
  EXPECT_EQ(caisson({"stats", "--json"}).json()["sandboxes_created"], 1);
  EXPECT_EQ(caisson({"session", "exec", session, "--", "true"}).exit_status, 0);
  const auto stats = caisson({"stats", "--json"}).json();
  EXPECT_EQ(stats["sandboxes_created"], 1) << "a command does not count";
  EXPECT_NEAR(stats["created_per_second"]["last_minute"].get<double>() * 60, 1, 1e-6) << "sliding, not by the clock";
  EXPECT_EQ(stats["syscalls_blocked"], 0);
  EXPECT_NE(caisson({"session", "exec", session, "--", "unshare", "-r", "true"}).exit_status, 0);
  // The session's supervisor writes the figures a moment after its reply.
  const auto becomes = [&](const char* figure, int value) {
    return eventually([&] { return caisson({"stats", "--json"}).json()[figure] == value; });
  };
  EXPECT_TRUE(becomes("syscalls_blocked", 1));
  EXPECT_NE(caisson({"session", "read", session, "../x"}).exit_status, 0);
  EXPECT_TRUE(becomes("policy_violations", 1));
  EXPECT_EQ(caisson({"session", "destroy", session}).exit_status, 0);
  EXPECT_EQ(caisson({"stats", "--json"}).json()["lifetime_seconds"]["count"], 2) << "of its commands";
}

TEST_F(Audit, UsageAndEscapesOfSessionsCountInTheStatistics) {
  CONFORMS("R-AUDIT-14");
  const std::string id = caisson({"session", "create", "--workspace", ":none", "--ro", payloadPath()}).out;
  const std::string session = id.substr(0, id.find('\n'));
  const auto exec = [&](const std::vector<std::string>& verb) {
    std::vector<std::string> words{"session", "exec", session, "--", payloadPath()};
    words.insert(words.end(), verb.begin(), verb.end());
    return caisson(words).exit_status;
  };
  EXPECT_EQ(exec({"burn-tree", "0.2"}), 0);
  // The session's supervisor writes these figures while the client returns.
  EXPECT_TRUE(
      eventually([&] { return caisson({"stats", "--json"}).json()["cpu_seconds"]["sum"].get<double>() >= 0.18; }));
  EXPECT_EQ(caisson({"stats", "--json"}).json()["escape_attempts"], 0);
  EXPECT_EQ(exec({"call", std::to_string(SYS_bpf), "99"}), 125);
  EXPECT_TRUE(eventually([&] { return caisson({"stats", "--json"}).json()["escape_attempts"] == 1; }));
  EXPECT_EQ(caisson({"session", "destroy", session}).exit_status, 0);
}

TEST_F(Audit, BytesReadAndWrittenCountInTheStatistics) {
  CONFORMS("R-AUDIT-14");
  struct statfs status{};
  ASSERT_EQ(::statfs(workspace.path().c_str(), &status), 0);
  requireOrSkip(status.f_type != 0x01021994 && status.f_type != 0x794c7630, "the workspace is in memory");
  workspace.openToAll();
  const auto figures = [&] { return caisson({"stats", "--json"}).json(); };
  // The search for secrets reads nothing of a file with this ending.
  EXPECT_EQ(script("dd if=/dev/zero of=f.dat bs=1M count=8 conv=fsync status=none", {"--workspace", ".:rw"}, options())
                .exit_status,
            0);
  EXPECT_GE(figures()["written_bytes"].get<std::uint64_t>(), 8U << 20) << figures();
  const int file = ::open((workspace / "f.dat").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
  EXPECT_EQ(script("cat f.dat > /dev/null", {"--workspace", ".:ro"}, options()).exit_status, 0);
  EXPECT_GE(figures()["read_bytes"].get<std::uint64_t>(), 8U << 20) << figures();
}

TEST_F(Audit, StatisticsIncludeTheUsageOfAllRuns) {
  CONFORMS("R-AUDIT-14");
  const std::vector<std::string> burn{payloadPath(), "burn-tree", "0.2"};
  const std::vector<std::string> memory{payloadPath(), "take-anonymous", "80"};
  ASSERT_EQ(run({"--ro", payloadPath()}, burn, options()).exit_status, 0);
  ASSERT_EQ(run({"--ro", payloadPath()}, memory, options()).exit_status, 0);
  const auto stats = caisson({"stats", "--json"}).json();
  EXPECT_EQ(stats["cpu_seconds"]["count"], 2);
  EXPECT_GE(stats["cpu_seconds"]["sum"].get<double>(), 0.18);
  EXPECT_LT(stats["cpu_seconds"]["sum"].get<double>(), 4);
  EXPECT_EQ(stats["peak_memory_bytes"]["count"], 2);
  EXPECT_GE(stats["peak_memory_bytes"]["sum"].get<double>(), 80 << 20);
  EXPECT_LT(stats["peak_memory_bytes"]["sum"].get<double>(), 240 << 20);
}

TEST_F(Audit, IsWrittenBeforeTheProgramStarts) {
  CONFORMS("R-AUDIT-2");
  const BackgroundProgram program({caissonBinary(), "run", "--", "sleep", "20"}, options());
  EXPECT_TRUE(eventually(
      [&] { return exists(home_ / "audit/00000001.jsonl") && log().find("sleep 20") != std::string::npos; }));
  EXPECT_EQ(log().find("sandbox_exited"), std::string::npos);
}

/// The sandbox is built while its record is written; a blocked log shows that the payload waits for the record.
TEST_F(Audit, NoProgramStartsWhileItsRecordIsNotWritten) {
  CONFORMS("R-AUDIT-2");
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  ASSERT_EQ(::chmod(workspace.path().c_str(), 0777), 0);
  const std::string mark = workspace / "mark";
  for (const char* level : {"full", "process"}) {
    const int head = ::open((home_ / "audit/head").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_TRUE(eventually([&] { return ::flock(head, LOCK_EX | LOCK_NB) == 0; }));
    BackgroundProgram program({caissonBinary(), "run", "--level", level, "--workspace", workspace.path() + ":rw", "--",
                               "touch", level == std::string("full") ? "/workspace/mark" : mark},
                              options());
    sleepFor(milliseconds(500));
    EXPECT_FALSE(exists(mark)) << level << ": the program ran before it was on record";
    ::close(head);
    EXPECT_EQ(program.wait(seconds(20)), 0) << level;
    EXPECT_TRUE(exists(mark)) << level;
    ::unlink(mark.c_str());
  }
}

TEST_F(Audit, FailuresAndLimitsAreSeparateEvents) {
  CONFORMS("R-AUDIT-4", "R-AUDIT-9");
  EXPECT_EQ(run({"--timeout", "200ms"}, {"sh", "-c", "sleep 9"}, options()).exit_status, 124);
  EXPECT_EQ(run({}, {"no-such-program"}, options()).exit_status, 127);
  EXPECT_EQ(events({"--event", "sandbox_timeout"}).size(), 1U);
  EXPECT_EQ(events({"--event", "limit_exceeded"}).at(0)["data"]["limit"], "time");
  const auto errors = events({"--severity", "ERROR"});
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_EQ(errors[0]["event"], "sandbox_failed");
  // A severity includes the graver ones and none of the others.
  const auto warnings = events({"--severity", "WARN"});
  EXPECT_GT(warnings.size(), errors.size());
  EXPECT_LT(warnings.size(), events().size());
  for (const auto& event : warnings) EXPECT_NE(event["severity"], "INFO") << event;
  EXPECT_EQ(events({"--severity", "INFO"}).size(), events().size());
}

/// Every limit that ends a run is an event with its name.
TEST_F(Audit, EachLimitThatEndsARunIsAnEvent) {
  CONFORMS("R-AUDIT-4", "R-LIMIT-8");
  workspace.write("cpu.toml", "[resources]\ncpu_seconds = 0.3\n");
  workspace.write("file.toml", "[filesystem]\nmax_file_size = \"1M\"\n");
  workspace.write("disk.toml", "[filesystem]\nmax_total_size = \"20M\"\n");
  struct Case {
    std::vector<std::string> options, command;
    std::string limit;
  };
  const Case cases[] = {{{"--memory", "64M"}, {payloadPath(), "take-anonymous", "200"}, "memory"},
                        {{"--policy", "cpu.toml"}, {payloadPath(), "burn-tree", "2"}, "cpu"},
                        {{"--policy", "disk.toml"}, {payloadPath(), "fill-directory", "/workspace", "60"}, "disk"},
                        {{"--policy", "file.toml"}, {payloadPath(), "fill-file", "/workspace", "20"}, "file_size"}};
  for (Case each : cases) {
    each.options.insert(each.options.end(), {"--json", "--ro", payloadPath()});
    const RunOutput output = run(each.options, each.command, options());
    EXPECT_EQ(output.json()["limit"], each.limit) << output.describe();
    const auto reached = events({"--event", "limit_exceeded"});
    ASSERT_FALSE(reached.empty()) << each.limit << output.describe();
    EXPECT_EQ(reached.back()["data"]["limit"], each.limit);
    EXPECT_EQ(reached.back()["sandbox"], output.json()["sandbox_id"]);
  }
}

TEST_F(Audit, ShowFiltersByTimeSandboxEventAndSeverity) {
  CONFORMS("R-AUDIT-9");
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  const std::string first = events({"--event", "sandbox_created"}).at(0)["sandbox"];
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  EXPECT_EQ(events({"--sandbox", first}).size(), 4U);
  EXPECT_EQ(events({"--sandbox", first.substr(0, 12)}).size(), 4U);
  EXPECT_EQ(events({"--since", "1h"}).size(), 9U);
  EXPECT_EQ(events({"--since", "2100-01-01"}).size(), 0U);
  EXPECT_EQ(events({"--until", "2000-01-01T00:00"}).size(), 0U);
  EXPECT_EQ(events({"-n", "3"}).size(), 3U);
  EXPECT_EQ(events({"--severity", "WARN"}).size(), 0U);
  for (const std::vector<std::string>& bad : {std::vector<std::string>{"show", "--event", "nonsense"},
                                              {"show", "--since", "yesterday"},
                                              {"show", "--severity", "x"},
                                              {"show", "-n", "0"}}) {
    const RunOutput output = audit(bad);
    EXPECT_EQ(output.exit_status, 125) << bad.back();
    EXPECT_TRUE(output.err.starts_with("caisson: ")) << output.err;
  }
}

/// The payload can neither read nor write a state directory inside a shown tree: even in the first run, which creates
/// it, and regardless of which secrets the policy shows.
TEST_F(Audit, ThePayloadNeverSeesTheLog) {
  CONFORMS("R-AUDIT-19");
  ASSERT_EQ(::chmod(workspace.makeDir("sub").c_str(), 0777), 0);
  int place = 0;
  for (const std::vector<std::string>& shown : {std::vector<std::string>{"--workspace", ".:overlay"},
                                                {"--workspace", ".:ro"},
                                                {"--workspace", ".:rw"},
                                                {"--workspace", ".:rw", "--show-secrets"},
                                                {"--workspace", ":none", "--rw", workspace.path()},
                                                {"--level", "process", "--workspace", ".:rw"},
                                                {"--level", "process", "--workspace", ":none"}}) {
    const std::string name = "sub/home" + std::to_string(place++);
    RunOptions how = options();
    how.env["CAISSON_HOME"] = workspace / name;
    const std::string look = "sleep 0.1; for d in " + name + " " + (workspace / name) +
                             "; do ls -R $d; cat $d/audit/*; echo x >$d/audit/head; rm -rf $d/audit; done 2>/dev/null";
    for (const char* time : {"first", "second"}) {
      const RunOutput seen = run(shown, {"sh", "-c", look}, how);
      EXPECT_NE(seen.exit_status, 125) << time << seen.describe();
      EXPECT_FALSE(contains(seen.out, "jsonl")) << time << seen.describe();
      EXPECT_FALSE(contains(seen.out, "sandbox_")) << time << seen.describe();
      const RunOutput verified = runCaisson({"audit", "verify"}, how);
      EXPECT_EQ(verified.exit_status, 0) << time << testing::PrintToString(shown) << verified.describe();
    }
    const RunOutput named = run({"--workspace", ":none", "--ro", workspace / name + "/audit"}, {"true"}, how);
    EXPECT_EQ(named.exit_status, 125) << named.describe();
  }
}

TEST_F(Audit, CommandDeniedByTheRulesIsRecorded) {
  CONFORMS("R-AUDIT-4", "R-AUDIT-14");
  workspace.write("rules.toml", "extends = \"bash\"\ncommands.blocked_patterns = [\"forbidden\"]\n");
  EXPECT_EQ(run({"--policy", "rules.toml"}, {"echo", "forbidden"}, options()).exit_status, 125);
  const auto found = events({"--event", "policy_violation"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0]["data"]["rule"], "commands.blocked_patterns[0]");
  EXPECT_EQ(caisson({"stats", "--json"}).json()["policy_violations"], 1);
}

TEST_F(Audit, StatsCountOverProcesses) {
  CONFORMS("R-AUDIT-14");
  EXPECT_EQ(caisson({"stats"}).out, "Nothing has run yet.\n");
  for (int i = 0; i < 3; ++i) ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  ASSERT_EQ(run({"--timeout", "2s"}, {"sh", "-c", "unshare -r true; sleep 30"}, options()).exit_status, 124);
  const auto stats = caisson({"stats", "--json"}).json();
  EXPECT_EQ(stats["sandboxes_created"], 4);
  EXPECT_EQ(stats["timeouts"], 1);
  EXPECT_GE(stats["syscalls_blocked"], 1);
  EXPECT_EQ(stats["outcomes"]["exited"], 3);
  EXPECT_EQ(stats["outcomes"]["limit"], 1);
  EXPECT_EQ(stats["lifetime_seconds"]["count"], 4);
  EXPECT_GT(stats["created_per_second"]["last_hour"], 0.0);
  const std::string text = caisson({"stats", "--prometheus"}).out;
  EXPECT_TRUE(contains(text, "caisson_sandboxes_created_total 4\n")) << text;
  EXPECT_TRUE(contains(text, "caisson_sandbox_lifetime_seconds_bucket{le=\"+Inf\"} 4\n")) << text;
  const std::string page = caisson({"stats"}).out;
  EXPECT_TRUE(contains(page, "sandboxes created")) << page;
  EXPECT_TRUE(contains(page, "\u2588")) << page;
}

TEST_F(Audit, FollowPrintsWhatIsAdded) {
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  const std::string out = home_ / "followed";
  const BackgroundProgram follower({"sh", "-c", "exec \"$0\" audit show --follow > \"$1\"", caissonBinary(), out},
                                   options());
  EXPECT_TRUE(eventually([&] { return exists(out) && readFile(out).find("sandbox_destroyed") != std::string::npos; }));
  ASSERT_EQ(run({}, {"sh", "-c", "true # later"}, options()).exit_status, 0);
  EXPECT_TRUE(eventually([&] { return readFile(out).find("later") != std::string::npos; }));
}

}  // namespace
}  // namespace caisson::test
