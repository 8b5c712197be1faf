#include "policy/rules/shells.h"

#include <gtest/gtest.h>

#include "policy/profiles/profiles.h"
#include "support/conforms.h"

namespace caisson::policy {

TEST(Shells, ProfilesBelowFullHaveNone) {
  CONFORMS("R-POLICY-10");
  for (const std::string_view name : builtinNames()) {
    const Policy policy = *builtin(name);
    EXPECT_TRUE(policy.isolation.level == Level::full || !canStartShell(policy)) << name;
  }
  EXPECT_TRUE(canStartShell(*builtin("bash")));
  EXPECT_FALSE(canStartShell(*builtin("strict")));
}

TEST(Shells, AreBlockedByACompleteBlocklistOnly) {
  Policy policy = *builtin("files");
  ASSERT_FALSE(canStartShell(policy));
  std::erase(policy.process.blocked_executables, "busybox");
  EXPECT_TRUE(canStartShell(policy));
}

TEST(Shells, AllowlistCanContainOneInManyWays) {
  Policy policy;
  policy.process.allowed_executables = {"grep", "/usr/lib/git-core"};
  EXPECT_FALSE(canStartShell(policy));
  for (const char* entry : {"sh", "/bin/bash", "/opt/x/zsh", "/usr/bin", "/usr//bin/", "/usr", "/"}) {
    policy.process.allowed_executables = {"grep", entry};
    EXPECT_TRUE(canStartShell(policy)) << entry;
  }
  policy.process.allowed_executables = {"grep"};
  policy.process.executable_directories = {"/workspace"};
  EXPECT_TRUE(canStartShell(policy)) << "one can be brought along";
}

TEST(Shells, CanAlwaysStartWithoutAPrivateMountTree) {
  Policy policy = *builtin("files");
  policy.isolation.tier = Tier::landlock;
  EXPECT_TRUE(canStartShell(policy));
  policy = *builtin("files");
  policy.isolation.level = Level::none;
  EXPECT_TRUE(canStartShell(policy));
}

}  // namespace caisson::policy
