#include "caisson/policy.h"

#include <gtest/gtest.h>

#include "policy/model.h"

namespace caisson {

TEST(PublicPolicy, StartsFromAProfileAndIsSetKeyByKey) {
  auto policy = Policy::profile("bash");
  ASSERT_TRUE(policy) << policy.error().message();
  EXPECT_TRUE(policy->set("resources.memory", "256M"));
  EXPECT_TRUE(policy->append("filesystem.read_only", "/opt"));
  EXPECT_EQ(policy->model().resources.memory, 256 * policy::kMiB);
  EXPECT_FALSE(policy->set("resources.memory", "much"));

  Policy copy = *policy;
  EXPECT_TRUE(copy.set("resources.memory", "64M"));
  EXPECT_EQ(policy->model().resources.memory, 256 * policy::kMiB);
}

TEST(PublicPolicy, NamesItsProfiles) {
  EXPECT_EQ(Policy::profileNames().front(), "dev");
  const auto unknown = Policy::profile("strickt");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().hint.find("strict"), std::string::npos);
  EXPECT_FALSE(Policy::schema().empty());
}

}  // namespace caisson
