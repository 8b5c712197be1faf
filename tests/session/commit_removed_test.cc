// What the host removed stays removed, unless the request says otherwise; what the session's own commits removed can be
// made again.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "functional/commit.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

class CommitRemoved : public CommitTest {
 protected:
  Session createLater(const char* tier = nullptr) {
    letFileTimesSettle();  // change times have the precision of the clock tick
    SessionOptions wanted = options();
    if (tier != nullptr) (void)wanted.policy.set("isolation.tier", tier);
    auto made = store->create(wanted);
    EXPECT_TRUE(made) << made.error().message();
    letFileTimesSettle();
    return *std::move(made);
  }
  void remove(const std::string& name) const { EXPECT_NE(std::filesystem::remove_all(workspace / name), 0U) << name; }
  static std::string conflictsOf(const CommitReport& report) {
    std::string text;
    for (const NotCommitted& one : report.conflicts) text += one.path + ": " + one.reason + "\n";
    return text;
  }
  void fill() const {
    for (const char* name : {"s/edited", "s/replaced", "s/again", "s/other", "d/e/f"}) workspace.write(name, "old\n");
  }
  static void work(Session& session) {
    output(session,
           "echo new > s/edited; echo new > s/tmp; mv s/tmp s/replaced; rm s/again; echo new > s/again; echo new > "
           "d/e/f; echo new > s/made");
  }
  static constexpr const char* kThere = ": it was removed there meanwhile\n";
};

TEST_F(CommitRemoved, WhatTheHostRemovedIsAConflictHoweverTheSessionChangedIt) {
  fill();
  Session session = createLater();
  work(session);
  for (const char* name : {"s/edited", "s/replaced", "s/again", "s/other", "d"}) remove(name);
  workspace.write("s/of_the_host", "host\n");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "s/made\n") << "an addition beside the host's work";
  EXPECT_EQ(conflictsOf(report), std::string("d") + kThere +
                                     "d/e: its directory was removed there meanwhile\nd/e/f: its " +
                                     "directory was removed there meanwhile\ns/again" + kThere + "s/edited" + kThere +
                                     "s/replaced" + kThere);
  EXPECT_FALSE(exists(workspace / "d"));
  const CommitReport settled = commit(session, {.ours = {"s/edited"}, .theirs = {"s/again", "d"}});
  EXPECT_EQ(applied(settled), "d\nd/e\nd/e/f\ns/again\n");
  EXPECT_EQ(settled.kept, std::vector<std::string>{"s/edited"});
  EXPECT_EQ(paths(settled.conflicts), "s/replaced\n");
  EXPECT_EQ(readFile(workspace / "d/e/f"), "new\n");
}

TEST_F(CommitRemoved, WhatTheHostRemovedIsAConflictInTheLandlockTier) {
  fill();
  Session session = createLater("landlock");
  work(session);
  for (const char* name : {"s/edited", "s/replaced", "s/again", "s/other"}) remove(name);
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "d/e/f\ns/made\n");
  EXPECT_EQ(conflictsOf(report), std::string("s/again") + kThere + "s/edited" + kThere + "s/replaced" + kThere);
  EXPECT_EQ(applied(commit(session, {.theirs = {"s"}})), "s/again\ns/edited\ns/replaced\n");
}

TEST_F(CommitRemoved, CommittedFileThatTheHostRemovedDoesNotComeBack) {
  fill();
  Session session = createLater();
  output(session, "echo new > s/made; mkdir pkg; echo new > pkg/f; echo new > s/edited");
  EXPECT_EQ(applied(commit(session)), "pkg\npkg/f\ns/edited\ns/made\n");
  for (const char* name : {"s/made", "pkg", "s/edited"}) remove(name);
  for (const char* change : {"echo new > s/other", "echo changed > s/made"}) {
    output(session, change);
    EXPECT_EQ(paths(commit(session).conflicts), "pkg\npkg/f\ns/edited\ns/made\n") << change;
    EXPECT_FALSE(exists(workspace / "s/made"));
  }
  EXPECT_EQ(readFile(workspace / "s/other"), "new\n");
  EXPECT_EQ(applied(commit(session, {.theirs = {"pkg", "s/made"}})), "pkg\npkg/f\ns/made\n");
  output(session, "echo more >> pkg/f");
  EXPECT_EQ(applied(commit(session, {.paths = {"pkg"}})), "pkg/f\n");
}

TEST_F(CommitRemoved, WhatTheSessionRemovedItselfIsMadeAgain) {
  fill();
  workspace.write("kind/x", "old\n");
  Session session = createLater();
  output(session, "echo new > s/made; echo new > d/made");
  EXPECT_EQ(applied(commit(session)), "d/made\ns/made\n");
  output(session, "rm s/made s/edited; rm -r d kind; echo file > kind");
  EXPECT_EQ(applied(commit(session)), "d\nkind\ns/edited\ns/made\n");
  output(session, "rm kind; mkdir -p kind d/e; for f in s/made s/edited d/made d/e/f kind/x; do echo again > $f; done");
  EXPECT_EQ(applied(commit(session)), "d\nd/e\nd/e/f\nd/made\nkind\nkind/x\ns/edited\ns/made\n");
  remove("s/edited");
  EXPECT_EQ(conflictsOf(commit(session)), std::string("s/edited") + kThere);
}

TEST_F(CommitRemoved, WhatAnUncommitRemovedIsCommittedAgain) {
  fill();
  Session session = createLater();
  output(session, "echo new > s/made; mkdir pkg; echo new > pkg/f; rm s/other");
  EXPECT_EQ(applied(commit(session)), "pkg\npkg/f\ns/made\ns/other\n");
  const auto undone = store->uncommit(session.id());
  ASSERT_TRUE(undone) << undone.error().message();
  EXPECT_EQ(applied(commit(session, {.paths = {"pkg", "s/made"}})), "pkg\npkg/f\ns/made\n");
  remove("s/other");  // which the uncommit had put back
  output(session, "echo new > s/other");
  EXPECT_EQ(conflictsOf(commit(session)), std::string("s/other") + kThere);
}

TEST_F(CommitRemoved, WhatAKilledCommitRemovedIsMadeAgain) {
  fill();
  Session session = createLater();
  output(session, "rm s/other; rm -r d");
  const pid_t child = ::fork();
  if (child == 0) {
    session::step_observer = [](const char* name) {
      if (std::string_view(name) == "commit: applied") ::kill(::getpid(), SIGKILL);
    };
    auto own = SessionStore::open(std::getenv("CAISSON_BIN"));
    if (auto opened = own ? own->find(session.id()) : fail(own.error())) (void)opened->commit({});
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  output(session, "mkdir -p d/e; echo again > d/e/f; echo again > s/other");
  EXPECT_EQ(applied(commit(session)), "d\nd/e\nd/e/f\ns/other\n");
}

TEST_F(CommitRemoved, ForkKnowsWhatWasThere) {
  fill();
  Session session = createLater();
  output(session, "echo new > s/tmp; mv s/tmp s/replaced");
  auto fork = session.fork({});
  ASSERT_TRUE(fork) << fork.error().message();
  remove("s/replaced");
  EXPECT_EQ(conflictsOf(commit(*fork)), std::string("s/replaced") + kThere);
}

/// As in a workspace that is too large for a whole record.
TEST_F(CommitRemoved, WithoutARecordOnlyADoubtIsAConflict) {
  fill();
  Session session = createLater();
  ASSERT_EQ(::truncate((home_path + "/sessions/" + session.id() + "/names").c_str(), 0), 0);
  output(session, "echo new > s/edited; echo new > s/made");
  remove("s/edited");
  workspace.write("s/of_the_host", "host\n");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "s/made\n");
  EXPECT_EQ(conflictsOf(report), "s/edited: it may have been removed there meanwhile\n");
}

}  // namespace
}  // namespace caisson::test
