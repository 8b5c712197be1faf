// Links are judged in the tree that a commit would leave, by where they really lead.
#include <sys/stat.h>
#include <unistd.h>

#include "functional/commit.h"

namespace caisson::test {
namespace {

class CommitLinks : public CommitTest {};

TEST_F(CommitLinks, LinkThroughALinkIsResolvedInTheResult) {
  Session session = create();
  output(session,
         "mkdir -p s d; ln -s .. s/u; ln -s s/u/../.bashrc todo.md; ln -s missing/../../x bad; ln -s missing/x half; "
         "ln -s loop2 loop; ln -s loop loop2; ln -s /etc/passwd abs; ln -s ../.. d/out; ln -s d/../f turn; "
         "echo f > f; ln -s f good; ln -s ../f d/up; ln -s gone dangling; ln -s d/up through; ln -s d dir; "
         "ln -s dir/up more");
  const CommitReport report = commit(session);
  for (const char* held : {"todo.md", "bad", "half", "loop", "abs", "d/out", "turn"}) {
    EXPECT_TRUE(isHeld(report, held)) << held;
    struct stat status{};
    EXPECT_NE(::lstat((workspace / held).c_str(), &status), 0) << held;
  }
  for (const char* passed : {"good", "d/up", "dangling", "through", "dir", "more", "s/u"}) {
    EXPECT_FALSE(isHeld(report, passed)) << passed;
    struct stat status{};
    EXPECT_EQ(::lstat((workspace / passed).c_str(), &status), 0) << passed;
  }
  EXPECT_EQ(readFile(workspace / "more"), "f\n");
}

TEST_F(CommitLinks, LinkThroughALinkOfTheHostIsHeld) {
  const TempDir elsewhere;
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), (workspace / "away").c_str()), 0);
  Session session = create();
  output(session, "ln -s away/file through; ln -s away whole");
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.held), "through\nwhole\n");
}

TEST_F(CommitLinks, LinkIsJudgedByWhatIsCommittedNotByTheSession) {
  Session session = create();
  output(session, "mkdir d; ln -s .. d/up; ln -s d/up/x chosen; echo x > x");
  const CommitReport report = commit(session, {.paths = {"x", "d"}});
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(applied(commit(session)), "chosen\n") << "its way is there now";
}

TEST_F(CommitLinks, ExchangedLinkNeverArrives) {
  const TempDir outside;
  workspace.write("f", "old\n");
  Session session = create();
  output(session, "printf 'good\\n' > f; ln -s ../../../../etc l");
  auto started = session.start({.command = {"python3", "-c",
                                            "import ctypes\n"
                                            "c = ctypes.CDLL(None)\n"
                                            "while True: c.renameat2(-100, b'f', -100, b'l', 2)\n"}});
  ASSERT_TRUE(started) << started.error().message();
  for (int round = 0; round < 60; ++round) {
    const auto report = session.commit();
    ASSERT_TRUE(report) << report.error().message();
    for (const char* name : {"f", "l"}) {
      struct stat status{};
      if (::lstat((workspace / name).c_str(), &status) != 0) continue;
      ASSERT_TRUE(S_ISREG(status.st_mode)) << "an outward link arrived as " << name << " in round " << round;
      const std::string text = readFile(workspace / name);
      ASSERT_TRUE(text == "good\n" || text == "old\n") << text;
    }
  }
  EXPECT_TRUE(session.stop(*started, 0));
}

}  // namespace
}  // namespace caisson::test
