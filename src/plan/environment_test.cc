#include "plan/environment.h"

#include <gtest/gtest.h>

#include <set>

#include "plan/plan_testing.h"

namespace caisson::plan {
namespace {

using namespace testing;  // NOLINT: the vocabulary of these tests
using policy::EnvironmentMode;
using policy::Policy;

HostFacts hostWithVariables() {
  HostFacts host = someHost();
  host.caller_environment = {
      {"PATH", "/opt/evil"},    {"HOME", "/home/someone"}, {"SECRET_TOKEN", "s3cr3t"}, {"LD_PRELOAD", "/x.so"},
      {"EDITOR", "vi"},         {"TERM", "screen"},        {"USER", "someone"},        {"SSH_AUTH_SOCK", "/run/x"},
      {"BASH_ENV", "/tmp/evil"}};
  return host;
}

std::map<std::string, std::string> variables(const Policy& policy, const HostFacts& host, bool interactive = false) {
  std::map<std::string, std::string> result;
  const auto plan = build(policy, host, {{"true"}, interactive});
  EXPECT_TRUE(plan);
  if (!plan) return result;
  for (const std::string& variable : plan->environment) {
    const std::size_t equals = variable.find('=');
    EXPECT_TRUE(result.emplace(variable.substr(0, equals), variable.substr(equals + 1)).second) << variable;
  }
  return result;
}

TEST(Environment, IsCleanByDefault) {
  const auto got = variables(Policy{}, hostWithVariables());
  const std::map<std::string, std::string> wanted = {
      {"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
      {"HOME", "/home/sandbox"},
      {"USER", "sandbox"},
      {"LOGNAME", "sandbox"},
      {"SHELL", "/bin/sh"},
      {"LANG", "C.UTF-8"},
      {"TMPDIR", "/tmp"},
      {"CAISSON", "1"}};
  EXPECT_EQ(got, wanted);
}

TEST(Environment, PassesOnlyWhatIsNamed) {
  Policy policy;
  policy.environment.pass = {"EDITOR", "NOT_SET_ANYWHERE"};
  const auto got = variables(policy, hostWithVariables());
  EXPECT_EQ(got.at("EDITOR"), "vi");
  EXPECT_FALSE(got.contains("NOT_SET_ANYWHERE"));
  EXPECT_FALSE(got.contains("SECRET_TOKEN"));
}

TEST(Environment, InheritsEverythingButWhatAltersLoading) {
  Policy policy;
  policy.environment.mode = EnvironmentMode::inherit;
  const auto got = variables(policy, hostWithVariables());
  EXPECT_EQ(got.at("EDITOR"), "vi");
  EXPECT_EQ(got.at("SECRET_TOKEN"), "s3cr3t");
  EXPECT_FALSE(got.contains("LD_PRELOAD"));
  EXPECT_FALSE(got.contains("BASH_ENV"));
  EXPECT_EQ(got.at("HOME"), "/home/sandbox") << "paths of the host mean nothing inside";
  EXPECT_NE(got.at("PATH"), "/opt/evil");
  EXPECT_EQ(got.at("USER"), "sandbox");
}

TEST(Environment, ALoaderVariableIsPassedWhenItIsNamed) {
  Policy policy;
  policy.environment.pass = {"LD_PRELOAD"};
  EXPECT_EQ(variables(policy, hostWithVariables()).at("LD_PRELOAD"), "/x.so");
}

TEST(Environment, WhatAPolicySetsWinsOverEverything) {
  Policy policy;
  policy.environment.mode = EnvironmentMode::inherit;
  policy.environment.pass = {"EDITOR"};
  policy.environment.set = {{"EDITOR", "ed"}, {"PATH", "/only"}, {"EMPTY", ""}, {"ODD", "a=b c\n"}};
  const auto got = variables(policy, hostWithVariables());
  EXPECT_EQ(got.at("EDITOR"), "ed");
  EXPECT_EQ(got.at("PATH"), "/only");
  EXPECT_EQ(got.at("EMPTY"), "");
  EXPECT_EQ(got.at("ODD"), "a=b c\n");
}

TEST(Environment, PackageManagersAreOfflineOnlyWithoutANetwork) {
  Policy policy;
  policy.network.allowed_hosts = {"preset:pip", "preset:cargo"};
  policy.environment.set = {{"CARGO_NET_OFFLINE", "false"}};
  const auto offline = variables(policy, hostWithVariables());
  EXPECT_EQ(offline.at("PIP_NO_INDEX"), "1");
  EXPECT_EQ(offline.at("CARGO_NET_OFFLINE"), "false") << "what the policy sets wins";
  EXPECT_FALSE(offline.contains("npm_config_offline")) << "its registry is not listed";
  policy.network.mode = policy::NetworkMode::proxy;
  EXPECT_FALSE(variables(policy, hostWithVariables()).contains("PIP_NO_INDEX"));
}

TEST(Environment, OfModeListedHasOnlyWhatIsListed) {
  Policy policy;
  policy.environment.mode = policy::EnvironmentMode::listed;
  policy.environment.pass = {"LANG"};
  policy.environment.set = {{"MODE", "x"}};
  HostFacts host = someHost();
  host.caller_environment = {{"LANG", "de_DE"}, {"OTHER", "y"}};
  EXPECT_EQ(variables(policy, host), (std::map<std::string, std::string>{{"LANG", "de_DE"}, {"MODE", "x"}}));
}

TEST(Environment, ATerminalIsNamedOnlyWhenThereIsOne) {
  EXPECT_FALSE(variables(Policy{}, hostWithVariables()).contains("TERM"));
  EXPECT_EQ(variables(Policy{}, hostWithVariables(), true).at("TERM"), "screen");
  EXPECT_EQ(variables(Policy{}, someHost(), true).at("TERM"), "xterm-256color");
}

TEST(Environment, HasAHomeThatIsWritableAtLevelProcess) {
  const auto got = variables(withWorkspace(policy::WorkspaceMode::ro, policy::Level::process), hostWithVariables());
  EXPECT_EQ(got.at("HOME"), got.at("TMPDIR"));
  EXPECT_NE(got.at("HOME"), "/home/someone");
}

/// Landlock denies /etc/gitconfig and /etc/pip.conf there, and git ends if it cannot read a file that exists.
TEST(Environment, MakesGitAndPipIgnoreTheHostsFilesAtLevelProcess) {
  Policy policy;
  policy.isolation.level = policy::Level::process;
  EXPECT_EQ(variables(policy, hostWithVariables()).at("GIT_CONFIG_NOSYSTEM"), "1");
  EXPECT_EQ(variables(policy, hostWithVariables()).at("PIP_CONFIG_FILE"), "/dev/null");
}

TEST(LoaderVariables, AreThoseThatRunCodeBeforeTheProgram) {
  for (const char* name : {"LD_PRELOAD",        "LD_LIBRARY_PATH",
                           "LD_AUDIT",          "DYLD_INSERT_LIBRARIES",
                           "BASH_ENV",          "ENV",
                           "BASH_FUNC_ls%%",    "PYTHONSTARTUP",
                           "PYTHONPATH",        "PYTHONHOME",
                           "NODE_OPTIONS",      "PERL5OPT",
                           "PERL5LIB",          "RUBYOPT",
                           "JAVA_TOOL_OPTIONS", "GLIBC_TUNABLES",
                           "GCONV_PATH",        "IFS",
                           "PROMPT_COMMAND",    "GIT_SSH_COMMAND"}) {
    EXPECT_TRUE(altersLoading(name)) << name;
  }
  for (const char* name : {"PATH", "HOME", "EDITOR", "TERM", "LANG", "LC_ALL", "LDFLAGS", "CC", "OLD_LD_PRELOAD", ""}) {
    EXPECT_FALSE(altersLoading(name)) << name;
  }
}

}  // namespace
}  // namespace caisson::plan
