// Checkpoints, restores, forks and differences.
#include "functional/session.h"
#include "support/conforms.h"

#include <sys/stat.h>

namespace caisson::test {
namespace {

class SessionLayers : public SessionTest {
 protected:
  static std::string changes(Session& session, std::string_view since = {}) {
    const auto list = session.diff(since);
    EXPECT_TRUE(list) << list.error().message();
    std::string text;
    if (!list) return text;
    for (const Change& change : *list) {
      text += (change.kind == ChangeKind::added     ? "A "
               : change.kind == ChangeKind::deleted ? "D "
                                                    : "M ") +
              change.path;
      text += change.type == "directory" ? "/\n" : "\n";
    }
    return text;
  }
};

TEST_F(SessionLayers, RestoreOfACheckpointRestoresEverything) {
  CONFORMS("R-SESSION-16");
  workspace.write("a", "real\n");
  workspace.write("dir/x", "x\n");
  Session session = create();
  output(session, "echo 1 > a; rm -r dir; mkdir new; echo n > new/n");
  const auto first = session.checkpoint("first");
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(output(session, "cat a; ls; cat new/n"), "1\na\nnew\nn\n");
  output(session, "echo 2 > a; rm -r new; mkdir dir; echo y > dir/y");
  EXPECT_EQ(output(session, "cat a; ls; ls dir"), "2\na\ndir\ny\n");
  const auto back = session.restore("first");
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(output(session, "cat a; ls; cat new/n"), "1\na\nnew\nn\n");
  ASSERT_TRUE(session.restore("begin"));
  EXPECT_EQ(output(session, "cat a; ls; ls dir"), "real\na\ndir\nx\n");
  ASSERT_TRUE(session.restore("first"));
  EXPECT_EQ(output(session, "cat a"), "1\n");
  EXPECT_EQ(readFile(workspace / "a"), "real\n");
}

TEST_F(SessionLayers, AreRefusedWhileProcessesRunUnlessTheyMayBeStopped) {
  Session session = create();
  const auto exec = session.start({.command = {"sleep", "1000"}});
  ASSERT_TRUE(exec);
  const auto refused = session.checkpoint("busy");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys_errno, EBUSY);
  EXPECT_TRUE(session.status(*exec)->running);
  EXPECT_FALSE(session.fork());
  const auto made = session.checkpoint("stopped", WhenBusy::stop);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_FALSE(session.status(*exec)->running);
  EXPECT_EQ(output(session, "echo on"), "on\n");
}

TEST_F(SessionLayers, ForksAreIndependent) {
  CONFORMS("R-SESSION-16");
  workspace.write("a", "real\n");
  Session session = create();
  output(session, "echo shared > s; rm a");
  auto other = session.fork({.name = "other"});
  ASSERT_TRUE(other) << other.error().message();
  output(session, "echo mine > s; echo 1 > only-first");
  output(*other, "cat s >> s2; echo theirs > s; echo back > a");
  EXPECT_EQ(output(session, "cat s; ls"), "mine\nonly-first\ns\n");
  EXPECT_EQ(output(*other, "cat s s2 a; ls"), "theirs\nshared\nback\na\ns\ns2\n");
  ASSERT_TRUE(session.destroy());
  EXPECT_EQ(output(*other, "cat s2"), "shared\n") << "the shared layer outlives the session that made it";
  ASSERT_TRUE(other->checkpoint("c"));
  ASSERT_TRUE(other->restore("begin"));
  EXPECT_EQ(output(*other, "cat a; ls"), "real\na\n");
}

TEST_F(SessionLayers, DiffShowsTheVisibleChanges) {
  CONFORMS("R-SESSION-16");
  workspace.write("same", "same\n");
  workspace.write("mode", "m\n", 0644);
  workspace.write("gone", "g\n");
  workspace.write("dir/a", "a\n");
  workspace.write("dir/b", "b\n");
  workspace.write("replaced/old", "o\n");
  workspace.write("kind", "file\n");
  Session session = create();
  EXPECT_EQ(changes(session), "");
  output(session,
         "touch same; cat same > t; cat t > same; rm t; chmod 755 mode; rm gone; echo more >> dir/a; rm dir/b; "
         "rm -r replaced; mkdir replaced; echo n > replaced/new; rm kind; mkdir kind; ln -s same link; mkdir empty");
  EXPECT_EQ(changes(session),
            "M dir/a\nD dir/b\nA empty/\nD gone\nM kind/\nA link\nM mode\nA replaced/new\nD replaced/old\n");
  ASSERT_TRUE(session.checkpoint("one"));
  EXPECT_EQ(changes(session, "one"), "");
  output(session, "echo g > gone; rm -r replaced; echo x >> dir/a");
  EXPECT_EQ(changes(session, "one"), "M dir/a\nA gone\nD replaced/\n");
  EXPECT_EQ(changes(session), "M dir/a\nD dir/b\nA empty/\nM kind/\nA link\nM mode\nD replaced/\n");
  ASSERT_TRUE(session.restore("begin"));
  EXPECT_EQ(changes(session), "");
  EXPECT_EQ(changes(session, "one"),
            "M dir/a\nA dir/b\nD empty/\nA gone\nM kind\nD link\nM mode\nD replaced/new\nA replaced/old\n");
}

TEST_F(SessionLayers, WorkOnTheCommandLine) {
  const RunOutput made = cli({"create", "--name", "s"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  EXPECT_EQ(cli({"exec", "s", "--", "sh", "-c", "echo 1 > f"}).exit_status, 0);
  EXPECT_EQ(cli({"checkpoint", "s"}).out, "c1\n");
  EXPECT_EQ(cli({"checkpoint", "s", "named"}).out, "named\n");
  EXPECT_EQ(cli({"checkpoint", "s", "named"}).exit_status, 125) << "taken";
  EXPECT_EQ(cli({"checkpoint", "s", "../x"}).exit_status, 125);
  EXPECT_EQ(cli({"exec", "s", "--", "sh", "-c", "echo 2 > f; echo g > g"}).exit_status, 0);
  EXPECT_EQ(cli({"diff", "s", "named"}).out, "M f\nA g\n");
  EXPECT_EQ(cli({"diff", "s", "--json"}).json()["changes"][0]["change"], "added");
  const RunOutput fork = cli({"fork", "s"});
  ASSERT_EQ(fork.exit_status, 0) << fork.describe();
  EXPECT_EQ(cli({"restore", "s", "c1"}).exit_status, 0);
  EXPECT_EQ(cli({"read", "s", "f"}).out, "1\n");
  EXPECT_EQ(cli({"read", fork.out.substr(0, fork.out.size() - 1), "f"}).out, "2\n");
  EXPECT_EQ(cli({"restore", "s", "nothing"}).exit_status, 125);
}

TEST_F(SessionLayers, UnusedOnesAreRemovedFromDisk) {
  Session session = create();
  for (int round = 0; round < 5; ++round) {
    output(session, "echo " + std::to_string(round) + " > f");
    ASSERT_TRUE(session.restore("begin"));
  }
  ASSERT_TRUE(store->clean(false));
  const RunOutput listed = runProgram({"ls", home_path + "/stores"});
  EXPECT_EQ(listed.out, session.id() + "\n");
  EXPECT_EQ(runProgram({"ls", home_path + "/stores/" + session.id()}).out, "lower\nmask\n");
}

TEST_F(SessionLayers, ManyAreMergedBeforeTheKernelsLimit) {
  Session session = create();
  int made = 0;
  for (; made < 40; ++made) {
    output(session, "echo " + std::to_string(made) + " > f" + std::to_string(made));
    if (!session.checkpoint()) break;
  }
  EXPECT_EQ(made, 40) << "a worker merges them";
  EXPECT_EQ(output(session, "ls | wc -l"), "40\n");
  ASSERT_TRUE(session.restore("c3"));
  EXPECT_EQ(output(session, "ls | wc -l"), "3\n");
}

}  // namespace
}  // namespace caisson::test
