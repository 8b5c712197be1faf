#include "policy/rules/ordinary_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

#include "policy/rules/protected_files.h"

namespace caisson::policy {

extern const char* const kDocumentDirectory;

TEST(OrdinaryFiles, AreTheContentOfAProject) {
  const OrdinaryFiles files;
  for (const char* path : {"src/main.cc", "a.PY", "README", "docs/README.de", "Makefile", "package.json", ".gitignore",
                           "d/.editorconfig", "x/y/z.test.ts", "Dockerfile.prod", "LICENSE"}) {
    EXPECT_TRUE(files.match(path, false)) << path;
  }
  EXPECT_TRUE(files.match("src/deep", true));
}

TEST(OrdinaryFiles, DoNotIncludeUnknownKinds) {
  const OrdinaryFiles files;
  for (const char* path : {".newtool.toml", ".hidden/a.py", "a/.b/c.md", "program", "lib.so", "x.exe", ".config",
                           "thing.unknown", ".py", "py"}) {
    EXPECT_FALSE(files.match(path, false)) << path;
  }
  EXPECT_FALSE(files.match(".hidden", true));
}

/// Editors load the plugins that these name.
TEST(OrdinaryFiles, DoNotIncludeSettingsOfLinters) {
  const OrdinaryFiles files;
  for (const char* path : {".pylintrc", ".flake8", ".coveragerc", ".prettierrc", ".browserslistrc", ".clang-tidy"}) {
    EXPECT_FALSE(files.match(path, false)) << path;
  }
}

TEST(OrdinaryFiles, AreExtendedByAPolicy) {
  const std::vector<std::string> added{"*.data", ".changeset/", "tool/*.bin"};
  const OrdinaryFiles files(added);
  for (const char* path : {"x.data", "a/b.DATA", ".changeset/x", "sub/.changeset/deep/x.md", "tool/x.bin"}) {
    EXPECT_TRUE(files.match(path, false)) << path;
  }
  EXPECT_TRUE(files.match(".changeset", true));
  EXPECT_FALSE(files.match("x.bin", false));
}

TEST(OrdinaryFiles, AreNotProtected) {
  const ProtectedFiles files;
  for (const OrdinaryPattern& one : ordinaryPatterns()) {
    std::string path(one.pattern);
    if (const std::size_t star = path.find('*'); star != std::string::npos) path.replace(star, 1, "some");
    EXPECT_FALSE(files.match(path)) << path;
    EXPECT_EQ(foldName(path), path);
  }
}

TEST(OrdinaryFiles, AreAllDocumented) {
  const char* source = std::getenv("CAISSON_SOURCE_DIR");
  std::ifstream document((source != nullptr ? std::string(source) + "/docs" : kDocumentDirectory) +
                         "/protected-files.md");
  std::set<std::string> documented;
  bool found = false;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("## ")) found = line == "## What a model may commit";
    if (!found || !line.starts_with("| ") || line.starts_with("| kind")) continue;
    const std::string group = line.substr(2, line.find(" |", 2) - 2);
    for (std::size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at + 1)) {
      const std::size_t end = line.find('`', at + 1);
      ASSERT_NE(end, std::string::npos) << line;
      documented.insert(group + ": " + line.substr(at + 1, end - at - 1));
      at = end;
    }
  }
  std::set<std::string> table;
  for (const OrdinaryPattern& one : ordinaryPatterns()) {
    EXPECT_TRUE(table.insert(std::string(one.group) + ": " + std::string(one.pattern)).second) << one.pattern;
  }
  EXPECT_EQ(documented, table);
}

}  // namespace caisson::policy
