// What a commit and its undoing do to the permissions of the host: nothing that is not shown, nothing that was not
// chosen.
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <functional>
#include <string_view>
#include <utility>

#include "functional/commit.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

constexpr const char* kListOfADirectory = "system.posix_acl_access";
std::function<void()> give_list_on_the_host;

class CommitAccess : public CommitTest {
 protected:
  Session createLater() {
    letFileTimesSettle();  // change times have the precision of the clock tick
    Session session = create();
    letFileTimesSettle();
    return session;
  }
  void mode(const std::string& name, mode_t bits) const {
    ASSERT_EQ(::chmod((workspace / name).c_str(), bits), 0) << name;
  }
  /// Gives a user all rights, which the mask takes away again: a chmod that changes the mask brings them back.
  static std::string maskedList() { return accessList(7, 7, 0, 0, ::geteuid()); }
  static bool giveMaskedList(const std::string& path) {
    const std::string list = maskedList();
    return ::setxattr(path.c_str(), kListOfADirectory, list.data(), list.size(), 0) == 0;
  }
  void expectMaskedList(const std::string& name) const {
    char value[256];
    const ssize_t size = ::getxattr((workspace / name).c_str(), kListOfADirectory, value, sizeof(value));
    ASSERT_GT(size, 0);
    EXPECT_EQ(std::string(value, static_cast<std::size_t>(size)), maskedList()) << name;
    EXPECT_EQ(modeOf(workspace / name), 0700U) << name;
  }
};

TEST_F(CommitAccess, ListThatADirectoryGotSinceTheCommitIsNotWidenedByUncommit) {
  workspace.write("d/x", "x\n");
  mode("d", 0755);
  Session session = createLater();
  output(session, "chmod 700 d");
  EXPECT_EQ(applied(commit(session)), "d\n");
  requireOrSkip(giveMaskedList(workspace / "d"), "no access lists on this file system");
  if (IsSkipped()) return;
  const auto undone = store->uncommit(session.id());
  ASSERT_TRUE(undone) << undone.error().message();
  EXPECT_EQ(paths(undone->conflicts), "d\n");
  expectMaskedList("d");
}

TEST_F(CommitAccess, UncommitGivesADirectoryItsModeBack) {
  workspace.write("d/x", "x\n");
  requireOrSkip(giveMaskedList(workspace / "d"), "no access lists on this file system");
  if (IsSkipped()) return;
  Session session = createLater();
  output(session, "chmod 755 d");
  EXPECT_EQ(applied(commit(session, {.paths = {"d"}})), "d\n");
  EXPECT_EQ(modeOf(workspace / "d"), 0755U);
  const auto undone = store->uncommit(session.id());
  ASSERT_TRUE(undone) << undone.error().message();
  EXPECT_TRUE(undone->complete());
  expectMaskedList("d");
}

TEST_F(CommitAccess, ListThatADirectoryGotSinceTheReviewIsAConflict) {
  workspace.write("d/x", "x\n");
  mode("d", 0700);
  requireOrSkip(giveMaskedList(workspace.makeDir("probe")), "no access lists on this file system");
  if (IsSkipped()) return;
  Session session = createLater();
  output(session, "chmod 755 d; echo x > other");
  const std::string reviewed = commit(session, {.paths = {"d"}, .dry_run = true}).digest;
  give_list_on_the_host = [&] { EXPECT_TRUE(giveMaskedList(workspace / "d")); };
  session::step_observer = [](const char* name) {
    if (std::string_view(name) == "commit: journal written" && give_list_on_the_host) {
      std::exchange(give_list_on_the_host, {})();
    }
  };
  EXPECT_FALSE(session.commit({.paths = {"d"}, .expect = reviewed})) << "it changes between the plan and the change";
  session::step_observer = nullptr;
  expectMaskedList("d");
  EXPECT_FALSE(session.commit({.paths = {"d"}, .expect = reviewed})) << "not what was reviewed";
  const CommitReport report = commit(session, {.paths = {"d", "other"}});
  EXPECT_EQ(paths(report.conflicts), "d\n");
  EXPECT_EQ(applied(report), "other\n");
  EXPECT_EQ(paths(commit(session, {.paths = {"d"}}).conflicts), "d\n") << "still, after a commit";
  expectMaskedList("d");
}

TEST_F(CommitAccess, ExecutingAFileThatOneCannotReadNeedsThePathItself) {
  for (const char* name : {"tool", "script", "both"}) workspace.write(name, "old\n");
  mode("tool", 0700);
  mode("script", 0644);
  mode("both", 0640);
  Session session = createLater();
  output(session, "chmod 711 tool; chmod 755 script; echo new > both; chmod 751 both");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "both\nscript\n");
  EXPECT_EQ(paths(report.held), "both\ntool\n");
  EXPECT_EQ(modeOf(workspace / "tool"), 0700U);
  EXPECT_EQ(modeOf(workspace / "script"), 0755U);
  EXPECT_EQ(modeOf(workspace / "both"), 0750U);
  EXPECT_EQ(applied(commit(session, {.paths = {"tool"}})), "tool\n");
  EXPECT_EQ(modeOf(workspace / "tool"), 0711U);
}

TEST_F(CommitAccess, CopyDoesNotMakeAFileExecutableForThoseWhoCannotReadIt) {
  for (const char* name : {"t", "r"}) workspace.write(name, "host\n");
  mode("t", 0600);
  mode("r", 0640);
  Session session = createLater();
  output(session, "mkdir o; echo x > o/t; echo x > o/r; chmod 755 o/t o/r");
  for (const char* name : {"t", "r"}) {
    EXPECT_EQ(cli({"cp", session.id() + ":o/" + name, workspace / name}).exit_status, 0) << name;
  }
  EXPECT_EQ(readFile(workspace / "t"), "x\n");
  EXPECT_EQ(modeOf(workspace / "t"), 0700U);
  EXPECT_EQ(modeOf(workspace / "r"), 0750U);
}

TEST_F(CommitAccess, DirectoryOnTheWayKeepsItsPermissions) {
  for (const char* name : {"d/e/g", "closed/x"}) workspace.write(name, "old\n");
  for (const char* name : {"d", "d/e"}) mode(name, 0755);
  mode("closed", 0555);
  Session session = createLater();
  output(session, "chmod 700 d d/e; echo new > d/e/g; chmod 755 closed; echo new > closed/n; mkdir m; echo x > m/x");
  EXPECT_EQ(applied(commit(session, {.paths = {"d/e/g"}})), "d/e/g\n");
  EXPECT_EQ(modeOf(workspace / "d"), 0755U);
  EXPECT_EQ(modeOf(workspace / "d/e"), 0755U);
  EXPECT_EQ(applied(commit(session, {.paths = {"m/x"}})), "m\nm/x\n") << "it is not there yet";
  EXPECT_EQ(applied(commit(session, {.paths = {"closed/n"}})), "closed\nclosed/n\n") << "nothing can be written there";
  EXPECT_EQ(applied(commit(session, {.paths = {"d"}})), "d\nd/e\n");
  EXPECT_EQ(modeOf(workspace / "d/e"), 0700U);
}

}  // namespace
}  // namespace caisson::test
