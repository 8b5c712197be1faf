// What a commit and its undoing do to the permissions of the host: nothing that is not shown, nothing that was not
// chosen.
#include <sys/stat.h>

#include "functional/commit.h"

namespace caisson::test {
namespace {

class CommitAccess : public CommitTest {
 protected:
  Session createLater() {
    sleepFor(std::chrono::milliseconds(30));  // change times have the precision of the clock tick
    Session session = create();
    sleepFor(std::chrono::milliseconds(30));
    return session;
  }
  void mode(const std::string& name, mode_t bits) const {
    ASSERT_EQ(::chmod((workspace / name).c_str(), bits), 0) << name;
  }
};

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
