// The log itself: every change is found, crashes and a full disk lose nothing, and without it nothing runs.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "functional/audit_fixture.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;

class AuditLogFiles : public AuditTest {};

/// Processes that sync the log in `directory`.
std::vector<std::string> syncersOf(const std::string& directory) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string process = entry.path();
    if (readFile(process + "/comm") != "caisson-audit\n") continue;
    std::error_code gone;
    if (std::filesystem::read_symlink(process + "/fd/0", gone) == directory) found.push_back(process);
  }
  return found;
}

/// Every user of the host can read a command line, and the sync process outlives the run that forked it.
TEST_F(AuditLogFiles, SyncProcessShowsNothingOfTheRunThatStartedIt) {
  RunOptions how = options();
  how.env["SECRET_OF_THE_CALLER"] = "secret-in-a-variable";
  const std::string padding(20'000, 'x');  // more than one page
  BackgroundProgram program({caissonBinary(), "run", "--", "sh", "-c", "sleep 1 # secret-in-an-argument", padding},
                            how);
  std::string command_line, environment;
  ASSERT_TRUE(eventually([&] {
    for (const std::string& process : syncersOf(home_ / "audit")) {
      command_line = readFile(process + "/cmdline");
      environment = readFile(process + "/environ");
    }
    return !command_line.empty();
  }));
  EXPECT_EQ(std::string(command_line.c_str()), "caisson-audit");
  EXPECT_EQ(command_line.find_first_not_of('\0', std::string_view("caisson-audit").size()), std::string::npos);
  EXPECT_EQ(environment.find_first_not_of('\0'), std::string::npos);
  EXPECT_EQ(program.wait(seconds(20)), 0);
  EXPECT_TRUE(eventually([&] { return syncersOf(home_ / "audit").empty(); })) << "it still does its work, and ends";
  EXPECT_EQ(audit({"verify"}).exit_status, 0);
}

TEST_F(AuditLogFiles, VerifySaysWhereTheLogWasChanged) {
  CONFORMS("R-AUDIT-10");
  for (int i = 0; i < 3; ++i) ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  const RunOutput whole = audit({"verify", "--json"});
  ASSERT_EQ(whole.exit_status, 0) << whole.describe();
  const std::string anchor = whole.json()["head"];
  EXPECT_EQ(audit({"verify", "--anchor", anchor}).exit_status, 0);
  std::string text = log();
  const std::size_t at = text.find("\"exit_code\":0");
  ASSERT_NE(at, std::string::npos);
  text[at + 12] = '1';
  std::ofstream(home_ / "audit/00000001.jsonl", std::ios::trunc) << text;
  const RunOutput changed = audit({"verify"});
  EXPECT_EQ(changed.exit_status, 1);
  EXPECT_NE(changed.out.find("00000001.jsonl:4: line 4 was changed"), std::string::npos) << changed.out;
}

/// Each way to change the log, and the words that report it.
TEST_F(AuditLogFiles, VerifyFindsLinesThatWereDeletedMovedOrCut) {
  CONFORMS("R-AUDIT-10");
  for (int i = 0; i < 3; ++i) ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  const std::string file = home_ / "audit/00000001.jsonl";
  std::vector<std::string> lines;
  std::istringstream whole(log());
  for (std::string line; std::getline(whole, line);) lines.push_back(line + "\n");
  ASSERT_GT(lines.size(), 6U);
  const auto findingFor = [&](const std::vector<std::string>& changed) {
    std::ofstream out(file, std::ios::trunc);
    for (const std::string& line : changed) out << line;
    out.close();
    const RunOutput verified = audit({"verify"});
    EXPECT_EQ(verified.exit_status, 1) << verified.describe();
    return verified.out;
  };
  std::vector<std::string> deleted = lines, moved = lines, cut = lines, forged = lines;
  deleted.erase(deleted.begin() + 2);
  EXPECT_TRUE(contains(findingFor(deleted), "lines 3 to 3 are missing")) << findingFor(deleted);
  std::swap(moved[1], moved[2]);
  EXPECT_TRUE(contains(findingFor(moved), "it was copied or moved")) << findingFor(moved);
  cut.pop_back();
  EXPECT_TRUE(contains(findingFor(cut), "its tail was cut off")) << findingFor(cut);
  forged[3] = R"({"seq":4,"event":"sandbox_created"})"
              "\n";
  EXPECT_TRUE(contains(findingFor(forged), "not a line of the log")) << findingFor(forged);
  ASSERT_EQ(::unlink(file.c_str()), 0);
  const RunOutput missing = audit({"verify"});
  EXPECT_EQ(missing.exit_status, 1);
  EXPECT_TRUE(contains(missing.out, "missing")) << missing.describe();
}

/// A writer writes complete lines of the chain and dies within one at most.
TEST_F(AuditLogFiles, VerifyFindsACompleteLineThatWasAdded) {
  CONFORMS("R-AUDIT-10");
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  const std::string whole = log();
  const std::string last = whole.substr(whole.rfind('\n', whole.size() - 2) + 1);
  const auto verifyWith = [&](const std::string& added) {
    std::ofstream(home_ / "audit/00000001.jsonl", std::ios::trunc) << whole << added;
    return audit({"verify"});
  };
  for (const std::string& added : {std::string(R"({"seq":99,"event":"approval_granted"})"
                                               "\n"),
                                   last, std::string("\n"), last.substr(0, 40) + "\n" + last.substr(0, 40)}) {
    const RunOutput found = verifyWith(added);
    EXPECT_EQ(found.exit_status, 1) << added << found.describe();
    EXPECT_TRUE(contains(found.out, "it was added or changed")) << found.describe();
  }
  const RunOutput incomplete = verifyWith(last.substr(0, last.size() - 1));
  EXPECT_EQ(incomplete.exit_status, 0) << incomplete.describe();
  EXPECT_TRUE(contains(incomplete.out, "note: a writer died")) << incomplete.describe();
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  EXPECT_EQ(audit({"verify"}).exit_status, 0) << "the next writer truncates it";
}

TEST_F(AuditLogFiles, VerifyFindsAKeyFileOfTheWrongForm) {
  CONFORMS("R-AUDIT-10");
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  const std::string file = home_ / "audit/key-00000001";
  const std::string key = readFile(file);
  ASSERT_EQ(key.size(), 65U);
  for (const std::string& text : {std::string(), std::string(32, '\x7f'), key.substr(0, 60), key + "0\n"}) {
    std::ofstream(file, std::ios::trunc) << text;
    const RunOutput found = audit({"verify"});
    EXPECT_EQ(found.exit_status, 1) << found.describe();
    EXPECT_TRUE(contains(found.out, "key-00000001: not a key")) << found.describe();
  }
  ASSERT_EQ(::unlink(file.c_str()), 0);
  EXPECT_EQ(audit({"verify"}).exit_status, 0) << "it may be kept elsewhere";
}

TEST_F(AuditLogFiles, VerifyExplainsAMalformedAnchorOrKey) {
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  workspace.write("text", "not an anchor\n");
  for (const char* anchor : {"19:00", "0:00", "7", "text", "."}) {
    const RunOutput output = audit({"verify", "--anchor", anchor});
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_TRUE(contains(output.err, anchor)) << output.describe();
    EXPECT_TRUE(contains(output.err, "SEQ:HASH")) << output.describe();
    EXPECT_FALSE(contains(output.err, "policy")) << output.describe();
  }
  for (const char* key : {"nowhere", "text", "."}) {
    const RunOutput output = audit({"verify", "--key", key});
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_FALSE(contains(output.err, "policy")) << output.describe();
  }
}

/// An older copy of everything is whole in itself; only a head that was kept elsewhere shows it.
TEST_F(AuditLogFiles, AnExportedHeadShowsAnOlderCopyOfTheLog) {
  CONFORMS("R-AUDIT-10");
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  ASSERT_TRUE(eventually([&] { return syncersOf(home_ / "audit").empty(); }));
  const std::string copy = home_ / "copy";
  std::filesystem::copy(home_ / "audit", copy, std::filesystem::copy_options::recursive);
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  const std::string anchor = audit({"verify", "--json"}).json()["head"];
  EXPECT_EQ(audit({"verify", "--anchor", anchor}).exit_status, 0);
  ASSERT_TRUE(eventually([&] { return syncersOf(home_ / "audit").empty(); }));
  ASSERT_EQ(::rename((home_ / "audit").c_str(), (home_ / "newer").c_str()), 0);
  ASSERT_EQ(::rename(copy.c_str(), (home_ / "audit").c_str()), 0);
  const RunOutput alone = audit({"verify"});
  EXPECT_EQ(alone.exit_status, 0) << alone.describe();
  const RunOutput anchored = audit({"verify", "--anchor", anchor});
  EXPECT_EQ(anchored.exit_status, 1) << anchored.describe();
  EXPECT_TRUE(contains(anchored.out, "is not in the log")) << anchored.describe();
}

/// U1: on a full disk nothing runs unseen, and the log stays whole. The disk is a small one, in a private mount
/// namespace.
TEST_F(AuditLogFiles, AFullDiskStopsNewRuns) {
  CONFORMS("R-AUDIT-2");
  workspace.openToAll();
  const std::string script =
      R"(mount -t tmpfs -o size=512k none "$1" && export CAISSON_HOME="$1/state" && cd "$2" || exit 77
"$0" run -q --workspace .:rw -- touch before || exit 1
head -c 2M /dev/zero > "$1/fill" 2> /dev/null
for i in 1 2 3 4 5 6 7 8 9; do "$0" run -q --workspace .:rw -- touch mark-$i || { echo refused $?; break; }; done
test -e mark-$i && echo "ran without a record"
rm "$1/fill"; "$0" run -q --workspace .:rw -- touch after && "$0" audit verify > /dev/null && echo whole)";
  std::vector<std::string> words{"unshare", "--mount"};
  if (!runsAsRoot()) words.insert(words.end(), {"--user", "--map-current-user", "--keep-caps"});
  words.insert(words.end(), {"sh", "-c", script, caissonBinary(), home_.path(), workspace.path()});
  const RunOutput output = runProgram(words);
  requireOrSkip(output.exit_status != 77, "no mount in a namespace here: " + output.describe());
  EXPECT_EQ(output.out, "refused 125\nwhole\n") << output.describe();
  EXPECT_TRUE(contains(output.err, "nothing runs unseen")) << output.describe();
  EXPECT_TRUE(exists(workspace / "before") && exists(workspace / "after"));
}

/// The payload would create a file in the workspace; it must not have run.
TEST_F(AuditLogFiles, NothingRunsWithoutALog) {
  CONFORMS("R-AUDIT-2");
  const auto expectRefusal = [&](const std::string& home, const std::string& words) {
    RunOptions how = options();
    how.env["CAISSON_HOME"] = home;
    const RunOutput output = run({"--workspace", ".:rw"}, {"touch", "mark"}, how);
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_NE(output.err.find(words), std::string::npos) << output.err;
    EXPECT_FALSE(exists(workspace / "mark")) << "it ran unseen";
  };
  const TempDir other;
  other.write("file", "");
  expectRefusal(other / "file", "CAISSON_HOME");
  other.makeDir("real", 0700);
  other.makeDir("linked", 0700);
  ASSERT_EQ(::symlink((other / "real").c_str(), (other / "linked/audit").c_str()), 0);
  expectRefusal(other / "linked", "link");
  other.makeDir("open", 0700);
  other.makeDir("open/audit", 0777);
  ASSERT_EQ(::chmod((other / "open/audit").c_str(), 0777), 0);
  expectRefusal(other / "open", "others may write");
  other.makeDir("odd/audit/head", 0700);
  ASSERT_EQ(::chmod((other / "odd/audit").c_str(), 0700), 0);
  expectRefusal(other / "odd", "directory");
  if (!runsAsRoot()) expectRefusal(other.makeDir("locked", 0500), "CAISSON_HOME");
  expectRefusal(workspace.path(), "outside of it");  // the workspace is the state directory
}

TEST_F(AuditLogFiles, ALimitOnFileSizesIsARefusalNotACrash) {
  if (kThreadSanitizer) GTEST_SKIP() << "a program built with ThreadSanitizer cannot start without writing a file";
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  const auto before = std::chrono::steady_clock::now();
  const RunOutput output = runProgram(
      {"sh", "-c", "ulimit -f 0; exec \"$0\" run --workspace .:rw -- touch mark", caissonBinary()}, options());
  EXPECT_EQ(output.exit_status, 125) << output.describe();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(9)) << "it does not wait for its lock";
  EXPECT_FALSE(exists(workspace / "mark"));
  EXPECT_EQ(audit({"verify"}).exit_status, 0);
}

/// Several processes, killed at random moments: everything that ran is recorded, and the chain is valid.
TEST_F(AuditLogFiles, KillingWritersAtAnyMomentLosesNothing) {
  CONFORMS("R-AUDIT-18");
  const int rounds = 50 * stress();
  constexpr int kWorkers = 4;
  ASSERT_EQ(::chmod(workspace.path().c_str(), 0777), 0);
  auto one = microseconds::max();  // the shortest of a few: all delays below follow from it
  for (int i = 0; i < 5; ++i) {
    const auto before = std::chrono::steady_clock::now();
    ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
    one = std::min(one, std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - before));
  }
  // All of them run at once: some finish, some only start.
  const int longest = static_cast<int>(std::max(microseconds(25'000), 2 * kWorkers * one).count());
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      std::mt19937 random(static_cast<unsigned>(getpid() * 31 + worker));
      std::uniform_int_distribution<int> delay(0, longest);
      for (int round = 0; round < rounds; ++round) {
        const std::string mark = "mark-" + std::to_string(worker) + "-" + std::to_string(round) + "-";
        BackgroundProgram program({caissonBinary(), "run", "--quiet", "--workspace", ".:rw", "--", "touch", mark},
                                  options());
        std::this_thread::sleep_for(microseconds(delay(random)));
        program.signal(SIGKILL);
        program.wait(seconds(20));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  const RunOutput left = audit({"verify"});
  EXPECT_EQ(left.exit_status, 0) << "what a dead writer leaves is not a finding: " << left.describe();
  ASSERT_EQ(run({}, {"true"}, options()).exit_status, 0);
  const RunOutput verified = audit({"verify"});
  EXPECT_EQ(verified.exit_status, 0) << verified.describe();
  const std::string record = audit({"show"}).out;
  int ran = 0;
  for (int worker = 0; worker < kWorkers; ++worker) {
    for (int round = 0; round < rounds; ++round) {
      const std::string mark = "mark-" + std::to_string(worker) + "-" + std::to_string(round) + "-";
      if (!exists(workspace / mark)) continue;
      ++ran;
      EXPECT_NE(record.find("touch " + mark), std::string::npos) << mark << " ran and is not on record";
    }
  }
  EXPECT_GT(ran, 0);
  RecordProperty("ran", ran);
}

}  // namespace
}  // namespace caisson::test
