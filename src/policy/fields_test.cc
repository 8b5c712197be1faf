#include "policy/fields.h"

#include <gtest/gtest.h>

#include <set>

namespace caisson::policy {

TEST(Fields, KeysAreUniqueDescribedAndGroupedByTable) {
  std::set<std::string_view> keys;
  std::set<std::string_view> closed;
  std::string_view table = "?";
  for (const Field& field : fields()) {
    EXPECT_TRUE(keys.insert(field.key).second) << field.key;
    EXPECT_TRUE(field.description.ends_with('.') || field.description.ends_with(')')) << field.key;
    const std::size_t dot = field.key.find('.');
    const std::string_view own = dot == std::string_view::npos ? "" : field.key.substr(0, dot);
    if (own != table) {
      EXPECT_TRUE(closed.insert(own).second) << "rows of " << own << " stand apart";
      table = own;
    }
    EXPECT_EQ(findField(field.key), &field);
    EXPECT_FALSE(isSection(field.key)) << field.key;
    if (field.widens == Widens::rank) {
      EXPECT_EQ(field.ranks.size(), field.choices.size()) << field.key;
    }
    if (field.kind == Kind::choice || field.kind == Kind::choices) {
      EXPECT_FALSE(field.choices.empty()) << field.key;
    }
  }
}

TEST(Fields, PutRestoresWhatGetReturned) {
  Policy source;
  source.resources.cpu_affinity = {0, 3};
  source.resources.wall_seconds = 3.5;
  source.environment.set = {{"A", "b"}};
  source.isolation.may_be_missing = {OptionalLayer::cgroup};
  source.syscalls.names.emplace();
  source.network.mode = NetworkMode::host;
  Policy copy;
  for (const Field& field : fields()) field.put(copy, field.get(source));
  EXPECT_TRUE(sameSettings(source, copy));
  EXPECT_FALSE(sameSettings(source, Policy{}));
  EXPECT_EQ(copy.network.mode, NetworkMode::host);
  EXPECT_TRUE(copy.syscalls.names.has_value());
}

TEST(Fields, SuggestTheNearestKey) {
  EXPECT_EQ(nearestKey("resources.memroy"), "resources.memory");
  EXPECT_EQ(nearestKey("memory"), "resources.memory");
  EXPECT_EQ(nearestKey("process.open_files"), "resources.open_files");
  EXPECT_EQ(nearestKey("zzzzzzzzzzzz"), "");
  constexpr std::string_view kNames[] = {"list", "logs", "restore"};
  EXPECT_EQ(nearest("lsit", kNames), "list") << "two letters swapped";
  EXPECT_EQ(nearest("log", kNames), "logs");
  EXPECT_EQ(nearest("restroe", kNames), "restore");
  EXPECT_EQ(nearest("bogus", kNames), "") << "two of five letters differ";
  EXPECT_EQ(nearestKey(std::string(5000, 'a')), "");
}

TEST(Fields, SectionsAreRecognised) {
  EXPECT_TRUE(isSection("resources"));
  EXPECT_TRUE(isSection("filesystem.workspace"));
  EXPECT_FALSE(isSection("filesystem.work"));
  EXPECT_FALSE(isSection(""));
}

}  // namespace caisson::policy
