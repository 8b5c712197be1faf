#include "policy/rules/called_files.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace caisson::policy {
namespace {

using Paths = std::vector<std::string>;

Paths called(CommandSource source, std::string_view text) {
  Paths paths;
  for (const CalledPath& one : calledFiles(source, text)) paths.push_back((one.after_variable ? "$/" : "") + one.path);
  return paths;
}
Paths script(std::string_view text) { return called(CommandSource::script, text); }
Paths settings(std::string_view text) { return called(CommandSource::settings, text); }

TEST(CommandSource, FollowsFromTheName) {
  for (const char* name : {"pre-commit", ".envrc", "hook.sh", ".huskyrc", "x.BASH"}) {
    EXPECT_EQ(commandSource(name), CommandSource::script) << name;
  }
  for (const char* name : {"settings.json", "tasks.json", "lefthook.yml", "mise.toml", "x.code-workspace"}) {
    EXPECT_EQ(commandSource(name), CommandSource::settings) << name;
  }
  for (const char* name : {"pre-commit.sample", "CLAUDE.md", "x.py", "logo.png"}) {
    EXPECT_EQ(commandSource(name), CommandSource::none) << name;
  }
}

TEST(CalledFiles, FirstWordOfACommandCountsIfItIsAPath) {
  EXPECT_EQ(script("scripts/check.sh --all src/a.c\n./lint\nnpm test\n"), (Paths{"scripts/check.sh", "lint"}));
  EXPECT_EQ(script("a/b && c/d || e/f; g/h | i/j & (k/l)\n"), (Paths{"a/b", "c/d", "e/f", "g/h", "i/j", "k/l"}));
  EXPECT_EQ(script("# a/b\necho a/c # d/e\n"), Paths{});
  EXPECT_EQ(script("if test/one; then two/x; else three/x; fi\n"), (Paths{"test/one", "two/x", "three/x"}));
  EXPECT_EQ(script("exec env A=1 nohup timeout 5 tools/x y/z\n"), Paths{"tools/x"});
  EXPECT_EQ(script("'with blank/x' \"a\"/b\n"), Paths{"with blank/x"});
}

TEST(CalledFiles, ScriptOfAnInterpreterCounts) {
  EXPECT_EQ(script("sh check.sh src/a.c"), Paths{"check.sh"});
  EXPECT_EQ(script("/usr/bin/python3.11 -u tools/lint.py x"), (Paths{"/usr/bin/python3.11", "tools/lint.py"}));
  EXPECT_EQ(script("node -r ./setup.js main.js\n. lib/common\nsource env.sh"),
            (Paths{"setup.js", "main.js", "lib/common", "env.sh"}));
  EXPECT_EQ(script("python -m pytest tests/x"), Paths{});
  EXPECT_EQ(script("bash -c 'cd tools && ./x y'"), (Paths{"tools/x", "x"}));
}

TEST(CalledFiles, VariableInFrontOfAPathIsAnyDirectory) {
  EXPECT_EQ(script("\"$(git rev-parse --show-toplevel)/scripts/a.sh\"\n$ROOT/b\n${0%/*}/c\n`pwd`/d\n"),
            (Paths{"$/scripts/a.sh", "$/b", "$/c", "$/d"}));
  EXPECT_EQ(script("sh \"$(dirname \"$0\")/../x.sh\""), Paths{"$/../x.sh"});
  EXPECT_EQ(script("$TOOL x\na$B/c\n"), Paths{"$/c"});
  EXPECT_EQ(script("v=$(tools/version)\n"), Paths{"tools/version"});
}

TEST(CalledFiles, OtherLanguagesAreNotRead) { EXPECT_EQ(script("#!/usr/bin/env python3\nimport a/b\n"), Paths{}); }

TEST(CalledFiles, SettingsOfAgents) {
  EXPECT_EQ(settings(R"({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [
      {"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/check.sh"},
      {"type": "command", "command": "python3 tools/lint.py --fix"}]}]}, "apiKeyHelper": "./bin/key"})"),
            (Paths{"$/.claude/hooks/check.sh", "tools/lint.py", "bin/key"}));
  EXPECT_EQ(settings(R"({"mcpServers": {"x": {"command": "node", "args": ["build/server.js", "--x"]},
                                         "y": {"command": "./servers/y", "args": []}}})"),
            (Paths{"build/server.js", "servers/y"}));
  EXPECT_EQ(settings("notify = [\"python3\", \"tools/notify.py\"]\n[mcp_servers.x]\ncommand = \"npx\"\nargs = [\"-y\", "
                     "\"p/q\"]\n"),
            Paths{"tools/notify.py"});
}

TEST(CalledFiles, SettingsOfEditorsAndHookManagers) {
  EXPECT_EQ(settings(R"({"tasks": [{"label": "x", "command": "${workspaceFolder}/tools/x", "args": ["a/b"]},
                                    {"command": "bash", "args": ["scripts/y.sh"]}]})"),
            (Paths{"$/tools/x", "scripts/y.sh"}));
  EXPECT_EQ(settings("pre-commit:\n  commands:\n    lint:\n      run: scripts/lint.sh {staged_files}\n    more:\n"
                     "      run: |\n        set -e\n        ./tools/a\n        sh b.sh\n"),
            (Paths{"scripts/lint.sh", "tools/a", "b.sh"}));
  EXPECT_EQ(
      settings("repos:\n- repo: local\n  hooks:\n  - id: x\n    entry: python tools/check.py\n    language: system\n"),
      Paths{"tools/check.py"});
  EXPECT_EQ(settings("command:\n  - bash\n  - tools/list.sh\n"), Paths{"tools/list.sh"});
  EXPECT_EQ(settings(R"({"pre-commit": "sh hooks/all.sh"})"), Paths{"hooks/all.sh"});
  EXPECT_EQ(settings(R"({"initializeCommand": ["./setup/host.sh"]})"), Paths{"setup/host.sh"});
}

TEST(CalledFiles, TakesTimeThatGrowsWithTheText) {
  for (const std::string_view part : {"a: [x\n", "a: b, ", "run: a/b, ", "command: |\n", "$(a ", "- a:\n",
                                      "\"a\": ", "a/b\n", "[[", "run: [", "'\n"}) {
    std::string text;
    while (text.size() < kMaxCommandSource) text += part;
    EXPECT_LE(script(text).size() + settings(text).size(), 8192U) << part;
  }
}

TEST(CalledFiles, DamagedTextEndsTheReading) {
  for (const char* text :
       {"\"", "$(", "${", "`", "'", "command:", "\"command\": [", "command = '''x", "a \\", "[", "command: |"}) {
    EXPECT_TRUE(script(text).size() + settings(text).size() <= 2) << text;
  }
  std::string nested;
  for (int i = 0; i < 1000; ++i) nested += "$(";
  EXPECT_EQ(script(nested), Paths{});
}

}  // namespace
}  // namespace caisson::policy
