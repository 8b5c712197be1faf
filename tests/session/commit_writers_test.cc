// Programs of the host that write while a commit moves and keeps what they write to: nothing of it is lost.
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

#include "functional/commit.h"
#include "session/layers/steps.h"

namespace caisson::test {
namespace {

std::string write_at;                     // a step of the commit
std::function<void()> write_on_the_host;  // once, at that step

class CommitWriters : public CommitTest {
 protected:
  Session createLater(const std::string& directory = {}) {
    letFileTimesSettle();  // change times have the precision of the clock tick
    SessionOptions wanted = options();
    EXPECT_TRUE(wanted.policy.set("filesystem.workspace.path", directory.empty() ? workspace.path() : directory));
    auto made = store->create(wanted);
    EXPECT_TRUE(made) << made.error().message();
    letFileTimesSettle();
    return *std::move(made);
  }
  static void writeAt(const char* step, std::function<void()> write) {
    write_at = step;
    write_on_the_host = std::move(write);
    session::step_observer = [](const char* name) {
      if (name == write_at && write_on_the_host) std::exchange(write_on_the_host, {})();
    };
  }
  static void append(int directory, const char* name, std::string_view text) {
    const int file = ::openat(directory, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    EXPECT_GE(file, 0) << name;
    EXPECT_EQ(::write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(file);
  }
  /// Writes as many bytes as there were, and sets the time of modification back.
  static void writeUnnoticed(const std::string& path, std::string_view text) {
    struct stat before{};
    ASSERT_EQ(::stat(path.c_str(), &before), 0);
    const int file = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    ASSERT_EQ(::write(file, text.data(), text.size()), before.st_size);
    const timespec times[2] = {before.st_atim, before.st_mtim};
    EXPECT_EQ(::futimens(file, times), 0);
    ::close(file);
  }
  [[nodiscard]] std::string kept(const Session& session, const std::string& path) const {
    return home_path + "/replaced/" + session.id() + "/1/objects/" + path;
  }
  static ino_t inodeOf(const std::string& path) {
    struct stat status{};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status.st_ino;
  }
};

TEST_F(CommitWriters, AttributeSetDuringACommitThatFailedStaysAConflict) {
  for (const char* name : {"a", "b"}) workspace.write(name, "old\n");
  requireOrSkip(::setxattr((workspace / "a").c_str(), "user.probe", "x", 1, 0) == 0, "no user attributes here");
  Session session = createLater();
  output(session, "echo new > a; echo new > b");
  const std::string digest = commit(session, {.dry_run = true}).digest;
  // The commit meets it at `a`, and never comes to `b`.
  writeAt("commit: journal written", [&] {
    for (const char* name : {"a", "b"}) EXPECT_EQ(::setxattr((workspace / name).c_str(), "user.note", "x", 1, 0), 0);
  });
  EXPECT_FALSE(session.commit({.expect = digest}));
  EXPECT_FALSE(write_on_the_host);
  EXPECT_EQ(paths(commit(session).conflicts), "a\nb\n");
  EXPECT_EQ(readFile(workspace / "a") + readFile(workspace / "b"), "old\nold\n");
}

TEST_F(CommitWriters, ChangesBeforeAndAfterTheExchangeOfAFileAreBothKept) {
  for (const bool discard : {false, true}) {
    workspace.write("log", "0\n");
    Session session = createLater();
    output(session, "echo session > log");
    const std::string log = workspace / "log";
    int file = -1;
    writeAt("commit: journal written", [&] {
      file = ::open(log.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
      write_at = "commit: exchanged";
      write_on_the_host = [log] { append(AT_FDCWD, log.c_str(), "2\n"); };
    });
    const auto report = session.commit({.discard = discard});
    EXPECT_EQ(::write(file, "1\n", 2), 2);
    ::close(file);
    session::step_observer = nullptr;
    ASSERT_EQ(report.has_value(), !discard);
    EXPECT_EQ(report ? paths(report->conflicts) : "", discard ? "" : "log\n");
    EXPECT_EQ(readFile(log), "session\n2\n");
    EXPECT_EQ(readFile(kept(session, "0")), "0\n1\n");
    const auto undone = store->uncommit(session.id());
    EXPECT_EQ(undone ? paths(undone->conflicts) : "", discard ? "" : "log\n");
    EXPECT_EQ(readFile(log), "session\n2\n");
    expectNoLeftovers(session);
  }
}

TEST_F(CommitWriters, NamesThatTheHostChangesInADirectoryDuringACommitStayConflicts) {
  for (const char* name : {"a", "b", "c"}) workspace.write(std::string("d/") + name, "old\n");
  Session session = createLater();
  output(session, "echo new > d/a; echo new > d/b");
  writeAt("commit: exchanged", [&] { std::filesystem::remove(workspace / "d/b"); });
  EXPECT_EQ(applied(commit(session, {.paths = {"d/a"}})), "d/a\n");
  EXPECT_EQ(paths(commit(session, {.paths = {"d/b"}}).conflicts), "d/b\n");
  EXPECT_FALSE(exists(workspace / "d/b"));
}

TEST_F(CommitWriters, ModeThatTheHostGivesADirectoryDuringACommitInItStaysAConflict) {
  workspace.write("d/a", "old\n");
  ASSERT_EQ(::chmod((workspace / "d").c_str(), 0755), 0);
  Session session = createLater();
  output(session, "echo new > d/a; chmod 711 d");
  writeAt("commit: exchanged", [&] { EXPECT_EQ(::chmod((workspace / "d").c_str(), 0750), 0); });
  EXPECT_EQ(applied(commit(session, {.paths = {"d"}})), "d\nd/a\n");
  EXPECT_EQ(paths(commit(session, {.paths = {"d"}}).conflicts), "d\n");
  EXPECT_EQ(modeOf(workspace / "d"), 0750U);
}

TEST_F(CommitWriters, CommitAndUncommitThatFailedOnceWorkLater) {
  requireOrSkip(::geteuid() != 0, "root may write to every directory");
  if (IsSkipped()) return;
  for (const char* name : {"s/a", "s/z", "ro/f"}) workspace.write(name, "old\n");
  Session session = createLater();
  output(session, "echo new > s/a; rm s/z; echo new > s/new; echo new > ro/f");
  workspace.write("s/other", "of the host\n");
  ASSERT_EQ(::chmod((workspace / "ro").c_str(), 0555), 0);
  EXPECT_FALSE(session.commit({.theirs = {"s/new"}}));
  EXPECT_EQ(readFile(workspace / "s/a"), "old\n");
  ASSERT_EQ(::chmod((workspace / "ro").c_str(), 0755), 0);
  const CommitReport later = commit(session, {.theirs = {"s/new"}});
  EXPECT_EQ(paths(later.conflicts), "") << leftOut(later);
  EXPECT_FALSE(exists(workspace / "s/z"));
  ASSERT_EQ(::chmod((workspace / "ro").c_str(), 0555), 0);
  EXPECT_FALSE(store->uncommit(session.id()));
  ASSERT_EQ(::chmod((workspace / "ro").c_str(), 0755), 0);
  const auto undone = store->uncommit(session.id());
  ASSERT_TRUE(undone) << undone.error().message();
  EXPECT_EQ(paths(undone->conflicts), "");
  for (const char* name : {"s/a", "s/z", "ro/f"}) EXPECT_EQ(readFile(workspace / name), "old\n") << name;
  EXPECT_FALSE(exists(workspace / "s/new"));
}

/// The kernel refuses to exchange names, as on file systems that cannot.
bool refuseExchange() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[4])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, RENAME_EXCHANGE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{static_cast<unsigned short>(std::size(program)), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

class CommitWithoutExchange : public CommitWriters {
 protected:
  /// Runs in a process on such a file system.
  static int inChild(const Session& session, const std::function<void(Session& session)>& work) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    EXPECT_GE(child, 0);
    if (child == 0) {
      ::alarm(100);
      if (!refuseExchange()) ::_exit(3);
      auto own = SessionStore::open(std::getenv("CAISSON_BIN"));
      auto same = own->find(session.id());
      if (!same) ::_exit(4);
      work(*same);
      std::fflush(nullptr);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
};

TEST_F(CommitWithoutExchange, ObjectThatIsReplacedIsTheOneThatIsKept) {
  workspace.write("dir/x", "old\n");
  workspace.write("f", "old\n");
  workspace.write("gone/x", "old\n");
  Session session = createLater();
  output(session, "rm -r dir gone; echo session > dir; echo session > f");
  const ino_t directory = inodeOf(workspace / "dir"), file = inodeOf(workspace / "f");
  const int status = inChild(session, [&](Session& own) {
    const int held = ::open((workspace / "dir").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    writeAt("commit: one kept", [&] { append(held, "late", "host\n"); });
    EXPECT_EQ(applied(commit(own)), "dir\nf\ngone\n");
    EXPECT_FALSE(write_on_the_host);
  });
  ASSERT_EQ(status, 0) << "see above";
  EXPECT_EQ(readFile(workspace / "dir"), "session\n");
  EXPECT_EQ(readFile(workspace / "f"), "session\n");
  EXPECT_EQ(inodeOf(kept(session, "1")), directory);
  EXPECT_EQ(inodeOf(kept(session, "2")), file);
  expectNoLeftovers(session);
  EXPECT_EQ(cli({"uncommit", session.id()}).exit_status, 0);
  EXPECT_EQ(readFile(workspace / "dir/late"), "host\n");
  EXPECT_EQ(readFile(workspace / "dir/x"), "old\n");
  EXPECT_EQ(readFile(workspace / "f"), "old\n");
}

TEST_F(CommitWithoutExchange, ChangeOfWhatWasSetAsideIsPutBack) {
  workspace.write("dir/x", "old\n");
  workspace.write("f", "old\n");
  Session session = createLater();
  output(session, "rm -r dir; echo session > dir; echo session > f");
  const int status = inChild(session, [&](Session& own) {
    const int directory = ::open((workspace / "dir").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int file = ::open((workspace / "f").c_str(), O_RDONLY | O_CLOEXEC);
    session::step_observer = [](const char* name) {
      if (std::string_view(name) == "commit: set aside") write_on_the_host();
    };
    write_on_the_host = [&] {
      ::unlinkat(directory, "late", 0);
      append(directory, "late", "host\n");
      append(AT_FDCWD, ("/proc/self/fd/" + std::to_string(file)).c_str(), "host\n");  // also when it has no name
    };
    const CommitReport report = commit(own);
    EXPECT_EQ(applied(report), "");
    EXPECT_EQ(paths(report.conflicts), "dir\nf\n");
  });
  ASSERT_EQ(status, 0) << "see above";
  EXPECT_EQ(readFile(workspace / "dir/x"), "old\n");
  EXPECT_EQ(readFile(workspace / "dir/late"), "host\n");
  EXPECT_EQ(readFile(workspace / "f").substr(0, 9), "old\nhost\n");
  expectNoLeftovers(session);
}

TEST_F(CommitWithoutExchange, CrashBetweenTheRenamesIsFinished) {
  workspace.write("dir/x", "old\n");
  workspace.write("f", "old\n");
  Session session = createLater();
  output(session, "rm -r dir; echo session > dir; echo session > f");
  const int status = inChild(session, [&](Session& own) {
    session::step_observer = [](const char* name) {
      static int times = 0;
      if (std::string_view(name) == "commit: set aside" && ++times == 2) ::kill(::getpid(), SIGKILL);
    };
    (void)own.commit({});
  });
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_TRUE(session.diff());  // finishes it
  EXPECT_EQ(readFile(workspace / "dir"), "session\n");
  EXPECT_EQ(readFile(workspace / "f"), "session\n");
  EXPECT_EQ(readFile(kept(session, "0/x")), "old\n");
  EXPECT_EQ(readFile(kept(session, "1")), "old\n");
  expectNoLeftovers(session);
}

/// The workspace is on another file system than CAISSON_HOME: what is replaced is copied.
class CommitWritersAcross : public AcrossMounts<CommitWriters> {};

TEST_F(CommitWritersAcross, HiddenFileThatChangesWhileItIsCopiedIsAConflict) {
  put(".env", "secret\n");
  Session session = createLater(elsewhere);
  output(session, "echo session > .env");
  const std::string path = elsewhere + "/.env";
  writeAt("commit: hidden file copied", [&] { append(AT_FDCWD, path.c_str(), "host\n"); });
  EXPECT_EQ(paths(commit(session, {.theirs = {".env"}}).conflicts), ".env\n");
  EXPECT_FALSE(write_on_the_host);
  EXPECT_EQ(readFile(path), "secret\nhost\n");
  EXPECT_EQ(store->keptData().commits, 0U);
  // The last instant: a program that reads it opens it again.
  const int reader = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  writeAt("commit: hidden file replaced", [&] {
    EXPECT_EQ(readFile(path), "session\n");
    append(AT_FDCWD, ("/proc/self/fd/" + std::to_string(reader)).c_str(), "late\n");
  });
  EXPECT_EQ(paths(commit(session, {.theirs = {".env"}}).conflicts), ".env\n");
  EXPECT_FALSE(write_on_the_host);
  EXPECT_EQ(readFile(path), "secret\nhost\nlate\n");
  ::close(reader);
  const int writer = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  EXPECT_EQ(paths(commit(session, {.theirs = {".env"}}).conflicts), ".env\n") << "a program may write to it";
  ::close(writer);
  EXPECT_EQ(applied(commit(session, {.theirs = {".env"}})), ".env\n");
  EXPECT_EQ(readFile(path), "session\n");
}

TEST_F(CommitWritersAcross, WhatIsWrittenToARemovedDirectoryWhileItIsCopiedIsKept) {
  put("dir/x", "old\n");
  put("dir/sub/y", "old\n");
  Session session = createLater(elsewhere);
  output(session, "rm -r dir; echo new > dir");
  const int directory = ::open((elsewhere + "/dir").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(directory, 0);
  writeAt("commit: one kept", [&] {
    append(directory, "late", "host\n");
    append(directory, "x", "host\n");
    append(directory, "sub/late", "host\n");
  });
  EXPECT_EQ(applied(commit(session)), "dir\n");
  EXPECT_FALSE(write_on_the_host);
  EXPECT_EQ(::openat(directory, "later", O_WRONLY | O_CREAT, 0600), -1) << "no write is lost without an error";
  ::close(directory);
  EXPECT_EQ(readFile(kept(session, "0/x")), "old\nhost\n");
  EXPECT_EQ(runProgram({"sh", "-c", "ls -A " + elsewhere}).out, "dir\n");
  EXPECT_EQ(cli({"uncommit", session.id()}).exit_status, 0);
  EXPECT_EQ(readFile(elsewhere + "/dir/late"), "host\n");
  EXPECT_EQ(readFile(elsewhere + "/dir/sub/late"), "host\n");
  EXPECT_EQ(readFile(elsewhere + "/dir/sub/y"), "old\n");
}

TEST_F(CommitWritersAcross, FileThatIsWrittenAllTheTimeIsKeptAndTheCommitCanBeUndone) {
  for (const char* name : {"a", "d", "dir/x"}) put(name, "host\n");
  put("z.log", std::string(4 << 20, 'x'));
  Session session = createLater(elsewhere);
  output(session, "echo session > a; rm -r d dir; echo session > z.log");
  const int log = ::open((elsewhere + "/z.log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ASSERT_GE(log, 0);
  std::atomic<bool> stop = false;
  std::thread writer;
  writeAt("commit: applied", [&] {
    writer = std::thread([&] {
      while (!stop && ::write(log, "line\n", 5) == 5) sleepFor(std::chrono::milliseconds(1));
    });
  });
  const auto report = session.commit({.theirs = {"z.log"}});
  stop = true;
  if (writer.joinable()) writer.join();
  ::close(log);
  ASSERT_TRUE(report) << report.error().message() << report.error().hint;
  EXPECT_EQ(applied(*report), "a\nd\ndir\nz.log\n");
  EXPECT_EQ(cli({"uncommit", session.id()}).exit_status, 0);
  for (const char* name : {"a", "d", "dir/x"}) EXPECT_EQ(readFile(elsewhere + "/" + name), "host\n") << name;
  EXPECT_EQ(readFile(elsewhere + "/z.log").substr(4 << 20).substr(0, 5), "line\n");
  EXPECT_EQ(runProgram({"sh", "-c", "ls -A " + elsewhere}).out, "a\nd\ndir\nz.log\n");
}

TEST_F(CommitWritersAcross, CommitThatCannotRemoveAnOriginalPutsAllOthersBack) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can write to every directory";
  for (const char* name : {"a", "b", "gone/x", "gone/y", "z"}) put(name, "host\n");
  ASSERT_EQ(::chmod((elsewhere + "/gone").c_str(), 0500), 0);
  Session session = createLater(elsewhere);
  output(session, "chmod 700 gone; rm -r gone; for i in a b z; do echo session > $i; done");
  const int held = ::open((elsewhere + "/z").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(held, 0);
  const std::string objects = home_path + "/replaced/" + session.id() + "/1/objects";
  static int times = 0;
  static std::function<void()> at_last;
  times = 0;
  // It changes after it was copied, and cannot be copied again.
  at_last = [&] {
    append(AT_FDCWD, ("/proc/self/fd/" + std::to_string(held)).c_str(), "late\n");
    EXPECT_EQ(::chmod(objects.c_str(), 0500), 0);
  };
  session::step_observer = [](const char* name) {
    if (std::string_view(name) == "commit: one kept" && ++times == 4) at_last();
  };
  const auto report = session.commit({});
  session::step_observer = nullptr;
  ::close(held);
  (void)::chmod(objects.c_str(), 0700);
  ASSERT_FALSE(report);
  EXPECT_EQ(times, 4);
  EXPECT_EQ(report.error().hint.find("stay changed"), std::string::npos) << report.error().hint;
  for (const char* name : {"a", "b", "gone/x", "gone/y"}) EXPECT_EQ(readFile(elsewhere + "/" + name), "host\n") << name;
  EXPECT_EQ(readFile(elsewhere + "/z"), "host\nlate\n");
  EXPECT_EQ(runProgram({"sh", "-c", "ls -A " + elsewhere}).out, "a\nb\ngone\nz\n");
  struct stat status{};
  EXPECT_EQ(::stat((elsewhere + "/gone").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0500U);
  EXPECT_EQ(::chmod((elsewhere + "/gone").c_str(), 0700), 0);
}

TEST_F(CommitWritersAcross, ChangeWhileAFileIsCopiedBesideItsPlaceIsAConflict) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can write to every directory, so that nothing is copied there";
  put("sub/f", "old\n");
  ASSERT_EQ(::chmod(elsewhere.c_str(), 0555), 0);
  Session session = createLater(elsewhere);
  output(session, "echo new > sub/f");
  const std::string path = elsewhere + "/sub/f";
  writeAt("commit: copied beside", [&] { writeUnnoticed(path, "HOST"); });
  EXPECT_EQ(paths(commit(session).conflicts), "sub/f\n");
  EXPECT_FALSE(write_on_the_host);
  EXPECT_EQ(readFile(path), "HOST");
}

TEST_F(CommitWriters, FileOpenForWritingInARemovedDirectoryIsAConflict) {
  workspace.write("logs/sub/app.log", "start\n");
  workspace.write("replaced/app.log", "start\n");
  Session session = createLater();
  output(session, "rm -r logs replaced; echo x > replaced");
  for (const char* name : {"logs/sub/app.log", "replaced/app.log"}) {
    const int writer = ::open((workspace / name).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    ASSERT_GE(writer, 0);
    const CommitReport report = commit(session, {.dry_run = true});
    ASSERT_EQ(report.conflicts.size(), 1U) << paths(report.conflicts);
    EXPECT_NE(report.conflicts[0].reason.find(name), std::string::npos) << report.conflicts[0].reason;
    EXPECT_NE(report.conflicts[0].reason.find("open for writing"), std::string::npos) << report.conflicts[0].reason;
    ::close(writer);
  }
  EXPECT_EQ(applied(commit(session)), "logs\nreplaced\n");
}

TEST_F(CommitWriters, FileOpenedForWritingDuringTheCommitIsAConflict) {
  for (const char* name : {"f", "gone", "logs/app.log"}) workspace.write(name, "old\n");
  Session session = createLater();
  output(session, "rm -r logs; rm gone; echo new > f");
  int writers[3] = {-1, -1, -1};
  writeAt("commit: journal written", [&] {
    int* next = writers;
    for (const char* name : {"f", "gone", "logs/app.log"})
      *next++ = ::open((workspace / name).c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  });
  EXPECT_EQ(paths(commit(session).conflicts), "f\ngone\nlogs\n");
  for (const int writer : writers) {
    EXPECT_EQ(::write(writer, "host\n", 5), 5);
    ::close(writer);
  }
  for (const char* name : {"f", "gone", "logs/app.log"}) EXPECT_EQ(readFile(workspace / name), "old\nhost\n") << name;
  expectNoLeftovers(session);
}

TEST_F(CommitWriters, OpenFileIsReplacedIfTheRequestSaysSo) {
  workspace.write("f", "old\n");
  Session session = createLater();
  output(session, "echo new > f");
  const int writer = ::open((workspace / "f").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  EXPECT_EQ(applied(commit(session, {.theirs = {"f"}})), "f\n");
  EXPECT_EQ(::write(writer, "host\n", 5), 5);
  ::close(writer);
  EXPECT_EQ(readFile(kept(session, "0")), "old\nhost\n") << "the object itself is kept";
}

TEST_F(CommitWriters, DiscardedDirectoryThatChangesMeanwhileIsPutBack) {
  workspace.write("dir/x", "old\n");
  workspace.write("f", "old\n");
  Session session = createLater();
  output(session, "rm -r dir; echo new > f");
  const int directory = ::open((workspace / "dir").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  writeAt("commit: applied", [&] { append(directory, "late", "host\n"); });
  const auto failed = session.commit({.discard = true});
  ::close(directory);
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message().find("dir"), std::string::npos) << failed.error().message();
  EXPECT_EQ(readFile(workspace / "dir/late"), "host\n");
  EXPECT_EQ(readFile(workspace / "dir/x"), "old\n");
  EXPECT_EQ(readFile(workspace / "f"), "old\n");
  expectNoLeftovers(session);
}

TEST_F(CommitWriters, UnnoticedChangeOfACommittedFileIsNotTakenForTheSessionsOwn) {
  workspace.write("f", "old\n");
  Session session = createLater();
  output(session, "printf new. > f");
  writeAt("commit: applied", [&] {
    letFileTimesSettle();
    writeUnnoticed(workspace / "f", "HOST");
  });
  EXPECT_EQ(applied(commit(session)), "f\n");
  EXPECT_FALSE(write_on_the_host);
  output(session, "echo again > f");
  EXPECT_EQ(paths(commit(session).conflicts), "f\n");
  const RunOutput undone = cli({"uncommit", session.id()});
  EXPECT_EQ(undone.exit_status, 1) << undone.describe();
  EXPECT_EQ(readFile(workspace / "f"), "HOST");
}

}  // namespace
}  // namespace caisson::test
