#include "supervise/disk/private_paths.h"

#include <gtest/gtest.h>

namespace caisson::supervise {
namespace {

TEST(PrivateDirectories, GetTheirPathsWhereverThePlanNamesThem) {
  plan::Plan plan;
  plan.steps.push_back(plan::MountTmpfs{.target = std::string(plan::kPrivateTmp), .on_disk = true});
  plan.steps.push_back(plan::MountTmpfs{.target = std::string(plan::kPrivateHome), .on_disk = true});
  plan.landlock.rules = {{"/usr", 1, true}, {std::string(plan::kPrivateTmp), 3, false}};
  plan.environment = {"HOME=private HOME", "TMPDIR=private TMPDIR", "NOTE=private HOMES",
                      "EMPTY=", "CACHE=private HOME/npm"};
  plan.working_directory = plan::kPrivateHome;
  plan.attribute_trees = {"/work", std::string(plan::kPrivateHome)};
  namePrivateDirectories({"/state/runs/1/directory-0", "/state/runs/1/directory-1"}, plan);
  EXPECT_EQ(plan.landlock.rules[0].path, "/usr");
  EXPECT_EQ(plan.landlock.rules[1].path, "/state/runs/1/directory-0");
  EXPECT_EQ(plan.environment,
            (std::vector<std::string>{"HOME=/state/runs/1/directory-1", "TMPDIR=/state/runs/1/directory-0",
                                      "NOTE=private HOMES", "EMPTY=", "CACHE=/state/runs/1/directory-1/npm"}));
  EXPECT_EQ(plan.working_directory, "/state/runs/1/directory-1");
  EXPECT_EQ(plan.attribute_trees, (std::vector<std::string>{"/work", "/state/runs/1/directory-1"}));
}

}  // namespace
}  // namespace caisson::supervise
