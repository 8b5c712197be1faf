// A store on a file system that is full, read-only or lacks overlay features; and clock jumps. Every operation reports
// the problem, and nothing is lost.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>

#include "functional/session.h"
#include "session/store/metadata.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

/// Runs `work` in a separate process, with a mount namespace in which `type` is mounted at CAISSON_HOME. An ordinary
/// user also needs a user namespace.
class BadStore : public SessionTest {
 protected:
  void withStore(const char* type, const char* settings, const std::function<void(const std::string& point)>& work) {
    if (kThreadSanitizer) GTEST_SKIP() << "a program with a thread of its sanitizer's cannot enter a user namespace";
    const std::string point = home / "mounted";
    ASSERT_EQ(::mkdir(point.c_str(), 0755), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::alarm(200);
      enterNamespaces();
      if (::mount("none", point.c_str(), type, 0, settings) != 0) {
        std::perror(type);
        ::_exit(2);
      }
      ::chmod(point.c_str(), 0755);
      work(point);
      (void)session(point, {"list"});
      (void)runCaisson({"clean", "--all"}, {.env = {{"CAISSON_HOME", point + "/state"}}});
      std::fflush(nullptr);
      ::_exit(testing::Test::HasFailure() ? 1 : 0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "see above";
  }
  [[nodiscard]] RunOutput session(const std::string& point, std::vector<std::string> arguments,
                                  const std::string& input = "") const {
    arguments.insert(arguments.begin(), "session");
    return runCaisson(arguments,
                      {.stdin_data = input, .env = {{"CAISSON_HOME", point + "/state"}}, .cwd = workspace.path()});
  }
  /// Refused, with a reason and a remedy.
  void expectRefused(const std::string& point, const std::vector<std::string>& arguments, const std::string& reason,
                     const std::string& input = "") const {
    const RunOutput out = session(point, arguments, input);
    EXPECT_EQ(out.exit_status, 125) << arguments.front() << ": " << out.describe();
    EXPECT_NE(out.err.find(reason), std::string::npos) << arguments.front() << ": " << out.describe();
    EXPECT_NE(out.err.find("try: "), std::string::npos) << arguments.front() << ": " << out.describe();
  }
  void expectDone(const std::string& point, const std::vector<std::string>& arguments, const std::string& output,
                  const std::string& input = "") const {
    const RunOutput out = session(point, arguments, input);
    EXPECT_EQ(out.exit_status, 0) << arguments.front() << ": " << out.describe();
    if (!output.empty()) {
      EXPECT_EQ(out.out, output) << arguments.front();
    }
  }

 private:
  static void writeTo(const char* path, const std::string& text) { std::ofstream(path) << text; }
  static void enterNamespaces() {
    const std::string uid = std::to_string(::getuid()), gid = std::to_string(::getgid());
    const bool root = ::getuid() == 0;
    if (::unshare(root ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) ::_exit(3);
    if (!root) {
      writeTo("/proc/self/setgroups", "deny");
      writeTo("/proc/self/uid_map", uid + " " + uid + " 1");
      writeTo("/proc/self/gid_map", gid + " " + gid + " 1");
    }
    if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(4);
  }
};

TEST_F(BadStore, FullStoreRefusesWritesAndKeepsItsContent) {
  withStore("tmpfs", "size=2m", [&](const std::string& point) {
    expectDone(point, {"create", "--name", "n"}, "");
    expectDone(point, {"write", "n", "keep"}, "", "kept\n");
    expectDone(point, {"checkpoint", "n", "one"}, "one\n");
    // The program gets ENOSPC, or the disk watch kills it.
    const RunOutput filled = session(point, {"exec", "n", "--", "sh", "-c", "cat /dev/zero > fill 2>/dev/null; true"});
    EXPECT_TRUE(filled.exit_status == 0 || filled.err.find("disk") != std::string::npos) << filled.describe();
    const std::string much(300'000, 'm');
    expectRefused(point, {"write", "n", "keep"}, "No space left", much);
    expectRefused(point, {"write", "n", "big"}, "No space left", much);
    expectDone(point, {"read", "n", "keep"}, "kept\n");
    expectRefused(point, {"create", "--name", "other"}, "No space left");
    expectRefused(point, {"renew", "n", "2h"}, "No space left");
    expectRefused(point, {"exec", "n", "--background", "--", "true"}, "No space left");
    expectDone(point, {"read", "n", "keep"}, "kept\n");
    // The way out: discard the layer that filled it.
    expectDone(point, {"restore", "n", "one"}, "");
    expectDone(point, {"read", "n", "keep"}, "kept\n");
    expectDone(point, {"commit", "n", "keep"}, "");
    EXPECT_EQ(readFile(workspace / "keep"), "kept\n");
    expectDone(point, {"destroy", "n"}, "");
    expectDone(point, {"create", "--name", "n"}, "");
    expectDone(point, {"exec", "n", "--", "echo", "again"}, "again\n");
    expectDone(point, {"destroy", "n"}, "");
  });
}

TEST_F(BadStore, ReadOnlyStoreIsReportedAndWorksOnceWritable) {
  CONFORMS("R-USE-5");
  withStore("tmpfs", "size=8m", [&](const std::string& point) {
    expectDone(point, {"create", "--name", "n"}, "");
    expectDone(point, {"write", "n", "keep"}, "", "kept\n");
    expectDone(point, {"checkpoint", "n", "one"}, "one\n");
    // Only after the last writer exited: the audit sync process.
    ASSERT_TRUE(eventually(
        [&] { return ::mount(nullptr, point.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) == 0; }));
    for (const std::vector<std::string>& arguments : {std::vector<std::string>{"create"},
                                                      {"exec", "n", "--", "true"},
                                                      {"exec", "n", "--background", "--", "true"},
                                                      {"read", "n", "keep"},
                                                      {"write", "n", "keep"},
                                                      {"checkpoint", "n", "two"},
                                                      {"restore", "n", "one"},
                                                      {"fork", "n"},
                                                      {"renew", "n", "2h"},
                                                      {"commit", "n"},
                                                      {"destroy", "n"}}) {
      expectRefused(point, arguments, "Read-only file system", "overwritten");
    }
    const RunOutput listed = session(point, {"list"});
    EXPECT_NE(listed.out.find(" n "), std::string::npos) << listed.describe();
    ASSERT_EQ(::mount(nullptr, point.c_str(), nullptr, MS_REMOUNT | MS_BIND, nullptr), 0);
    expectDone(point, {"read", "n", "keep"}, "kept\n");
    expectDone(point, {"checkpoint", "n", "two"}, "two\n");
    expectDone(point, {"destroy", "n"}, "");
  });
}

/// ramfs has no extended attributes: an overlay could be mounted, but would later fail to replace a directory.
TEST_F(BadStore, StoreWithoutUserAttributesIsRefused) {
  withStore("ramfs", "", [&](const std::string& point) {
    expectRefused(point, {"create", "--name", "n"}, "no user attributes (user.*)");
    EXPECT_EQ(session(point, {"list"}).out, "") << "nothing is left of it";
  });
}

TEST_F(BadStore, StoreOnAnOverlayKeepsChangesInMemoryAndReportsIt) {
  const std::string upper = home / "upper", work = home / "work", lower = home / "lower";
  for (const std::string& one : {upper, work, lower}) ASSERT_EQ(::mkdir(one.c_str(), 0755), 0);
  const std::string settings = "lowerdir=" + lower + ",upperdir=" + upper + ",workdir=" + work + ",userxattr";
  withStore("overlay", settings.c_str(), [&](const std::string& point) {
    const RunOutput created = session(point, {"create", "--name", "n"});
    EXPECT_EQ(created.exit_status, 0) << created.describe();
    EXPECT_NE(created.err.find("lies on an overlay"), std::string::npos) << created.describe();
    EXPECT_NE(created.err.find("CAISSON_HOME"), std::string::npos) << created.describe();
    const RunOutput written = session(point, {"exec", "n", "--json", "--", "sh", "-c", "echo kept > file"});
    EXPECT_NE(written.out.find("in memory"), std::string::npos) << written.describe();
    expectDone(point, {"read", "n", "file"}, "kept\n");
    expectDone(point, {"checkpoint", "n", "one"}, "one\n");
    expectDone(point, {"exec", "n", "--", "rm", "file"}, "");
    expectDone(point, {"restore", "n", "one"}, "");
    expectDone(point, {"commit", "n", "file"}, "");
    EXPECT_EQ(readFile(workspace / "file"), "kept\n");
    expectDone(point, {"destroy", "n"}, "");
  });
}

/// A FUSE file system. On many machines only root may open /dev/fuse.
TEST_F(BadStore, FuseStoreIsRefused) {
  requireOrSkip(hasProgram("bindfs") && hasProgram("fusermount3"), "no bindfs here");
  requireOrSkip(::access("/dev/fuse", R_OK | W_OK) == 0, "/dev/fuse is not this user's to open");
  withStore("tmpfs", "", [&](const std::string& point) {
    const std::string real = point + "/real", shown = point + "/shown";
    for (const std::string& one : {real, shown}) ASSERT_EQ(::mkdir(one.c_str(), 0755), 0);
    const RunOutput mounted = runProgram({"bindfs", real, shown});
    ASSERT_EQ(mounted.exit_status, 0) << mounted.describe();
    expectRefused(shown, {"create", "--name", "n"}, "lies on FUSE");
    expectRefused(shown, {"create", "--name", "n"}, "lies on FUSE");
    EXPECT_EQ(session(shown, {"list"}).out, "") << "nothing is left of it";
    ASSERT_EQ(::umount2(shown.c_str(), MNT_DETACH), 0);  // bindfs exits
  });
}

using SessionClock = SessionTest;

TEST_F(SessionClock, WallClockJumpsHaveNoEffectWhileTheMachineRuns) {
  Session session = create();
  const std::string file = home_path + "/sessions/" + session.id() + "/meta.json";
  constexpr std::int64_t kDay = 86'400'000'000'000;
  // To a session, a clock jump by a day looks like a day between its write and its read.
  for (const std::int64_t jump : {kDay, -kDay}) {
    auto text = readFile(file);
    auto metadata = session::metadataFromJson(text, file);
    ASSERT_TRUE(metadata) << metadata.error().message();
    metadata->began.wall_ns -= jump;
    metadata->expires.wall_ns -= jump;
    std::ofstream(file, std::ios::trunc) << session::toJson(*metadata);
    const auto listed = store->list();
    ASSERT_TRUE(listed && listed->size() == 1) << "a jump ends no session";
    EXPECT_GT(listed->front().expires_in, 3000);
    EXPECT_LT(listed->front().expires_in, 3601) << "nor does one lengthen its life";
    EXPECT_EQ(output(session, "echo lives"), "lives\n");
    std::ofstream(file, std::ios::trunc) << text;
  }
}

TEST_F(SessionClock, WallClockCountsAfterAReboot) {
  Session gone = create(), kept = create();
  for (Session* one : {&gone, &kept}) {
    const std::string file = home_path + "/sessions/" + one->id() + "/meta.json";
    auto metadata = session::metadataFromJson(readFile(file), file);
    ASSERT_TRUE(metadata) << metadata.error().message();
    metadata->expires.boot = metadata->began.boot = "another-boot";
    metadata->expires.boot_ns = one == &gone ? INT64_MAX : 0;  // ignored here
    if (one == &gone) metadata->expires.wall_ns = session::Moment::now().wall_ns - 1;
    std::ofstream(file, std::ios::trunc) << session::toJson(*metadata);
  }
  const auto listed = store->list();
  ASSERT_TRUE(listed) << listed.error().message();
  ASSERT_EQ(listed->size(), 1U) << "the one whose time was over is removed";
  EXPECT_EQ(listed->front().id, kept.id());
  EXPECT_FALSE(store->find(gone.id()));
}

}  // namespace
}  // namespace caisson::test
