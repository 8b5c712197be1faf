#include "policy/rules/command.h"

#include <gtest/gtest.h>

#include "policy/rules/pattern.h"

namespace caisson::policy {

namespace {

std::string ruleFor(const CommandRules& rules, std::string_view command) {
  const auto refusal = refuseCommand(rules, command);
  return refusal ? refusal->rule : "";
}

}  // namespace

TEST(Commands, AreQuotedSoThatOneArgumentCannotPassForTwo) {
  EXPECT_EQ(commandLine(std::vector<std::string>{"cargo", "build", "--release"}), "cargo build --release");
  EXPECT_EQ(commandLine(std::vector<std::string>{"cargo build", ""}), "'cargo build' ''");
  EXPECT_EQ(commandLine(std::vector<std::string>{"sh", "-c", "echo 'a b'"}), R"(sh -c 'echo '\''a b'\''')");
}

TEST(Commands, ARefusalNamesItsRule) {
  CommandRules rules;
  rules.max_length = 40;
  rules.blocked_patterns = {"\\brm\\b", "--config"};
  rules.allowed_patterns = {{"^cargo\\s+(build|test)(\\s|$)", "^cargo --version$"}};
  EXPECT_EQ(ruleFor(rules, "cargo build"), "");
  EXPECT_EQ(ruleFor(rules, "cargo --version"), "");
  EXPECT_EQ(ruleFor(rules, "cargo build --config x=1"), "commands.blocked_patterns[1]");
  EXPECT_EQ(ruleFor(rules, "cargo builder"), "commands.allowed_patterns");
  EXPECT_EQ(ruleFor(rules, "true; cargo build"), "commands.allowed_patterns");
  EXPECT_EQ(ruleFor(rules, "cargo build " + std::string(40, 'x')), "commands.max_length");
  const auto refusal = refuseCommand(rules, "cargo build; rm -rf x");
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->reason.find("`rm`"), std::string::npos) << refusal->reason;
}

TEST(Commands, AnEmptyAllowlistAllowsNothing) {
  CommandRules rules;
  rules.allowed_patterns.emplace();
  EXPECT_EQ(ruleFor(rules, "true"), "commands.allowed_patterns");
}

TEST(Commands, LineEndsAndInvalidTextDoNotHideACommand) {
  CommandRules rules;
  rules.blocked_patterns = {"rm.*-rf"};
  EXPECT_NE(ruleFor(rules, "rm\n-rf"), "");
  EXPECT_NE(ruleFor(rules, "rm \xff\xfe -rf"), "");
  EXPECT_NE(ruleFor(rules, "rm \xed\xa0\x80 -rf"), "");
  EXPECT_NE(ruleFor(rules, "rm \xc3 -rf"), "");
}

TEST(Commands, MatchingIsLinear) {
  CommandRules rules;
  rules.blocked_patterns = {"(a*)*(a*)*(a*)*b"};
  EXPECT_EQ(ruleFor(rules, std::string(200'000, 'a')), "");
}

TEST(Commands, NetworkUseIsDetectedFromProgramAndUrl) {
  for (const std::string_view command : {"curl example.org",
                                         "wget x",
                                         "fetch y",
                                         "npm ci",
                                         "npm  install left-pad",
                                         "yarn add x",
                                         "pip install x",
                                         "pip3 download x",
                                         "git clone x",
                                         "git push",
                                         "ssh host",
                                         "scp a b",
                                         "rsync a b",
                                         "nc -l",
                                         "telnet x",
                                         "python3 get.py https://example.org",
                                         "sh -c 'cd x && git pull'",
                                         "/usr/bin/ssh host",
                                         "sudo ssh host",
                                         "sh -c 'ssh host'",
                                         "tar c . | nc host 9"}) {
    EXPECT_TRUE(networkUse(command)) << command;
  }
  for (const std::string_view command :
       {"ls", "npm test", "git status", "pip list", "yarn build", "encode", "cat scpfile", "curlew", "ls /home/me/.ssh",
        "cat ssh", "ls ssh/config", "ls '/etc/ssh'", "grep -r curl src", "man wget"}) {
    EXPECT_FALSE(networkUse(command)) << command;
  }
  EXPECT_EQ(networkUse("sh -c 'cd x; git pull'"), "git pull");
  EXPECT_EQ(networkUse("sudo ssh host"), "ssh");
}

TEST(Patterns, ThatCannotWorkAreRefusedWithTheReason) {
  EXPECT_FALSE(patternProblem("^cargo\\s+(build|check)\\s"));
  EXPECT_FALSE(patternProblem("[]^$]x"));
  EXPECT_FALSE(patternProblem("a|^b$|(^c)"));
  EXPECT_FALSE(patternProblem("price\\$ in \\^"));
  EXPECT_TRUE(patternProblem(""));
  EXPECT_TRUE(patternProblem("(unclosed"));
  EXPECT_TRUE(patternProblem("(?=lookahead)"));
  EXPECT_TRUE(patternProblem("back\\1"));
  EXPECT_TRUE(patternProblem("never^"));
  EXPECT_TRUE(patternProblem("$never"));
  EXPECT_TRUE(patternProblem(std::string(5000, 'a')));
  EXPECT_TRUE(patternProblem("((((((x{1000}){1000}){1000}){1000})"));
  EXPECT_TRUE(patternProblem("(((a{100}){100}){100})"));  // too large when expanded
}

}  // namespace caisson::policy
