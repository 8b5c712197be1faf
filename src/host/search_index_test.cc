#include "host/search_index.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "host/workspace_scan.h"
#include "support/temp_dir.h"

namespace caisson::host {
namespace {

constexpr const char* kPrivateKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n";
constexpr int kTopDirectories = 150;

using Names = std::vector<std::string>;

class SearchIndexTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!isReliable(dir.path())) GTEST_SKIP() << "needs ext4, xfs, btrfs or tmpfs";
    const char* before = std::getenv("CAISSON_HOME");
    home_before_ = before == nullptr ? "" : before;
    ::setenv("CAISSON_HOME", home.path().c_str(), 1);
    for (int i = 0; i < kTopDirectories; ++i) dir.write("d" + std::to_string(i) + "/sub/file", "x");
  }
  void TearDown() override {
    home_before_.empty() ? ::unsetenv("CAISSON_HOME") : ::setenv("CAISSON_HOME", home_before_.c_str(), 1);
  }
  static bool isReliable(const std::string& path) {
    const sys::Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return fd && hasReliableTimes(fd.get());
  }
  /// With the index in the file. Every entry is trusted at once, unless `settled_after` says otherwise.
  Names secrets(std::int64_t settled_after = 0, const policy::ProtectedFiles* files = nullptr) {
    ScanCache cache;
    const auto found = scanWorkspace(
        dir.path(), {.protected_files = files, .index = Names(), .keep_index = true, .settled_after_ns = settled_after},
        &cache);
    EXPECT_TRUE(found.covered.empty());
    listed = cache.listed;
    return found.secrets;
  }
  static Names fresh(const std::string& path) { return scanWorkspace(path, {}).secrets; }
  [[nodiscard]] std::string indexFile() const {
    for (const auto& one : std::filesystem::directory_iterator(home / "index")) return one.path();
    return "";
  }
  static void setTimes(const std::string& path, const struct stat& status) {
    const timespec times[] = {status.st_atim, status.st_mtim};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  test::TempDir dir, home;
  std::size_t listed = 0;
  std::string home_before_;
};

TEST_F(SearchIndexTest, SecondSearchListsOnlyWhatChanged) {
  dir.write("d7/sub/.env", "x");
  dir.write("d8/sub/deploy_key", kPrivateKey);
  dir.write("d9/sub/other_key", "none");
  const Names expected{"d7/sub/.env", "d8/sub/deploy_key"};
  EXPECT_EQ(secrets(), expected);
  EXPECT_EQ(listed, 2U * kTopDirectories + 1);
  EXPECT_EQ(secrets(), expected);
  EXPECT_EQ(listed, 0U);
  dir.write("d20/sub/.env", "x");
  EXPECT_EQ(secrets(), (Names{"d20/sub/.env", "d7/sub/.env", "d8/sub/deploy_key"}));
  EXPECT_EQ(listed, 1U);
}

TEST_F(SearchIndexTest, DirectoriesThatChangedJustNowAreListedAgain) {
  constexpr std::int64_t kHour = 3600LL * 1'000'000'000;
  secrets(kHour);
  secrets(kHour);
  EXPECT_EQ(listed, 2U * kTopDirectories + 1);
}

TEST_F(SearchIndexTest, RestoredTimesHideNoNewFile) {
  secrets();
  struct stat status{};
  ASSERT_EQ(::stat((dir / "d3/sub").c_str(), &status), 0);
  dir.write("d3/sub/.env", "x");
  setTimes(dir / "d3/sub", status);
  EXPECT_EQ(secrets(), (Names{"d3/sub/.env"}));
}

TEST_F(SearchIndexTest, ContentThatChangedInPlaceIsReadAgain) {
  dir.write("d3/sub/deploy_key", std::string(std::string_view(kPrivateKey).size(), 'x'));
  EXPECT_TRUE(secrets().empty());
  struct stat status{};
  ASSERT_EQ(::stat((dir / "d3/sub/deploy_key").c_str(), &status), 0);
  dir.write("d3/sub/deploy_key", kPrivateKey);
  setTimes(dir / "d3/sub/deploy_key", status);
  EXPECT_EQ(secrets(), (Names{"d3/sub/deploy_key"}));
  dir.write("d3/sub/deploy_key", "gone");
  EXPECT_TRUE(secrets().empty());
}

TEST_F(SearchIndexTest, RenamedParentsAndReplacedDirectoriesAreSearched) {
  dir.write("d3/sub/.env", "x");
  dir.write("out/config", "[remote \"o\"]\n\turl = https://token@example.org/x\n");
  secrets();
  std::filesystem::rename(dir / "d3", dir / "moved");
  EXPECT_EQ(secrets(), (Names{"moved/sub/.env"}));
  std::filesystem::rename(dir / "moved/sub", dir / "d4/sub2");
  std::filesystem::rename(dir / "d4/sub", dir / "moved/sub");
  std::filesystem::rename(dir / "d4/sub2", dir / "d4/sub");
  EXPECT_EQ(secrets(), (Names{"d4/sub/.env"})) << "a directory that has the name of another one";
  std::filesystem::remove_all(dir / "d5/sub");
  dir.write("d5/sub/.netrc", "x");
  EXPECT_EQ(secrets(), (Names{"d4/sub/.env", "d5/sub/.netrc"}));
}

TEST_F(SearchIndexTest, ClosedDirectoriesAreNoticed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can read every directory";
  secrets();
  ASSERT_EQ(::chmod((dir / "d3/sub").c_str(), 0300), 0);
  EXPECT_EQ(secrets(), (Names{"d3/sub"}));
  ASSERT_EQ(::chmod((dir / "d3/sub").c_str(), 0700), 0);
}

TEST_F(SearchIndexTest, HardLinksOfHiddenFilesAreHidden) {
  dir.write("d3/sub/.env", "x");
  ASSERT_EQ(::link((dir / "d3/sub/.env").c_str(), (dir / "d9/sub/notes.txt").c_str()), 0);
  const Names expected{"d3/sub/.env", "d9/sub/notes.txt"};
  EXPECT_EQ(fresh(dir.path()), expected);
  EXPECT_EQ(secrets(), expected);
  EXPECT_EQ(secrets(), expected);
  EXPECT_EQ(listed, 0U) << "no second pass for files whose names are known";
  ASSERT_EQ(::link((dir / "d3/sub/.env").c_str(), (dir / "d10/sub/more.txt").c_str()), 0);
  EXPECT_EQ(secrets(), (Names{"d10/sub/more.txt", "d3/sub/.env", "d9/sub/notes.txt"}));
  dir.write("d11/sub/id_rsa", "x");
  ASSERT_EQ(::link((dir / "d11/sub/id_rsa").c_str(), (dir / "d11/plain").c_str()), 0);
  EXPECT_EQ(secrets(), (Names{"d10/sub/more.txt", "d11/plain", "d11/sub/id_rsa", "d3/sub/.env", "d9/sub/notes.txt"}));
}

TEST_F(SearchIndexTest, ProtectedFilesAreFoundWithAnIndex) {
  dir.write("d3/sub/.envrc", "x");
  dir.write("d4/.vscode/tasks.json", "{}");
  ASSERT_EQ(::symlink("../d5", (dir / "d6/.idea").c_str()), 0);
  const policy::ProtectedFiles files({}, dir.path());
  const auto found = [&] {
    ScanCache cache;
    const ScanOptions options{.protected_files = &files, .index = Names(), .keep_index = true, .settled_after_ns = 0};
    const auto scan = scanWorkspace(dir.path(), options, &cache);
    listed = cache.listed;
    std::set<std::string> paths;
    for (const auto& one : scan.protected_paths) paths.insert(one.path + "=" + one.target);
    return paths;
  };
  const auto first = found();
  EXPECT_TRUE(first.contains("d3/sub/.envrc="));
  EXPECT_TRUE(first.contains("d4/.vscode="));
  EXPECT_TRUE(first.contains("d6/.idea=../d5"));
  EXPECT_EQ(found(), first);
  EXPECT_EQ(listed, 0U);
}

TEST_F(SearchIndexTest, IsPrivateAndDependsOnTheRules) {
  secrets();
  struct stat status{};
  ASSERT_EQ(::stat(indexFile().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  const policy::ProtectedFiles files({}, dir.path());
  secrets(0, &files);
  EXPECT_EQ(listed, 2U * kTopDirectories + 1) << "an index of other rules is not used";
  secrets();
  EXPECT_EQ(listed, 0U);
  ASSERT_EQ(::chmod(indexFile().c_str(), 0666), 0);
}

/// Whatever is in the file, the result is that of a search without it.
TEST_F(SearchIndexTest, DamagedIndexChangesNoResult) {
  dir.write("d3/sub/.env", "x");
  dir.write("d8/sub/deploy_key", kPrivateKey);
  const Names expected = secrets();
  const std::string file = indexFile();
  const std::string good = test::readFile(file);
  ASSERT_GT(good.size(), 1000U);
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    if (round % 10 == 0) bad.resize(random() % bad.size());
    for (unsigned i = 0; i <= random() % 4 && !bad.empty(); ++i) {
      bad[random() % bad.size()] ^= static_cast<char>(1U << random() % 8);
    }
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bad;
    ASSERT_EQ(scanWorkspace(dir.path(), {.index = Names(), .settled_after_ns = 0}).secrets, expected) << round;
  }
}

/// Anybody can compute the checksum, so positions are checked as well.
TEST(SearchIndexData, EveryPositionIsChecked) {
  std::mt19937 random(11);
  SearchIndex index;
  for (int i = 0; i < 20; ++i) {
    index.directories.push_back({.name = index.add("name" + std::to_string(i))});
    index.names.push_back({.name = index.add("file" + std::to_string(i))});
  }
  index.directories[0].first_directory = 1;
  index.directories[0].directories = 19;
  ASSERT_TRUE(SearchIndex::parse(index.serialized(3), 3));
  EXPECT_FALSE(SearchIndex::parse(index.serialized(3), 4));
  for (int round = 0; round < 3000; ++round) {
    SearchIndex bad = index;
    auto* bytes = reinterpret_cast<unsigned char*>(bad.directories.data());
    auto* names = reinterpret_cast<unsigned char*>(bad.names.data());
    bytes[random() % (20 * sizeof(SearchIndex::Directory))] = static_cast<unsigned char>(random());
    names[random() % (20 * sizeof(SearchIndex::Name))] = static_cast<unsigned char>(random());
    const auto parsed = SearchIndex::parse(bad.serialized(3), 3);
    if (!parsed) continue;
    for (const SearchIndex::Directory& one : parsed->directories) {
      ASSERT_LE(one.first_directory + std::uint64_t{one.directories}, parsed->directories.size());
      ASSERT_LE(one.first_name + std::uint64_t{one.names}, parsed->names.size());
      ASSERT_EQ(parsed->view(one.name).size(), one.name.length);
    }
    for (const SearchIndex::Name& one : parsed->names) {
      ASSERT_EQ(parsed->view(one.name).find('/'), std::string_view::npos);
      ASSERT_EQ(parsed->view(one.target).size(), one.target.length);
    }
  }
  index.directories[3].name = index.add("a/b");
  EXPECT_FALSE(SearchIndex::parse(index.serialized(3), 3)) << "a path";
  index.directories[3].name = index.add("..");
  EXPECT_FALSE(SearchIndex::parse(index.serialized(3), 3));
}

}  // namespace
}  // namespace caisson::host
