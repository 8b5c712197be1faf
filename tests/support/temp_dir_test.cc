#include "support/temp_dir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>

namespace caisson::test {
namespace {

TEST(TempDir, VanishesWithEverythingInIt) {
  std::string path;
  {
    const TempDir directory;
    path = directory.path();
    directory.write("a/b/c", "x");
    chmod((directory / "a/b").c_str(), 0);
    ASSERT_TRUE(exists(directory / "a"));
  }
  EXPECT_FALSE(exists(path));
}

TEST(TempDir, RemovesLinksAndNotWhatTheyPointAt) {
  const TempDir kept;
  const Canary canary(kept / "canary");
  {
    const TempDir removed;
    ASSERT_EQ(symlink(kept.path().c_str(), (removed / "to-directory").c_str()), 0);
    ASSERT_EQ(symlink(canary.path().c_str(), (removed / "to-file").c_str()), 0);
  }
  EXPECT_TRUE(canary.untouched());
}

TEST(Canary, NoticesChangeReplacementAndRemoval) {
  const TempDir directory;
  const Canary changed(directory / "a");
  EXPECT_TRUE(changed.untouched());
  directory.write("a", "other");
  EXPECT_FALSE(changed.untouched());

  const Canary replaced(directory / "b");
  directory.write("c", replaced.secret() + "\n");
  ASSERT_EQ(rename((directory / "c").c_str(), (directory / "b").c_str()), 0);
  EXPECT_FALSE(replaced.untouched());

  const Canary removed(directory / "d");
  ASSERT_EQ(unlink(removed.path().c_str()), 0);
  EXPECT_FALSE(removed.untouched());
}

TEST(Canary, RecognisesItsSecret) {
  const TempDir directory;
  const Canary canary(directory / "a");
  EXPECT_TRUE(canary.leakedInto("x " + readFile(canary.path()) + " y"));
  EXPECT_FALSE(canary.leakedInto("nothing"));
}

}  // namespace
}  // namespace caisson::test
