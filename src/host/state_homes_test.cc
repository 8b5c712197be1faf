#include "host/state_homes.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "host/facts.h"
#include "policy/profiles/profiles.h"
#include "support/temp_dir.h"

namespace caisson::host {
namespace {

namespace fs = std::filesystem;
using Homes = std::vector<std::string>;

class StateHomesTest : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("XDG_DATA_HOME", (dir_ / "data").c_str(), 1);
    top_ = fs::canonical(dir_ / "").string();
    if (top_.ends_with('/')) top_.pop_back();
  }
  void TearDown() override {
    ::unsetenv("CAISSON_HOME");
    ::unsetenv("XDG_DATA_HOME");
  }
  /// Runs something with this CAISSON_HOME.
  void use(const std::string& name) const {
    const std::string home = dir_.makeDir(name);
    ::setenv("CAISSON_HOME", home.c_str(), 1);
    const auto recorded = recordStateHome();
    ASSERT_TRUE(recorded) << recorded.error().message();
  }
  [[nodiscard]] Homes others() const {
    const auto found = otherStateHomes();
    EXPECT_TRUE(found) << found.error().message();
    Homes homes = found.value_or(Homes{"an error"});
    std::ranges::sort(homes);
    return homes;
  }

  const test::TempDir dir_;
  std::string top_;
};

TEST_F(StateHomesTest, ThoseOfOtherRunsAreFound) {
  EXPECT_TRUE(others().empty());
  use("a");
  EXPECT_TRUE(others().empty()) << "its own";
  use("b");
  use("b");
  EXPECT_EQ(others(), Homes{top_ + "/a"});
  ::unsetenv("CAISSON_HOME");
  EXPECT_EQ(others(), (Homes{top_ + "/a", top_ + "/b"}));
}

TEST_F(StateHomesTest, DefaultIsNotRecorded) {
  ::unsetenv("CAISSON_HOME");
  ASSERT_TRUE(recordStateHome());
  EXPECT_FALSE(fs::exists(top_ + "/data/caisson/trees/homes"));
}

TEST_F(StateHomesTest, ThoseThatAreGoneAreForgotten) {
  use("a");
  fs::remove(top_ + "/a");
  use("b");
  ::unsetenv("CAISSON_HOME");
  EXPECT_EQ(others(), Homes{top_ + "/b"});
  EXPECT_EQ(std::distance(fs::directory_iterator(top_ + "/data/caisson/trees/homes"), {}), 1);
}

TEST_F(StateHomesTest, WhatIsNoRecordIsIgnored) {
  use("a");
  std::ofstream(top_ + "/data/caisson/trees/homes/file") << "x";
  fs::create_symlink("/", top_ + "/data/caisson/trees/homes/another");
  ::unsetenv("CAISSON_HOME");
  EXPECT_EQ(others(), Homes{top_ + "/a"});
}

TEST_F(StateHomesTest, FactsOfALaunchHaveThem) {
  use("a");
  use("b");
  const plan::HostFacts facts = collectFacts(*policy::builtin("bash"), {});
  EXPECT_NE(std::ranges::find(facts.own_mounts, top_ + "/a"), facts.own_mounts.end());
  EXPECT_EQ(std::ranges::find(facts.own_mounts, top_ + "/b"), facts.own_mounts.end()) << "that is own_state";
}

}  // namespace
}  // namespace caisson::host
