#include "policy/rules/protected_links.h"

#include <gtest/gtest.h>

namespace caisson::policy {
namespace {

using Links = std::vector<WorkspaceLink>;

std::string reasonFor(const ProtectedLinks& links, std::string_view path) {
  const auto found = links.match(path);
  return found ? found->reason(path) : "";
}

TEST(ProtectedLinks, GiveFilesProtectedNames) {
  const ProtectedFiles files;
  const ProtectedLinks links(files, "/home/u/w",
                             Links{{".vscode", "tools/vscode"},
                                   {"sub/.bashrc", "../dot/./bashrc"},
                                   {".config", "/home/u/w/cfg"},
                                   {".git/hooks", "../hooks"},
                                   {"docs", "text"}});
  EXPECT_EQ(reasonFor(links, "tools/vscode/tasks.json"),
            "editors run tasks from it, as .vscode/tasks.json through the link .vscode");
  for (const char* path : {"tools/vscode", "dot/bashrc", "cfg/fish/config.fish", "hooks/pre-commit"}) {
    EXPECT_TRUE(links.match(path)) << path;
  }
  for (const char* path : {"tools", "tools/vscode2", "tools/x", "cfg", "cfg/x", "dot/bash", "text/a"}) {
    EXPECT_FALSE(links.match(path)) << path;
  }
}

TEST(ProtectedLinks, AreFollowedThroughOtherLinks) {
  const ProtectedFiles files;
  const ProtectedLinks links(
      files, "",
      Links{{".config", "cfg"}, {"cfg/fish", "../fishy"}, {".vscode", "a/b/vs"}, {"a", "real"}, {"real/b", "../c"}});
  EXPECT_TRUE(links.match("fishy/config.fish"));
  EXPECT_TRUE(links.match("c/vs/tasks.json"));
  EXPECT_FALSE(links.match("real/b/vs/tasks.json")) << "not its path";
  EXPECT_TRUE(links.isOnTheWay("c"));
  EXPECT_FALSE(links.isOnTheWay("d"));
}

TEST(ProtectedLinks, ThatLeadOutOrInACircleGiveNoNames) {
  const ProtectedFiles files;
  const ProtectedLinks links(
      files, "/home/u/w",
      Links{
          {".vscode", "../other"}, {".idea", "/home/u/w2/x"}, {".zed", "loop"}, {"loop", "loop2"}, {"loop2", "loop"}});
  EXPECT_TRUE(links.places().empty());
}

TEST(ProtectedLinks, OnTheWayAreProtected) {
  const ProtectedFiles files;
  const ProtectedLinks links(files, "/w",
                             Links{{"CLAUDE.md", "CURRENT.md"}, {"CURRENT.md", "docs/v1.md"}, {"current", "rel/v1"}},
                             {{"current/hooks", ".git/config"}});
  EXPECT_EQ(reasonFor(links, "CURRENT.md"), "on the way to a protected file, to which CLAUDE.md leads");
  EXPECT_EQ(reasonFor(links, "current"), "on the way to a protected file, to which .git/config leads");
  EXPECT_FALSE(links.match("current/x")) << "not its path";
  EXPECT_TRUE(links.isOnTheWay("rel"));
}

TEST(ProtectedLinks, WithOnePathCountEach) {
  const ProtectedFiles files;
  const ProtectedLinks links(files, "/w", Links{{".vscode", "old"}, {".vscode", "a/b"}, {"a", "c"}, {"a", "d"}});
  for (const char* path : {"old/tasks.json", "c/b/tasks.json", "d/b/tasks.json"})
    EXPECT_TRUE(links.match(path)) << path;
  EXPECT_EQ(links.ends({.path = "new", .target = "a/x"})->size(), 2U);
}

TEST(ProtectedLinks, ThatLeadOutAndBackGiveNames) {
  const ProtectedFiles files;
  const ProtectedLinks links(files, "/home/u/w", Links{{".vscode", "../w/tools"}, {"a/.idea", "../../../u/w/b"}});
  EXPECT_TRUE(links.match("tools/tasks.json"));
  EXPECT_TRUE(links.match("b/workspace.xml"));
}

TEST(ProtectedLinks, ThatTakeTooLongToFollowProtectEverything) {
  const ProtectedFiles files;
  Links many;
  for (int i = 0; i < 2000; ++i) many.push_back({"d" + std::to_string(i) + "/.config", "../l"});
  for (int i = 0; i < 5000; ++i) many.push_back({"l/fish" + std::to_string(i), "x"});
  const ProtectedLinks places(files, "/w", many);
  EXPECT_TRUE(places.isIncomplete());
  EXPECT_TRUE(places.match("any/file"));
  many = {{".vscode", "l0"}};
  for (int i = 0; i < 30; ++i) {
    for (const char* target : {"/.", "/./."}) {
      many.push_back({"l" + std::to_string(i), "l" + std::to_string(i + 1) + target});
    }
  }
  EXPECT_TRUE(ProtectedLinks(files, "/w", many).isIncomplete()) << "2^30 ways";
}

TEST(ProtectedLinks, ToADirectoryAboveEnd) {
  const ProtectedFiles files;
  const ProtectedLinks links(files, "", Links{{".config", "."}, {"a/.config", ".."}});
  EXPECT_TRUE(links.match("fish/config.fish"));
  EXPECT_FALSE(links.match("a/fish/config.fish"));
  EXPECT_FALSE(links.match("a/b"));
}

TEST(ProtectedLinks, TooManyProtectEverything) {
  const ProtectedFiles files;
  Links many;
  for (int i = 0; i < 5000; ++i) many.push_back({"d" + std::to_string(i) + "/.vscode", "x"});
  EXPECT_TRUE(ProtectedLinks(files, "", many).match("any/file"));
}

TEST(ProtectedLinks, PassLinksOutsideOfTheWorkspace) {
  const ProtectedFiles files;
  const auto outside = [](const std::string& path) -> std::optional<std::string> {
    if (path == "/home/u/src") return "/data/src";
    if (path == "/data/src/alias") return "w";
    if (path == "/loop") return "loop";
    return std::nullopt;
  };
  const Links all = {{".vscode", "/home/u/src/w/a"}, {".idea", "../alias/b"}, {".zed", "/loop"}, {"sub/.fleet", "/c"}};
  const ProtectedLinks links(files, "/data/src/w", all, {{"../alias/hooks", ".git/config"}}, outside);
  for (const char* path : {"a/tasks.json", "b/workspace.xml", "hooks/pre-commit"})
    EXPECT_TRUE(links.match(path)) << path;
  EXPECT_EQ(links.places().size(), 3U);
  EXPECT_EQ(links.ends({.path = "x", .target = "/home/u/src/w/a/y"}), std::vector<std::string>{"a/y"});
}

TEST(ProtectedLinks, NameTheParentOfATargetByTwoDots) {
  const ProtectedFiles files;
  const ProtectedLinks links(files, "/w", Links{{"lnk", "a/b"}, {"c/.vscode", "../d/../e"}},
                             {{"lnk/../hooks", ".git/config"}});
  EXPECT_TRUE(links.match("a/hooks/pre-commit"));
  EXPECT_FALSE(links.match("hooks/pre-commit"));
  EXPECT_TRUE(links.match("e/tasks.json"));
  for (const char* path : {"lnk", "a/b", "d"}) EXPECT_TRUE(links.isOnTheWay(path)) << path << " could be another link";
  EXPECT_FALSE(links.match("c")) << "it holds the link";
}

TEST(ProtectedLinks, ArgumentsOfCommandsAreFiles) {
  const ProtectedFiles files;
  const ProtectedLinks links(files, "/w", {}, {{.path = "run", .configuration = ".git/config", .file = true}});
  EXPECT_TRUE(links.match("run"));
  EXPECT_FALSE(links.match("run", true));
  EXPECT_FALSE(links.match("run/x"));
}

TEST(ProtectedLinks, IncludeWhatConfigurationsName) {
  const ProtectedFiles files;
  const ProtectedLinks links(files, "", Links{{"tools", "t2"}}, {{"tools/hooks", ".git/config"}});
  EXPECT_EQ(reasonFor(links, "t2/hooks/pre-push"), "the host executes it: .git/config leads to it");
  EXPECT_FALSE(links.match("t2/other"));
}

}  // namespace
}  // namespace caisson::policy
