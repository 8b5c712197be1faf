#include "cli/policy_flags.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include "cli/agent/agent_options.h"
#include "cli/output.h"
#include "cli/session_options.h"
#include "policy/fields.h"
#include "policy/model.h"

namespace caisson::cli {
namespace {

constexpr Option kMemoryFlag = kLimitOptions[1];
static_assert(kMemoryFlag.name == "memory");

Result<Policy> policyOf(std::vector<std::string> words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  const auto arguments = parse({.groups = kPolicyGroups, .command = "-- CMD"}, pointers);
  if (!arguments) return fail(arguments.error());
  return policyFrom(*arguments);
}

std::string errorFor(std::vector<std::string> words) {
  const auto policy = policyOf(std::move(words));
  return policy ? "accepted" : describe(policy.error());
}

TEST(PolicyFlags, StartFromTheDefaultProfile) {
  const auto policy = policyOf({});
  ASSERT_TRUE(policy.has_value());
  EXPECT_EQ(policy->model().name, "dev");
}

TEST(PolicyFlags, DiskSetsTheTotalAndKeepsChangesOnDisk) {
  const auto bash = policyOf({"--profile", "bash", "--disk", "20G"});
  ASSERT_TRUE(bash.has_value());
  EXPECT_EQ(bash->model().filesystem.max_total_size, 20 * policy::kGiB);
  EXPECT_EQ(bash->model().filesystem.overlay_store, policy::OverlayStore::prefer_disk);
  EXPECT_EQ(bash->model().filesystem.tmpfs.front().size, 100 * policy::kMiB) << "in memory";
  const auto dev = policyOf({"--profile", "dev", "--disk", "20G"});
  ASSERT_TRUE(dev.has_value());
  EXPECT_EQ(dev->model().filesystem.tmpfs.front().size, 20 * policy::kGiB) << "on disk";
}

TEST(PolicyFlags, SetTheirPolicyKeys) {
  const auto policy = policyOf({"--memory", "256M", "--show-secrets", "--show-file", "a/.env", "--deny", "secret",
                                "--deny=/opt/x", "--ro", "/srv"});
  ASSERT_TRUE(policy.has_value()) << describe(policy.error());
  const policy::Policy& model = policy->model();
  EXPECT_EQ(model.resources.memory, 256 * policy::kMiB);
  EXPECT_TRUE(model.filesystem.workspace.show_secrets);
  EXPECT_EQ(model.filesystem.workspace.show_files, (std::vector<std::string>{"/workspace/a/.env"}));
  EXPECT_EQ(model.filesystem.denied, (std::vector<std::string>{"/workspace/secret", "/opt/x"}));
  EXPECT_EQ(model.filesystem.read_only, std::vector<std::string>{"/srv"});
}

TEST(PolicyFlags, AllowWeakerAddsRungsByEitherSpelling) {
  using policy::OptionalLayer;
  const auto policy = policyOf({"--allow-weaker", "proc-subset,proc_bound", "--allow-weaker=landlock"});
  ASSERT_TRUE(policy.has_value()) << describe(policy.error());
  std::vector<OptionalLayer> expected = policyOf({})->model().isolation.may_be_missing;
  expected.insert(expected.end(), {OptionalLayer::proc_subset, OptionalLayer::proc_bound, OptionalLayer::landlock});
  EXPECT_EQ(policy->model().isolation.may_be_missing, expected);
  const std::string unknown = errorFor({"--allow-weaker", "proc_bound,seccomp"});
  EXPECT_NE(unknown.find("--allow-weaker proc_bound,seccomp: "), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("proc_subset"), std::string::npos) << unknown;
  EXPECT_NE(errorFor({"--allow-weaker", ""}).find("empty"), std::string::npos);
}

TEST(PolicyFlags, AllowWeakerHelpNamesEveryLayer) {
  const auto fields = policy::fields();
  const auto field = std::ranges::find(fields, "isolation.may_be_missing", &policy::Field::key);
  ASSERT_NE(field, fields.end());
  for (const std::string_view layer : field->choices)
    EXPECT_NE(kAllowWeaker.help.find(layer), std::string_view::npos) << layer;
}

TEST(SessionFlags, AreTheFlagsOfRun) {
  std::set<std::string_view> session, run;
  for (const OptionGroup& group : kSessionPolicyGroups)
    for (const Option& option : group.options) session.insert(option.name);
  for (const OptionGroup& group : kPolicyGroups)
    for (const Option& option : group.options) run.insert(option.name);
  EXPECT_EQ(session, run);
  for (const auto& groups : {kAgentPolicyGroups, kProjectPolicyGroups}) {
    std::set<std::string_view> agent;
    for (const OptionGroup& group : groups)
      for (const Option& option : group.options) EXPECT_TRUE(agent.insert(option.name).second) << option.name;
    EXPECT_EQ(agent, run);
  }
}

TEST(SessionFlags, UnsupportedFlagsAreRefusedWithAReason) {
  const auto refusal = [](std::vector<std::string> words) {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    const auto arguments = parse({.groups = kSessionPolicyGroups, .command = "-- CMD"}, pointers);
    if (!arguments) return describe(arguments.error());
    const auto policy = policyFrom(*arguments);
    if (!policy) return describe(policy.error());
    const auto checked = checkForSession(*arguments, policy->model());
    return checked ? "accepted" : describe(checked.error());
  };
  EXPECT_EQ(refusal({"--net", "host"}),
            "--net host: a session cannot use the host's network\n  try: use --net proxy --allow-host HOST");
  EXPECT_EQ(refusal({"--level", "none"}),
            "--level none: a session cannot run without isolation\n  try: use --level full or --level process");
  EXPECT_TRUE(refusal({"--runtime", "crun"}).starts_with("--runtime crun: a session cannot use crun"));
  EXPECT_EQ(refusal({"--net", "hots"}), "--net hots: expected none|proxy");
  EXPECT_EQ(refusal({"--net", "none", "--level", "process", "--runtime", "caisson"}), "accepted");
}

TEST(PolicyFlags, ErrorsNameTheFlagAndWhatItWasGiven) {
  EXPECT_TRUE(errorFor({"--memory", "bad"}).starts_with("--memory: invalid size \"bad\": ")) << "the value once";
  EXPECT_TRUE(errorFor({"--timeout", "bad"}).starts_with("--timeout: invalid duration \"bad\": "));
  EXPECT_TRUE(errorFor({"--cpus", "0"}).starts_with("--cpus 0: "));
  EXPECT_NE(errorFor({"--profile", "nonesuch"}).find("--profile nonesuch: "), std::string::npos);
  EXPECT_NE(errorFor({"--profile", "bash", "--policy", "x.toml"}).find("--policy"), std::string::npos);
}

TEST(PolicyFlags, LaterErrorsAboutTheirKeyNameTheFlag) {
  const Arguments arguments{.given = {{&kMemoryFlag, "64G"}}};
  const Error raised = plainError(Stage::policy, "validate", "resources.memory", "at most 2 GiB", "ask an owner");
  EXPECT_EQ(describe(attributeToFlag(raised, arguments)), "--memory 64G: at most 2 GiB\n  try: ask an owner");
  EXPECT_EQ(attributeToFlag(raised, {}).object, "resources.memory");
}

TEST(PolicyFlags, RefuseNetworkModesThatThisBuildCannotEnforce) {
  EXPECT_EQ(errorFor({"--net", "proxy", "--allow-host", "*.example.org", "--allow-port", "8080"}), "accepted");
  EXPECT_EQ(errorFor({"--net", "host"}), "accepted");  // approval is checked later
  EXPECT_NE(errorFor({"--allow-host", "example.org"}).find("--allow-host"), std::string::npos);
  EXPECT_NE(errorFor({"--allow-port", "8080"}).find("--allow-port"), std::string::npos);
  EXPECT_EQ(errorFor({"--net", "none"}), "accepted");
}

TEST(PolicyFlags, PassVariablesByValueOrFromTheCaller) {
  ASSERT_EQ(::setenv("CAISSON_TEST_PASSED", "from caller", 1), 0);
  const auto policy = policyOf(
      {"--env", "A.B=x=y\xff", "--env", "EMPTY=", "--env", "CAISSON_TEST_PASSED", "--env", "CAISSON_TEST_NOT_SET"});
  ASSERT_TRUE(policy.has_value());
  const auto& set = policy->model().environment.set;
  EXPECT_EQ(set.at("A.B"), "x=y\xff");
  EXPECT_EQ(set.at("EMPTY"), "");
  EXPECT_EQ(set.at("CAISSON_TEST_PASSED"), "from caller");
  EXPECT_FALSE(set.contains("CAISSON_TEST_NOT_SET"));
  EXPECT_NE(errorFor({"--env", "=x"}).find("--env =x"), std::string::npos);
}

TEST(PolicyFlags, MakeHostPathsAbsolute) {
  char* here = ::getcwd(nullptr, 0);
  const std::string current = here;
  std::free(here);
  const auto policy = policyOf({"--workspace", ".:rw", "--ro", "./data/"});
  ASSERT_TRUE(policy.has_value());
  EXPECT_EQ(policy->model().filesystem.workspace.path, current);
  EXPECT_EQ(policy->model().filesystem.workspace.mode, policy::WorkspaceMode::rw);
  EXPECT_EQ(policy->model().filesystem.read_only.at(0), (current == "/" ? "" : current) + "/data");
}

TEST(Workspace, IsADirectoryWithAnOptionalMode) {
  const auto parts = [](std::string_view text) {
    const auto split = splitWorkspace(text);
    return split ? std::string(split->directory) + "|" + std::string(split->mode) : "error";
  };
  EXPECT_EQ(parts("src"), "src|");
  EXPECT_EQ(parts("src:ro"), "src|ro");
  EXPECT_EQ(parts(":none"), "|none");
  EXPECT_EQ(parts("/a:b/c"), "/a:b/c|");
  EXPECT_EQ(parts("a:b:overlay"), "a:b|overlay");
  EXPECT_EQ(parts("src:overlya"), "error");
  EXPECT_EQ(parts("src:"), "error");
}

}  // namespace
}  // namespace caisson::cli
