#include "supervise/disk/caches.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "support/temp_dir.h"

namespace caisson::supervise {
namespace {

using test::exists;
using test::readFile;
using test::TempDir;

class Caches : public testing::Test {
 protected:
  void SetUp() override { ::setenv("CAISSON_HOME", home.path().c_str(), 1); }

  static plan::MountTmpfs step(const std::string& key, std::uint64_t bytes = 1000) {
    return {.target = "/home/sandbox/.cache", .bytes = bytes, .on_disk = true, .cache = key};
  }
  static void write(int directory, const char* name) {
    const int file = ::openat(directory, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    ::close(file);
  }

  TempDir home;
};

TEST_F(Caches, KeepTheirContentForTheSameKeyOnly) {
  std::string path;
  {
    const auto first = openCache(step("workspace-1"));
    ASSERT_TRUE(first) << first.error().message();
    path = first->path;
    write(first->descriptor.get(), "kept");
  }
  const auto again = openCache(step("workspace-1"));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->path, path);
  EXPECT_TRUE(exists(path + "/kept"));
  const auto other = openCache(step("workspace-2"));
  ASSERT_TRUE(other);
  EXPECT_FALSE(exists(other->path + "/kept"));
}

TEST_F(Caches, AreEmptiedWhenNearlyFullAndUnused) {
  auto first = openCache(step("w"));
  ASSERT_TRUE(first);
  write(first->descriptor.get(), "kept");
  noteCacheSize(step("w"), 950);
  {
    const auto beside = openCache(step("w"));
    ASSERT_TRUE(beside);
    EXPECT_TRUE(exists(beside->path + "/kept")) << "another sandbox uses it";
  }
  first->lock.reset();
  const auto next = openCache(step("w"));
  ASSERT_TRUE(next);
  EXPECT_FALSE(exists(next->path + "/kept"));
  write(next->descriptor.get(), "new");
  const auto later = openCache(step("w"));
  ASSERT_TRUE(later);
  EXPECT_TRUE(exists(later->path + "/new")) << "the noted size is gone too";
}

TEST_F(Caches, NoteTheirUseIfTheLastOneIsLongAgo) {
  std::string path;
  {
    const auto first = openCache(step("w"));
    ASSERT_TRUE(first);
    path = first->path.substr(0, first->path.rfind('/'));
  }
  const timespec long_ago[2] = {{.tv_sec = 1'000'000'000, .tv_nsec = 0}, {.tv_sec = 1'000'000'000, .tv_nsec = 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), long_ago, 0), 0);
  ASSERT_TRUE(openCache(step("w")));
  const auto removed = removeCaches(std::chrono::hours(1));
  ASSERT_TRUE(removed);
  EXPECT_TRUE(removed->empty());
  EXPECT_TRUE(exists(path));
}

TEST_F(Caches, NoteTheirSizeAgainWhenItChanges) {
  const auto cache = openCache(step("w"));
  ASSERT_TRUE(cache);
  const std::string size = cache->path.substr(0, cache->path.rfind('/')) + "/size";
  for (const std::uint64_t bytes : {12345U, 12345U, 7U}) {
    noteCacheSize(step("w"), bytes);
    EXPECT_EQ(readFile(size), std::to_string(bytes));
  }
}

TEST_F(Caches, AreOpenedAgainAfterAPayloadClosedThem) {
  {
    const auto first = openCache(step("w"));
    ASSERT_TRUE(first);
    ASSERT_EQ(::fchmod(first->descriptor.get(), 0), 0);
  }
  const auto again = openCache(step("w"));
  ASSERT_TRUE(again) << again.error().message();
  write(again->descriptor.get(), "works");
}

TEST_F(Caches, AreRemovedWhenUnusedForLong) {
  auto first = openCache(step("w"));
  ASSERT_TRUE(first);
  const auto used = removeCaches(std::chrono::seconds(0));
  ASSERT_TRUE(used);
  EXPECT_TRUE(used->empty()) << "a sandbox uses it";
  first->lock.reset();
  const auto young = removeCaches(std::chrono::hours(1));
  ASSERT_TRUE(young);
  EXPECT_TRUE(young->empty());
  const auto old = removeCaches(std::chrono::seconds(0));
  ASSERT_TRUE(old);
  EXPECT_EQ(*old, std::vector<std::string>{"w/home%sandbox%.cache"});
  EXPECT_FALSE(exists(home / "caches/w"));
}

}  // namespace
}  // namespace caisson::supervise
