// Permissions, access lists and extended attributes of the host's files: a commit keeps them, or shows what it changes;
// what gives access to others needs the path itself. And what was reviewed includes what is replaced on the host.
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "functional/commit.h"
#include "session/commit/host_attributes.h"

namespace caisson::test {
namespace {

class CommitRights : public CommitTest {
 protected:
  Session createLater() {
    letFileTimesSettle();  // change times have the precision of the clock tick
    Session session = create();
    letFileTimesSettle();
    return session;
  }
  void mode(const std::string& name, mode_t bits) const {
    ASSERT_EQ(::chmod((workspace / name).c_str(), bits), 0) << name;
  }
  [[nodiscard]] std::string attribute(const std::string& name, const char* attribute) const {
    char value[256];
    const ssize_t size = ::lgetxattr((workspace / name).c_str(), attribute, value, sizeof(value));
    return size < 0 ? "none" : std::string(value, static_cast<std::size_t>(size));
  }
  static std::string heldText(const CommitReport& report) {
    std::string text;
    for (const NotCommitted& one : report.held) text += one.path + ": " + one.reason + "\n";
    return text;
  }
};

TEST_F(CommitRights, AccessForOthersNeedsThePathItself) {
  for (const char* name : {"private", "both", "dir/f"}) workspace.write(name, "old\n");
  mode("private", 0600);
  mode("both", 0600);
  mode("dir", 0700);
  Session session = createLater();
  output(session, "chmod 644 private; echo new > both; chmod 666 both; chmod 755 dir");
  const CommitReport report = commit(session);
  EXPECT_EQ(applied(report), "both\n") << "its content";
  EXPECT_EQ(paths(report.held), "both\ndir\nprivate\n");
  EXPECT_NE(heldText(report).find("private: mode 0600 -> 0644 gives access"), std::string::npos) << heldText(report);
  EXPECT_EQ(modeOf(workspace / "private"), 0600U);
  EXPECT_EQ(modeOf(workspace / "both"), 0600U);
  EXPECT_EQ(readFile(workspace / "both"), "new\n");
  EXPECT_EQ(modeOf(workspace / "dir"), 0700U);
  EXPECT_EQ(applied(commit(session)), "") << "only the permissions are left";
  EXPECT_EQ(applied(commit(session, {.paths = {"dir/f", "."}})), "") << "a directory on the way is not named";
  const CommitReport named = commit(session, {.paths = {"private", "both", "dir"}});
  EXPECT_EQ(applied(named), "both\ndir\nprivate\n");
  for (const ManifestEntry& entry : named.applied) EXPECT_TRUE(entry.held_unless_named) << entry.path;
  EXPECT_EQ(modeOf(workspace / "private"), 0644U);
  EXPECT_EQ(modeOf(workspace / "both"), 0644U) << "never writable by others";
  EXPECT_EQ(modeOf(workspace / "dir"), 0755U);
}

TEST_F(CommitRights, ChangeOfModeIsShownWhereverAChangeIs) {
  for (const char* name : {"f", "content", "dir/x"}) workspace.write(name, "old\n");
  for (const char* name : {"f", "content"}) mode(name, 0644);
  mode("dir", 0755);
  Session session = createLater();
  output(session, "chmod 600 f; echo new > content; chmod 755 content; chmod 700 dir");
  const std::string lines = "M content (mode 0644 -> 0755)\nM dir/ (mode 0755 -> 0700)\nM f (mode 0644 -> 0600)\n";
  EXPECT_EQ(cli({"diff", session.id()}).out, lines);
  const RunOutput patch = cli({"diff", "-p", session.id()});
  EXPECT_NE(patch.err.find("f: mode 0644 -> 0600"), std::string::npos) << patch.describe();
  EXPECT_NE(patch.err.find("content: mode 0644 -> 0755"), std::string::npos) << patch.describe();
  EXPECT_NE(patch.err.find("dir: mode 0755 -> 0700"), std::string::npos) << patch.describe();
  const RunOutput stat = cli({"diff", "--stat", session.id()});
  for (const char* shown : {"0644 -> 0755", "0755 to 0700", "0644 to 0600"}) {
    EXPECT_NE(stat.out.find(shown), std::string::npos) << shown << stat.describe();
  }
  EXPECT_EQ(cli({"commit", "--dry-run", session.id()}).out,
            "M content (mode 0644 -> 0755)\nM dir (mode 0755 -> 0700)\nM f (mode 0644 -> 0600)\n");
  EXPECT_EQ(cli({"commit", "--dry-run", "--json", session.id()}).json()["applied"][2]["mode_change"],
            "mode 0644 -> 0600");
  EXPECT_EQ(applied(commit(session)), "content\ndir\nf\n");
  EXPECT_EQ(modeOf(workspace / "f"), 0600U);
  EXPECT_EQ(modeOf(workspace / "content"), 0755U);
  EXPECT_EQ(modeOf(workspace / "dir"), 0700U);
}

TEST_F(CommitRights, NarrowerModeOfAGroupWritableFileArrives) {
  workspace.write("f", "old\n");
  workspace.write("kept", "old\n");
  mode("f", 0664);
  mode("kept", 0664);
  Session session = createLater();
  output(session, "chmod 600 f; rm kept; echo new > kept; chmod 644 kept");
  EXPECT_EQ(applied(commit(session)), "f\nkept\n");
  EXPECT_EQ(modeOf(workspace / "f"), 0600U);
  EXPECT_EQ(modeOf(workspace / "kept"), 0664U) << "written anew by a program with another umask";
}

TEST_F(CommitRights, ModeThatTheHostChangedMeanwhileIsAConflict) {
  workspace.write("dir/x", "x\n");
  mode("dir", 0755);
  Session session = createLater();
  output(session, "chmod 750 dir");
  mode("dir", 0775);
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.conflicts), "dir\n");
  EXPECT_EQ(modeOf(workspace / "dir"), 0775U);
}

TEST_F(CommitRights, WithoutARecordAModeThatMayHaveChangedIsAConflict) {
  for (const char* name : {"dir/x", "quiet/x"}) workspace.write(name, "x\n");
  for (const char* name : {"dir", "quiet"}) mode(name, 0755);
  Session session = createLater();
  ASSERT_EQ(::unlink((home_path + "/sessions/" + session.id() + "/directories").c_str()), 0);
  output(session, "chmod 700 dir quiet");
  mode("dir", 0750);
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.conflicts), "dir\n");
  EXPECT_EQ(applied(report), "quiet\n");
  EXPECT_EQ(modeOf(workspace / "dir"), 0750U);
}

TEST_F(CommitRights, AccessListAndAttributesAreKept) {
  constexpr const char* kList = "system.posix_acl_access";
  for (const char* name : {"listed", "noted", "plain"}) workspace.write(name, "old\n");
  const std::string list = accessList(6, 6, 0, 6);  // the group has no access; the mask shows as group bits
  requireOrSkip(::setxattr((workspace / "listed").c_str(), kList, list.data(), list.size(), 0) == 0,
                "no access lists on this file system");
  if (IsSkipped()) return;
  ASSERT_EQ(::setxattr((workspace / "noted").c_str(), "user.origin", "of the host", 11, 0), 0);
  Session session = createLater();
  output(session, "for f in listed noted plain; do echo new > $f.tmp; chmod --reference=$f $f.tmp; mv $f.tmp $f; done");
  EXPECT_EQ(applied(commit(session)), "listed\nnoted\nplain\n");
  EXPECT_EQ(readFile(workspace / "listed"), "new\n");
  EXPECT_EQ(attribute("listed", kList), list) << "the group has no access";
  EXPECT_EQ(attribute("noted", "user.origin"), "of the host");
  EXPECT_EQ(attribute("plain", kList), "none");
  EXPECT_EQ(attribute("plain", "user.origin"), "none");
}

TEST_F(CommitRights, OwnerAndGroupOfAFileStayThroughCommitAndUncommit) {
  std::vector<gid_t> groups(64);
  groups.resize(static_cast<std::size_t>(std::max(::getgroups(64, groups.data()), 0)));
  std::erase(groups, ::getegid());
  if (::geteuid() == 0) groups = {23456};
  requireOrSkip(!groups.empty(), "the user is in one group only");
  if (IsSkipped()) return;
  const uid_t owner = ::geteuid() == 0 ? 12345 : ::geteuid();
  for (const char* name : {"f", "gone"}) workspace.write(name, "old\n");
  Session session = createLater();
  output(session, "rm f gone; echo new > f; chmod 660 f");
  // Only now: as root, a sandbox cannot replace files of other users.
  for (const char* name : {"f", "gone"}) {
    ASSERT_EQ(::chown((workspace / name).c_str(), owner, groups.front()), 0);
    mode(name, 0660);
  }
  EXPECT_EQ(applied(commit(session, {.theirs = {"f", "gone"}})), "f\ngone\n");
  const auto expectSame = [&](const std::string& name) {
    struct stat status{};
    ASSERT_EQ(::stat((workspace / name).c_str(), &status), 0) << name;
    EXPECT_EQ(status.st_uid, owner) << name;
    EXPECT_EQ(status.st_gid, groups.front()) << name;
    EXPECT_EQ(status.st_mode & 07777U, 0660U) << name;
  };
  expectSame("f");
  EXPECT_EQ(cli({"uncommit", session.id()}).exit_status, 0);
  for (const char* name : {"f", "gone"}) expectSame(name);
}

TEST_F(CommitRights, GroupThatCannotBeGivenLeavesAnotherOneNoMoreThanOthers) {
  requireOrSkip(::geteuid() == 0, "only root can be in other groups");
  if (IsSkipped()) return;
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr gid_t kMine = 5000, kForeign = 5001, kPrimary = 6000;
    const std::string own = workspace / "own", foreign = workspace / "foreign";
    const int first = ::open(own.c_str(), O_RDWR | O_CREAT, 0600),
              second = ::open(foreign.c_str(), O_RDWR | O_CREAT, 0600);
    const bool made = ::fchown(first, 7000, kPrimary) == 0 && ::fchown(second, 7000, kPrimary) == 0;
    const bool dropped = made && ::setgroups(1, &kMine) == 0 && ::setresgid(kPrimary, kPrimary, kPrimary) == 0 &&
                         ::setresuid(7000, 7000, 7000) == 0;
    struct stat status{};
    const bool given = session::takeOwner(first, {7000, kMine}, 0664) == 0664 && ::fstat(first, &status) == 0 &&
                       status.st_gid == kMine && session::modeForOwner(session::HostOwner{7000, kMine}, 0664) == 0664;
    const bool limited = session::takeOwner(second, {7000, kForeign}, 0674) == 0644 &&
                         session::takeOwner(second, {7000, kForeign}, 0660) == 0600 &&
                         session::modeForOwner(session::HostOwner{7000, kForeign}, 0674) == 0644;
    ::_exit(!dropped ? 2 : !given ? 3 : !limited ? 4 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(CommitRights, FileIsNotGivenTheDefaultListOfItsDirectory) {
  workspace.write("dir/old", "old\n");
  mode("dir/old", 0600);
  // Without a user: a sandbox cannot give a new file an entry for an id that it does not have.
  const std::string list = accessList(7, 0, 5, 7);
  requireOrSkip(::setxattr((workspace / "dir").c_str(), "system.posix_acl_default", list.data(), list.size(), 0) == 0,
                "no access lists on this file system");
  if (IsSkipped()) return;
  Session session = createLater();
  output(session,
         "cat dir/old > dir/tmp; echo new >> dir/tmp; chmod 600 dir/tmp; mv dir/tmp dir/old; echo x > dir/made");
  EXPECT_EQ(applied(commit(session)), "dir/made\ndir/old\n");
  EXPECT_EQ(attribute("dir/old", "system.posix_acl_access"), "none");
  EXPECT_EQ(modeOf(workspace / "dir/old"), 0600U);
  EXPECT_NE(attribute("dir/made", "system.posix_acl_access"), "none") << "a new file gets it";
}

/// `path` gets a default list, which whatever is made in it inherits.
bool giveDefaultList(const std::string& path) {
  const std::string list = accessList(7, 7, 5, 7);
  return ::setxattr(path.c_str(), "system.posix_acl_default", list.data(), list.size(), 0) == 0;
}

TEST_F(CommitRights, ListOfTheStoresDirectoryIsNotInherited) {
  for (const char* name : {"plain", "link", "dir/x"}) workspace.write(name, "old\n");
  mode("plain", 0640);
  Session session = createLater();
  requireOrSkip(giveDefaultList(home_path + "/sessions/" + session.id()), "no access lists on this file system");
  if (IsSkipped()) return;
  output(session,
         "echo new >> plain; echo x > made; mkdir made_dir; echo x > made_dir/x; rm -r dir; echo x > dir; rm "
         "link; mkdir link");
  EXPECT_EQ(applied(commit(session)), "dir\nlink\nmade\nmade_dir\nmade_dir/x\nplain\n");
  for (const char* name : {"plain", "made", "made_dir", "made_dir/x", "dir", "link"}) {
    EXPECT_EQ(attribute(name, "system.posix_acl_access"), "none") << name;
    EXPECT_EQ(attribute(name, "system.posix_acl_default"), "none") << name;
  }
  EXPECT_EQ(modeOf(workspace / "plain"), 0640U);
  const auto undone = store->uncommit(session.id());
  ASSERT_TRUE(undone) << undone.error().message();
  EXPECT_TRUE(undone->complete());
  for (const char* name : {"plain", "link", "dir", "dir/x"}) {
    EXPECT_EQ(attribute(name, "system.posix_acl_access"), "none") << name;
    EXPECT_EQ(attribute(name, "system.posix_acl_default"), "none") << name;
  }
}

/// The staging directory is made in the workspace's top then.
class CommitRightsAcrossMounts : public AcrossMounts<CommitRights> {};

TEST_F(CommitRightsAcrossMounts, ListOfTheTopIsNotInheritedBelowADirectoryWithoutOne) {
  put("private/a", "old\n");
  requireOrSkip(giveDefaultList(elsewhere), "no access lists on this file system");
  if (IsSkipped()) return;
  letFileTimesSettle();
  SessionOptions wanted = options();
  ASSERT_TRUE(wanted.policy.set("filesystem.workspace.path", elsewhere));
  auto made = store->create(wanted);
  ASSERT_TRUE(made) << made.error().message();
  output(*made, "echo new >> private/a; echo x > private/made; mkdir private/dir; echo x > top");
  EXPECT_EQ(applied(commit(*made)), "private/a\nprivate/dir\nprivate/made\ntop\n");
  const auto list = [&](const std::string& name) {
    return ::lgetxattr((elsewhere + "/" + name).c_str(), "system.posix_acl_access", nullptr, 0) >= 0;
  };
  for (const char* name : {"private/a", "private/made", "private/dir"}) EXPECT_FALSE(list(name)) << name;
  EXPECT_TRUE(list("top")) << "made in the directory that has the list";
}

TEST_F(CommitRights, DigestCoversWhatIsReplacedAndDeleted) {
  for (const char* name : {"f", "gone", "tree/sub/x", "kind/x"}) workspace.write(name, "old\n");
  Session session = createLater();
  output(session, "echo session > f; rm -r gone tree kind; echo x > kind");
  workspace.write("f", "host 1\n");
  workspace.write("gone", "host 1\n");
  const CommitRequest dry{.dry_run = true, .theirs = {"f", "gone"}};
  std::string digest = commit(session, dry).digest;
  EXPECT_EQ(commit(session, dry).digest, digest) << "the same twice";
  CommitRequest request{.expect = digest, .theirs = {"f", "gone"}};
  sleepFor(std::chrono::milliseconds(10));
  workspace.write("f", "host 2\n");
  EXPECT_FALSE(session.commit(request)) << "the newer edit was not reviewed";
  EXPECT_EQ(readFile(workspace / "f"), "host 2\n");
  request.expect = commit(session, dry).digest;
  sleepFor(std::chrono::milliseconds(10));
  workspace.write("gone", "host 2\n");
  EXPECT_FALSE(session.commit(request)) << "what is deleted was not reviewed";
  EXPECT_EQ(readFile(workspace / "gone"), "host 2\n");
  request.expect = commit(session, dry).digest;
  EXPECT_EQ(applied(commit(session, request)), "f\ngone\nkind\ntree\n");
}

/// A program of the host writes through a mapping: the times of the file change when a page becomes dirty, and not
/// again before it is written.
TEST_F(CommitRights, WriteThroughAMappingAfterTheReviewIsNoticed) {
  struct statfs system{};
  ASSERT_EQ(::statfs(workspace.path().c_str(), &system), 0);
  requireOrSkip(system.f_type != TMPFS_MAGIC, "a tmpfs never writes pages, so changes of a dirty one leave no trace");
  if (IsSkipped()) return;
  workspace.write("f", "old\n");
  Session session = createLater();
  output(session, "echo session > f");
  const int file = ::open((workspace / "f").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  void* const mapped = ::mmap(nullptr, 4, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::memcpy(mapped, "hst1", 4);  // the page is dirty from now on
  const CommitRequest dry{.dry_run = true, .theirs = {"f"}};
  const std::string digest = commit(session, dry).digest;
  sleepFor(std::chrono::milliseconds(10));
  std::memcpy(mapped, "hst2", 4);
  EXPECT_FALSE(session.commit({.expect = digest, .theirs = {"f"}}));
  EXPECT_EQ(readFile(workspace / "f"), "hst2");
  ::munmap(mapped, 4);
  ::close(file);
}

/// The page is dirty before the session begins: what the program writes into it later leaves no trace.
TEST_F(CommitRights, WriteThroughAMappingThatIsOlderThanTheSessionIsAConflict) {
  for (const char* name : {"mapped", "free"}) workspace.write(name, "old\n");
  const int file = ::open((workspace / "mapped").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(file, 0);
  void* const mapped = ::mmap(nullptr, 4, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  ::close(file);
  std::memcpy(mapped, "hst1", 4);
  Session session = createLater();
  output(session, "echo session > mapped; echo session > free");
  std::memcpy(mapped, "hst2", 4);
  const CommitReport report = commit(session);
  EXPECT_EQ(paths(report.conflicts), "mapped\n");
  EXPECT_EQ(applied(report), "free\n");
  EXPECT_EQ(readFile(workspace / "mapped"), "hst2");
  EXPECT_EQ(applied(commit(session, {.theirs = {"mapped"}})), "mapped\n") << "the owner decides";
  ::munmap(mapped, 4);
}

/// With an access list, the mode shows its mask in the place of the group's permissions.
TEST_F(CommitRights, MaskOfAnAccessListDoesNotBecomeAccessOfTheGroup) {
  workspace.write("a.txt", "secret\n");
  workspace.write("d/f", "secret\n");
  mode("a.txt", 0600);
  mode("d/f", 0600);
  mode("d", 0700);
  for (const char* list : {"a.txt", "d"}) {
    const std::string value = accessList(7, 7, 0, 7, ::getuid());  // a user that exists in the sandbox
    requireOrSkip(::setxattr((workspace / list).c_str(), "system.posix_acl_access", value.data(), value.size(), 0) == 0,
                  "no access lists");
    if (IsSkipped()) return;
    ASSERT_NE(modeOf(workspace / list) & 0070U, 0U) << "the mask";
  }
  Session session = createLater();
  output(session, "mv a.txt b.txt; cp -a d e; mv d/f e/g");
  const CommitReport report = commit(session);
  EXPECT_TRUE(report.complete());
  EXPECT_EQ(modeOf(workspace / "b.txt") & 0077U, 0U);
  EXPECT_EQ(modeOf(workspace / "e") & 0077U, 0U);
  EXPECT_EQ(readFile(workspace / "b.txt"), "secret\n");
}

TEST_F(CommitRights, CopyOverAFileOfTheHostKeepsItsRights) {
  workspace.write("x", "x\n");
  workspace.write("listed", "old\n");
  workspace.write("private", "old\n");
  mode("private", 0600);
  constexpr const char* kList = "system.posix_acl_access";
  const std::string list = accessList(6, 4, 0, 4);
  requireOrSkip(::setxattr((workspace / "listed").c_str(), kList, list.data(), list.size(), 0) == 0,
                "no access lists on this file system");
  if (IsSkipped()) return;
  ASSERT_EQ(::setxattr((workspace / "private").c_str(), "user.origin", "of the host", 11, 0), 0);
  Session session = createLater();
  output(session, "echo new > o; chmod 666 o");
  for (const char* name : {"listed", "private", "fresh"}) {
    const RunOutput copied = cli({"cp", session.id() + ":o", workspace / name});
    EXPECT_EQ(copied.exit_status, 0) << copied.describe();
    EXPECT_EQ(readFile(workspace / name), "new\n");
  }
  EXPECT_EQ(attribute("listed", kList), list);
  EXPECT_EQ(modeOf(workspace / "private"), 0600U);
  EXPECT_EQ(attribute("private", "user.origin"), "of the host");
  EXPECT_NE(modeOf(workspace / "fresh") & 0044U, 0U) << "a new file has the session's mode, within the umask";
}

}  // namespace
}  // namespace caisson::test
