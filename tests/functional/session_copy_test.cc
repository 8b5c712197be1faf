// `session cp`: both ways, trees, hostile trees.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "functional/session.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

namespace fs = std::filesystem;

class SessionCopy : public SessionTest {
 protected:
  RunOutput cp(const std::string& from, const std::string& to) const {
    return cli({"cp", from, to}, {.cwd = host.path(), .timeout = std::chrono::seconds(30)});
  }
  const TempDir host;
};

TEST_F(SessionCopy, CopiesFilesBothWays) {
  Session session = create();
  host.write("f", "content\n", 0755);
  EXPECT_EQ(cp("f", session.id() + ":f").exit_status, 0);
  EXPECT_EQ(cp("f", session.id() + ":new/dir/g").exit_status, 0) << "directories on the way are made";
  EXPECT_EQ(cp("f", session.id() + ":/workspace/new").exit_status, 0) << "into a directory";
  EXPECT_EQ(output(session, "cat f new/dir/g new/f; test -x f && echo executable; stat -c %u f; id -u"),
            "content\ncontent\ncontent\nexecutable\n1000\n1000\n");
  output(session, "echo changed > f");
  EXPECT_EQ(cp(session.id() + ":f", ".").exit_status, 0);
  EXPECT_EQ(cp(session.id() + ":/workspace/new/dir/g", "h").exit_status, 0);
  EXPECT_EQ(readFile(host / "f"), "changed\n");
  EXPECT_EQ(readFile(host / "h"), "content\n");
}

TEST_F(SessionCopy, CopiesTreesBothWays) {
  Session session = create();
  host.write("tree/a/b/c", "deep\n");
  host.write("tree/top", "t\n", 0600);
  host.makeDir("tree/empty");
  ASSERT_EQ(::symlink("a/b/c", (host / "tree/link").c_str()), 0);
  ASSERT_EQ(::mkfifo((host / "tree/pipe").c_str(), 0600), 0);
  const RunOutput in = cp("tree", session.id() + ":copy");
  EXPECT_EQ(in.exit_status, 1) << "the pipe is left out";
  EXPECT_NE(in.err.find("tree/pipe: a FIFO is not copied"), std::string::npos) << in.err;
  EXPECT_EQ(output(session, "cd copy; cat a/b/c link; ls -A; stat -c %a top"),
            "deep\ndeep\na\nempty\nlink\ntop\n600\n");
  output(session, "cd copy; echo more >> a/b/c; ln -s ../link a/up");
  const RunOutput out = cp(session.id() + ":copy", "back");
  EXPECT_EQ(out.exit_status, 0) << out.err;
  EXPECT_EQ(readFile(host / "back/a/b/c"), "deep\nmore\n");
  EXPECT_EQ(fs::read_symlink(host / "back/a/up").string(), "../link");
  EXPECT_TRUE(fs::is_directory(host / "back/empty"));
  const RunOutput all = cp(session.id() + ":.", "all");
  EXPECT_EQ(all.exit_status, 0) << all.err;
  EXPECT_EQ(readFile(host / "all/copy/top"), "t\n");
}

TEST_F(SessionCopy, RejectsInvalidSourcesAndTargets) {
  Session session = create();
  host.write("f", "x");
  const std::string id = session.id();
  EXPECT_EQ(cp("f", "g").exit_status, 125) << "no session";
  EXPECT_EQ(cp(id + ":f", id + ":g").exit_status, 125) << "two sessions";
  EXPECT_EQ(cp("missing", id + ":f").exit_status, 125);
  EXPECT_EQ(cp(id + ":missing", "f").exit_status, 125);
  EXPECT_EQ(cp("f", id + ":../f").exit_status, 125);
  EXPECT_EQ(cp("f", id + ":/etc/f").exit_status, 125);
  EXPECT_EQ(cp(id + ":../../etc/passwd", "f").exit_status, 125);
  EXPECT_EQ(cp(id + ":a/..", ".").exit_status, 125);
  EXPECT_EQ(readFile(host / "f"), "x");
  host.write("a:b", "colon");
  EXPECT_EQ(cp("./a:b", id + ":colon").exit_status, 0);
  EXPECT_EQ(output(session, "cat colon"), "colon");
}

TEST_F(SessionCopy, WritesNothingThroughLinksOnTheHost) {
  CONFORMS("R-FILES-11");
  Session session = create();
  const TempDir outside;
  const Canary canary(outside / "canary");
  output(session, "mkdir -p t/d; echo evil > t/d/canary; echo evil > t/file");
  // Left by an earlier copy of a hostile tree, or created by the user.
  host.makeDir("t");
  ASSERT_EQ(::symlink(outside.path().c_str(), (host / "t/d").c_str()), 0);
  ASSERT_EQ(::symlink((outside / "canary").c_str(), (host / "t/file").c_str()), 0);
  const RunOutput out = cp(session.id() + ":t", ".");
  EXPECT_EQ(out.exit_status, 1) << out.describe();
  EXPECT_TRUE(canary.untouched());
  EXPECT_EQ(readFile(host / "t/file"), "evil\n") << "the link itself is replaced";
  EXPECT_TRUE(fs::is_symlink(host / "t/d"));
}

TEST_F(SessionCopy, LeavesOutLinksThatLeadOutOfTheTree) {
  Session session = create();
  output(session,
         "mkdir -p t/s; ln -s /etc/passwd t/absolute; ln -s ../x t/up; ln -s .. t/s/u; ln -s s/u/../../.bashrc t/todo; "
         "ln -s s/u/s t/fine; ln -s missing t/dangling");
  const RunOutput out = cp(session.id() + ":t", "t");
  EXPECT_EQ(out.exit_status, 1);
  for (const char* name : {"absolute", "up", "todo"}) {
    EXPECT_FALSE(fs::is_symlink(host / ("t/" + std::string(name)))) << name;
    EXPECT_NE(out.err.find(std::string("t/") + name + ": a link that may lead out"), std::string::npos) << out.err;
  }
  for (const char* name : {"fine", "dangling", "s/u"})
    EXPECT_TRUE(fs::is_symlink(host / ("t/" + std::string(name)))) << name;
}

TEST_F(SessionCopy, SurvivesATreeThatChangesDuringTheCopy) {
  Session session = create();
  const TempDir outside;
  const Canary canary(outside / "f");
  output(session, "mkdir t; cd t; for i in $(seq 50); do mkdir d$i; echo x > d$i/f; done");
  const auto attack =
      session.start({.command = {"sh", "-c",
                                 "cd t; while :; do for i in $(seq 50); do mv d$i e; ln -s " + outside.path() +
                                     " d$i; rm d$i; mkfifo d$i; rm d$i; mv e d$i; done; done"}});
  ASSERT_TRUE(attack);
  for (int round = 0; round < 5; ++round) {
    const RunOutput out = cp(session.id() + ":t", "t" + std::to_string(round));
    EXPECT_FALSE(out.timed_out);
    EXPECT_TRUE(out.exit_status == 0 || out.exit_status == 1) << out.describe();
    host.write("in/d1/f", "y");
    EXPECT_FALSE(cp("in", session.id() + ":t").timed_out);
  }
  EXPECT_TRUE(canary.untouched());
  ASSERT_TRUE(session.stop(*attack));
}

TEST_F(SessionCopy, KeepsHolesAndHoldsTheQuota) {
  SessionOptions small = options();
  ASSERT_TRUE(small.policy.set("filesystem.max_total_size", "20M"));
  auto session = store->create(small);
  ASSERT_TRUE(session) << session.error().message();
  host.write("sparse", "begin");
  fs::resize_file(host / "sparse", 100ULL << 30);
  EXPECT_EQ(cp("sparse", session->id() + ":sparse").exit_status, 0) << "it holds almost no data";
  EXPECT_EQ(output(*session, "stat -c %s sparse; head -c 5 sparse"), "107374182400\nbegin");
  EXPECT_EQ(cp(session->id() + ":sparse", "back").exit_status, 0);
  EXPECT_EQ(fs::file_size(host / "back"), 100ULL << 30);
  host.write("large", std::string(30U << 20, 'x'));
  const RunOutput refused = cp("large", session->id() + ":large");
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_NE(refused.err.find("filesystem.max_total_size"), std::string::npos) << refused.err;
}

TEST_F(SessionCopy, DropsSetuidBits) {
  Session session = create();
  host.write("s", "x", 0755);
  ASSERT_EQ(::chmod((host / "s").c_str(), 06755), 0);
  EXPECT_EQ(cp("s", session.id() + ":s").exit_status, 0);
  EXPECT_EQ(output(session, "stat -c %a s"), "755\n");
}

TEST_F(SessionCopy, CopiesStrangeNames) {
  Session session = create();
  output(session,
         "mkdir t; echo 1 > \"t/$(printf 'two\\nlines')\"; echo 2 > \"t/$(printf 'bidi\\342\\200\\256')\"; "
         "echo 3 > t/-rf; echo 4 > \"t/$(printf '\\351')\"");
  EXPECT_EQ(cp(session.id() + ":t", "t").exit_status, 0);
  EXPECT_EQ(readFile(host / "t/two\nlines"), "1\n");
  EXPECT_EQ(readFile(host / "t/bidi\u202e"), "2\n");
  EXPECT_EQ(readFile(host / "t/-rf"), "3\n");
  EXPECT_EQ(readFile(host / "t/\xe9"), "4\n");
}

TEST_F(SessionCopy, WritesNothingToTheOwnConfiguration) {
  Session session = create();
  output(session, "mkdir -p conf/caisson; echo x > conf/caisson/config.toml; echo x > config.toml; ln -s conf link");
  const RunOptions how{.env = {{"XDG_CONFIG_HOME", host / "conf"}}, .cwd = host.path()};
  const std::string id = session.id();
  const RunOutput tree = cli({"cp", id + ":conf", "."}, how);
  EXPECT_NE((tree.out + tree.err).find("own configuration or state"), std::string::npos) << tree.describe();
  EXPECT_FALSE(exists(host / "conf/caisson"));
  host.makeDir("conf/caisson");
  for (const auto& [from, to] : {std::pair{":config.toml", "conf/caisson"},
                                 {":config.toml", "conf/caisson/config.toml"},
                                 {":conf/caisson", "conf"},
                                 {":conf/caisson/config.toml", "conf/caisson/new"}}) {
    (void)cli({"cp", id + from, to}, how);
  }
  EXPECT_TRUE(fs::is_empty(host.path() + "/conf/caisson"));
  fs::remove_all(host / "conf");
  EXPECT_NE(cli({"cp", id + ":link", "conf"}, how).exit_status, 0) << "a link would move the place";
  EXPECT_FALSE(fs::is_symlink(host / "conf"));
}

TEST_F(SessionCopy, HoldsBackWhatTheHostWouldExecuteUnlessItIsNamed) {
  Session session = create();
  output(session,
         "mkdir -p d/.vscode d/sub d/.git/hooks d/workflows d/cfg/fish; cd d; echo x > .vscode/tasks.json; "
         "echo x > sub/.envrc; echo '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; "
         "echo x > workflows/ci.yml; echo x > cfg/fish/config.fish; ln -s cfg .config; echo x > plain");
  const RunOutput copied = cp(session.id() + ":d", ".");
  EXPECT_EQ(copied.exit_status, 1) << copied.describe();
  EXPECT_EQ(readFile(host / "d/plain"), "x\n");
  EXPECT_EQ(readFile(host / "d/workflows/ci.yml"), "x\n") << "not executed there";
  for (const std::string& held : {std::string(".vscode/tasks.json"), std::string("sub/.envrc"),
                                  std::string(".git/hooks/pre-commit"), std::string(".config")}) {
    EXPECT_FALSE(fs::exists(fs::symlink_status(host / ("d/" + held)))) << held;
    EXPECT_NE(copied.err.find("not copied: d/" + held), std::string::npos) << copied.describe();
  }
  host.makeDir(".github");
  (void)cp(session.id() + ":d/workflows", ".github");
  EXPECT_FALSE(exists(host / ".github/workflows/ci.yml")) << "by its name there";
  EXPECT_EQ(cp(session.id() + ":d/sub/.envrc", ".").exit_status, 0);
  EXPECT_EQ(readFile(host / ".envrc"), "x\n") << "it was named";
}

/// What only links, git configurations and the shape of a directory tell, as in a commit.
TEST_F(SessionCopy, HoldsBackWhatTheHostExecutesThroughLinksAndGit) {
  for (const char* file : {".git/HEAD", ".git/objects/x", ".git/refs/x"}) host.write(file, "ref: refs/heads/main\n");
  host.write(".git/config", "[include]\n\tpath = ../conf/team.inc\n[core]\n\thooksPath = githooks\n");
  host.write("conf/team.inc", "[user]\n\tname = me\n");
  host.write("conf/env.sh", "old\n");
  host.write("githooks/pre-commit", "old\n");
  fs::create_symlink("conf/env.sh", host / ".envrc");
  Session session = create();
  output(
      session,
      "mkdir -p conf githooks pkg/objects pkg/refs pkg/hooks; echo '[core]' > conf/team.inc; echo new > conf/env.sh; "
      "echo new > conf/plain; echo new > githooks/pre-commit; echo ref: x > pkg/HEAD; echo '[core]' > pkg/config; "
      "echo x > pkg/objects/x; ln -s githooks/pre-commit conf/link");
  for (const char* directory : {"conf", "githooks", "pkg"}) {
    const RunOutput copied = cp(session.id() + ":" + directory, ".");
    EXPECT_EQ(copied.exit_status, 1) << directory << copied.describe();
  }
  EXPECT_EQ(readFile(host / "conf/plain"), "new\n");
  EXPECT_EQ(readFile(host / "conf/team.inc"), "[user]\n\tname = me\n");
  EXPECT_EQ(readFile(host / "conf/env.sh"), "old\n");
  EXPECT_EQ(readFile(host / "githooks/pre-commit"), "old\n");
  EXPECT_FALSE(exists(host / "pkg/config") && exists(host / "pkg/HEAD")) << "git would run its programs";
}

TEST_F(SessionCopy, HoldsBackAllIfTheLinksAreTooMany) {
  host.write("conf/env.sh", "old\n");
  fs::create_symlink("conf/env.sh", host / ".envrc");
  Session session = create();
  output(session,
         "mkdir -p conf/l; echo new > conf/env.sh; cd conf/l; ln -s ../env.sh .envrc; python3 -c 'import os\n"
         "for i in range(5000): os.mkdir(str(i)); os.symlink(\"../.envrc\", str(i) + \"/.envrc\")'");
  const RunOutput copied = cp(session.id() + ":conf", ".");
  EXPECT_EQ(copied.exit_status, 1) << copied.describe();
  EXPECT_EQ(readFile(host / "conf/env.sh"), "old\n");
  EXPECT_NE(copied.err.find("too many links"), std::string::npos) << copied.err.substr(0, 2000);
}

TEST_F(SessionCopy, ReplacesNoFileThatTheSessionDoesNotShow) {
  host.write("src/.env", "secret\n");
  host.write("src/main.c", "old\n");
  Session session = create();
  output(session, "mkdir -p src; echo fake > src/.env; echo new > src/main.c");
  const RunOutput copied = cp(session.id() + ":src", ".");
  EXPECT_EQ(copied.exit_status, 1) << copied.describe();
  EXPECT_NE(copied.err.find("not copied: src/.env"), std::string::npos) << copied.describe();
  EXPECT_EQ(readFile(host / "src/.env"), "secret\n");
  EXPECT_EQ(readFile(host / "src/main.c"), "new\n");
  EXPECT_EQ(cp(session.id() + ":src/.env", "src").exit_status, 0);
  EXPECT_EQ(readFile(host / "src/.env"), "fake\n") << "it was named";
}

TEST_F(SessionCopy, NeverBringsInTheOwnState) {
  Session session = create();
  output(session, "echo x > f");
  ASSERT_TRUE(session.commit());
  const std::string keys = home_path + "/keys";
  ASSERT_TRUE(exists(keys + "/sessions"));
  const RunOutput named = cp(keys, session.id() + ":keys");
  EXPECT_NE(named.exit_status, 0) << named.describe();
  const RunOutput above = cp(fs::path(home_path).parent_path().string(), session.id() + ":all");
  EXPECT_EQ(above.exit_status, 1) << above.describe();
  EXPECT_EQ(output(session, "find . -name sessions; find . -name keys"), "");
}

}  // namespace
}  // namespace caisson::test
