// Rules of Claude Code's settings keep the meaning that their paths have there.
#include <gtest/gtest.h>

#include <algorithm>

#include "policy/decode/syntax.h"
#include "policy/import/import.h"

namespace caisson::policy {
namespace {

using Texts = std::vector<std::string>;

Imported importRules(const std::string& denied, const std::string& allowed = R"js("Edit(.)")js") {
  const auto document = readText(R"({"permissions": {"allow": [)" + allowed + R"(], "deny": [)" + denied + "]}}",
                                 Format::json, "example");
  EXPECT_TRUE(document) << document.error().message();
  auto result = importPolicy(*document, "/home/someone/project");
  EXPECT_TRUE(result) << result.error().message();
  return result ? *result : Imported{};
}

bool reports(const Imported& result, std::string_view key, std::string_view part) {
  return std::ranges::any_of(result.notes, [&](const ImportNote& note) {
    return note.key == key && note.text.find(part) != std::string::npos;
  });
}

TEST(ImportRules, SingleSlashIsTheProject) {
  const Imported result = importRules(R"js("Edit(/keep.txt)", "Edit(/conf/**)", "Read(/src/**)", "Read(/a/*.pem)")js");
  EXPECT_EQ(result.policy.filesystem.workspace.protected_files, (Texts{"keep.txt", "keep.txt/", "conf/"}));
  EXPECT_EQ(result.policy.filesystem.denied, (Texts{"/workspace/src", "/workspace/a/*.pem"}));
  EXPECT_TRUE(reports(result, "permissions.deny", "Edit(/keep.txt) is for a path of the workspace"));
  for (const char* whole : {R"js("Read(/)")js", R"js("Read(/**)")js", R"js("Read(.)")js"})
    EXPECT_EQ(importRules(whole).policy.filesystem.workspace.mode, WorkspaceMode::none) << whole;
}

/// Claude Code reads it as a path of the project; an older reader may have meant the host's.
TEST(ImportRules, PathOfTheWorkspaceAfterASingleSlashStaysDenied) {
  EXPECT_EQ(importRules(R"js("Read(/home/someone/project/keys/**)")js").policy.filesystem.denied,
            (Texts{"/workspace/home/someone/project/keys", "/workspace/keys"}));
  EXPECT_EQ(importRules(R"js("Read(/workspace/keys)")js").policy.filesystem.denied,
            (Texts{"/workspace/workspace/keys", "/workspace/keys"}));
}

TEST(ImportRules, AllowedPathOfTheProjectIsNotOneOfTheHost) {
  const Imported result = importRules("", R"js("Edit(/srv/a)", "Read(/srv/b)", "Edit(//srv/c)", "Read(//srv/d/**)")js");
  EXPECT_EQ(result.policy.filesystem.read_write, Texts{"/srv/c"});
  EXPECT_EQ(result.policy.filesystem.read_only, Texts{"/srv/d"});
  EXPECT_EQ(result.policy.filesystem.workspace.mode, WorkspaceMode::ro);
  EXPECT_TRUE(reports(result, "permissions.allow", "./srv/a: the workspace is writable as a whole"));
  EXPECT_EQ(importRules("", R"js("Edit(/**)")js").policy.filesystem.workspace.mode, WorkspaceMode::rw);
  EXPECT_TRUE(reports(importRules("", R"js("Edit(//**)")js"), "permissions.allow", "the whole host"));
}

TEST(ImportRules, DoubleSlashAndTildeAreTheHost) {
  const Imported result = importRules(R"js("Edit(//srv/a/kept)", "Read(//srv/b/key)", "Read(~/notes)")js",
                                      R"js("Edit(//srv/a)", "Read(//srv/b)")js");
  EXPECT_EQ(result.policy.filesystem.read_only, (Texts{"/srv/b", "/srv/a"}));
  EXPECT_TRUE(result.policy.filesystem.read_write.empty());
  EXPECT_EQ(result.policy.filesystem.denied, (Texts{"/srv/b/key", expandHome("~/notes").value_or("")}));
}

TEST(ImportRules, BareNameIsDeniedAtEveryDepth) {
  const Imported result = importRules(R"js("Read(.env)", "Read(./key)", "Read(certs/)", "Grep(*.pem)", "Read(a/b)")js");
  EXPECT_EQ(result.policy.filesystem.denied, (Texts{"/workspace/**/.env", "/workspace/**/key", "/workspace/**/certs",
                                                    "/workspace/**/*.pem", "/workspace/a/b"}));
  EXPECT_EQ(result.policy.filesystem.workspace.mode, WorkspaceMode::overlay) << "rw cannot hide patterns";
}

TEST(ImportRules, PathAboveTheWorkspaceIsOneOfTheHost) {
  const Imported result = importRules(R"js("Read(../other/key)", "Read(/../more)", "Edit(a/../kept)")js");
  EXPECT_EQ(result.policy.filesystem.denied, (Texts{"/home/someone/other/key", "/home/someone/more"}));
  EXPECT_EQ(result.policy.filesystem.workspace.protected_files, (Texts{"kept", "kept/"}));
}

TEST(ImportRules, RuleOfAnotherToolThatEditsIsKept) {
  EXPECT_EQ(importRules(R"js("MultiEdit(/kept)", "NotebookEdit(book)")js").policy.filesystem.workspace.protected_files,
            (Texts{"kept", "kept/", "book", "book/"}));
}

TEST(ImportRules, RuleThatCannotBeConvertedIsReported) {
  for (const std::string rule : {"Read(!kept)", "Edit(kept", "Bash(curl:*)", "MultiEdit", "mcp__server"})
    EXPECT_TRUE(reports(importRules("\"" + rule + "\""), "permissions.deny", rule + " has no counterpart")) << rule;
}

}  // namespace
}  // namespace caisson::policy
