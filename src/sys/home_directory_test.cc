#include "sys/home_directory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "support/temp_dir.h"
#include "sys/state_home.h"

namespace caisson::sys {
namespace {

class HomeDirectory : public testing::Test {
 protected:
  HomeDirectory() {
    if (const char* home = std::getenv("HOME")) before_ = home;
    directory_.makeDir("users/me/project", 0755);
    directory_.makeDir("users/metoo", 0755);
    users_ = std::filesystem::canonical(directory_ / "users").string();
  }
  ~HomeDirectory() override { ::setenv("HOME", before_.c_str(), 1); }

  const test::TempDir directory_;
  std::string users_, before_;
};

TEST_F(HomeDirectory, IsContainedInItselfAndItsAncestors) {
  for (const std::string& home : {users_ + "/me", users_ + "/me/", users_ + "/x/../me", users_ + "/me/."}) {
    ::setenv("HOME", home.c_str(), 1);
    EXPECT_EQ(homeDirectories().at(0), users_ + "/me") << home;
    for (const std::string& path : {users_ + "/me", users_, std::string("/")}) EXPECT_TRUE(holdsHome(path)) << path;
    for (const std::string& path : {users_ + "/me/project", users_ + "/metoo", users_ + "/m"})
      EXPECT_FALSE(holdsHome(path)) << path;
  }
}

TEST_F(HomeDirectory, LinkIsResolved) {
  const std::string link = directory_ / "link";
  ASSERT_EQ(::symlink((users_ + "/me").c_str(), link.c_str()), 0);
  ::setenv("HOME", link.c_str(), 1);
  EXPECT_EQ(homeDirectories().at(0), users_ + "/me");
  EXPECT_TRUE(holdsHome(users_ + "/me"));
  EXPECT_TRUE(holdsHome(users_));
}

TEST_F(HomeDirectory, WithoutHomeOnlyTheRootCounts) {
  ::unsetenv("HOME");
  EXPECT_TRUE(holdsHome("/"));
  EXPECT_FALSE(holdsHome(users_));
  ::setenv("HOME", "/", 1);
  EXPECT_TRUE(holdsHome("/"));
  EXPECT_FALSE(holdsHome(users_));
}

TEST(HomeOfUser, IsReadFromTheUserDatabase) {
  EXPECT_EQ(homeOfUser("root"), homeFromPasswd(0));
  EXPECT_EQ(homeOfUser("no such user"), "");
  EXPECT_EQ(homeOfUser(""), "");
}

}  // namespace
}  // namespace caisson::sys
