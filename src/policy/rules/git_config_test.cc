#include "policy/rules/git_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <random>

#include "base/text.h"
#include "support/temp_dir.h"

namespace caisson::policy {
namespace {

using Words = std::vector<std::string>;

TEST(GitConfig, NamesWhatGitExecutes) {
  const auto found = pathsInGitConfig(
      "[core]\n\tbare = false\n\thooksPath = tools/hooks # ours\n\tworktree = ../..\n"
      "[filter \"x\"]\n\tclean = \"python3 ci/clean.py --fast\"\n"
      "[Alias] st = !./scripts/st.sh $1\n\tco = checkout\n"
      "[diff \"word\"]\n\ttextconv = \\\n  bin/convert\n"
      "[include]\n\tpath = ../shared.gitconfig\n[includeIf \"gitdir:x\"]\n\tpath=other\n"
      "[remote \"origin\"]\n\turl = ../x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n");
  EXPECT_EQ(found.hooks, Words{"tools/hooks"});
  EXPECT_EQ(found.executed, (Words{"ci/clean.py", "./scripts/st.sh", "bin/convert"}));
  EXPECT_EQ(found.included, (Words{"../shared.gitconfig", "other"}));
  EXPECT_EQ(found.work_tree, "../..");
}

TEST(GitConfig, AcceptsAnyText) {
  for (const char* text : {"", "[", "]", "[core", "=", "[core]hookspath", "[core]\nhooksPath =\n", "\\", "a\\\n\\\n"}) {
    EXPECT_TRUE(pathsInGitConfig(text).executed.empty()) << text;
    EXPECT_TRUE(pathsInGitConfig(text).hooks.empty()) << text;
  }
  EXPECT_EQ(pathsInGitConfig("[core]\r\nhooksPath=\"a b\"\r\n").hooks, Words{"a b"});
}

TEST(GitConfig, NamesTheRestAfterAVariable) {
  const auto found = pathsInGitConfig(
      "[alias]\n\ta = \"!$(git rev-parse --show-toplevel)/t/a.sh\"\n\tb = !$PWD/t/b.sh\n\tc = !\\\"${X}\\\"/t/c.sh\n");
  for (const char* path : {"t/a.sh", "t/b.sh", "t/c.sh"}) {
    EXPECT_NE(std::ranges::find(found.executed, path), found.executed.end()) << path;
  }
}

TEST(GitConfig, NamesPathsInTheHome) {
  const auto found = pathsInGitConfig(
      "[alias]\n\ta = !$HOME/t/a.sh\n\tb = !\\\"$HOME\\\"/t/b.sh\n\tc = !${HOME}/t/c.sh\n\td = "
      "!\\\"${HOME}\\\"/t/d.sh\n"
      "\te = !\\\"$HOME/t/e.sh\\\"\n\tf = !$HOMES/t/f.sh\n");
  for (const char* path : {"~/t/a.sh", "~/t/b.sh", "~/t/c.sh", "~/t/d.sh", "~/t/e.sh"}) {
    EXPECT_NE(std::ranges::find(found.executed, path), found.executed.end()) << path;
  }
  EXPECT_EQ(std::ranges::find(found.executed, "~/t/f.sh"), found.executed.end());
}

TEST(GitConfig, NamesPathsAfterCd) {
  const auto found = pathsInGitConfig(
      "[alias]\n\ta = !cd one && ./x\n\tb = \"!cd \\\"$(git rev-parse --show-toplevel)\\\"/two; ./x\"\n"
      "\tc = !(cd three && cd four && exec sh ./x)\n\td = !cd $HOME/five && ./x\n");
  for (const char* path : {"one/./x", "two/./x", "three/four/./x", "~/five/./x"}) {
    EXPECT_NE(std::ranges::find(found.executed, path), found.executed.end()) << path;
  }
}

TEST(GitConfig, NamesScriptsWithoutASlashOrADot) {
  const auto found = pathsInGitConfig(
      "[filter \"a\"]\n\tclean = sh zclean\n\tsmudge = \"cd one && sh run\"\n\tprocess = \"env -C two sh ./r3 r2\"\n"
      "[alias]\n\ta = \"!git log main; nice -n 5 sh go\"\n\tb = push origin main\n\tc = rebase -x job\n\td = !$EDITOR "
      "note\n"
      "\te = !python3 -m build\n\tf = !cat script | sh\n\tg = !$(git rev-parse --git-dir)/../x sh later\n"
      "\th = -c core.hooksPath=hooks commit\n");
  for (const char* path : {"zclean", "run", "one/run", "r2", "two/r2", "go", "job", "note", "script", "later"}) {
    EXPECT_NE(std::ranges::find(found.arguments, path), found.arguments.end()) << path;
  }
  for (const char* path : {"two/./r3", "build", "x", "hooks"}) {
    EXPECT_NE(std::ranges::find(found.executed, path), found.executed.end()) << path;
  }
  for (const char* path : {"main", "origin", "log", "push", "EDITOR", "one", "rev-parse"}) {
    EXPECT_EQ(std::ranges::find(found.arguments, path), found.arguments.end()) << path;
    EXPECT_EQ(std::ranges::find(found.executed, path), found.executed.end()) << path;
  }
}

TEST(GitConfig, NamesTheRestAfterAVariableWithoutADot) {
  const auto found = pathsInGitConfig(
      "[alias]\n\ta = !$(git rev-parse --show-toplevel)/r4\n\tb = \"!\\\"$PWD\\\"/r5\"\n\tc = !${GIT_WORK_TREE:-.}/r6\n"
      "\td = !`git rev-parse --show-toplevel`/r7\n\te = \"!env -C \\\"$(git rev-parse --show-toplevel)/sub\\\" ./r8\"\n"
      "\tf = !env -Csub ./r9 && make --directory=$PWD/sub ./r10\n");
  for (const char* path : {"r4", "r5", "r6", "r7", "sub/./r8", "sub/./r9", "sub/./r10"}) {
    EXPECT_NE(std::ranges::find(found.executed, path), found.executed.end()) << path;
  }
}

TEST(GitConfig, CommandWithTooManyDirectoriesIsIncomplete) {
  std::string command = "[alias]\n\ta = \"!cd";
  for (int i = 0; i < 20; ++i) command += " d" + std::to_string(i);
  EXPECT_FALSE(pathsInGitConfig(command + " && sh run\"\n").complete);
  EXPECT_TRUE(pathsInGitConfig("[alias]\n\ta = !cd a && cd b && sh run\n").complete);
}

/// Compares the reader with git itself, for texts made of the pieces that matter.
TEST(GitConfig, IsReadAsGitReadsIt) {
  constexpr const char* kPieces[] = {"[core]",     "hooksPath",
                                     " = ",        "a/b",
                                     "\n",         "\"",
                                     "\\",         "#",
                                     " ",          ";",
                                     "\t",         "\\\n",
                                     "c",          "\r\n",
                                     "\\t",        "[core \"x]\"]",
                                     "[other]",    "\xef\xbb\xbf",
                                     "hookspath=", "# x\\\n",
                                     "d"};
  const test::TempDir dir;
  std::mt19937 random(7);
  int accepted = 0;
  for (int round = 0; round < 250; ++round) {
    std::string text = round % 4 == 0 ? "\xef\xbb\xbf[core]" : "[core]\n";
    for (auto count = 2 + random() % 12; count > 0; --count) {
      const std::string_view piece = kPieces[random() % std::size(kPieces)];
      text += piece == "hooksPath" ? "\n\thooksPath = " : piece;
    }
    dir.write("config", text);
    const std::string command = "git config -z -f '" + dir / "config" + "' --get-all core.hookspath 2>/dev/null";
    FILE* const git = ::popen(command.c_str(), "r");
    ASSERT_NE(git, nullptr);
    std::string listed;
    for (int c = std::fgetc(git); c != EOF; c = std::fgetc(git)) listed += static_cast<char>(c);
    if (::pclose(git) != 0) continue;  // git refuses the text, or there is no such key
    ++accepted;
    const auto found = pathsInGitConfig(text).hooks;
    // Versions of git differ in tabs between words.
    const auto folded = [](std::string_view value) {
      std::string plain(trimmed(value, " \t\r"));
      std::ranges::replace(plain, '\t', ' ');
      return plain;
    };
    for (const std::string_view value : split(listed, '\0')) {
      if (trimmed(value, " \t\n\r").empty()) continue;
      const bool seen =
          std::ranges::any_of(found, [&](const std::string& one) { return folded(one) == folded(value); });
      EXPECT_TRUE(seen) << "git reads \"" << value << "\" in\n" << text;
    }
  }
  EXPECT_GT(accepted, 20);
}

}  // namespace
}  // namespace caisson::policy
