#include "policy/rules/denied_names.h"

#include <gtest/gtest.h>

namespace caisson::policy {
namespace {

using Entries = std::vector<std::string>;

TEST(DeniedNames, AreNamesAndPatterns) {
  EXPECT_TRUE(deniesName("[id].tsx", "[id].tsx"));
  EXPECT_TRUE(deniesName("[id].tsx", "i.tsx"));
  EXPECT_TRUE(deniesName("*.dump", ".x.dump"));
  EXPECT_TRUE(deniesName("a\\b", "a\\b"));
  EXPECT_FALSE(deniesName("*.dump", "x.dump.gz"));
}

TEST(DeniedNames, TwoStarsMeanAnyDirectories) {
  for (const char* path : {".env", "a/.env.local", "a/b/c/.env"}) EXPECT_TRUE(deniesPath("**/.env*", path)) << path;
  EXPECT_TRUE(deniesPath("a/**/x", "a/x"));
  EXPECT_TRUE(deniesPath("a/**/x", "a/b/c/x"));
  EXPECT_FALSE(deniesPath("a/**/x", "b/x"));
  EXPECT_FALSE(deniesPath("**/.env*", "a/.env/b"));
  EXPECT_TRUE(deniesPath("a/**", "a/b/c"));
  EXPECT_FALSE(deniesPath("a/**", "a"));
  EXPECT_EQ(deniedElsewhere({"/workspace/**/b/x"}, "/p", "/p/a/b").entries,
            (Entries{"/workspace/**/b/x", "/workspace/x"}));
  EXPECT_EQ(deniedElsewhere({"/workspace/**/b"}, "/p", "/p/a/b/c").whole, "/workspace/**/b");
  EXPECT_EQ(deniedElsewhere({"/workspace/**/x"}, "/a/p", "/a").entries, Entries{"/workspace/p/**/x"});
}

TEST(DeniedNames, StarsInARowMeanWhatTwoDo) {
  EXPECT_TRUE(deniesPath("**/**/**/x", "x"));
  EXPECT_TRUE(deniesPath("a/**/**", "a/b"));
  EXPECT_FALSE(deniesPath("a/**/**", "a"));
  EXPECT_EQ(deniedElsewhere({"/workspace/**/**/**/x"}, "/p", "/p/a").entries, Entries{"/workspace/**/x"});
}

TEST(DeniedNames, ManyStarsCostNoMoreThanTheProductOfBothLengths) {
  std::string entry, path, elsewhere = "/p";
  for (int i = 0; i < 100; ++i) entry += "**/d/";
  for (int i = 0; i < 1000; ++i) path += "d/";
  for (int i = 0; i < 300; ++i) elsewhere += "/d";
  EXPECT_TRUE(deniesPath(entry + "x", path + "x"));
  EXPECT_FALSE(deniesPath(entry + "x", path + "y"));
  EXPECT_LE(deniedElsewhere({"/workspace/" + entry + "x"}, "/p", elsewhere).entries.size(), 201U);
}

TEST(DeniedNames, BelongToTheHostsFilesInAWorkspaceBelow) {
  const Entries entries{"/workspace/src/key", "/workspace/s*/*.dump", "/workspace/other", "/srv/x",
                        "/workspace/src/a/b"};
  const DeniedElsewhere found = deniedElsewhere(entries, "/p", "/p/src");
  EXPECT_EQ(found.entries, (Entries{"/workspace/key", "/workspace/*.dump", "/workspace/a/b"}));
  EXPECT_EQ(found.whole, "");
  EXPECT_EQ(deniedElsewhere(entries, "/p", "/p/src/a").entries, (Entries{"/workspace/b"}));
}

TEST(DeniedNames, DenyAWorkspaceThatTheyName) {
  EXPECT_EQ(deniedElsewhere({"/workspace/src"}, "/p", "/p/src").whole, "/workspace/src");
  EXPECT_EQ(deniedElsewhere({"/workspace/src"}, "/p", "/p/src/lib/x").whole, "/workspace/src");
  EXPECT_EQ(deniedElsewhere({"/workspace/s*"}, "/p", "/p/src/lib").whole, "/workspace/s*");
  EXPECT_EQ(deniedElsewhere({"/workspace"}, "/p", "/p/src").whole, "/workspace");
}

TEST(DeniedNames, BelongToTheHostsFilesInAWorkspaceAbove) {
  EXPECT_EQ(deniedElsewhere({"/workspace/src"}, "/a/p", "/a").entries, Entries{"/workspace/p/src"});
  EXPECT_EQ(deniedElsewhere({"/workspace"}, "/a/p", "/").entries, Entries{"/workspace/a/p"});
}

TEST(DeniedNames, MeanNothingElsewhere) {
  for (const char* workspace : {"/p", "/q", "/px/src", "/x"}) {
    const DeniedElsewhere found = deniedElsewhere({"/workspace/src", "/workspace/x"}, "/p", workspace);
    EXPECT_TRUE(found.entries.empty() && found.whole.empty()) << workspace;
  }
}

}  // namespace
}  // namespace caisson::policy
