#include "policy/presets.h"

#include <gtest/gtest.h>

#include <set>

#include "policy/syntax.h"
#include "support/conforms.h"

namespace caisson::policy {

TEST(Presets, AreListsOfPatternsWithAVersion) {
  CONFORMS("R-NETWORK-17");
  std::set<std::string_view> names;
  for (const Preset& preset : presets()) {
    EXPECT_TRUE(names.insert(preset.name).second) << preset.name;
    EXPECT_GE(preset.version, 1);
    EXPECT_FALSE(preset.patterns.empty());
    for (const std::string_view pattern : preset.patterns) {
      EXPECT_TRUE(pattern.starts_with('.')) << pattern << " names a single host";
      EXPECT_FALSE(findFlaw(Syntax::host_pattern, pattern)) << pattern;
    }
  }
  for (const char* name : {"npm", "pip", "cargo", "git", "debian", "ubuntu"}) EXPECT_TRUE(names.contains(name)) << name;
}

TEST(Presets, StandForTheirPatterns) {
  CONFORMS("R-NETWORK-17");
  const auto expanded = expandPresets({"example.org", "preset:pip"});
  EXPECT_EQ(expanded.size(), 1 + findPreset("preset:pip")->patterns.size());
  EXPECT_EQ(expanded.front(), "example.org");
  EXPECT_FALSE(findFlaw(Syntax::host_pattern, "preset:npm"));
  EXPECT_TRUE(findFlaw(Syntax::host_pattern, "preset:unknown"));
  EXPECT_EQ(findPreset("npm"), nullptr);
}

}  // namespace caisson::policy
