// What of the host an agent's program gets to see.
#include "cli/agent/program.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "support/temp_dir.h"

namespace caisson::cli {
namespace {

namespace fs = std::filesystem;

class AgentProgramTest : public ::testing::Test {
 protected:
  AgentProgramTest() : root_(fs::canonical(dir_.path())), home_(root_ / "home") {
    fs::create_directories(home_);
    ::setenv("HOME", home_.c_str(), 1);
  }
  ~AgentProgramTest() override {
    if (before_) {
      ::setenv("HOME", before_->c_str(), 1);
    } else {
      ::unsetenv("HOME");
    }
  }

  static void makeProgram(const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "#!/bin/sh\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  /// A tool with keys beside its parts.
  static void makeTool(const fs::path& top) {
    makeProgram(top / "bin/name");
    for (const char* part : {"lib", "share", "keys", "logs", "node_modules"}) fs::create_directories(top / part);
    std::ofstream(top / "token") << "x\n";
  }
  static std::vector<std::string> partsOf(const fs::path& top) {
    return {top / "bin/name", top / "lib", top / "share", top / "node_modules"};
  }
  static std::vector<std::string> shownFor(const fs::path& program) {
    const auto found = findProgram(program, "/no/project");
    EXPECT_TRUE(found) << program;
    return found ? found->shown : std::vector<std::string>{"error"};
  }

  test::TempDir dir_;
  fs::path root_, home_;
  std::optional<std::string> before_ =
      std::getenv("HOME") == nullptr ? std::nullopt : std::optional<std::string>(std::getenv("HOME"));
};

TEST_F(AgentProgramTest, InTheHomeOnlyTheProgramAndItsPartsAreShown) {
  for (const char* top : {"name", "work/tools/name", ".name", ".local/share/name"}) {
    makeTool(home_ / top);
    EXPECT_EQ(shownFor(home_ / top / "bin/name"), partsOf(home_ / top)) << top;
  }
}

TEST_F(AgentProgramTest, LinksToAProgramOfTheHomeShowNoMore) {
  makeTool(home_ / "name");
  fs::create_directories(home_ / "bin");
  fs::create_symlink("../name/bin/name", home_ / "bin/relative");
  fs::create_symlink(home_ / "name/bin/name", root_ / "absolute");
  for (const fs::path& link : {home_ / "bin/relative", root_ / "absolute"})
    EXPECT_EQ(shownFor(link), partsOf(home_ / "name")) << link;
  // A directory of the home that lies elsewhere, by its name and through a link to it.
  makeTool(root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", home_ / "linked");
  fs::create_symlink("../linked/bin/name", home_ / "bin/other");
  for (const fs::path& link : {home_ / "linked/bin/name", home_ / "bin/other"})
    EXPECT_EQ(shownFor(link), partsOf(root_ / "elsewhere")) << link;
}

TEST_F(AgentProgramTest, AHomeWithLinksInItsNameIsTheHome) {
  makeTool(home_ / "name");
  fs::create_symlink(home_, root_ / "user");
  ::setenv("HOME", (root_ / "user/").c_str(), 1);
  EXPECT_EQ(shownFor(root_ / "user/name/bin/name"), partsOf(home_ / "name"));
}

TEST_F(AgentProgramTest, ProgramsBesideTheUsersFilesAreShownAlone) {
  for (const char* path : {"direct", "name/name", "bin/name", ".local/bin/name"}) {
    makeProgram(home_ / path);
    fs::create_directories(home_ / "lib");
    fs::create_directories(home_ / "share");
    EXPECT_EQ(shownFor(home_ / path), std::vector<std::string>{home_ / path}) << path;
  }
}

TEST_F(AgentProgramTest, PartsThatAreLinksAreNotShown) {
  makeProgram(home_ / "name/bin/name");
  fs::create_directories(home_ / ".ssh");
  fs::create_symlink("../.ssh", home_ / "name/lib");
  EXPECT_EQ(shownFor(home_ / "name/bin/name"), std::vector<std::string>{home_ / "name/bin/name"});
}

TEST_F(AgentProgramTest, OutsideOfTheHomeTheDirectoryAboveIsShown) {
  makeTool(root_ / "opt/name");
  EXPECT_EQ(shownFor(root_ / "opt/name/bin/name"), std::vector<std::string>{root_ / "opt/name"});
  fs::create_directories(home_ / "bin");
  fs::create_symlink(root_ / "opt/name/bin/name", home_ / "bin/name");
  EXPECT_EQ(shownFor(home_ / "bin/name"), std::vector<std::string>{root_ / "opt/name"});
}

}  // namespace
}  // namespace caisson::cli
