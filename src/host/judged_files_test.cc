#include "host/judged_files.h"

#include <gtest/gtest.h>

namespace caisson::host {
namespace {

using Protected = plan::WorkspaceScan::Protected;

TEST(JudgedFiles, CoverNamesOfTheTableAndOfThePolicy) {
  const JudgedFiles judged("/home/a/p", {.patterns = {"deploy/*.sh"}, .around = {}, .programs = {}}, {});
  EXPECT_TRUE(judged.covers(".vscode/tasks.json", false));
  EXPECT_TRUE(judged.covers("deploy/x.sh", false));
  EXPECT_TRUE(judged.covers(".config", true)) << "a link there gives protected names";
  EXPECT_FALSE(judged.covers("ops/x.sh", false));
  EXPECT_FALSE(JudgedFiles("/home/a/p", {}, {}).covers("deploy/x.sh", false));
}

TEST(JudgedFiles, CoverWhatALinkThatWasThereLeadsTo) {
  const std::vector<Protected> found{{.path = ".vscode", .target = "tools/code"},
                                     {.path = "hooks/run", .target = "../bin/hook"},
                                     {.path = "covered/", .target = "../bin"}};
  const JudgedFiles judged("/home/a/p", {}, found);
  EXPECT_TRUE(judged.covers("tools/code/tasks.json", false)) << "it need not have been there";
  EXPECT_TRUE(judged.covers("bin/hook", false));
  EXPECT_FALSE(judged.covers("bin/other", false));
  EXPECT_FALSE(judged.covers("tools/other/tasks.json", false));
}

TEST(JudgedFiles, CoverProgramsOfGitConfigurations) {
  const JudgedFiles judged("/home/a/p", {.patterns = {}, .around = {}, .programs = {"dev/hooks"}}, {});
  EXPECT_TRUE(judged.covers("dev/hooks/pre-commit", false));
  EXPECT_TRUE(judged.covers("dev", true)) << "a link there leads to another program";
  EXPECT_FALSE(judged.covers("dev/other", false));
}

TEST(JudgedFiles, CoverAllIfTheyAreJudgedFromADirectoryAround) {
  const JudgedFiles judged("/home/a/p", {.patterns = {}, .around = "/home/a", .programs = {}}, {});
  EXPECT_TRUE(judged.covers("ops/x.sh", false));
}

}  // namespace
}  // namespace caisson::host
