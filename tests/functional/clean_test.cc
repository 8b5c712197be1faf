// `caisson clean`: removes what crashed runs left; with --all it stops everything that lives.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>

#include "functional/audit_fixture.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using Clean = AuditTest;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(Clean, OnlyCleanAllStopsLiveSandboxes) {
  CONFORMS("R-AUDIT-17");
  BackgroundProgram live({caissonBinary(), "run", "--", "sleep", "60"}, options());
  ASSERT_TRUE(eventually([&] { return exists(home_ / "audit/00000001.jsonl") && contains(log(), "sandbox_execute"); }));
  const std::string sandbox = events({"--event", "sandbox_execute"}).at(0)["sandbox"];
  const RunOutput plain = caisson({"clean"});
  EXPECT_EQ(plain.exit_status, 0) << plain.describe();
  // What killed runs of other tests left outside their state directories, such as control groups, is removed too.
  EXPECT_FALSE(contains(plain.out, sandbox)) << plain.out;
  EXPECT_TRUE(plain.out == "There was nothing to clean.\n" || plain.out.starts_with("removed ")) << plain.out;
  EXPECT_FALSE(live.wait(milliseconds(200)).has_value()) << "a run that lives was disturbed";
  const RunOutput all = caisson({"clean", "--all"});
  EXPECT_EQ(all.exit_status, 0) << all.describe();
  EXPECT_TRUE(contains(all.out, "removed live sandbox " + sandbox)) << all.out;
  EXPECT_TRUE(live.wait(seconds(5)).has_value());
  EXPECT_GE(events({"--event", "clean"}).size(), 1U);
  EXPECT_EQ(audit({"verify"}).exit_status, 0);
}

/// Leftovers of a killed caisson are removed and listed; a session that has not expired stays, until --all.
TEST_F(Clean, RemovesWhatCrashedRunsLeft) {
  CONFORMS("R-AUDIT-17");
  const std::string runs = home_.makeDir("runs", 0700);
  home_.makeDir("runs/cs-dead", 0700);
  home_.write("runs/cs-dead/lock", "");
  ASSERT_EQ(::symlink("/", (runs + "/cs-dead/host").c_str()), 0);
  home_.makeDir("verify-999999999-1", 0700);
  const RunOutput created = caisson({"session", "create", "--workspace", ":none"});
  ASSERT_EQ(created.exit_status, 0) << created.describe();
  const std::string session = created.out.substr(0, created.out.find('\n'));
  const RunOutput cleaned = caisson({"clean"});
  EXPECT_EQ(cleaned.exit_status, 0) << cleaned.describe();
  EXPECT_TRUE(contains(cleaned.out, "removed overlay store cs-dead\n")) << cleaned.out;
  EXPECT_TRUE(contains(cleaned.out, "removed directory verify-999999999-1\n")) << cleaned.out;
  EXPECT_FALSE(exists(runs + "/cs-dead"));
  EXPECT_TRUE(contains(caisson({"session", "list"}).out, session));
  const RunOutput all = caisson({"clean", "--all"});
  EXPECT_TRUE(contains(all.out, "removed session " + session)) << all.describe();
  EXPECT_FALSE(contains(caisson({"session", "list"}).out, session));
  EXPECT_FALSE(exists(home_ / "verify-999999999-1"));
}

/// Killed at work, with its changes on disk and a process in the background: `clean` removes them and their directory.
TEST_F(Clean, RemovesTheStoreOfAKilledRunAndEveryProcessOfASession) {
  CONFORMS("R-AUDIT-17", "R-FILES-18");
  const std::string marker = uniqueMarker();
  workspace.write("disk.toml", "[filesystem]\noverlay_store = \"disk\"\n");
  workspace.openToAll();
  {
    BackgroundProgram live({caissonBinary(), "run", "--policy", "disk.toml", "--", "bash", "-c",
                            "ln -s / root; echo x > file; exec -a " + marker + " sleep 300"},
                           options());
    ASSERT_TRUE(eventually([&] { return !processesNaming(marker).empty(); }));
    ASSERT_TRUE(eventually([&] { return !runProgram({"ls", "-A", home_ / "runs"}).out.empty(); }))
        << "no store on disk";
    live.signal(SIGKILL);
    ASSERT_TRUE(live.wait(seconds(5)).has_value());
  }
  EXPECT_TRUE(eventually([&] { return processesNaming(marker).empty(); })) << "the payload outlived caisson";
  std::string cleaned;  // the kernel may still be ending what held the store
  EXPECT_TRUE(eventually([&] {
    cleaned += caisson({"clean"}).out;
    return runProgram({"ls", "-A", home_ / "runs"}).out.empty();
  })) << cleaned;
  EXPECT_TRUE(contains(cleaned, "removed overlay store cs-")) << cleaned;

  const RunOutput created = caisson({"session", "create"});
  const std::string session = created.out.substr(0, created.out.find('\n'));
  ASSERT_EQ(
      caisson({"session", "exec", session, "--background", "--", "bash", "-c", "exec -a " + marker + " sleep 300"})
          .exit_status,
      0);
  ASSERT_TRUE(eventually([&] { return !processesNaming(marker).empty(); }));
  EXPECT_EQ(caisson({"clean", "--all"}).exit_status, 0);
  EXPECT_TRUE(eventually([&] { return processesNaming(marker).empty(); }));
  for (const char* directory : {"sessions/", "stores/"})
    EXPECT_FALSE(exists(home_ / (directory + session))) << directory;
}

}  // namespace
}  // namespace caisson::test
