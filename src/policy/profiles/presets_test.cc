#include "policy/profiles/presets.h"

#include <gtest/gtest.h>

#include <set>

#include "policy/decode/syntax.h"
#include "support/conforms.h"

namespace caisson::policy {

TEST(Presets, AreListsOfPatternsWithAVersion) {
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
}

TEST(Presets, NameRegistriesVersionControlHostsAndContentDelivery) {
  CONFORMS("R-NETWORK-17");
  const std::pair<const char*, std::vector<std::string_view>> expected[] = {
      {"npm", {".npmjs.org", ".npmjs.com", ".yarnpkg.com"}},
      {"pip", {".pypi.org", ".pypi.python.org", ".pythonhosted.org"}},
      {"cargo", {".crates.io", ".rust-lang.org"}},
      {"go", {".golang.org", ".go.dev"}},
      {"rubygems", {".rubygems.org"}},
      {"git", {".github.com", ".githubusercontent.com", ".gitlab.com", ".bitbucket.org", ".codeberg.org"}},
      {"cdn", {".jsdelivr.net", ".unpkg.com", ".cloudflare.com"}},
      {"debian", {".debian.org", ".debian.net"}},
      {"ubuntu", {".ubuntu.com", ".launchpad.net"}}};
  EXPECT_EQ(presets().size(), std::size(expected));
  for (const auto& [name, patterns] : expected) {
    const Preset* preset = findPreset("preset:" + std::string(name));
    ASSERT_NE(preset, nullptr) << name;
    EXPECT_EQ(std::vector<std::string_view>(preset->patterns.begin(), preset->patterns.end()), patterns) << name;
  }
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
