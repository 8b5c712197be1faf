#include "sys/path_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "sys/root_dir_testing.h"

namespace caisson::sys {
namespace {

using fixtures::Canary;
using fixtures::TempDir;
using fixtures::writeText;

class PathReaderTest : public ::testing::Test {
 protected:
  PathReaderTest() {
    EXPECT_EQ(::mkdir((tree_.path() + "/a").c_str(), 0755), 0);
    EXPECT_EQ(::mkdir((tree_.path() + "/b").c_str(), 0755), 0);
    writeText(tree_.path() + "/top", "top");
    writeText(tree_.path() + "/a/one", "1");
    writeText(tree_.path() + "/b/one", "22");
  }

  static std::string contentOf(const Result<OpenedFile>& opened) {
    char text[64] = {};
    const ssize_t got = opened ? ::read(opened->file.get(), text, sizeof(text)) : -1;
    return got < 0 ? "?" : std::string(text, static_cast<std::size_t>(got));
  }

  TempDir tree_;
  RootDir root_ = *RootDir::open(tree_.path());
  PathReader reader_{root_};
};

TEST_F(PathReaderTest, NeighboursAndOtherDirectoriesAreReadByTheirOwnPath) {
  EXPECT_EQ(contentOf(reader_.open("a/one")), "1");
  EXPECT_EQ(contentOf(reader_.open("b/one")), "22");
  EXPECT_EQ(contentOf(reader_.open("top")), "top");
  EXPECT_EQ(contentOf(reader_.open("a/one")), "1");
  EXPECT_EQ(reader_.stat("b/one")->size, 2U);
  EXPECT_EQ(reader_.stat("a")->type, FileType::directory);
}

TEST_F(PathReaderTest, MissingDirectoryIsAnErrorForEveryNameInIt) {
  EXPECT_EQ(reader_.stat("missing/one").error().sys_errno, ENOENT);
  EXPECT_EQ(reader_.stat("missing/two").error().sys_errno, ENOENT);
  EXPECT_EQ(reader_.stat("a/missing").error().sys_errno, ENOENT);
  EXPECT_EQ(reader_.stat("a/one")->size, 1U);
}

TEST_F(PathReaderTest, ForgetResolvesTheDirectoryAgain) {
  EXPECT_EQ(contentOf(reader_.open("a/one")), "1");
  ASSERT_EQ(::rename((tree_.path() + "/a").c_str(), (tree_.path() + "/c").c_str()), 0);
  ASSERT_EQ(::rename((tree_.path() + "/b").c_str(), (tree_.path() + "/a").c_str()), 0);
  EXPECT_EQ(contentOf(reader_.open("a/one")), "1");
  reader_.forget();
  EXPECT_EQ(contentOf(reader_.open("a/one")), "22");
}

TEST_F(PathReaderTest, LinksAreReadAndNeverFollowed) {
  const Canary outside;
  ASSERT_EQ(::symlink((outside.path() + "/file").c_str(), (tree_.path() + "/link").c_str()), 0);
  ASSERT_EQ(::symlink(outside.path().c_str(), (tree_.path() + "/way").c_str()), 0);
  EXPECT_EQ(reader_.open("link").error().sys_errno, ELOOP);
  EXPECT_EQ(*reader_.readLink("link"), outside.path() + "/file");
  EXPECT_EQ(reader_.stat("link")->type, FileType::link);
  EXPECT_FALSE(reader_.open("way/file"));
  EXPECT_FALSE(reader_.stat("way/file"));
}

TEST_F(PathReaderTest, PathsWithParentComponentsAreRejected) {
  writeText(tree_.path() + "/../caisson-path-reader-outside", "outside");
  EXPECT_FALSE(reader_.open("../caisson-path-reader-outside"));
  EXPECT_FALSE(reader_.stat(".."));
  EXPECT_FALSE(reader_.stat("a/.."));
  EXPECT_FALSE(reader_.stat(""));
  EXPECT_EQ(::unlink((tree_.path() + "/../caisson-path-reader-outside").c_str()), 0);
}

TEST_F(PathReaderTest, FifoIsRefusedWithoutWaiting) {
  ASSERT_EQ(::mkfifo((tree_.path() + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(reader_.open("fifo").error().sys_errno, EINVAL);
  EXPECT_EQ(reader_.open("a").error().sys_errno, EINVAL);
}

}  // namespace
}  // namespace caisson::sys
