#include "host/denied_matches.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "support/temp_dir.h"
#include "sys/fd.h"

namespace caisson::host {
namespace {

using Names = std::vector<std::string>;

class DeniedMatches : public testing::Test {
 protected:
  Names find(const Names& entries) {
    const sys::Fd root(::open(directory.path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    Names found = deniedMatches(root.get(), entries);
    std::ranges::sort(found);
    return found;
  }

  const test::TempDir directory;
};

TEST_F(DeniedMatches, PatternsMatchAtEveryDepth) {
  directory.write("x", "");
  directory.write("a/x", "");
  directory.write("a/b/x", "");
  directory.write("a/b/y", "");
  EXPECT_EQ(find({"**/x"}), (Names{"a/b/x", "a/x", "x"}));
  EXPECT_EQ(find({"a/**/x", "**/y"}), (Names{"a/b/x", "a/b/y", "a/x"}));
  EXPECT_EQ(find({"a/**"}), (Names{"a/b", "a/x"}));
  EXPECT_EQ(find({"a/b", "a/b/x", "nothing"}), (Names{"a/b", "a/b/x"})) << "each entry for itself";
  EXPECT_EQ(find({"[ax]"}), (Names{"a", "x"}));
}

TEST_F(DeniedMatches, ManyStarsCostNoMoreThanOne) {
  std::string deep = "d";
  for (int i = 0; i < 100; ++i) deep += "/d";
  directory.write(deep + "/x", "");
  std::string entry;
  for (int i = 0; i < 60; ++i) entry += "**/d/";
  EXPECT_EQ(find({entry + "**/x"}), Names{deep + "/x"});
  EXPECT_EQ(find({entry + "**/y"}), Names());
}

TEST_F(DeniedMatches, WhatCannotBeReadIsDeniedAsAWhole) {
  directory.write("closed/in/x", "");
  directory.write("open/x", "");
  ASSERT_EQ(::chmod((directory / "closed").c_str(), 0), 0);
  if (::geteuid() != 0) {
    EXPECT_EQ(find({"**/x"}), (Names{"closed", "open/x"}));
    EXPECT_EQ(find({"open/x"}), Names{"open/x"}) << "not read for this entry";
  }
  ASSERT_EQ(::chmod((directory / "closed").c_str(), 0700), 0);
  EXPECT_EQ(find({"**/x"}), (Names{"closed/in/x", "open/x"}));
}

TEST_F(DeniedMatches, PathsThatNoCallTakesAreDeniedAbove) {
  const std::string name(200, 'd');
  std::string deep = directory.path();
  sys::Fd at(::open(deep.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(::mkdirat(at.get(), name.c_str(), 0755), 0);
    at = sys::Fd(::openat(at.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  const sys::Fd file(::openat(at.get(), "x", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
  const Names found = find({"**/x"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_LT(found.front().size(), 2500U);
  EXPECT_TRUE(found.front().starts_with(name));
}

}  // namespace
}  // namespace caisson::host
