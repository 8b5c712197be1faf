#include "sys/file_identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "sys/root_dir_testing.h"

namespace caisson::sys {
namespace {

namespace fs = std::filesystem;

class FileIdentityTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(fs::create_directory(path("app"))); }

  [[nodiscard]] std::string path(const std::string& name) const { return fs::canonical(dir_.path()) / name; }
  static FileIdentity identity(const std::string& path) {
    const Fd opened(::open(path.c_str(), O_PATH | O_CLOEXEC));
    auto found = identityOf(opened.get());
    EXPECT_TRUE(found) << found.error().message();
    return found.value_or(FileIdentity());
  }

  const fixtures::TempDir dir_;
};

TEST_F(FileIdentityTest, IsTheSameAfterARename) {
  const FileIdentity before = identity(path("app"));
  fs::rename(path("app"), path("old"));
  EXPECT_TRUE(isSameFile(before, identity(path("old"))));
}

TEST_F(FileIdentityTest, DirectoryMadeAnewIsAnotherOneAlsoWithTheSameInode) {
  const FileIdentity before = identity(path("app"));
  if (before.handle.empty()) GTEST_SKIP() << "the file system has no handles";
  for (int tries = 0; tries < 100; ++tries) {
    fs::remove(path("app"));
    fs::create_directory(path("app"));
    const FileIdentity now = identity(path("app"));
    EXPECT_FALSE(isSameFile(before, now)) << now.text();
  }
}

TEST_F(FileIdentityTest, TextIsReadBack) {
  const FileIdentity before = identity(path("app"));
  const auto read = FileIdentity::read(before.text());
  ASSERT_TRUE(read) << before.text();
  EXPECT_EQ(read->text(), before.text());
  EXPECT_TRUE(isSameFile(*read, before));
  for (const char* bad : {"", "-", "a b 1 2", "a b 1 2 c d", "a b x 2 c", "a b 1 0 c", "a  1 2 c", " a b 1 2 c"}) {
    EXPECT_FALSE(FileIdentity::read(bad)) << bad;
  }
}

TEST_F(FileIdentityTest, DeviceCountsWithinOneBootOnly) {
  const FileIdentity one{"", "", 7, 12, "boot-a"};
  EXPECT_TRUE(isSameFile(one, {"", "", 7, 12, "boot-a"}));
  EXPECT_FALSE(isSameFile(one, {"", "", 8, 12, "boot-a"}));
  EXPECT_TRUE(isSameFile(one, {"", "", 8, 12, "boot-b"}));
  EXPECT_FALSE(isSameFile(one, {"", "", 8, 13, "boot-b"}));
  EXPECT_FALSE(isSameFile(one, {"1:aa", "", 7, 12, "boot-a"})) << "with a handle and without";
  EXPECT_FALSE(isSameFile({"1:aa", "f1", 7, 12, "b"}, {"1:aa", "f2", 7, 12, "b"})) << "another file system";
  EXPECT_FALSE(isSameFile(FileIdentity(), FileIdentity())) << "no file is not a file";
}

TEST_F(FileIdentityTest, OpenWithoutLinksRefusesALinkInAnyComponent) {
  fs::create_directory(path("app/sub"));
  EXPECT_TRUE(openWithoutLinks(path("app/sub")));
  fs::rename(path("app"), path("old"));
  fs::create_directory_symlink("old", path("app"));
  for (const std::string& name : {path("app"), path("app/sub")}) {
    const auto opened = openWithoutLinks(name);
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().sys_errno, ELOOP);
  }
}

TEST_F(FileIdentityTest, OpenKnownNamesTheExpectedAndTheFoundDirectory) {
  const FileIdentity before = identity(path("app"));
  EXPECT_TRUE(openKnown(path("app"), before, "hint"));
  fs::rename(path("app"), path("old"));
  fs::create_directory(path("victim"));
  fs::create_directory_symlink("victim", path("app"));
  auto opened = openKnown(path("app"), before, "the hint");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::directory_replaced);
  for (const std::string& part : {path("app"), path("victim"), std::to_string(before.inode), std::string("the hint")}) {
    EXPECT_NE(opened.error().message().find(part), std::string::npos) << opened.error().message();
  }
  fs::remove(path("app"));
  fs::rename(path("victim"), path("app"));
  opened = openKnown(path("app"), before, "the hint");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::directory_replaced);
  EXPECT_NE(opened.error().message().find("another directory"), std::string::npos) << opened.error().message();
}

}  // namespace
}  // namespace caisson::sys
