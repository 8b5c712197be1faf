#include "cli/result/file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace caisson::cli {
namespace {

namespace fs = std::filesystem;

class ResultFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/result-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { fs::remove_all(directory_); }

  static std::string content(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] std::ptrdiff_t entries() const {
    return std::distance(fs::directory_iterator(directory_), fs::directory_iterator());
  }

  fs::path directory_;
};

TEST_F(ResultFileTest, ReplacesAnOldResultAndLeavesNothingElse) {
  const std::string path = directory_ / "result.json";
  const auto file = ResultFile::prepare(path);
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE(file->write("old").has_value());
  ASSERT_TRUE(file->write("new").has_value());
  EXPECT_EQ(content(path), "new");
  EXPECT_EQ(entries(), 1);
}

TEST_F(ResultFileTest, ReplacesAPrivateFileByAPrivateOne) {
  const std::string path = directory_ / "policy.toml";
  const auto file = ResultFile::prepare(path, "--learn");
  ASSERT_TRUE(file.has_value());
  ASSERT_TRUE(file->write("old").has_value());
  const auto rights = [&] { return static_cast<unsigned>(fs::status(path).permissions()); };
  fs::permissions(path, fs::perms(0600));
  ASSERT_TRUE(file->write("new").has_value());
  EXPECT_EQ(rights(), 0600U);
  fs::permissions(path, fs::perms(0777));
  ASSERT_TRUE(file->write("new").has_value());
  EXPECT_EQ(rights(), 0644U) << "a payload must not make it writable by others";
}

TEST_F(ResultFileTest, DoesNotWriteThroughALinkPlantedDuringTheRun) {
  const fs::path canary = directory_ / "canary";
  std::ofstream(canary) << "untouched";
  const auto file = ResultFile::prepare((directory_ / "result.json").string());
  ASSERT_TRUE(file.has_value());
  fs::create_symlink(canary, directory_ / "result.json");
  EXPECT_FALSE(file->write("evil").has_value());
  EXPECT_EQ(content(canary), "untouched");
  EXPECT_EQ(entries(), 2);
}

TEST_F(ResultFileTest, StaysInTheDirectoryThatWasNamedWhenThePayloadSwapsIt) {
  fs::create_directory(directory_ / "out");
  fs::create_directory(directory_ / "elsewhere");
  const auto file = ResultFile::prepare((directory_ / "out/result.json").string());
  ASSERT_TRUE(file.has_value());
  fs::rename(directory_ / "out", directory_ / "moved");
  fs::create_symlink(directory_ / "elsewhere", directory_ / "out");
  ASSERT_TRUE(file->write("x").has_value());
  EXPECT_TRUE(fs::exists(directory_ / "moved/result.json"));
  EXPECT_TRUE(fs::is_empty(directory_ / "elsewhere"));
}

TEST_F(ResultFileTest, RefusesDirectoriesAndSpecialFilesBeforeAnythingRuns) {
  fs::create_directory(directory_ / "dir");
  EXPECT_FALSE(ResultFile::prepare((directory_ / "dir").string()).has_value());
  EXPECT_FALSE(ResultFile::prepare("/dev/null").has_value());
  EXPECT_FALSE(ResultFile::prepare("-").has_value());
  EXPECT_FALSE(ResultFile::prepare((directory_ / "missing/result.json").string()).has_value());
}

}  // namespace
}  // namespace caisson::cli
