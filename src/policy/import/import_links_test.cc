// Paths of a foreign document are judged where symbolic links lead, not by their names alone.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "policy/import/import.h"
#include "policy/import/shown_path.h"
#include "support/environment.h"
#include "support/temp_dir.h"

namespace caisson::policy {
namespace {

using Texts = std::vector<std::string>;
using LinkNote = ImportNote::Kind;

/// A home with a key in it, a project in the home, and data beside it.
class ImportLinks : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* home = ::getenv("HOME")) old_home_ = home;
    ::setenv("HOME", (dir_ / "home").c_str(), 1);
    dir_.write("home/.ssh/id_ed25519", "key");
    dir_.write("data/plain.md", "data");
    dir_.makeDir("home/project");
  }
  void TearDown() override {
    if (old_home_.empty()) {
      ::unsetenv("HOME");
    } else {
      ::setenv("HOME", old_home_.c_str(), 1);
    }
  }

  void link(const std::string& target, const std::string& name) const {
    ASSERT_EQ(::symlink(target.c_str(), (dir_ / name).c_str()), 0) << name;
  }

  [[nodiscard]] Imported import(const std::string& text) const {
    const auto document = readText(text, Format::json, "example");
    EXPECT_TRUE(document) << document.error().message();
    auto result = importPolicy(*document, dir_ / "home/project");
    EXPECT_TRUE(result) << result.error().message();
    return result ? *result : Imported{};
  }
  [[nodiscard]] Imported importMount(const std::string& source) const {
    return import(R"({"image": "x", "mounts": ["type=bind,source=)" + source + R"("]})");
  }
  [[nodiscard]] Imported importLists(const std::string& lists) const {
    return import(R"({"network": {"allowedDomains": []}, "filesystem": {)" + lists + "}}");
  }

  /// A JSON list with one path.
  [[nodiscard]] std::string listOf(const std::string& name) const { return "[\"" + (dir_ / name) + "\"]"; }

  const test::TempDir dir_;

 private:
  std::string old_home_;
};

bool reports(const Imported& result, LinkNote kind, std::string_view part) {
  return std::ranges::any_of(result.notes, [&](const ImportNote& note) {
    return note.kind == kind && note.text.find(part) != std::string::npos;
  });
}

TEST_F(ImportLinks, LinkToKeysOrAHomeIsRefused) {
  link("../.ssh", "home/project/k");
  link("..", "home/project/up");
  link("/", "home/project/root");
  link("/run", "home/project/run");
  link("project/up", "home/twice");
  link("../.aws/later", "home/project/none");
  for (const char* name : {"project/k", "project/k/id_ed25519", "project/up", "project/root", "project/run/user",
                           "twice", "project/none"}) {
    const Imported result = importMount("${localEnv:HOME}/" + std::string(name));
    EXPECT_TRUE(result.policy.filesystem.read_only.empty() && result.policy.filesystem.read_write.empty()) << name;
    EXPECT_TRUE(reports(result, LinkNote::unsafe, "it leads to ")) << name;
  }
  for (const char* list : {"readOnlyPaths", "readWritePaths"}) {
    const Imported result = import(R"({"isolationLevel": "LEVEL_2", "filesystem": {")" + std::string(list) +
                                   "\": " + listOf("home/project/up") + "}}");
    EXPECT_TRUE(result.policy.filesystem.read_only.empty() && result.policy.filesystem.read_write.empty()) << list;
  }
  EXPECT_TRUE(importLists(R"("allowRead": )" + listOf("home/project/k")).policy.filesystem.read_only.empty());
}

TEST_F(ImportLinks, LinkToSettingsOfHostProgramsIsReadOnly) {
  link("../.config/fish", "home/project/c");
  const Imported result = importMount("${localEnv:HOME}/project/c");
  EXPECT_EQ(result.policy.filesystem.read_only, Texts{dir_ / "home/.config/fish"});
  EXPECT_TRUE(result.policy.filesystem.read_write.empty());
}

TEST_F(ImportLinks, HomeThatIsReachedThroughALinkIsAHome) {
  link("home", "name");
  ::setenv("HOME", (dir_ / "name").c_str(), 1);
  for (const char* name : {"name", "home", "name/.ssh", "home/.ssh"}) {
    const Imported result = importMount(dir_ / name);
    EXPECT_TRUE(result.policy.filesystem.read_write.empty()) << name;
    EXPECT_FALSE(reports(result, LinkNote::widening, "shown")) << name;
  }
}

TEST_F(ImportLinks, HarmlessLinkIsShownAndItsPlaceReported) {
  link("../../data", "home/project/d");
  const Imported result = importMount("${localEnv:HOME}/project/d,readonly");
  EXPECT_TRUE(reports(result, LinkNote::widening, "/project/d (leads to " + (dir_ / "data") + ") is shown, read-only"));
}

/// Else a payload that can write to the workspace decides what the next one sees.
TEST_F(ImportLinks, PolicyNamesThePlaceOfALinkInTheWorkspace) {
  link("../../data", "home/project/d");
  link("home/project/d", "indirect");
  link("data", "outside");
  for (const char* name : {"home/project/d", "indirect"}) {
    EXPECT_EQ(importMount(dir_ / name).policy.filesystem.read_write, Texts{dir_ / "data"}) << name;
    EXPECT_EQ(import(R"({"isolationLevel": "LEVEL_2", "filesystem": {"readOnlyPaths": )" + listOf(name) + "}}")
                  .policy.filesystem.read_only,
              Texts{dir_ / "data"})
        << name;
  }
  EXPECT_EQ(importLists(R"("allowRead": )" + listOf("indirect")).policy.filesystem.read_only, Texts{dir_ / "data"});
  EXPECT_EQ(importMount(dir_ / "outside").policy.filesystem.read_write, Texts{dir_ / "outside"});
}

TEST_F(ImportLinks, DeniedPatternHoldsForALink) {
  link("data", "lnk");
  for (const auto& [denied, allowed] : {std::pair{"data/*.md", "lnk"}, {"lnk/*.md", "data"}, {"lnk/*.md", "lnk"}}) {
    const Imported result = importLists(R"("denyRead": )" + listOf(denied) + R"(, "allowRead": )" + listOf(allowed));
    EXPECT_TRUE(result.policy.filesystem.read_only.empty()) << denied << allowed;
    EXPECT_TRUE(reports(result, LinkNote::unsafe, "is not shown, because")) << denied << allowed;
  }
}

/// Links to nothing, since allowWrite takes nothing below a temporary directory.
TEST_F(ImportLinks, PathDeniedThroughALinkIsNotWritable) {
  link("/srv/caisson-none/d", "lnk");
  const std::string allowed = R"("allowWrite": ["/srv/caisson-none/d", "/srv/caisson-none/other"], "denyWrite": )";
  for (const char* denied : {"lnk/plain.md", "lnk", "lnk/*.md", "lnk/sub/../plain.md"}) {
    const Imported result = importLists(allowed + listOf(denied));
    EXPECT_EQ(result.policy.filesystem.read_write, Texts{"/srv/caisson-none/other"}) << denied;
    EXPECT_EQ(result.policy.filesystem.read_only, Texts{"/srv/caisson-none/d"}) << denied;
  }
  link("/srv/caisson-none/d", "home/project/out");
  EXPECT_EQ(importLists(allowed + R"(["out/plain.md"])").policy.filesystem.read_write,
            Texts{"/srv/caisson-none/other"});
}

TEST_F(ImportLinks, AllowedLinkToADeniedPathIsNotWritable) {
  requireOrSkip(std::filesystem::is_symlink("/bin"), "/bin is not a symbolic link on this system");
  const Imported result =
      importLists(R"("allowWrite": ["/bin/caisson-none"], "denyWrite": ["/usr/bin/caisson-none/plain.md"])");
  EXPECT_TRUE(result.policy.filesystem.read_write.empty());
  EXPECT_TRUE(reports(result, LinkNote::unsafe, "/bin/caisson-none is not writable"));
}

TEST_F(ImportLinks, DirectoryAboveTheWorkspaceDeniedThroughALinkKeepsItFromBeingWritten) {
  link("home", "h");
  link("home/project", "p");
  const std::string allowed = R"("allowWrite": ["."], "denyWrite": )";
  EXPECT_EQ(importLists(allowed + listOf("h")).policy.filesystem.workspace.mode, WorkspaceMode::overlay);
  EXPECT_EQ(importLists(allowed + listOf("p/lib/")).policy.filesystem.workspace.protected_files, Texts{"lib/"});
  EXPECT_EQ(importLists(allowed + listOf("h/*/lib/")).policy.filesystem.workspace.protected_files, Texts{"lib/"});
}

TEST_F(ImportLinks, PlaceIsFoundOfPathsThatDoNotExist) {
  link("missing/x", "dangling");
  link("loop", "loop");
  link("../data", "home/data");
  EXPECT_EQ(realPlace(dir_ / "dangling/y"), dir_ / "missing/x/y");
  EXPECT_EQ(realPlace(dir_ / "home/data/../new"), dir_ / "new");
  EXPECT_EQ(realPlace(dir_ / "loop/x"), dir_ / "loop/x");
  EXPECT_EQ(realPlace("/caisson-none/a//./b"), "/caisson-none/a/b");
  EXPECT_EQ(realPlace("/.."), "/");
  std::string deep;
  for (int i = 0; i < 1500; ++i) deep += "/a";
  EXPECT_EQ(realPlace(deep), deep);
  EXPECT_EQ(realPlace(deep + deep), deep + deep) << "no path is that long";
  link("." + deep, "deep");
  EXPECT_EQ(realPlace((dir_ / "deep") + deep), "/") << "deeper than can be followed";
  EXPECT_EQ(importMount("/caisson-none/a").policy.filesystem.read_write, Texts{"/caisson-none/a"});
}

}  // namespace
}  // namespace caisson::policy
