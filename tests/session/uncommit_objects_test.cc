// What uncommit brings back besides plain files, and between workspaces of which one lies in the other.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "functional/commit.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

class UncommitObjects : public CommitTest {
 protected:
  /// Paths with permissions and content.
  [[nodiscard]] std::string state() const {
    return runProgram(
               {"sh", "-c", "cd " + workspace.path() + " && find . -printf '%p %m\\n' | sort && grep -r . | sort"})
        .out;
  }
  std::string uncommit(const Session& session) {
    const auto report = store->uncommit(session.id());
    return report ? paths(report->conflicts) : report.error().message();
  }
};

TEST_F(UncommitObjects, PipeAndSocketComeBackAsTheyWere) {
  const std::string pipe = workspace / "pipe", socket = workspace / "socket";
  ASSERT_EQ(::mknod(pipe.c_str(), S_IFIFO | 0600, 0), 0);
  ASSERT_EQ(::mknod(socket.c_str(), S_IFSOCK | 0600, 0), 0);
  for (const std::string& path : {pipe, socket}) {
    ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
    const timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  (void)runProgram({"setfacl", "-m", "u:12345:rw", pipe});  // where there are lists
  const std::string list = runProgram({"getfacl", "-cp", pipe}).out;
  letFileTimesSettle();
  Session session = create();
  output(session, "rm pipe socket");
  EXPECT_EQ(applied(commit(session)), "pipe\nsocket\n");
  EXPECT_EQ(uncommit(session), "");
  for (const std::string& path : {pipe, socket}) {
    struct stat status{};
    ASSERT_EQ(::lstat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0666U) << path;
    EXPECT_EQ(status.st_mtim.tv_sec, 1'000'000'000) << path;
  }
  EXPECT_EQ(runProgram({"getfacl", "-cp", pipe}).out, list);
}

std::string changed_during_the_commit;

TEST_F(UncommitObjects, FileRemovedInADirectoryThatTheSessionOpenedComesBack) {
  for (const char* name : {"closed/x", "closed/y", "closed/sub/x"}) workspace.write(name, "x\n");
  for (const char* name : {"closed/sub", "closed"}) ASSERT_EQ(::chmod((workspace / name).c_str(), 0555), 0);
  letFileTimesSettle();
  const std::string before = state();
  Session session = create();
  output(session, "chmod 755 closed closed/sub; rm closed/x closed/sub/x; echo new > closed/y; echo new > closed/n");
  const std::string digest = commit(session, {.dry_run = true}).digest;
  // A commit that fails when the directories are open and the files are gone takes that back.
  changed_during_the_commit = workspace / "closed/y";
  session::step_observer = [](const char* name) {
    if (std::string_view(name) != "commit: journal written") return;
    EXPECT_EQ(::chmod(changed_during_the_commit.c_str(), 0600), 0);
    EXPECT_EQ(::chmod(changed_during_the_commit.c_str(), 0644), 0);
  };
  EXPECT_FALSE(session.commit({.expect = digest}));
  session::step_observer = nullptr;
  EXPECT_EQ(state(), before);
  EXPECT_EQ(applied(commit(session, {.theirs = {"closed/y"}})),
            "closed\nclosed/n\nclosed/sub\nclosed/sub/x\nclosed/x\nclosed/y\n");
  EXPECT_EQ(modeOf(workspace / "closed"), 0755U);
  EXPECT_EQ(uncommit(session), "");
  EXPECT_EQ(state(), before);
  expectNoLeftovers(session);
  for (const char* name : {"closed", "closed/sub"}) EXPECT_EQ(::chmod((workspace / name).c_str(), 0755), 0);
}

/// The records of one session name the paths that the other one's uncommit brings back.
TEST_F(UncommitObjects, WorkspacesInEachOtherAreUndoneOneAfterTheOther) {
  for (const char* name : {"sub/f", "sub/d/x", "top"}) workspace.write(name, "old\n");
  const std::string before = state();
  SessionOptions below = options();
  ASSERT_TRUE(below.policy.set("filesystem.workspace.path", workspace / "sub"));
  for (const bool inner_first : {true, false}) {
    std::vector<Session> sessions;
    for (const bool inner : {inner_first, !inner_first}) {
      letFileTimesSettle();
      auto made = inner ? store->create(below) : store->create(options());
      ASSERT_TRUE(made) << made.error().message();
      output(*made, inner ? "echo inner >> f; mkdir -p d; echo inner > d/x; echo inner > n"
                          : "echo outer >> sub/f; rm -r sub/d; echo outer > top");
      const CommitReport report = commit(*made);
      EXPECT_TRUE(report.complete()) << paths(report.conflicts);
      sessions.push_back(*std::move(made));
    }
    EXPECT_EQ(uncommit(sessions[1]), "") << inner_first;
    EXPECT_EQ(uncommit(sessions[0]), "") << inner_first;
    EXPECT_EQ(state(), before) << inner_first;
  }
}

}  // namespace
}  // namespace caisson::test
