#include "supervise/disk/foreign_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "host/subordinate_ids.h"
#include "support/temp_dir.h"

namespace caisson::supervise {
namespace {

using test::TempDir;

/// Makes DIR/tree/closed/deep/file, all but the top of subordinate ids and closed to others, and a link out of the
/// tree.
bool makeForeignTree(const std::string& directory) {
  const std::string script = "cd '" + directory +
                             "' && mkdir -p tree/closed/deep outside && touch tree/closed/deep/file && "
                             "ln -s ../outside tree/link && ln -s ../../outside tree/closed/link && "
                             "unshare -r --map-auto sh -c 'chown -hR 5:6 tree/closed; chown 7 tree; chmod -R go= tree'";
  return std::system(script.c_str()) == 0;  // NOLINT: a fixed command of the test
}

class ForeignFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() == 0) GTEST_SKIP() << "root needs no subordinate ids";
    const auto ids = host::observeSubordinateIds(::geteuid(), ::getegid());
    if (!ids.why_not.empty()) GTEST_SKIP() << ids.why_not;
    if (!makeForeignTree(directory_.path())) GTEST_SKIP() << "unshare --map-auto is missing";
  }

  TempDir directory_;
};

uid_t ownerOf(const std::string& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_uid : static_cast<uid_t>(-1);
}

TEST_F(ForeignFiles, AreRemovedWithTheirTreeAndNothingElse) {
  auto root = sys::RootDir::open(directory_.path());
  ASSERT_TRUE(root);
  EXPECT_FALSE(root->removeTree("tree")) << "otherwise this test proves nothing";
  const auto removed = removeForeignTree(*root, "tree");
  EXPECT_TRUE(removed) << removed.error().message();
  EXPECT_EQ(ownerOf(directory_.path() + "/tree"), static_cast<uid_t>(-1));
  EXPECT_EQ(ownerOf(directory_.path() + "/outside"), ::geteuid());
}

TEST_F(ForeignFiles, BelongToTheCallerAfterAClaim) {
  auto root = sys::RootDir::open(directory_.path());
  ASSERT_TRUE(root);
  auto tree = root->openFile("tree", {.flags = O_PATH, .types = {sys::FileType::directory}});
  ASSERT_TRUE(tree);
  const auto claimed = claimTree(tree->get());
  ASSERT_TRUE(claimed) << claimed.error().message();
  for (const char* name : {"tree", "tree/closed", "tree/closed/deep", "tree/closed/deep/file", "tree/closed/link"})
    EXPECT_EQ(ownerOf(directory_.path() + "/" + name), ::geteuid()) << name;
}

TEST_F(ForeignFiles, DirectoryOfAnotherIdIsRenamed) {
  auto root = sys::RootDir::open(directory_.path());
  ASSERT_TRUE(root);
  EXPECT_FALSE(root->rename("tree", "outside/tree", false)) << "otherwise this test proves nothing";
  const auto renamed = renameForeign(*root, "tree", "outside/tree");
  EXPECT_TRUE(renamed) << renamed.error().message();
  const auto removed = removeForeignTree(*root, "outside");
  EXPECT_TRUE(removed) << removed.error().message();
}

}  // namespace
}  // namespace caisson::supervise
