#include "host/root_view.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "support/temp_dir.h"

namespace caisson::host {
namespace {

using test::TempDir;

void makeLink(const std::string& to, const std::string& path) { ASSERT_EQ(::symlink(to.c_str(), path.c_str()), 0); }

TEST(RootView, LinksLeadInsideTheRoot) {
  const TempDir root, outside;
  outside.write("passwd", "outside");
  root.write("real/passwd", "inside");
  makeLink("/real", root / "etc");
  makeLink(outside.path(), root / "escape");
  makeLink("../../../../../real", root / "real/up");
  makeLink("loop", root / "loop");
  const auto view = RootView::open({root.path()});
  ASSERT_TRUE(view);
  EXPECT_EQ(view->readFile("/etc/passwd", 100), "inside");
  EXPECT_EQ(view->resolve("/etc/passwd"), "/real/passwd");
  EXPECT_EQ(view->resolve("/real/up/passwd"), "/real/passwd");
  EXPECT_EQ(view->resolve("/etc/absent/x"), "/real/absent/x");
  EXPECT_EQ(view->readFile("/escape/passwd", 100), std::nullopt);
  EXPECT_EQ(view->resolve("/loop/x"), std::nullopt);
  EXPECT_EQ(view->resolve("/real/passwd/x"), std::nullopt);
  EXPECT_TRUE(view->isDirectory("/etc"));
  EXPECT_FALSE(view->isFile("/etc"));
  EXPECT_TRUE(view->isFile("/etc/passwd"));
}

TEST(RootView, LargeAndSpecialFilesAreNotRead) {
  const TempDir root;
  root.write("large", std::string(101, 'x'));
  ASSERT_EQ(::mkfifo((root / "fifo").c_str(), 0600), 0);
  const auto view = RootView::open({root.path()});
  ASSERT_TRUE(view);
  EXPECT_EQ(view->readFile("/large", 100), std::nullopt);
  EXPECT_EQ(view->readFile("/large", 101), std::string(101, 'x'));
  EXPECT_EQ(view->readFile("/fifo", 100), std::nullopt);
}

TEST(RootView, UpperLayersHideLowerOnes) {
  const TempDir upper, lower;
  lower.write("etc/passwd", "lower");
  lower.write("etc/group", "lower");
  lower.write("hidden/file", "lower");
  lower.write("opaque/file", "lower");
  upper.write("etc/passwd", "upper");
  upper.makeDir("opaque");
  if (::mknod((upper / "hidden").c_str(), S_IFCHR, makedev(0, 0)) != 0 ||
      ::setxattr((upper / "opaque").c_str(), "user.overlay.opaque", "y", 1, 0) != 0) {
    GTEST_SKIP() << "this file system or user can make no whiteout";
  }
  makeLink("usr/lib", upper / "lib");
  const auto view = RootView::open({upper.path(), lower.path()});
  ASSERT_TRUE(view);
  EXPECT_EQ(view->readFile("/etc/passwd", 100), "upper");
  EXPECT_EQ(view->readFile("/etc/group", 100), "lower");
  EXPECT_FALSE(view->isDirectory("/hidden"));
  EXPECT_FALSE(view->isFile("/opaque/file"));
  const std::map<std::string, std::string> expected{{"etc", ""}, {"lib", "usr/lib"}, {"opaque", ""}};
  EXPECT_EQ(view->topLevel(), expected);
}

}  // namespace
}  // namespace caisson::host
