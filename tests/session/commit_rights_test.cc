// Permissions, access lists and extended attributes of the host's files: a commit keeps them, or shows what it changes;
// what gives access to others needs the path itself. And what was reviewed includes what is replaced on the host.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>

#include "functional/commit.h"

namespace caisson::test {
namespace {

class CommitRights : public CommitTest {
 protected:
  Session createLater() {
    sleepFor(std::chrono::milliseconds(30));  // change times have the precision of the clock tick
    Session session = create();
    sleepFor(std::chrono::milliseconds(30));
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

/// An access list in the kernel's format, with an entry for user 12345 unless `user` is 0.
std::string accessList(unsigned owner, unsigned user, unsigned group, unsigned mask) {
  std::string list("\2\0\0\0", 4);
  const auto add = [&](std::uint16_t tag, std::uint16_t rights, std::uint32_t id) {
    list.append(reinterpret_cast<const char*>(&tag), 2).append(reinterpret_cast<const char*>(&rights), 2);
    list.append(reinterpret_cast<const char*>(&id), 4);
  };
  add(0x01, static_cast<std::uint16_t>(owner), 0xffffffff);
  if (user != 0) add(0x02, static_cast<std::uint16_t>(user), 12345);
  add(0x04, static_cast<std::uint16_t>(group), 0xffffffff);
  add(0x10, static_cast<std::uint16_t>(mask), 0xffffffff);
  add(0x20, 0, 0xffffffff);
  return list;
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

}  // namespace
}  // namespace caisson::test
