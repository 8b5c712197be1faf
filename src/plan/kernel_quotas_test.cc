#include <map>

#include "plan/plan_testing.h"

namespace caisson::plan {
namespace {

using testing::planned;
using testing::profile;
using testing::someHost;

std::map<std::string, std::uint64_t> quotas(const Plan& plan) {
  std::map<std::string, std::uint64_t> values;
  for (const Step& step : plan.steps) {
    if (const auto* quota = std::get_if<SetKernelQuota>(&step)) values[quota->name] = quota->value;
  }
  return values;
}

TEST(KernelQuotas, SandboxGetsQuarterOfInotify) {
  HostFacts host = someHost();
  host.inotify_instances = 128;
  host.inotify_watches = 100'000;
  const auto values = quotas(planned(profile(), host));
  EXPECT_EQ(values.at("max_inotify_instances"), 32U);
  EXPECT_EQ(values.at("max_inotify_watches"), 25'000U);
}

TEST(KernelQuotas, SmallLimitIsNotDivided) {
  HostFacts host = someHost();
  host.inotify_instances = 4;
  EXPECT_EQ(quotas(planned(profile(), host)).at("max_inotify_instances"), 4U);
}

TEST(KernelQuotas, UnknownLimitOfHostIsLeftAlone) {
  EXPECT_FALSE(quotas(planned(profile(), someHost())).contains("max_inotify_instances"));
}

TEST(KernelQuotas, NoUserNamespaceAndNoFanotifyGroup) {
  policy::Policy policy = profile();
  for (const policy::Level level : {policy::Level::full, policy::Level::process}) {
    policy.isolation.level = level;
    const auto values = quotas(planned(policy));
    EXPECT_EQ(values.at("max_user_namespaces"), 0U);
    EXPECT_EQ(values.at("max_fanotify_groups"), 0U);
  }
}

TEST(KernelQuotas, FollowMountOfProc) {
  const Plan plan = planned(profile());
  const int proc = testing::positionOf<MountProc>(plan, "/proc");
  ASSERT_GE(proc, 0);
  EXPECT_TRUE(std::holds_alternative<SetKernelQuota>(plan.steps[static_cast<std::size_t>(proc) + 1]));
}

TEST(KernelQuotas, NoneWithoutUserNamespace) {
  policy::Policy policy = profile();
  policy.isolation.level = policy::Level::none;
  EXPECT_TRUE(quotas(planned(policy)).empty());
}

}  // namespace
}  // namespace caisson::plan
