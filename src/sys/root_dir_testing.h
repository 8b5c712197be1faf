// For tests only: temporary directories, canaries outside the tree under attack, hostile content.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "sys/root_dir.h"

namespace caisson::sys::fixtures {

inline void writeText(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

inline std::string readText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline bool exists(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0;
}

/// The destructor removes it with our own link-proof removal, never by path.
class TempDir {
 public:
  TempDir() {
    const char* base = std::getenv("TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/caisson-test-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    if (auto root = RootDir::open(path_)) (void)root->removeTree("");
    (void)::rmdir(path_.c_str());
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Something harmless outside the root that hostile trees point to.
class Canary {
 public:
  Canary() {
    writeText(dir_.path() + "/file", "alive");
    if (::mkdir((dir_.path() + "/dir").c_str(), 0750) != 0) std::abort();
    writeText(dir_.path() + "/dir/inner", "alive");
  }
  [[nodiscard]] const std::string& path() const { return dir_.path(); }
  [[nodiscard]] bool untouched() const {
    struct stat info{};
    return readText(path() + "/file") == "alive" && readText(path() + "/dir/inner") == "alive" &&
           ::stat((path() + "/dir").c_str(), &info) == 0 && (info.st_mode & 07777) == 0750;
  }

 private:
  TempDir dir_;
};

/// An outer directory with `root` in it; each test runs with openat2 and with the fallback walk.
class HostileTree : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    // If a protection under test fails, root could damage the host.
    if (::geteuid() == 0) GTEST_SKIP() << "hostile trees are handled as an ordinary user only";
    ASSERT_EQ(::mkdir(at("").c_str(), 0755), 0);
  }

  void TearDown() override { EXPECT_TRUE(canary_.untouched()); }

  /// The host path of something inside the root; only for planting files.
  [[nodiscard]] std::string at(const std::string& inside) const {
    return outer_.path() + "/root" + (inside.empty() ? "" : "/" + inside);
  }

  [[nodiscard]] RootDir root(const std::string& known_as = {}) const {
    return std::move(*RootDir::open(at(""), {.known_as = known_as, .walk_by_hand = GetParam()}));
  }

  void directory(const std::string& inside, mode_t mode = 0755) const {
    ASSERT_EQ(::mkdir(at(inside).c_str(), 0755), 0) << inside;
    ASSERT_EQ(::chmod(at(inside).c_str(), mode), 0) << inside;
  }
  void link(const std::string& target, const std::string& inside) const {
    ASSERT_EQ(::symlink(target.c_str(), at(inside).c_str()), 0) << inside;
  }
  void file(const std::string& inside, const std::string& text = "text") const { writeText(at(inside), text); }

  Canary canary_;
  TempDir outer_;
};

inline std::string modeName(const ::testing::TestParamInfo<bool>& info) { return info.param ? "ByHand" : "Openat2"; }

}  // namespace caisson::sys::fixtures
