#include "session/commit/resulting_tree.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "sys/root_dir_testing.h"

namespace caisson::session {
namespace {

class ResultingTreeTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_.path() + "/src/inner");
    sys::fixtures::writeText(directory_.path() + "/src/file", "text");
    std::filesystem::create_symlink("..", directory_.path() + "/src/up");
  }

  bool passes(const std::string& path, std::string_view target) { return tree_.whyHeld(path, target).empty(); }

  sys::fixtures::TempDir directory_;
  sys::RootDir root_ = std::move(*sys::RootDir::open(directory_.path()));
  RealTree real_{root_};
  ResultingTree tree_{real_};
};

TEST_F(ResultingTreeTest, LinksInsidePass) {
  EXPECT_TRUE(passes("l", "src/file"));
  EXPECT_TRUE(passes("src/inner/l", "../file"));
  EXPECT_TRUE(passes("src/inner/l", "../../src"));
  EXPECT_TRUE(passes("l", "src/not yet there"));
}

TEST_F(ResultingTreeTest, LinksOutsideAreHeld) {
  EXPECT_FALSE(passes("l", "/etc/passwd"));
  EXPECT_FALSE(passes("l", "../x"));
  EXPECT_FALSE(passes("src/l", "../../x"));
}

TEST_F(ResultingTreeTest, LinkThroughAMissingDirectoryIsHeld) {
  EXPECT_FALSE(passes("l", "missing/../../x"));
  EXPECT_FALSE(passes("l", "missing/file"));
  EXPECT_FALSE(passes("l", "src/file/x"));
}

TEST_F(ResultingTreeTest, LinkOfTheWorkspaceIsFollowed) {
  EXPECT_FALSE(passes("l", "src/up/../x")) << "src/up is the workspace: its parent lies outside";
}

TEST_F(ResultingTreeTest, CommittedChangesCount) {
  tree_.put("s", sys::FileType::directory);
  tree_.put("s/u", sys::FileType::link, "..");
  EXPECT_FALSE(passes("todo.md", "s/u/../.bashrc"));
  EXPECT_TRUE(passes("l", "s/u"));
  tree_.put("away", sys::FileType::link, "/etc");
  EXPECT_FALSE(passes("l", "away"));
  EXPECT_FALSE(passes("l", "away/passwd"));
  tree_.leaveOut("away");
  EXPECT_TRUE(passes("l", "away"));
}

TEST_F(ResultingTreeTest, DeletedDirectoryIsMissing) {
  EXPECT_TRUE(passes("l", "src/inner/x"));
  tree_.putDeleted("src/inner");
  EXPECT_FALSE(passes("l", "src/inner/x"));
}

TEST_F(ResultingTreeTest, CircleOfLinksEnds) {
  tree_.put("a", sys::FileType::link, "b");
  tree_.put("b", sys::FileType::link, "a");
  EXPECT_FALSE(passes("l", "a"));
}

TEST_F(ResultingTreeTest, ParentAfterANameIsHeld) {
  EXPECT_FALSE(passes("l", "src/../src/file")) << "another commit may make src a link";
}

class RepositoryShapesTest : public ResultingTreeTest {
 protected:
  RepositoryShapes shapes_{real_};
};

TEST_F(RepositoryShapesTest, NewRepositoryIsHeldUnderAnyName) {
  for (const char* path : {"docs/HEAD", "docs/objects", "docs/refs", "docs/config"}) shapes_.addPresent(path);
  EXPECT_TRUE(shapes_.isHeld("docs/config"));
  EXPECT_TRUE(shapes_.isHeld("docs/HEAD"));
  EXPECT_FALSE(shapes_.isHeld("src/config"));
}

TEST_F(RepositoryShapesTest, PartsOfTheRealDirectoryCount) {
  std::filesystem::create_directories(directory_.path() + "/src/objects");
  std::filesystem::create_directories(directory_.path() + "/src/refs");
  shapes_.addPresent("src/HEAD");
  shapes_.addPresent("src/config");
  EXPECT_TRUE(shapes_.isHeld("src/config"));
}

TEST_F(RepositoryShapesTest, RepositoryOfTheHostTakesDataAndNoConfiguration) {
  std::filesystem::create_directories(directory_.path() + "/bare/objects");
  std::filesystem::create_directories(directory_.path() + "/bare/refs");
  sys::fixtures::writeText(directory_.path() + "/bare/HEAD", "ref: refs/heads/main\n");
  shapes_.addPresent("bare/objects/ab");
  EXPECT_FALSE(shapes_.isHeld("bare/objects/ab/cd"));
  EXPECT_TRUE(shapes_.isHeld("bare/config"));
  EXPECT_TRUE(shapes_.isHeld("bare/hooks/pre-commit"));
}

}  // namespace
}  // namespace caisson::session
