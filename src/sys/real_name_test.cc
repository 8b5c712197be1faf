#include "sys/real_name.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace caisson::sys {
namespace {

std::string canonical(const test::TempDir& directory) { return std::filesystem::canonical(directory.path()).string(); }

TEST(RealName, OfAMissingPathKeepsItsParts) {
  const test::TempDir directory;
  const RealName name = realName(directory / "a/b");
  EXPECT_EQ(name.path, canonical(directory) + "/a/b");
  EXPECT_EQ(realName("relative").path, "");
  EXPECT_EQ(realName("/").path, "");
}

TEST(RealName, FollowsDanglingLinks) {
  const test::TempDir directory;
  const std::string top = canonical(directory);
  directory.makeDir("home");
  directory.makeDir("dot");
  ASSERT_EQ(::symlink("../dot/config", (directory / "home/.config").c_str()), 0);
  ASSERT_EQ(::symlink((directory / "dot/elsewhere").c_str(), (directory / "dot/config").c_str()), 0);
  const RealName name = realName(top + "/home/.config/caisson");
  EXPECT_EQ(name.path, top + "/dot/elsewhere/caisson");
  EXPECT_EQ(name.links, (std::vector<std::string>{top + "/home/.config", top + "/dot/config"}));
}

TEST(RealName, NamesTheLinksOnTheWayToAnExistingPath) {
  const test::TempDir directory;
  const std::string top = canonical(directory);
  directory.makeDir("dot/caisson");
  ASSERT_EQ(::symlink("dot", (directory / "link").c_str()), 0);
  const RealName name = realName(top + "/link/caisson");
  EXPECT_EQ(name.path, top + "/dot/caisson");
  EXPECT_EQ(name.links, std::vector<std::string>{top + "/link"});
  EXPECT_TRUE(realName(top + "/dot/caisson").links.empty());
}

TEST(RealName, CountsAMissingDirectoryBeforeDotDotAsALink) {
  const test::TempDir directory;
  const std::string top = canonical(directory);
  ASSERT_EQ(::symlink("missing/../there", (directory / "link").c_str()), 0);
  const RealName name = realName(top + "/link");
  EXPECT_EQ(name.path, top + "/there");
  EXPECT_EQ(name.links, (std::vector<std::string>{top + "/link", top + "/missing"}));
}

TEST(RealName, EndsForLinksInACircle) {
  const test::TempDir directory;
  ASSERT_EQ(::symlink("b", (directory / "a").c_str()), 0);
  ASSERT_EQ(::symlink("a", (directory / "b").c_str()), 0);
  EXPECT_NE(realName(directory / "a/x").path, "");
}

}  // namespace
}  // namespace caisson::sys
