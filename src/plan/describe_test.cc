// The text of a plan, with names that try to leave their line.
#include <gtest/gtest.h>

#include <algorithm>

#include "plan/plan.h"
#include "plan/plan_testing.h"

namespace caisson::plan {
namespace {

using namespace testing;  // NOLINT: the vocabulary of these tests

/// A plan with `name` wherever a name of the workspace, the host or the policy can stand.
Plan planWithName(const std::string& name) {
  HostFacts host = someHost();
  host.scan.secrets = {name};
  host.scan.secret_kinds = {{name, "key: " + name}};
  host.scan.covered = {{name + "/closed", "no permission"}};
  Plan plan = planned(policy::Policy{}, host);
  const std::string path = "/workspace/" + name;
  plan.command = {"cat", path};
  plan.working_directory = path;
  plan.warnings.push_back("warning about " + name);
  plan.notices.push_back("notice about " + name);
  plan.layers["workspace"] = "of " + name;
  plan.environment.push_back("NAME=" + name);
  plan.landlock.rules.push_back({.path = path, .access = 1});
  plan.steps.emplace_back(MakeDirectory{.target = path});
  plan.steps.emplace_back(MakeSymlink{.target = path, .to = name});
  plan.steps.emplace_back(MakeFile{.target = path});
  plan.steps.emplace_back(Bind{.source = "/" + name, .target = path});
  plan.steps.emplace_back(MountTmpfs{.target = path});
  plan.steps.emplace_back(MountOverlay{.lower = "/" + name, .target = path, .whiteouts = {name}});
  plan.steps.emplace_back(MountOverlay{.lower = "/" + name, .target = path, .read_only = true});
  plan.steps.emplace_back(MaskPath{.target = path});
  plan.steps.emplace_back(CoverFile{.target = path});
  plan.steps.emplace_back(RootLayer{.source = "/" + name});
  plan.steps.emplace_back(MoveRoot{.target = path});
  return plan;
}

TEST(DescribePlan, KeepsNamesInTheirLine) {
  const auto linesOf = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  const std::string plain = describe(planWithName("name"));
  for (const char* name : {"a\n  masked     /etc/forged", "a\r\nmasked /etc/forged", "a\033[2K\033[1Amasked"}) {
    const std::string text = describe(planWithName(name));
    EXPECT_EQ(linesOf(text), linesOf(plain)) << text;
    EXPECT_EQ(text.find("\n  masked     /etc/forged"), std::string::npos) << text;
    EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c == '\n' || static_cast<unsigned char>(c) >= ' '; }))
        << text;
    const std::string json = describeJson(planWithName(name));
    EXPECT_EQ(json.find("masked     /workspace/a"), std::string::npos) << "in a line of the tree";
  }
}

TEST(DescribePlan, WritesANameAsTheShellReadsIt) {
  const std::string text = describe(planWithName("a\nb"));
  EXPECT_NE(text.find("masked     $'/workspace/a\\nb'\n"), std::string::npos) << text;
  EXPECT_NE(text.find("hidden: $'a\\nb'\n"), std::string::npos) << text;
  EXPECT_NE(text.find("secrets or are closed to you: $'a\\nb'"), std::string::npos) << text;
}

}  // namespace
}  // namespace caisson::plan
