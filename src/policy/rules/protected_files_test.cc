#include "policy/rules/protected_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>

namespace caisson::policy {

extern const char* const kDocumentDirectory;

TEST(ProtectedFiles, AreJudgedWithTheDirectoriesAboveTheWorkspace) {
  const struct {
    const char* directory;
    const char* path;
  } cases[] = {{"/p/.claude", "settings.json"}, {"/p/.claude/commands", "x.md"},
               {"/p/.vscode", "tasks.json"},    {"/p/.github/workflows", "x.yml"},
               {"/p/.cargo", "config.toml"},    {"/p/.zed", "tasks.json"},
               {"/p/.config/nvim", "init.lua"}, {"/p/.config", "nvim/init.lua"},
               {"/p/.git/hooks", "pre-commit"}, {"/p/.git", "config"},
               {"/p/.git/modules/m", "config"}, {"/p/.GIT", "hooks/x"},
               {"/p/.Claude/deep/er", "a/b"},   {"/p/mise", "config.toml"},
               {"/p/mise/tasks", "x"},          {"/p/a.service.d", "x.conf"},
               {"/p/v/site-packages", "x.pth"}, {"/p/systemd", "user/x"},
               {"/p/.claude/worktrees", "x"},   {"/p/x/worktrees/.vscode", "a.json"},
               {"/p/.claude", "worktrees/a/b"}};
  for (const auto& [directory, path] : cases) {
    EXPECT_TRUE(ProtectedFiles({}, directory).match(path)) << directory << " " << path;
  }
  const ProtectedFiles inside({}, "/p/.vscode");
  EXPECT_EQ(inside.match("sub/x.c")->object, "");
  EXPECT_TRUE(inside.match("sub/x.c")->whole_directory);
  EXPECT_TRUE(inside.match("")->whole_directory);
  EXPECT_EQ(ProtectedFiles({}, "/p/.config").match("nvim/a/b")->object, "nvim");
  const std::vector<std::string> added{"deploy/*.sh"};
  EXPECT_TRUE(ProtectedFiles(added, "/p/deploy").match("run.sh"));
}

TEST(ProtectedFiles, AreNotAllFilesOfAnOrdinaryWorkspace) {
  for (const char* directory : {"", "/", "/p", "/home/a/nvim", "/home/a/.config", "/p/.git/refs", "/p/x.service/y",
                                "/p/.claude/worktrees/x", "/home/a/.codex/worktrees/12ab/p", "/p/tasks"}) {
    EXPECT_FALSE(ProtectedFiles({}, directory).match("src/main.c")) << directory;
    EXPECT_TRUE(ProtectedFiles({}, directory).match("sub/.envrc")) << directory;
  }
  EXPECT_FALSE(ProtectedFiles({}, "/p").match(""));
}

TEST(ProtectedFiles, IncludeFilesThatTheHostExecutesLater) {
  const ProtectedFiles files;
  for (const char* path : {".git/hooks/pre-commit",
                           ".git/config",
                           "sub/.git/config",
                           ".GIT/config",
                           ".git",
                           ".git/info/attributes",
                           ".git/modules/x/hooks/y",
                           ".git/worktrees/x/config.worktree",
                           ".git/rebase-merge/git-rebase-todo",
                           ".git/objects/info/alternates",
                           ".vscode/tasks.json",
                           ".bashrc",
                           "home/.zshrc",
                           ".claude/settings.json",
                           ".mcp.json",
                           ".github/workflows/ci.yml",
                           ".GitHub/Workflows/ci.yml",
                           "Jenkinsfile",
                           ".envrc",
                           "pkg/.npmrc",
                           "AGENTS.md",
                           "x.code-workspace",
                           ".husky/pre-push",
                           "deep/er/.idea/x.xml",
                           ".jj/repo/config.toml",
                           ".sl/config",
                           ".helix/languages.toml",
                           ".dir-locals-2.el",
                           "lefthook.yaml",
                           "mise.local.toml",
                           ".mise.production.toml",
                           "mise/tasks/build",
                           ".overcommit.yml",
                           "CLAUDE.local.md",
                           "share/thing.desktop",
                           "etc/thing.service",
                           "etc/thing.service.d/more.conf",
                           "venv/lib/python3/site-packages/x.pth",
                           ".pro\xef\xac\x81le",
                           ".xse\xc3\x9fion",
                           ".bashrc.",
                           ".bashrc ",
                           ".git./hooks/x",
                           "GIT~1/hooks/x",
                           "x.desktop. .",
                           ".Rprofile"}) {
    EXPECT_TRUE(files.match(path)) << path;
  }
}

TEST(ProtectedFiles, ExcludeTheContentOfAProject) {
  const ProtectedFiles files;
  for (const char* path :
       {"src/main.cc", "Makefile", "package.json", ".git/objects/ab/cdef", ".git/objects/info/packs",
        ".git/refs/heads/main", ".git/HEAD", "github/x", "docs/vscode/tasks.json", "bashrc", ".gitignore", "README.md",
        "model.pth", "user.service.ts", "mise/readme", "config", "hooks/pre-commit", "vscode/.x", "my.bashrc"}) {
    EXPECT_FALSE(files.match(path)) << path;
  }
}

TEST(ProtectedFiles, OfBuildServersAreNoneInPackages) {
  const ProtectedFiles files;
  for (const char* path :
       {"node_modules/x/.github/FUNDING.yml", "node_modules/.travis.yml", "vendor/x/y/.gitlab-ci.yml",
        ".venv/lib/python3/site-packages/x/.circleci", "a/target/x/.github"})
    EXPECT_FALSE(files.match(path)) << path;
  for (const char* path :
       {".github/workflows/x.yml", "packages/x/.github", ".github/node_modules/x", "node_modules/x/.git/hooks/x",
        "node_modules/x/.vscode/tasks.json", "node_modules/x/.envrc", "Node_Modules/x/.github"})
    EXPECT_TRUE(files.match(path)) << path;
  EXPECT_TRUE(ProtectedFiles({}, "/p/node_modules/x").match(".github")) << "where the package is the workspace";
  const std::vector<std::string> added{".travis.yml"};
  EXPECT_FALSE(ProtectedFiles(added).match("node_modules/x/.travis.yml")) << "named by the table";
  const std::vector<std::string> other{"own.yml"};
  EXPECT_TRUE(ProtectedFiles(other).match("node_modules/x/own.yml"));
}

TEST(ProtectedFiles, NameTheProtectedObject) {
  const ProtectedFiles files;
  const auto directory = files.match("a/.VSCode/deep/tasks.json");
  ASSERT_TRUE(directory);
  EXPECT_EQ(directory->object, "a/.VSCode");
  EXPECT_TRUE(directory->whole_directory);
  EXPECT_EQ(directory->category, ProtectedCategory::editor);
  const auto file = files.match("a/.envrc");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->object, "a/.envrc");
  EXPECT_FALSE(file->whole_directory);
  EXPECT_FALSE(files.match(".envrc/inside")) << "a file's name does not protect what is below a directory of that name";
}

TEST(ProtectedFiles, IgnoreTheDifferencesThatFileSystemsIgnore) {
  const ProtectedFiles files;
  EXPECT_TRUE(files.match(".g\u200cit/config"));
  EXPECT_TRUE(files.match(".BA\u017fHRC"));
  EXPECT_TRUE(files.match(".\u212aSHRC"));
  EXPECT_TRUE(files.match(".envrc\ufeff"));
  EXPECT_EQ(foldName("\xff.Git"), "\xff.git");
}

TEST(ProtectedFiles, AreExtendedByAPolicy) {
  const std::vector<std::string> added{"deploy/*.sh", "ops/", "Special"};
  const ProtectedFiles files(added);
  for (const char* path : {"deploy/go.sh", "x/deploy/go.SH", "ops/a/b", "special", "d/SPECIAL"}) {
    const auto found = files.match(path);
    ASSERT_TRUE(found) << path;
    EXPECT_EQ(found->category, ProtectedCategory::custom);
  }
  EXPECT_FALSE(files.match("deploy/sub/go.sh"));
  EXPECT_FALSE(files.match("go.sh"));
  EXPECT_TRUE(files.match(".bashrc")) << "the table stays";
}

TEST(ProtectedFiles, HaveWildcardsAnywhereInAName) {
  const std::vector<std::string> added{"*-x.tool", "be*gin", "*mid*", "a*b.cfg", "*.tail*", "*end"};
  const ProtectedFiles files(added);
  for (const char* path : {"q-x.tool", "-x.tool", "a.b-x.tool", "begin", "be.gin", "d/amidst", "aXb.cfg", "n.tail2",
                           "theend", "dir.d/END"}) {
    EXPECT_TRUE(files.match(path)) << path;
  }
  for (const char* path : {"q-x.too", "x.tool", "gin", "ab.cf", "program.py", "gdb.py"}) {
    EXPECT_FALSE(files.match(path)) << path;
  }
}

TEST(ProtectedFiles, RefuseUnusablePatterns) {
  for (const char* pattern : {"", "/", "/etc/passwd", "../x", "a/./b", "*", "a/**", "a\nb", "\xff", "\u200b"}) {
    EXPECT_TRUE(protectedPatternProblem(pattern)) << pattern;
  }
  EXPECT_TRUE(protectedPatternProblem(std::string(300, 'a')));
  for (const char* pattern : {"a", "a/", "*.sh", "a/*/b", "d*/x"})
    EXPECT_FALSE(protectedPatternProblem(pattern)) << pattern;
  for (const ProtectedPattern& one : protectedPatterns()) {
    EXPECT_FALSE(protectedPatternProblem(one.pattern)) << one.pattern;
    EXPECT_EQ(foldName(one.pattern), one.pattern);
  }
}

TEST(Repository, IsRecognisedByItsShape) {
  const auto shaped = [](std::set<std::string, std::less<>> names) {
    return hasRepositoryShape([&](std::string_view name) { return names.contains(name); });
  };
  EXPECT_TRUE(shaped({"head", "objects", "refs"}));
  EXPECT_TRUE(shaped({"head", "objects", "refs", "config"}));
  EXPECT_TRUE(shaped({"head", "commondir"}));
  EXPECT_FALSE(shaped({"head", "objects"}));
  EXPECT_FALSE(shaped({"objects", "refs", "config"}));
  EXPECT_TRUE(isRepositoryMember("HEAD"));
  EXPECT_TRUE(isRepositoryMember("hooks/pre-commit"));
  EXPECT_TRUE(isRepositoryMember("config"));
  EXPECT_FALSE(isRepositoryMember("readme.md"));
}

TEST(ProtectedFiles, KnowDirectoriesAboveTheirPatterns) {
  const ProtectedFiles files;
  for (const char* path : {".config", "home/me/.config", "home/me/.LOCAL", "home/me/.local/share", "x/site-packages"})
    EXPECT_TRUE(files.mayHold(path)) << path;
  for (const char* path : {"", "home/me", "config", "home/me/.cache", "share", ".local/share/app", ".config/app"})
    EXPECT_FALSE(files.mayHold(path)) << path;
}

/// The rows of the documented table: category and patterns.
TEST(ProtectedFiles, AreAllDocumented) {
  const char* source = std::getenv("CAISSON_SOURCE_DIR");
  std::ifstream document((source != nullptr ? std::string(source) + "/docs" : kDocumentDirectory) +
                         "/protected-files.md");
  ASSERT_TRUE(document) << kDocumentDirectory;
  std::set<std::string> documented;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with("## Ordinary by decision")) break;
    if (!line.starts_with("| ") || line.starts_with("| category")) continue;
    const std::string category = line.substr(2, line.find(' ', 2) - 2);
    for (std::size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at + 1)) {
      const std::size_t end = line.find('`', at + 1);
      ASSERT_NE(end, std::string::npos) << line;
      documented.insert(category + " " + line.substr(at + 1, end - at - 1));
      at = end;
    }
  }
  std::set<std::string> table;
  for (const ProtectedPattern& one : protectedPatterns()) {
    EXPECT_TRUE(table.insert(std::string(name(one.category)) + " " + std::string(one.pattern)).second) << one.pattern;
  }
  EXPECT_EQ(documented, table);
}

}  // namespace caisson::policy
