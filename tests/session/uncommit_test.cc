// What a commit replaces and deletes is kept, and uncommit puts it back under the conflict rules of a commit.
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/sha256.h"
#include "functional/commit.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

/// Everything that uncommit has to restore: type, permissions, time of change, content or target, an attribute.
std::map<std::string, std::string> stateOf(const std::string& top) {
  std::map<std::string, std::string> state;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top)) {
    const std::string path = entry.path();
    struct stat status{};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    std::string text = std::to_string(status.st_mode);
    char note[64];
    const ssize_t size = ::lgetxattr(path.c_str(), "user.note", note, sizeof(note));
    if (size > 0) text += " note " + std::string(note, static_cast<std::size_t>(size));
    if (S_ISREG(status.st_mode)) {
      text += " " + std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec) + " " +
              readFile(path);
    } else if (S_ISLNK(status.st_mode)) {
      text += " -> " + std::filesystem::read_symlink(path).string();
    }
    state[path.substr(top.size())] = text;
  }
  return state;
}

class Uncommit : public CommitTest {
 protected:
  void fill() const {
    for (const char* name : {"file", "gone", "dir/x", "dir/sub/y", "tree/a", "kind/x", "was_file", "mode/x"}) {
      workspace.write(name, std::string("old ") + name + "\n");
    }
    ASSERT_EQ(::symlink("file", (workspace / "link").c_str()), 0);
    ASSERT_EQ(::symlink("dir", (workspace / "dir/loop").c_str()), 0);
    ASSERT_EQ(::chmod((workspace / "gone").c_str(), 0640), 0);
    ASSERT_EQ(::chmod((workspace / "mode").c_str(), 0755), 0);
    (void)::setxattr((workspace / "file").c_str(), "user.note", "of the host", 11, 0);
    for (const char* name : {"tree", "dir/sub"}) (void)::setxattr((workspace / name).c_str(), "user.note", name, 4, 0);
    ASSERT_EQ(runProgram({"touch", "-d", "2001-02-03", workspace / "file", workspace / "dir/x"}).exit_status, 0);
    sleepFor(std::chrono::milliseconds(30));
  }
  void work(Session& session) const {
    output(session,
           "echo new > file; rm gone; rm -r dir tree; mkdir tree; echo b > tree/b; rm -r kind; echo x > kind; rm "
           "was_file; "
           "mkdir -p was_file/deep; echo z > was_file/deep/z; rm link; ln -s gone2 link; echo a > added; mkdir -p n/m; "
           "echo f > n/m/f; chmod 750 mode; touch gone2");
  }
  CommitReport uncommit(const Session& session, bool dry_run = false) {
    auto report = store->uncommit(session.id(), dry_run);
    EXPECT_TRUE(report) << report.error().message();
    return report ? *std::move(report) : CommitReport{};
  }
  static std::string conflictsOf(const CommitReport& report) {
    std::string text;
    for (const NotCommitted& one : report.conflicts) text += one.path + ": " + one.reason + "\n";
    return text;
  }
};

TEST_F(Uncommit, RestoresEverythingThatACommitReplacedDeletedAndAdded) {
  fill();
  const auto before = stateOf(workspace.path());
  Session session = create();
  work(session);
  EXPECT_TRUE(commit(session).complete());
  const auto after = stateOf(workspace.path());
  EXPECT_NE(after, before);
  const CommitReport dry = uncommit(session, true);
  EXPECT_EQ(stateOf(workspace.path()), after) << "a dry run changes nothing";
  const CommitReport report = uncommit(session);
  EXPECT_EQ(conflictsOf(report), "");
  EXPECT_EQ(applied(report), applied(dry));
  EXPECT_EQ(stateOf(workspace.path()), before);
  expectNoLeftovers(session);
  EXPECT_FALSE(store->uncommit(session.id())) << "there is no other commit";
}

TEST_F(Uncommit, GoesBackOneCommitAtATimeAndWorksAfterDestroy) {
  workspace.write("f", "0\n");
  sleepFor(std::chrono::milliseconds(30));
  Session session = create();
  for (const char* text : {"1", "2", "3"}) {
    output(session, std::string("echo ") + text + " > f");
    EXPECT_EQ(applied(commit(session)), "f\n");
  }
  const std::string id = session.id();
  const auto listed = store->replaced(id);
  ASSERT_TRUE(listed) << listed.error().message();
  ASSERT_EQ(listed->size(), 3U);
  EXPECT_EQ((*listed)[2].number, 3U);
  EXPECT_EQ((*listed)[2].objects, 1U);
  EXPECT_EQ((*listed)[2].bytes, 2U);
  EXPECT_GT((*listed)[2].removed_in, 6.0 * 86400);
  EXPECT_NE(cli({"info", id}).out.find("commit 3"), std::string::npos);
  EXPECT_EQ(cli({"info", "--json", id}).json()["commits"][2]["kept"], 1);
  EXPECT_EQ(cli({"uncommit", "--dry-run", id}).out, "M f\n");
  EXPECT_EQ(readFile(workspace / "f"), "3\n");
  EXPECT_EQ(cli({"uncommit", id}).out, "M f\n");
  EXPECT_EQ(readFile(workspace / "f"), "2\n");
  ASSERT_TRUE(session.destroy());
  // What is there was put back by an uncommit: what the second commit had left.
  const RunOutput second = cli({"uncommit", id});
  EXPECT_EQ(second.out + readFile(workspace / "f"), "M f\n1\n") << second.describe();
}

TEST_F(Uncommit, WhatTheHostChangedSinceIsAConflict) {
  fill();
  Session session = create();
  work(session);
  EXPECT_TRUE(commit(session).complete());
  sleepFor(std::chrono::milliseconds(20));
  workspace.write("file", "of the host\n");
  workspace.write("gone", "of the host\n");
  workspace.write("dir/new", "of the host\n");
  workspace.write("n/m/host", "of the host\n");
  workspace.write("was_file/deep/host", "of the host\n");
  workspace.write("added", "of the host\n");
  const CommitReport report = uncommit(session);
  EXPECT_EQ(paths(report.conflicts), "added\ndir\nfile\ngone\nn\nn/m\nwas_file\nwas_file/deep\n")
      << conflictsOf(report);
  for (const char* name : {"file", "gone", "dir/new", "n/m/host", "was_file/deep/host", "added"}) {
    EXPECT_EQ(readFile(workspace / name), "of the host\n") << name;
  }
  EXPECT_EQ(readFile(workspace / "tree/a"), "old tree/a\n") << "the rest is undone";
  EXPECT_EQ(readFile(workspace / "kind/x"), "old kind/x\n");
}

TEST_F(Uncommit, DirectoryThatItsOwnerCannotWriteComesBack) {
  workspace.write("closed/x", "x\n");
  workspace.write("gone/x", "x\n");
  for (const char* name : {"closed", "gone"}) ASSERT_EQ(::chmod((workspace / name).c_str(), 0555), 0);
  sleepFor(std::chrono::milliseconds(30));
  const auto before = stateOf(workspace.path());
  Session session = create();
  output(session, "chmod 755 closed gone; rm -r closed gone; echo x > closed");
  EXPECT_EQ(applied(commit(session)), "closed\ngone\n");
  EXPECT_EQ(conflictsOf(uncommit(session)), "");
  EXPECT_EQ(stateOf(workspace.path()), before);
  expectNoLeftovers(session);
  for (const char* name : {"closed", "gone"}) EXPECT_EQ(::chmod((workspace / name).c_str(), 0755), 0);
}

TEST_F(Uncommit, ComesBackOnAnotherMountAndNoSecretPassesThroughTheWorkspace) {
  struct stat here{}, there{};
  char place[] = "/dev/shm/caisson-test-XXXXXX";
  requireOrSkip(::mkdtemp(place) != nullptr, "cannot write to /dev/shm");
  if (IsSkipped()) return;
  const std::string top = place;
  ASSERT_EQ(::chmod(place, 0755), 0);
  ASSERT_EQ(::stat(home.path().c_str(), &here), 0);
  ASSERT_EQ(::stat(place, &there), 0);
  if (here.st_dev != there.st_dev) {
    ASSERT_EQ(
        runProgram({"sh", "-c", "cd " + top + " && mkdir -p d/s && echo old > f && echo x > d/s/x && echo k > .env"})
            .exit_status,
        0);
    sleepFor(std::chrono::milliseconds(30));
    auto before = stateOf(top);
    SessionOptions wanted = options();
    EXPECT_TRUE(wanted.policy.set("filesystem.workspace.path", top));
    auto made = store->create(wanted);
    ASSERT_TRUE(made) << made.error().message();
    output(*made, "echo new > f; rm -r d; echo mine > .env; echo a > added");
    EXPECT_EQ(applied(commit(*made, {.theirs = {".env"}})), ".env\nadded\nd\nf\n");
    EXPECT_EQ(paths(uncommit(*made).conflicts), ".env\n");
    auto after = stateOf(top);
    before.erase("/.env");
    after.erase("/.env");
    EXPECT_EQ(after, before);
  }
  std::filesystem::remove_all(top);
}

TEST_F(Uncommit, DiscardKeepsNothing) {
  workspace.write("f", "old\n");
  sleepFor(std::chrono::milliseconds(30));
  Session session = create();
  output(session, "echo new > f");
  EXPECT_EQ(commit(session, {.dry_run = true}).replaced_bytes, 4U);
  EXPECT_EQ(applied(commit(session, {.discard = true})), "f\n");
  EXPECT_FALSE(store->uncommit(session.id()));
}

TEST_F(Uncommit, ForgedRecordIsKeptAsideAndReported) {
  workspace.write("work-file", "before\n");
  workspace.write("host-file", "of the host\n");
  Session session = create();
  output(session, "echo session > work-file");
  ASSERT_TRUE(commit(session).complete());
  const std::string file = home_path + "/replaced/" + session.id() + "/1/record";
  const std::string text = readFile(file);
  const std::size_t heading = text.find('\n') + 1;
  std::string body = text.substr(heading + 65);
  body.replace(body.find("work-file"), 9, "host-file");
  std::ofstream(file, std::ios::binary) << text.substr(0, heading) << hex(Sha256().add(body).finish()) << "\n" << body;
  const auto refused = store->uncommit(session.id());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("is kept as record.invalid"), std::string::npos)
      << refused.error().message();
  EXPECT_TRUE(exists(file + ".invalid"));
  EXPECT_EQ(readFile(workspace / "host-file"), "of the host\n");
  EXPECT_EQ(readFile(workspace / "work-file"), "session\n");
  EXPECT_TRUE(store->replaced(session.id())) << "it is reported once";
}

TEST_F(Uncommit, KilledAtEachStepIsFinishedByTheNext) {
  fill();
  const auto before = stateOf(workspace.path());
  static int steps = 0, killed_step = 0;
  for (killed_step = 1;; ++killed_step) {
    Session session = create();
    work(session);
    EXPECT_TRUE(commit(session).complete());
    const pid_t child = ::fork();
    if (child == 0) {
      steps = 0;
      session::step_observer = [](const char*) {
        if (++steps == killed_step) ::kill(::getpid(), SIGKILL);
      };
      auto opened = SessionStore::open(std::getenv("CAISSON_BIN"));
      ::_exit(opened && opened->uncommit(session.id()) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      EXPECT_EQ(stateOf(workspace.path()), before);
      break;
    }
    const auto report = store->uncommit(session.id());
    // Killed after the end, there is nothing left to do.
    EXPECT_EQ(report ? conflictsOf(*report) : "", "") << "killed at step " << killed_step;
    ASSERT_EQ(stateOf(workspace.path()), before) << "killed at step " << killed_step;
    expectNoLeftovers(session);
    ASSERT_TRUE(session.destroy());
    sleepFor(std::chrono::milliseconds(20));
  }
  EXPECT_GT(killed_step, 10);
}

}  // namespace
}  // namespace caisson::test
