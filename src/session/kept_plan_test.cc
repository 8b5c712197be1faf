#include "session/kept_plan.h"

#include <gtest/gtest.h>

#include "plan/plan_testing.h"
#include "sys/build_id.h"

namespace caisson::session {
namespace {

using plan::testing::profile;
using plan::testing::someHost;

const KeptFor kKey{"{\"format\":1}", "{\"pid\":7}", {0, 1}};

Metadata someSession() {
  Metadata metadata;
  metadata.name = "fix-login";
  metadata.policy = profile("bash");
  metadata.policy.environment.pass = {"CAISSON_TEST_NOT_SET"};
  metadata.policy.environment.set = {{"COLOR", "never"}};
  metadata.policy.syscalls.high_limit = 3;
  metadata.policy.resources.cpu_seconds = 7.5;
  metadata.policy.filesystem.max_total_size = 1 << 30;
  return metadata;
}

plan::Plan commonPlan(const Metadata& metadata) {
  plan::Plan plan = plan::testing::planned(metadata.policy);
  plan.steps.clear();
  plan.landlock.rules.clear();
  plan.cgroup.reset();
  return plan;
}

/// Skips where the linker leaves no build id: then nothing is kept at all.
class KeptPlan : public testing::Test {
 protected:
  void SetUp() override {
    if (sys::buildId().empty()) GTEST_SKIP() << "linked without a build id";
    bytes = encodeKeptPlan(kKey, metadata, common);
    ASSERT_FALSE(bytes.empty());
  }
  const Metadata metadata = someSession();
  const plan::Plan common = commonPlan(metadata);
  std::string bytes;
};

TEST_F(KeptPlan, IsThePlanThatWasMadeAtLength) {
  auto kept = decodeKeptPlan(bytes, kKey);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->name, "fix-login");
  EXPECT_EQ(kept->plan.severities.high_limit, 3U);
  const auto plan = planByKept(*kept, {"true"});
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan::describeJson(*plan), plan::describeJson(common));
  EXPECT_EQ(encodePlan({metadata.name, metadata.policy, *plan}), encodePlan({metadata.name, metadata.policy, common}));
  EXPECT_EQ(plan->environment, common.environment);
}

TEST_F(KeptPlan, HoldsForNothingElse) {
  const auto holds = [&](const KeptFor& key) { return decodeKeptPlan(bytes, key).has_value(); };
  EXPECT_TRUE(holds(kKey));
  EXPECT_FALSE(holds({"{\"format\":1} ", kKey.init, kKey.cpus})) << "another policy";
  EXPECT_FALSE(holds({kKey.meta, "{\"pid\":8}", kKey.cpus})) << "another start of the sandbox";
  EXPECT_FALSE(holds({kKey.meta, kKey.init, {0}})) << "other processors";
  EXPECT_FALSE(holds({kKey.meta + kKey.init, "", kKey.cpus})) << "the same bytes, cut elsewhere";
  std::string of_another_build = bytes;
  of_another_build.at(of_another_build.find(sys::buildId())) ^= 1;
  EXPECT_FALSE(decodeKeptPlan(of_another_build, kKey));
}

TEST_F(KeptPlan, IsReadWholeOrNotAtAll) {
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_FALSE(decodeKeptPlan(std::string_view(bytes).substr(0, length), kKey)) << length;
  }
  EXPECT_FALSE(decodeKeptPlan(bytes + '\0', kKey));
}

TEST_F(KeptPlan, IsOnlyForWhatItCanSay) {
  const auto kept = [](const std::function<void(Metadata&)>& change) {
    Metadata other = someSession();
    change(other);
    return !encodeKeptPlan(kKey, other, commonPlan(other)).empty();
  };
  EXPECT_TRUE(kept([](Metadata&) {}));
  EXPECT_FALSE(kept([](Metadata& m) { m.policy.commands.blocked_patterns = {"rm"}; }));
  EXPECT_FALSE(kept([](Metadata& m) { m.policy.process.blocked_executables = {"/usr/bin/ssh"}; }));
  EXPECT_FALSE(kept([](Metadata& m) { m.policy.process.allow_exec = false; })) << "a secret per command";
  EXPECT_FALSE(kept([](Metadata& m) { m.policy.process.allow_fork = false; })) << "another filter";
  EXPECT_FALSE(kept([](Metadata& m) { m.policy.environment.mode = policy::EnvironmentMode::inherit; }));
  EXPECT_FALSE(kept([](Metadata& m) { m.policy.network.mode = policy::NetworkMode::proxy; }));
  EXPECT_FALSE(kept([](Metadata& m) { m.auto_checkpoint = true; }));
  EXPECT_FALSE(kept([](Metadata& m) { m.granted = {"example.org"}; }));
}

}  // namespace
}  // namespace caisson::session
