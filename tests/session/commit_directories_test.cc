// Directories that a commit removes or replaces: what is in them that the session did not see, or that is held back.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "functional/commit.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

class CommitDirectories : public CommitTest {
 protected:
  static std::string reasonFor(const std::vector<NotCommitted>& list, const std::string& path) {
    for (const NotCommitted& one : list) {
      if (one.path == path) return one.reason;
    }
    return "not in the list";
  }
};

TEST_F(CommitDirectories, HiddenFileKeepsItsDirectory) {
  // Removed, moved, replaced by a file and by a link: each is one change of the session.
  for (const char* name : {"removed", "moved", "file", "link", "tree"}) {
    workspace.write(std::string(name) + "/code.py", "code\n");
    workspace.write(std::string(name) + (name == std::string_view("tree") ? "/a/b/id_ed25519" : "/.env"),
                    "-----BEGIN OPENSSH PRIVATE KEY-----\ncanary\n");
  }
  Session session = create();
  EXPECT_EQ(output(session, "find . -name .env -o -name id_ed25519"), "") << "the session sees what should be hidden";
  output(session, "rm -r removed tree file link; mv moved elsewhere; echo x > file; ln -s elsewhere link");
  for (const CommitRequest& request : {CommitRequest{}, CommitRequest{.theirs = {"removed", "file"}},
                                       CommitRequest{.paths = {"removed", "moved", "file", "link", "tree"}}}) {
    const CommitReport report = commit(session, request);
    EXPECT_EQ(paths(report.conflicts), "file\nlink\nmoved\nremoved\ntree\n");
    EXPECT_EQ(reasonFor(report.conflicts, "removed"), "it holds removed/.env, which was hidden from the session");
    for (const char* secret : {"removed/.env", "moved/.env", "file/.env", "link/.env", "tree/a/b/id_ed25519"}) {
      EXPECT_TRUE(exists(workspace / secret)) << secret;
    }
  }
  EXPECT_EQ(readFile(workspace / "elsewhere/code.py"), "code\n") << "the rest is committed";
}

TEST_F(CommitDirectories, CredentialsOfANestedRepositoryKeepItsDirectory) {
  for (const char* file : {"HEAD", "objects/x", "refs/x"})
    workspace.write(std::string("sub/.git/") + file, "ref: refs/heads/main\n");
  workspace.write("sub/.git/config", "[remote \"o\"]\n\turl = https://me:canary@example.org/x\n");
  Session session = create();
  output(session, "rm -r sub");
  const CommitReport report = commit(session, {.paths = {"sub"}});
  EXPECT_EQ(reasonFor(report.conflicts, "sub"), "it holds sub/.git/config, which was hidden from the session");
  EXPECT_TRUE(exists(workspace / "sub/.git/config"));
}

TEST_F(CommitDirectories, RepositoryOrProtectedFileInADirectoryHoldsItBackUnlessNamed) {
  ASSERT_EQ(runProgram({"git", "init", "-q", workspace / "sub"}).exit_status, 0);
  ASSERT_EQ(runProgram({"git", "init", "-q", "--bare", workspace / "mirror"}).exit_status, 0);
  workspace.write("editor/.vscode/tasks.json", "{}\n");
  workspace.write("plain/x", "x\n");
  Session session = create();
  output(session, "rm -r sub mirror editor plain");
  CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "plain\n");
  EXPECT_EQ(paths(report.held), "editor\nmirror\nsub\n") << leftOut(report);
  EXPECT_EQ(reasonFor(report.held, "editor").find("it holds editor/.vscode: "), 0U);
  EXPECT_TRUE(exists(workspace / "sub/.git/HEAD"));
  report = commit(session, {.paths = {"sub", "mirror", "editor"}});
  EXPECT_EQ(applied(report), "editor\nmirror\nsub\n");
  for (const ManifestEntry& entry : report.applied) EXPECT_TRUE(entry.held_unless_named) << entry.path;
  EXPECT_FALSE(exists(workspace / "sub"));
}

TEST_F(CommitDirectories, ModelRemovesOnlyDirectoriesOfOrdinaryFiles) {
  workspace.write("docs/a.md", "x\n");
  workspace.write("data/a.unusual", "x\n");
  Session session = create();
  output(session, "rm -r docs data");
  const CommitReport report = commit(session, {.ordinary_files_only = true});
  EXPECT_EQ(applied(report), "docs\n");
  EXPECT_EQ(paths(report.held), "data\n");
}

TEST_F(CommitDirectories, FilesOfAnEarlierCommitDoNotCountAsUnseen) {
  workspace.write("d/old", "x\n");
  Session session = create();
  output(session, "echo x > d/new; mkdir d/e; echo x > d/e/f");
  EXPECT_EQ(applied(commit(session)), "d/e\nd/e/f\nd/new\n");
  output(session, "rm -r d");
  EXPECT_EQ(applied(commit(session)), "d\n");
  EXPECT_FALSE(exists(workspace / "d"));
}

TEST_F(CommitDirectories, ManifestShowsThatADirectoryIsReplaced) {
  workspace.write("other/x", "x\n");
  workspace.write("gone/x", "x\n");
  workspace.write("file", "old\n");
  Session session = create();
  output(session, "rm -r other gone; echo x > other; echo new > file");
  CommitReport report = commit(session, {.dry_run = true});
  ASSERT_EQ(applied(report), "file\ngone\nother\n");
  EXPECT_FALSE(report.applied[0].replaces_directory);
  EXPECT_FALSE(report.applied[1].replaces_directory);
  EXPECT_TRUE(report.applied[2].replaces_directory);
  EXPECT_EQ(cli({"commit", "--dry-run", session.id()}).out,
            "M file\nD gone/ (with everything in it)\nM other (replaces a directory with everything in it)\n");
  EXPECT_EQ(cli({"commit", "--dry-run", "--json", session.id()}).json()["applied"][2]["replaces_directory"], true);
  // The same file where no directory is in its way is another commit.
  const std::string digest = report.digest;
  std::filesystem::remove_all(workspace / "other");
  workspace.write("other", "old\n");
  EXPECT_NE(commit(session, {.dry_run = true, .theirs = {"other"}}).digest, digest);
}

/// Staged files are in the workspace then, where sandboxes see them.
class CommitAcrossMounts : public AcrossMounts<CommitTest> {};

std::string searched_directory;
std::string places_of_the_secret;

TEST_F(CommitAcrossMounts, ReplacedHiddenFileIsNeverMovedToWhereASandboxSeesIt) {
  std::ofstream(elsewhere + "/.env") << "canary\n";
  std::ofstream(elsewhere + "/seen") << "old\n";
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.workspace.path", elsewhere));
  auto made = store->create(wanted);
  ASSERT_TRUE(made) << made.error().message();
  output(*made, "test ! -e .env; echo of the session > .env; echo new > seen");
  EXPECT_EQ(paths(commit(*made, {.dry_run = true}).conflicts), ".env\n");
  searched_directory = elsewhere;
  places_of_the_secret.clear();
  session::step_observer = [](const char* name) {
    places_of_the_secret += std::string(name) + ": " + runProgram({"grep", "-rl", "canary", searched_directory}).out;
  };
  const CommitReport report = commit(*made, {.theirs = {".env"}});
  session::step_observer = nullptr;
  EXPECT_EQ(applied(report), ".env\nseen\n");
  EXPECT_NE(places_of_the_secret.find("commit: exchanged"), std::string::npos) << "`seen` is exchanged";
  EXPECT_NE(places_of_the_secret.find(elsewhere + "/.env\n"), std::string::npos) << places_of_the_secret;
  EXPECT_EQ(places_of_the_secret.find("/.caisson-"), std::string::npos) << places_of_the_secret;
  EXPECT_EQ(readFile(elsewhere + "/.env"), "of the session\n");
  EXPECT_EQ(readFile(elsewhere + "/seen"), "new\n");
}

TEST_F(CommitAcrossMounts, StagingDirectoryIsNoChangeOfTheHost) {
  put("d/file", "old\n");
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.workspace.path", elsewhere));
  letFileTimesSettle();
  auto made = store->create(wanted);
  ASSERT_TRUE(made) << made.error().message();
  // As in a workspace that is too large for a whole record: only the times of the directories above tell.
  ASSERT_EQ(::truncate((home_path + "/sessions/" + made->id() + "/directories").c_str(), 0), 0);
  put("d/of the host", "x\n");
  for (const std::string name : {"one", "two"}) {
    output(*made, "echo new > d/" + name);
    const CommitReport shown = commit(*made, {.dry_run = true});
    EXPECT_EQ(applied(shown), "d/" + name + "\n") << paths(shown.conflicts);
    EXPECT_EQ(applied(commit(*made, {.expect = shown.digest})), "d/" + name + "\n");
  }
}

TEST_F(CommitDirectories, ExcludedOnesAreNeverChanged) {
  for (const char* path : {"vendor/v.txt", "sub/third/v.txt", "sub/own.txt"}) workspace.write(path, "before\n");
  workspace.openToAll();
  Session session = create();
  output(session,
         "echo x > vendor/v.txt; echo x > vendor/new; echo x > vendored; echo x > sub/own.txt; rm sub/third/v.txt");
  CommitRequest request{.excluded = {"vendor", "sub/third"}};
  EXPECT_EQ(applied(commit(session, request)), "sub/own.txt\nvendored\n");
  for (const char* script : {"rm -r vendor sub", "rm -r vendor sub; echo x > vendor; ln -s vendored sub",
                             "rm vendor sub; mkdir vendor sub; echo x > vendor/y"}) {
    output(session, script);
    for (const std::vector<std::string>& named : {std::vector<std::string>{}, {"vendor", "sub", "sub/third/v.txt"}}) {
      request.paths = named;
      request.theirs = {"."};
      (void)session.commit(request);
      EXPECT_EQ(readFile(workspace / "vendor/v.txt"), "before\n") << script;
      EXPECT_EQ(readFile(workspace / "sub/third/v.txt"), "before\n") << script;
      EXPECT_FALSE(exists(workspace / "vendor/y"));
    }
  }
}

}  // namespace
}  // namespace caisson::test
