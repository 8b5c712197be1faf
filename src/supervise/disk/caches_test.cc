#include "supervise/disk/caches.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <set>

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
  noteCacheSize(step("w"), {950, 1});
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
    noteCacheSize(step("w"), {bytes, 3});
    EXPECT_EQ(readFile(size), std::to_string(bytes) + " 3");
  }
}

TEST_F(Caches, AreEmptiedWhenTheirInodesAreNearlyUsed) {
  plan::MountTmpfs few = step("w");
  few.inodes = 100;
  {
    const auto first = openCache(few);
    ASSERT_TRUE(first);
    write(first->descriptor.get(), "kept");
  }
  noteCacheSize(few, {10, 80});
  EXPECT_TRUE(exists(openCache(few)->path + "/kept"));
  noteCacheSize(few, {10, 95});
  EXPECT_FALSE(exists(openCache(few)->path + "/kept"));
}

TEST_F(Caches, AreKeptAsEvidenceAfterAnEscapeAttempt) {
  const auto attacked = openCache(step("w"));
  ASSERT_TRUE(attacked);
  for (const char* planted : {"first", "second"}) {
    const auto cache = openCache(step("w"));
    ASSERT_TRUE(cache);
    write(cache->descriptor.get(), planted);
    const auto evidence = discardCache(step("w"));
    ASSERT_TRUE(evidence) << evidence.error().message();
    EXPECT_TRUE(exists(*evidence + "/" + planted));
    EXPECT_FALSE(exists(openCache(step("w"))->path + "/" + planted)) << "although another sandbox uses it";
  }
  EXPECT_FALSE(exists(home / "caches/w/home%2fsandbox%2f.cache/evidence/first")) << "one is kept";
}

TEST_F(Caches, HaveADistinctNameForEachPath) {
  std::set<std::string> paths;
  for (const char* target : {"/a/25b", "/a%b", "/a/b", "/a%2fb", "/.removed-a", "/removed-a"}) {
    plan::MountTmpfs one = step("w");
    one.target = target;
    const auto cache = openCache(one);
    ASSERT_TRUE(cache) << target;
    EXPECT_TRUE(paths.insert(cache->path).second) << target << " has the name of another";
    EXPECT_EQ(cache->path.find("/.removed-"), std::string::npos) << "`caisson clean` removes it while it is used";
  }
}

TEST_F(Caches, AreRefusedInADirectoryThatOthersCanWrite) {
  ASSERT_TRUE(openCache(step("w")));
  ASSERT_EQ(::chmod((home / "caches").c_str(), 0777), 0);
  EXPECT_FALSE(openCache(step("w")));
  ASSERT_EQ(::chmod((home / "caches").c_str(), 0700), 0);
  ASSERT_EQ(::rename((home / "caches").c_str(), (home / "elsewhere").c_str()), 0);
  ASSERT_EQ(::symlink("elsewhere", (home / "caches").c_str()), 0);
  EXPECT_FALSE(openCache(step("w"))) << "a link";
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

TEST_F(Caches, AreSetAsideWhenTheirConfigurationCannotBeExamined) {
  {
    const auto first = openCache(step("w"));
    ASSERT_TRUE(first);
    write(first->descriptor.get(), "kept");
    ASSERT_EQ(::mkdirat(first->descriptor.get(), "cargo", 0700), 0);
    const int tool = ::openat(first->descriptor.get(), "cargo", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < 65537; ++i) ASSERT_EQ(::mknodat(tool, std::to_string(i).c_str(), S_IFREG | 0600, 0), 0);
    ::close(tool);
  }
  const auto again = openCache(step("w"));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_FALSE(exists(again->path + "/kept"));
  EXPECT_FALSE(exists(again->path + "/cargo"));
}

TEST_F(Caches, LoseConfigurationAtTheEndUnlessInUse) {
  auto first = openCache(step("w"));
  const auto second = openCache(step("w"));
  ASSERT_TRUE(first && second);
  write(first->descriptor.get(), "config.toml");
  finishCache(first->lock);
  EXPECT_TRUE(exists(first->path + "/config.toml")) << "another sandbox uses it";
  first->lock.reset();
  finishCache(second->lock);
  EXPECT_FALSE(exists(second->path + "/config.toml"));
}

TEST_F(Caches, FollowNoLinkWhenConfigurationIsRemoved) {
  const std::string canary = home / "canary";
  ASSERT_EQ(::mkdir(canary.c_str(), 0700), 0);
  const sys::Fd outside(::open(canary.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  write(outside.get(), "config.toml");
  std::string path;
  {
    const auto cache = openCache(step("w"));
    ASSERT_TRUE(cache);
    path = cache->path;
    ASSERT_EQ(::symlinkat(canary.c_str(), cache->descriptor.get(), "bin"), 0);
    ASSERT_EQ(::symlinkat(canary.c_str(), cache->descriptor.get(), "tool"), 0);
    ASSERT_EQ(::mkdirat(cache->descriptor.get(), "cargo", 0700), 0);
    ASSERT_EQ(::symlinkat(canary.c_str(), cache->descriptor.get(), "cargo/hooks"), 0);
    ASSERT_EQ(::symlinkat(canary.c_str(), cache->descriptor.get(), "cargo/git"), 0);
  }
  ASSERT_TRUE(openCache(step("w")));
  for (const char* link : {"/bin", "/tool", "/cargo/hooks", "/cargo/git"}) {
    struct stat status{};
    EXPECT_NE(::lstat((path + link).c_str(), &status), 0) << link;
  }
  EXPECT_TRUE(exists(canary + "/config.toml"));
}

TEST_F(Caches, OfOneKeyPrefixAreRemovedAlsoInUse) {
  const auto used = openCache(step("token-a-1"));
  ASSERT_TRUE(openCache(step("token-a-2")) && openCache(step("token-ab-1")) && used);
  write(used->descriptor.get(), "file");
  ASSERT_TRUE(removeCachesOf("token-a-"));
  EXPECT_FALSE(exists(home / "caches/token-a-1"));
  EXPECT_FALSE(exists(home / "caches/token-a-2"));
  EXPECT_TRUE(exists(home / "caches/token-ab-1"));
  finishCache(used->lock);
  EXPECT_FALSE(exists(home / "caches/token-a-1"));
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
  EXPECT_EQ(*old, std::vector<std::string>{"w/home%2fsandbox%2f.cache"});
  EXPECT_FALSE(exists(home / "caches/w"));
}

}  // namespace
}  // namespace caisson::supervise
