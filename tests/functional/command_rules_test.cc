// Command rules: a denial names its rule, and `policy explain --command` predicts it.
#include <algorithm>

#include "functional/sandbox.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class CommandRules : public SandboxTest {
 protected:
  [[nodiscard]] std::string policy(const std::string& commands) const {
    return workspace.write("rules.toml", "[commands]\n" + commands);
  }
};

TEST_F(CommandRules, RefuseByPatternAndNameTheRule) {
  CONFORMS("R-PROCESS-9");
  const std::string file =
      policy("blocked_patterns = ['\\brm\\b', 'secret']\nallowed_patterns = ['^echo\\s', '^rm ']\n");
  EXPECT_EQ(run({"--policy", file}, {"echo", "hello"}).out, "hello\n");

  const RunOutput blocked = run({"--policy", file}, {"rm", "-rf", "x"});
  EXPECT_EQ(blocked.exit_status, 125);
  EXPECT_TRUE(contains(blocked.err, "commands.blocked_patterns[0]")) << blocked.describe();
  const RunOutput unlisted = run({"--policy", file}, {"ls"});
  EXPECT_EQ(unlisted.exit_status, 125);
  EXPECT_TRUE(contains(unlisted.err, "commands.allowed_patterns")) << unlisted.describe();

  const RunOutput json = run({"--policy", file, "--json"}, {"echo", "secret"});
  EXPECT_TRUE(contains(json.out, "\"outcome\":\"denied\"")) << json.describe();
  EXPECT_TRUE(contains(json.out, "commands.blocked_patterns[1]")) << json.describe();
}

/// A session is planned without a command; its rules judge each one.
TEST_F(CommandRules, ApplyToEachCommandOfASession) {
  CONFORMS("R-PROCESS-9");
  const TempDir home;
  RunOptions how{.env = {{"CAISSON_HOME", home.path()}}};
  how.cwd = workspace.path();
  const auto inSession = [&](const std::string& text) {
    const std::string file = workspace.write("session.toml", text);
    const RunOutput created = runCaisson({"session", "create", "--policy", file, "--workspace", ":none"}, how);
    EXPECT_EQ(created.exit_status, 0) << text << created.describe();
    return created.out.substr(0, created.out.find('\n'));
  };
  const std::string patterns = inSession("[commands]\nallowed_patterns = ['^echo\\s']\n");
  const std::string programs = inSession("[process]\nallowed_executables = ['echo']\n");
  for (const auto& [session, rule] : {std::pair{patterns, std::string("commands.allowed_patterns")},
                                      std::pair{programs, std::string("process.allowed_executables")}}) {
    EXPECT_EQ(runCaisson({"session", "exec", session, "--", "echo", "hello"}, how).out, "hello\n") << rule;
    const RunOutput refused = runCaisson({"session", "exec", session, "--json", "--", "cat", "/etc/hostname"}, how);
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_EQ(refused.json()["outcome"], "denied") << refused.describe();
    EXPECT_EQ(refused.json()["denials"][0]["rule"], rule) << refused.describe();
    const RunOutput background =
        runCaisson({"session", "exec", session, "--background", "--", "cat", "/etc/hostname"}, how);
    EXPECT_EQ(background.exit_status, 125) << background.describe();
    EXPECT_TRUE(contains(background.err, rule)) << background.describe();
    EXPECT_EQ(runCaisson({"session", "destroy", session}, how).exit_status, 0);
  }
  const RunOutput log = runCaisson({"audit", "show", "--json", "--event", "policy_violation"}, how);
  EXPECT_EQ(std::ranges::count(log.out, '\n'), 4) << log.describe();
  const std::string limited = inSession("[commands]\nmax_length = 20\nblocked_patterns = ['secret']\n");
  EXPECT_EQ(runCaisson({"session", "exec", limited, "--", "echo", "short"}, how).out, "short\n");
  for (const auto& [word, rule] : {std::pair{std::string(30, 'x'), std::string("commands.max_length")},
                                   std::pair{std::string("secret"), std::string("commands.blocked_patterns[0]")}}) {
    const RunOutput refused = runCaisson({"session", "exec", limited, "--json", "--", "echo", word}, how);
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_EQ(refused.json()["denials"][0]["rule"], rule) << refused.describe();
  }
  EXPECT_EQ(runCaisson({"session", "destroy", limited}, how).exit_status, 0);
}

/// Not only the command itself: what it starts is held to the list too.
TEST_F(CommandRules, ExecutableListAppliesToChildrenOfASessionCommand) {
  CONFORMS("R-PROCESS-7");
  const TempDir home;
  RunOptions how{.env = {{"CAISSON_HOME", home.path()}}};
  how.cwd = workspace.path();
  const std::string script =
      "id; /usr/bin/id; (exec /usr/bin/id); cat < /usr/bin/id > /tmp/x; chmod +x /tmp/x; /tmp/x; echo end";
  const auto outputOf = [&](const std::string& lists) {
    const std::string file = workspace.write("programs.toml", "extends = 'bash'\n[process]\n" + lists);
    const RunOutput made = runCaisson({"session", "create", "--policy", file, "--workspace", ":none"}, how);
    const std::string session = made.out.substr(0, made.out.find('\n'));
    const RunOutput output = runCaisson({"session", "exec", session, "--", "sh", "-c", script}, how);
    EXPECT_EQ(runCaisson({"session", "destroy", session}, how).exit_status, 0);
    return output.out;
  };
  EXPECT_EQ(outputOf("allowed_executables = ['sh', 'cat', 'chmod']\n"), "end\n");
  EXPECT_TRUE(contains(outputOf(""), "uid=1000")) << "without the list it runs";
}

TEST_F(CommandRules, ALongCommandIsRefused) {
  CONFORMS("R-PROCESS-9");
  const std::string file = policy("max_length = 20\n");
  EXPECT_EQ(run({"--policy", file}, {"echo", "short"}).out, "short\n");
  const RunOutput refused = run({"--policy", file}, {"echo", std::string(30, 'x')});
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_TRUE(contains(refused.err, "commands.max_length")) << refused.describe();
}

TEST_F(CommandRules, ArgumentWithASpaceDoesNotPassForTwo) {
  const std::string file = policy("allowed_patterns = ['^echo one( |$)']\n");
  EXPECT_EQ(run({"--policy", file}, {"echo", "one"}).exit_status, 0);
  EXPECT_EQ(run({"--policy", file}, {"echo one"}).exit_status, 125);
}

TEST_F(CommandRules, AreExplainedBeforehand) {
  const std::string file = policy("blocked_patterns = ['--unsafe']\n");
  const RunOutput good = runCaisson({"policy", "explain", file, "--command", "make test"});
  EXPECT_EQ(good.exit_status, 0) << good.describe();
  EXPECT_TRUE(contains(good.out, "allowed")) << good.describe();
  const RunOutput bad = runCaisson({"policy", "explain", file, "--command", "make --unsafe"});
  EXPECT_EQ(bad.exit_status, 1);
  EXPECT_TRUE(contains(bad.out, "commands.blocked_patterns[0]")) << bad.describe();
  const RunOutput network = runCaisson({"policy", "explain", "--command", "sh -c 'git clone x'", "--json"});
  EXPECT_TRUE(contains(network.out, "\"network_use\":\"git clone\"")) << network.describe();
  const RunOutput spoof = runCaisson({"policy", "explain", "--command", "ls \x1b[2K\xe2\x80\xae"});
  EXPECT_FALSE(contains(spoof.out, "\x1b")) << spoof.describe();
  EXPECT_FALSE(contains(spoof.out, "\xe2\x80\xae")) << spoof.describe();
}

TEST_F(CommandRules, NamesOfPoliciesAreEscaped) {
  const std::string file = workspace.write("deceptive.toml",
                                           "name = \"a\xe2\x80\xae"
                                           "b\"\ndescription = \"c\xe2\x80\x8b"
                                           "d\"\n");
  const RunOutput shown = runCaisson({"policy", "explain", file});
  EXPECT_EQ(shown.exit_status, 0) << shown.describe();
  EXPECT_FALSE(contains(shown.out, "\xe2\x80\xae")) << shown.describe();
  EXPECT_FALSE(contains(shown.out, "\xe2\x80\x8b")) << shown.describe();
  EXPECT_TRUE(contains(shown.out, "a\\u{202e}b")) << shown.describe();
  EXPECT_TRUE(contains(shown.out, "c\\u{200b}d")) << shown.describe();
}

TEST_F(CommandRules, PatternsThatCannotWorkAreErrors) {
  for (const std::string pattern : {"(", "(?=x)", "x^", "$x", "((a{99}){99}){99}", ""}) {
    const RunOutput output = runCaisson({"policy", "check", policy("blocked_patterns = ['" + pattern + "']\n")});
    EXPECT_EQ(output.exit_status, 1) << pattern;
    EXPECT_TRUE(contains(output.err, "commands.blocked_patterns[0]")) << output.describe();
    EXPECT_TRUE(contains(output.err, "rules.toml:2")) << output.describe();
  }
}

/// Without a terminal there is no prompt: a notice comes before the command's own output, and the result has it.
TEST_F(CommandRules, NetworkClientWithoutNetworkIsReportedBeforeItRuns) {
  CONFORMS("R-NETWORK-16");
  const std::vector<std::string> command{"git", "ls-remote", "https://git.example.org/x.git"};
  const std::string hint =
      "`git ls-remote` uses the network, and this sandbox has none; allow it with --net proxy "
      "--allow-host git.example.org";
  const RunOutput output = run({}, command);
  EXPECT_NE(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(output.err.starts_with("caisson: " + hint)) << output.err;
  EXPECT_EQ(output.err.find(hint), output.err.rfind(hint)) << "once: " << output.err;
  const RunOutput json = run({"--json"}, command);
  EXPECT_EQ(json.json()["notices"][0], hint) << json.describe();
  EXPECT_EQ(json.err, "");
  const RunOutput chosen = run({"--net", "none"}, command);
  EXPECT_TRUE(chosen.err.starts_with("fatal:")) << "the user chose no network: the hint comes last " << chosen.err;
  EXPECT_TRUE(contains(chosen.err, hint)) << chosen.err;
}

TEST_F(CommandRules, FailedNetworkClientGetsANotice) {
  const RunOutput output = script("true && curl -sS --max-time 5 example.org");
  EXPECT_TRUE(contains(output.err, "looks like network use")) << output.describe();
  EXPECT_FALSE(contains(script("true || curl example.org").err, "network use"));
  EXPECT_FALSE(contains(script("ls /workspace/ssh").err, "network use")) << "only a path";
}

}  // namespace
}  // namespace caisson::test
