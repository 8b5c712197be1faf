#include "supervise/workspace/changes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <iterator>

#include "support/temp_dir.h"
#include "sys/fd.h"

namespace caisson::supervise {
namespace {

using test::TempDir;

class DiscardedChanges : public testing::Test {
 protected:
  /// The notice about this tree, or "" if there is none.
  [[nodiscard]] std::string notice() const {
    const sys::Fd fd(::open(upper.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    plan::Plan plan;
    plan.workspace_target = "/workspace";
    RunResult result;
    noteDiscardedChanges(findChangedFiles(fd.get()), plan, result);
    EXPECT_LE(result.notices.size(), 1U);
    return result.notices.empty() ? "" : result.notices.front();
  }

  TempDir upper;
};

TEST_F(DiscardedChanges, NoChangesGiveNoNotice) { EXPECT_EQ(notice(), ""); }

TEST_F(DiscardedChanges, OneChangeIsCountedOnce) {
  upper.write("a", "x");
  EXPECT_EQ(notice(), "1 changed file in /workspace discarded; keep changes with --workspace DIR:rw");
}

TEST_F(DiscardedChanges, FilesLinksAndEmptyDirectoriesCountButNonEmptyOnesDoNot) {
  upper.write("a", "x");
  upper.write("deep/er/b", "x");
  upper.write("deep/er/c", "x");
  upper.makeDir("empty");
  ASSERT_EQ(::symlink("/", (upper / "root").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (upper / "deep/dangling").c_str()), 0);
  ASSERT_EQ(::mkfifo((upper / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(notice().starts_with("7 changed files ")) << notice();
}

TEST_F(DiscardedChanges, ALinkIsNeverFollowed) {
  TempDir elsewhere;
  for (int i = 0; i < 50; ++i) elsewhere.write(std::to_string(i), "x");
  ASSERT_EQ(::symlink(elsewhere.path().c_str(), (upper / "link").c_str()), 0);
  ASSERT_EQ(::symlink(".", (upper / "circle").c_str()), 0);
  EXPECT_TRUE(notice().starts_with("2 changed files ")) << notice();
}

TEST_F(DiscardedChanges, VeryDeepTreeIsReportedAsMoreThan) {
  std::string path = "d";
  for (int depth = 0; depth < 100; ++depth) path += "/d";
  upper.write(path + "/file", "x");
  upper.write("near", "x");
  EXPECT_TRUE(notice().starts_with("more than ")) << notice();
}

TEST_F(DiscardedChanges, UnreadableDirectoryIsReportedAsMoreThan) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may open everything";
  upper.makeDir("closed", 0);
  upper.write("near", "x");
  EXPECT_EQ(notice(), "more than 1 changed files in /workspace discarded; keep changes with --workspace DIR:rw");
}

TEST_F(DiscardedChanges, NoDescriptorIsLeftOpen) {
  upper.write("a/b/c/d", "x");
  const auto count = [] {
    using Iterator = std::filesystem::directory_iterator;
    return std::distance(Iterator("/proc/self/fd"), Iterator());
  };
  const auto before = count();
  (void)notice();
  EXPECT_EQ(count(), before);
}

TEST_F(DiscardedChanges, AreNamedAndFilteredByTime) {
  upper.write("deep/b", "x");
  const sys::Fd fd(::open(upper.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(findChangedFiles(fd.get()).names, std::vector<std::string>{"deep/b"});
  timespec later{};
  ::clock_gettime(CLOCK_REALTIME, &later);
  ++later.tv_sec;
  EXPECT_EQ(findChangedFiles(fd.get(), 100, later).count, 0U);
  for (int i = 0; i < 30; ++i) upper.write(std::to_string(i), "x");
  const ChangedFiles all = findChangedFiles(fd.get());
  EXPECT_EQ(all.count, 31U);
  EXPECT_EQ(all.names.size(), ChangedFiles::kMaxNames);
  EXPECT_TRUE(all.complete);
  EXPECT_FALSE(findChangedFiles(fd.get(), 10).complete);
}

}  // namespace
}  // namespace caisson::supervise
