// Sessions that get another directory: what is in it, the session never saw.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "functional/commit.h"
#include "session/commit/directory_baseline.h"

namespace caisson::test {
namespace {

class CommitRebound : public CommitTest {
 protected:
  Session createOn(const std::string& directory) {
    letFileTimesSettle();  // change times have the precision of the clock tick
    SessionOptions wanted = options();
    EXPECT_TRUE(wanted.policy.set("filesystem.workspace.path", directory));
    auto made = store->create(wanted);
    EXPECT_TRUE(made) << made.error().message();
    return *std::move(made);
  }
  static std::string conflictsOf(const CommitReport& report) {
    std::string text;
    for (const NotCommitted& one : report.conflicts) text += one.path + ": " + one.reason + "\n";
    return text;
  }
};

TEST_F(CommitRebound, EveryChangeIsAConflictInAnotherDirectory) {
  const std::string first = workspace.makeDir("first"), other = workspace.makeDir("other");
  for (const std::string top : {"first", "other"}) {
    for (const char* name : {"notes", "thesis", "sub/f", "gone/x"}) workspace.write(top + "/" + name, top + "\n");
  }
  Session session = createOn(first);
  // As if the directories had not been recorded: the top was not, if it had changed just before.
  ASSERT_EQ(::unlink((home_path + "/sessions/" + session.id() + "/directories").c_str()), 0);
  output(session, "echo new > notes; rm thesis; echo new > sub/f; echo new > sub/n; rm -r gone; mkdir m; echo x > m/x");
  ASSERT_TRUE(session.rebind(other));
  auto fork = session.fork();
  ASSERT_TRUE(fork) << fork.error().message();
  for (Session* one : {&session, &*fork}) {
    const CommitReport report = commit(*one, {.discard = true});
    EXPECT_EQ(applied(report), "");
    EXPECT_EQ(paths(report.conflicts), "gone\nm\nm/x\nnotes\nsub/f\nsub/n\nthesis\n") << conflictsOf(report);
    EXPECT_NE(conflictsOf(report).find("notes: the workspace is another directory there now"), std::string::npos)
        << conflictsOf(report);
  }
  for (const char* name : {"notes", "thesis", "sub/f", "gone/x"}) {
    EXPECT_EQ(readFile(other + "/" + name), "other\n") << name;
  }
  EXPECT_FALSE(exists(other + "/m"));
  EXPECT_EQ(applied(commit(session, {.paths = {"notes"}, .theirs = {"notes"}})), "notes\n");
  // Back on its own directory, also where that was moved to.
  std::filesystem::rename(first, workspace / "moved");
  ASSERT_TRUE(session.rebind(workspace / "moved"));
  EXPECT_EQ(applied(commit(session)), "gone\nm\nm/x\nnotes\nsub/f\nsub/n\nthesis\n");
}

/// The top changed so shortly before that its time does not tell whether it changed since.
TEST_F(CommitRebound, TopThatChangedJustBeforeIsRecorded) {
  const TempDir work, state;
  work.write("x", "x\n");
  struct stat status{};
  ASSERT_EQ(::stat(work.path().c_str(), &status), 0);
  const auto session = sys::RootDir::open(state.path());
  ASSERT_TRUE(session);
  session::Metadata metadata;
  metadata.workspace = work.path();
  metadata.began = session::Moment::now();
  metadata.began.wall_ns = status.st_ctim.tv_sec * 1'000'000'000 + status.st_ctim.tv_nsec + 1'000'000;
  for (const auto commands : {session::CommandsRun::no, session::CommandsRun::perhaps}) {
    session::recordDirectories(*session, metadata, commands);
    const auto baseline = session::DirectoryBaseline::load(*session, metadata);
    const auto* const top = baseline.find("");
    ASSERT_NE(top, nullptr);
    EXPECT_EQ(top->inode, status.st_ino);
    EXPECT_EQ(top->changed_ns, 0);
  }
}

}  // namespace
}  // namespace caisson::test
