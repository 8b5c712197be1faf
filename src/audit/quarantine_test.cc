#include "audit/quarantine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"

namespace caisson::audit {
namespace {

class Quarantine : public testing::Test {
 protected:
  Quarantine() { ::setenv("CAISSON_HOME", home_.path().c_str(), 1); }
  ~Quarantine() override { ::unsetenv("CAISSON_HOME"); }

  [[nodiscard]] std::string onlyFile() const {
    for (const auto& entry : std::filesystem::directory_iterator(home_ / "quarantine")) return entry.path();
    return "";
  }

  const test::TempDir home_;
};

TEST_F(Quarantine, HoldsUntilReleased) {
  EXPECT_FALSE(*refusalFor({"scraper"}));
  EXPECT_FALSE(std::filesystem::exists(home_ / "quarantine")) << "looking must not make anything";
  ASSERT_TRUE(quarantine({.key = "scraper", .reason = "odd traffic"}));
  const auto refusal = refusalFor({"", "other", "scraper"});
  ASSERT_TRUE(refusal && *refusal);
  EXPECT_NE((*refusal)->message().find("odd traffic"), std::string::npos);
  EXPECT_NE((*refusal)->message().find("caisson tool release scraper"), std::string::npos);
  EXPECT_FALSE(*refusalFor({"scrape"}));
  EXPECT_TRUE(*release("scraper"));
  EXPECT_FALSE(*release("scraper"));
  EXPECT_FALSE(*refusalFor({"scraper"}));
}

TEST_F(Quarantine, ListsByKeyAndRenews) {
  ASSERT_TRUE(quarantine({.key = "b", .reason = "first"}));
  ASSERT_TRUE(quarantine({.key = "a", .reason = "one"}));
  ASSERT_TRUE(quarantine({.key = "b", .reason = "second"}));
  const auto all = quarantined();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2U);
  EXPECT_EQ(all->at(0).key, "a");
  EXPECT_EQ(all->at(1).reason, "second");
  EXPECT_EQ(all->at(1).since.size(), std::string_view("2026-11-15T05:11:04.123456Z").size());
}

TEST_F(Quarantine, DamagedEntryStillAppliesAndCanBeReleased) {
  for (const std::string content : {"", "{", "[]", "{\"key\":\"another\"}", "{\"key\":7}"}) {
    ASSERT_TRUE(quarantine({.key = "tool", .reason = "r"}));
    std::ofstream(onlyFile(), std::ios::trunc) << content;
    const auto refusal = refusalFor({"tool"});
    ASSERT_TRUE(refusal && *refusal) << content;
    EXPECT_NE((*refusal)->reason.find("damaged"), std::string::npos);
    const auto all = quarantined();
    ASSERT_EQ(all->size(), 1U);
    EXPECT_TRUE(*release(all->at(0).key)) << all->at(0).key;
    EXPECT_FALSE(*refusalFor({"tool"}));
  }
}

TEST_F(Quarantine, UnreadableEntryIsAnError) {
  ASSERT_TRUE(quarantine({.key = "tool", .reason = "r"}));
  const std::string file = onlyFile();
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_FALSE(refusalFor({"tool"})) << "an error, not a yes";
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/etc/hostname", file);
  EXPECT_FALSE(refusalFor({"tool"}));
  std::filesystem::remove_all(home_ / "quarantine");
  std::ofstream(home_ / "quarantine") << "";
  EXPECT_FALSE(refusalFor({"tool"}));
}

TEST_F(Quarantine, RejectsInterpreters) {
  for (const std::string key : {"bash", "/bin/sh", "python3.11", "node", "", "a\nb"}) {
    EXPECT_FALSE(quarantine({.key = key, .reason = "r"})) << key;
  }
  const auto keyOf = [](std::vector<std::string> command) { return keyForQuarantine(command).has_value(); };
  EXPECT_FALSE(keyOf({}));
  EXPECT_FALSE(keyOf({"bash"}));
  EXPECT_FALSE(keyOf({"/usr/bin/python3.11", "-i"}));
  EXPECT_TRUE(keyOf({"bash", "-c", "evil"}));
  EXPECT_TRUE(keyOf({"python3", "evil.py"}));
  EXPECT_TRUE(keyOf({"./evil"}));
}

TEST_F(Quarantine, CommandKeyDistinguishesArguments) {
  const std::vector<std::string> one = {"a", "b c"}, other = {"a", "b", "c"};
  EXPECT_NE(commandKey(one), commandKey(other));
  EXPECT_TRUE(commandKey(one).starts_with("sha256:"));
}

}  // namespace
}  // namespace caisson::audit
