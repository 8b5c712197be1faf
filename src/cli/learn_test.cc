#include "cli/learn.h"

#include <gtest/gtest.h>

#include "policy/decode.h"
#include "policy/profiles.h"

namespace caisson::cli {
namespace {

RunResult denied(std::vector<Denial> denials) {
  RunResult result;
  result.outcome = OutcomeKind::exited;
  result.denials = std::move(denials);
  return result;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Learn, ProposesNothingWhenNothingWasRefused) {
  const Proposal proposal = proposePolicy({}, "bash", denied({}));
  EXPECT_TRUE(has(proposal.policy, "extends = \"bash\""));
  EXPECT_TRUE(has(proposal.diff.at(0), "nothing to change"));
}

TEST(Learn, ProposesOnlyWhatWasRefused) {
  const policy::Policy strict = *policy::builtin("strict");
  const Proposal proposal =
      proposePolicy(strict, "strict",
                    denied({{.rule = "process.allow_exec", .object = "execve", .operation = "start another program"},
                            {.rule = "syscalls.names", .object = "socket", .operation = "system call"},
                            {.rule = "resources.wall_seconds", .object = "30 s", .operation = "run on"}}));
  EXPECT_TRUE(has(proposal.policy, "process.allow_exec = true"));
  EXPECT_TRUE(has(proposal.policy, "\"socket\"]"));
  EXPECT_TRUE(has(proposal.policy, "resources.wall_seconds = 60"));
  EXPECT_FALSE(has(proposal.policy, "allow_fork"));
  EXPECT_FALSE(has(proposal.policy, "resources.memory"));
}

TEST(Learn, NeverProposesWhatNoPolicyAllows) {
  const Proposal proposal = proposePolicy(
      {}, "bash",
      denied({{.rule = "syscalls: no policy allows it", .object = "mount", .operation = "o", .remedy = "r"},
              {.rule = "syscalls.allow", .object = "io_uring_setup"},
              {.rule = "syscalls.allow", .object = "call 999"}}));
  EXPECT_FALSE(has(proposal.policy, "syscalls.allow ="));
  EXPECT_TRUE(has(proposal.policy, "# refused, and no policy allows it: mount"));
}

TEST(Learn, StopsAtTheCeiling) {
  policy::Policy policy;
  policy.resources.memory = 2 * policy::kGiB;
  const Proposal proposal = proposePolicy(policy, "bash", denied({{.rule = "resources.memory"}}));
  EXPECT_FALSE(has(proposal.policy, "resources.memory ="));
  EXPECT_TRUE(has(proposal.policy, "ceiling"));
}

/// A host name or path that a payload made up must not become a line of its own.
TEST(Learn, IsNotLedByWordsOfThePayload) {
  const Proposal proposal = proposePolicy(
      {}, "a\"b",
      denied({{.rule = "network.allowed_hosts", .object = "x\"\nisolation.level = \"none\":443", .remedy = "r"}}));
  EXPECT_FALSE(has(proposal.policy, "\nisolation"));
  EXPECT_TRUE(has(proposal.policy, "extends = \"a\\\"b\""));
}

}  // namespace
}  // namespace caisson::cli
