#include "plan/credentials.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plan/plan_testing.h"

namespace caisson::plan {
namespace {

policy::Policy withCredential() {
  policy::Policy policy;
  policy.network.mode = policy::NetworkMode::proxy;
  policy.network.allowed_hosts = {"api.example.org"};
  policy.network.credentials.push_back({.host = "api.example.org", .secret_env = "KEY", .env = "KEY"});
  return policy;
}

bool has(const std::vector<std::string>& environment, const std::string& variable) {
  return std::ranges::find(environment, variable) != environment.end();
}

const MakeFile* trustFile(const Plan& plan) {
  for (const Step& step : plan.steps) {
    const auto* file = std::get_if<MakeFile>(&step);
    if (file != nullptr && file->target == kTrustFile) return file;
  }
  return nullptr;
}

TEST(PlannedCredentials, ProgramsGetATrustFileAndAPlaceholder) {
  const auto plan = build(withCredential(), testing::someHost(), {{"true"}, false});
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_TRUE(has(plan->environment, "KEY=caisson-credential-api.example.org"));
  EXPECT_TRUE(has(plan->environment, "SSL_CERT_FILE=/etc/caisson/trust.pem"));
  ASSERT_NE(trustFile(*plan), nullptr);
  EXPECT_EQ(trustFile(*plan)->content, "");
  Plan filled = *plan;
  putTrust(filled, "certificates");
  EXPECT_EQ(trustFile(filled)->content, "certificates");
}

TEST(PlannedCredentials, AbsentCredentialsAddNothing) {
  policy::Policy policy = withCredential();
  policy.network.credentials.clear();
  const auto plan = build(policy, testing::someHost(), {{"true"}, false});
  ASSERT_TRUE(plan);
  EXPECT_EQ(trustFile(*plan), nullptr);
  EXPECT_FALSE(has(plan->environment, "SSL_CERT_FILE=/etc/caisson/trust.pem"));
}

/// Also if the program gets the rest of the caller's environment, and in every network mode.
TEST(PlannedCredentials, TheVariableWithTheSecretStaysOutside) {
  HostFacts host = testing::someHost();
  host.caller_environment = {{"KEY", "the secret"}, {"OTHER", "fine"}};
  for (const auto mode : {policy::NetworkMode::proxy, policy::NetworkMode::none}) {
    policy::Policy policy = withCredential();
    policy.network.mode = mode;
    policy.environment.mode = policy::EnvironmentMode::inherit;
    const auto plan = build(policy, host, {{"true"}, false});
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_TRUE(has(plan->environment, "OTHER=fine"));
    EXPECT_FALSE(has(plan->environment, "KEY=the secret"));
  }
}

TEST(PlannedCredentials, SecretFileVisibleInTheSandboxIsRefused) {
  policy::Policy policy = withCredential();
  policy.network.credentials[0].secret_env.clear();
  policy.network.credentials[0].secret_file = "/srv/keys/api";
  HostFacts host = testing::someHost();
  EXPECT_TRUE(build(policy, host, {{"true"}, false}));
  policy.filesystem.read_only = {"/srv"};
  host.read_only = {{.requested = "/srv", .path = "/srv", .directory = true}};
  const auto plan = build(policy, host, {{"true"}, false});
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message().find("would be seen inside"), std::string::npos) << plan.error().message();
}

}  // namespace
}  // namespace caisson::plan
