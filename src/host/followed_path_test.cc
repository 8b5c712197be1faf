#include "host/followed_path.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "support/temp_dir.h"

namespace caisson::host {
namespace {

class FollowedPathTest : public testing::Test {
 protected:
  void SetUp() override {
    dir.write("data/proj/a/b/file", "x");
    link("data", "src");
    link("../src/proj/a", "data/alias");
  }
  void link(const std::string& target, const std::string& name) const {
    std::filesystem::create_symlink(target, dir / name);
  }
  [[nodiscard]] std::optional<FollowedPath> follow(const std::string& path) const {
    const auto root = sys::RootDir::open(workspace);
    return root ? followPath(*root, workspace, linksOutside(workspace), path) : std::nullopt;
  }
  const test::TempDir dir;
  const std::string workspace = std::filesystem::canonical(dir.path()).string() + "/data/proj";
};

TEST_F(FollowedPathTest, LeadsThroughLinksOutside) {
  const auto found = follow(dir / "src/../src/proj/./a");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, workspace + "/a");
  EXPECT_EQ(found->entered, "./a");
  EXPECT_TRUE(found->exists);
  EXPECT_EQ(follow(dir / "data/alias/b")->path, workspace + "/a/b");
  EXPECT_EQ(follow(workspace + "/../alias/none")->path, workspace + "/a/none");
  EXPECT_FALSE(follow(workspace + "/../alias/none")->exists);
}

TEST_F(FollowedPathTest, ParentOfALinkIsThatOfItsTarget) {
  link("a/b", "data/proj/lnk");
  const auto found = follow(workspace + "/lnk/../hooks");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path, workspace + "/a/hooks");
  EXPECT_EQ(found->entered, "lnk/../hooks");
  EXPECT_EQ(found->links, std::vector<std::string>{"lnk"});
  link("data/proj/a/b", "into");
  EXPECT_EQ(follow(dir / "into/../x")->path, workspace + "/a/x");
}

TEST_F(FollowedPathTest, EndsInACircle) {
  link("loop2", "loop");
  link("loop", "loop2");
  EXPECT_FALSE(follow(dir / "loop/x"));
  link("../../loop", "data/proj/.env");
  const auto root = sys::RootDir::open(workspace);
  ASSERT_TRUE(root);
  EXPECT_FALSE(linkEnd(*root, workspace, linksOutside(workspace), ".env"));
}

TEST_F(FollowedPathTest, SecondMountCountsAsALink) {
  for (const char* place : {"mounts/above", "mounts/own", "mounts/below"}) dir.makeDir(place);
  const std::string mounts = std::filesystem::canonical(dir / "mounts").string();
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ::_exit(77);
    const auto bind = [&](const std::string& from, const char* to) {
      return ::mount(from.c_str(), (mounts + to).c_str(), nullptr, MS_BIND, nullptr) == 0;
    };
    if (!bind(dir / "data", "/above") || !bind(workspace, "/own") || !bind(workspace + "/a", "/below")) ::_exit(77);
    const auto is_inside = [&](const std::string& path, const std::string& end) {
      const auto found = follow(mounts + path);
      return found && found->path == workspace + end;
    };
    ::_exit(is_inside("/above/proj/a", "/a") && is_inside("/own/x", "/x") && is_inside("/below/b", "/a/b") ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mounts can be made in a user namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace caisson::host
