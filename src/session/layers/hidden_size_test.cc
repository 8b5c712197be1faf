#include "session/layers/hidden_size.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "support/temp_dir.h"

namespace caisson::session {
namespace {

constexpr std::size_t kFile = 1 << 20;

class HiddenSizeTest : public testing::Test {
 protected:
  HiddenSizeTest() : store(*sys::RootDir::open(directory.path())) {}
  void file(const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(full(path)).parent_path());
    std::ofstream(full(path)) << std::string(kFile, 'x');
  }
  void whiteout(const std::string& path) {
    std::filesystem::create_directories(std::filesystem::path(full(path)).parent_path());
    ASSERT_EQ(::mknod(full(path).c_str(), S_IFCHR, 0), 0);
  }
  [[nodiscard]] std::string full(const std::string& path) const { return directory.path() + "/" + path; }
  [[nodiscard]] std::uint64_t hidden(const std::vector<std::string>& layers,
                                     const std::set<std::string>& counted = {}) const {
    return sizeOfHidden(store, layers, counted, std::chrono::seconds(5),
                        std::chrono::steady_clock::now() + std::chrono::seconds(60))
        .bytes;
  }
  test::TempDir directory;
  sys::RootDir store;
};

TEST_F(HiddenSizeTest, VisibleFilesAreNotHidden) {
  file("upper/a");
  file("old/b");
  EXPECT_EQ(hidden({"upper", "old"}), 0U);
}

TEST_F(HiddenSizeTest, DeletedAndOverwrittenFilesAreHidden) {
  file("upper/a");
  whiteout("upper/b");
  file("old/a");
  file("old/b");
  EXPECT_EQ(hidden({"upper", "old"}), 2 * kFile);
}

TEST_F(HiddenSizeTest, DeletedDirectoryHidesItsTree) {
  whiteout("upper/d/e");
  file("old/d/e/f/1");
  file("old/d/e/f/2");
  file("old/d/3");
  const std::uint64_t bytes = hidden({"upper", "old"});
  EXPECT_GE(bytes, 2 * kFile);
  EXPECT_LT(bytes, 3 * kFile);
}

TEST_F(HiddenSizeTest, OpaqueDirectoryHidesWhatIsBelow) {
  file("upper/d/new");
  file("old/d/old");
  if (::setxattr(full("upper/d").c_str(), "user.overlay.opaque", "y", 1, 0) != 0) GTEST_SKIP() << "no user xattrs here";
  EXPECT_GE(hidden({"upper", "old"}), kFile);
}

TEST_F(HiddenSizeTest, FrozenLayerHidesOlderOnes) {
  whiteout("middle/a");
  file("old/a");
  std::filesystem::create_directories(full("upper"));
  EXPECT_EQ(hidden({"upper", "middle", "old"}), kFile);
}

TEST_F(HiddenSizeTest, LayerOfACheckpointCounts) {
  whiteout("upper/a");
  file("old/a");
  EXPECT_EQ(hidden({"upper", "old"}, {"old"}), 0U);
}

TEST_F(HiddenSizeTest, StopsAtTheDeadline) {
  whiteout("upper/a");
  file("old/a");
  const auto now = std::chrono::steady_clock::now();
  const std::chrono::seconds much(5);
  EXPECT_EQ(sizeOfHidden(store, {"upper", "old"}, {}, much, now - std::chrono::seconds(1)).bytes, 0U);
}

TEST_F(HiddenSizeTest, WaitingIsNotWork) {
  whiteout("upper/a");
  file("old/a");
  const std::chrono::seconds none(0);
  const auto later = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  EXPECT_EQ(sizeOfHidden(store, {"upper", "old"}, {}, none, later).bytes, 0U);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(sizeOfHidden(store, {"upper", "old"}, {}, std::chrono::milliseconds(50), later).bytes, kFile);
}

}  // namespace
}  // namespace caisson::session
