// Stored approvals, the owner's configuration, and a project's policy.
#include <array>
#include <sstream>
#include <tuple>

#include "functional/sandbox.h"
#include "functional/terminal.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class Owner : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    how_.env["XDG_CONFIG_HOME"] = config_.path();
    how_.env["CAISSON_HOME"] = state_ / "caisson";
    how_.cwd = workspace.path();
    workspace.openToAll();
  }
  void configure(const std::string& text) const { config_.write("caisson/config.toml", text, 0600); }
  [[nodiscard]] RunOutput caisson(const std::vector<std::string>& words, const std::string& below = "") const {
    RunOptions how = how_;
    if (!below.empty()) how.cwd = workspace / below;
    return runCaisson(words, how);
  }

  /// Runs it on a terminal with `yes` as the answer to `prompt`; returns the exit status.
  [[nodiscard]] int onTerminal(const std::vector<std::string>& words, const std::string& prompt) const {
    std::vector<std::string> argv{"/usr/bin/env", "XDG_CONFIG_HOME=" + config_.path(),
                                  "CAISSON_HOME=" + (state_ / "caisson"), caissonBinary()};
    argv.insert(argv.end(), words.begin(), words.end());
    Terminal terminal(argv, workspace.path());
    EXPECT_TRUE(terminal.shows(prompt)) << terminal.screen();
    sleepFor(std::chrono::milliseconds(200));  // input before the prompt is discarded
    terminal.type("y\n");
    return terminal.wait().value_or(-1);
  }

  const TempDir config_, state_;
  RunOptions how_;
};

TEST_F(Owner, RaisesAndLowersCeilings) {
  CONFORMS("R-POLICY-4");
  const std::string file = workspace.write("big.toml", "[resources]\nmemory = '4G'\nwall_seconds = 5\n");
  const auto status = [&](const std::string& resources) {
    const std::string policy = workspace.write("p.toml", "[resources]\n" + resources);
    return caisson({"run", "--policy", policy, "--", "true"}).exit_status;
  };
  EXPECT_EQ(status("memory = '4G'\n"), 125);
  configure("[ceilings]\nmemory = '8G'\nwall_seconds = '5s'\n");
  EXPECT_EQ(caisson({"run", "--policy", file, "--", "true"}).exit_status, 0);
  EXPECT_EQ(status("memory = '16G'\nwall_seconds = 5\n"), 125);
  EXPECT_EQ(status("wall_seconds = 6\n"), 125);
  const RunOutput explained = caisson({"policy", "explain", file});
  EXPECT_TRUE(contains(explained.out, "at most 8 GiB")) << explained.describe();
  EXPECT_TRUE(contains(explained.out, "caisson/config.toml")) << explained.describe();
}

TEST_F(Owner, CeilingsDoNotBindTypedFlags) {
  CONFORMS("R-POLICY-4");
  configure("[ceilings]\nmemory = '1G'\nwall_seconds = '5s'\n");
  EXPECT_EQ(caisson({"run", "--profile", "bash", "--memory", "2G", "--timeout", "1h", "--pids", "600", "--", "true"})
                .exit_status,
            0);
  const RunOutput shown = caisson({"audit", "show", "--json", "--event", "sandbox_created"});
  EXPECT_TRUE(contains(shown.out, "resources.wall_seconds = 3600 s")) << "recorded: " << shown.describe();
  EXPECT_TRUE(contains(shown.out, "process.max_processes = 600")) << shown.describe();
  EXPECT_TRUE(contains(shown.out, "resources.memory = 2 GiB")) << shown.describe();
  // A flag lifts only the ceiling of the key it sets.
  const std::string policy = workspace.write("p.toml", "[resources]\nmemory = '2G'\n");
  const RunOutput other = caisson({"run", "--policy", policy, "--timeout", "1h", "--", "true"});
  EXPECT_EQ(other.exit_status, 125) << other.describe();
  EXPECT_TRUE(contains(other.err, "caisson/config.toml")) << "names the file: " << other.describe();
  EXPECT_TRUE(contains(other.err, "`memory`")) << "names the key: " << other.describe();
}

TEST_F(Owner, CeilingsDoNotBindTypedFlagsOfASession) {
  CONFORMS("R-POLICY-4");
  configure("[ceilings]\nmemory = '1G'\n");
  const RunOutput made = caisson({"session", "create", "--memory", "2G"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  EXPECT_EQ(caisson({"session", "exec", id, "--", "true"}).exit_status, 0);
  EXPECT_EQ(caisson({"session", "exec", id, "--timeout", "1000h", "--", "true"}).exit_status, 0);
  const RunOutput shown = caisson({"audit", "show", "--json", "--event", "sandbox_created"});
  EXPECT_TRUE(contains(shown.out, "resources.memory = 2 GiB")) << "recorded: " << shown.describe();
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

TEST_F(Owner, ChoosesTheDefaultProfile) {
  configure("[defaults]\nprofile = 'shell'\n");
  EXPECT_EQ(caisson({"run", "--", "bash", "-c", "cp /usr/bin/true /tmp/t && /tmp/t"}).exit_status, 126);
  EXPECT_EQ(caisson({"run", "--profile", "bash", "--", "bash", "-c", "cp /usr/bin/true /tmp/t && /tmp/t"}).exit_status,
            0);
}

TEST_F(Owner, DeniesPathsWhateverAPolicySays) {
  CONFORMS("R-FILES-14");
  workspace.write("keys/notes.dat", "canary");
  const TempDir shown;
  shown.write("notes.dat", "canary");
  shown.openToAll();
  EXPECT_EQ(caisson({"run", "--", "cat", "keys/notes.dat"}).out, "canary");
  configure("[filesystem]\nalways_denied = ['" + (workspace / "keys") + "', '" + shown.path() + "']\n");
  const RunOutput denied = caisson({"run", "--", "cat", "keys/notes.dat"});
  EXPECT_FALSE(contains(denied.out, "canary")) << denied.describe();
  EXPECT_NE(denied.exit_status, 0) << denied.describe();
  const RunOutput named = caisson({"run", "--ro", shown.path(), "--", "cat", shown / "notes.dat"});
  EXPECT_EQ(named.exit_status, 125) << named.describe();
  EXPECT_TRUE(contains(named.err, "always_denied")) << named.describe();
}

/// One approval is for one run.
TEST_F(Owner, LevelNoneAndTheHostsNetworkNeedAnApprovalForEachRun) {
  CONFORMS("R-LEVEL-7");
  for (const auto& [flag, value, what] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"--level", "none", "level:none"}, {"--net", "host", "net:host"}}) {
    const std::vector<std::string> command{"run", flag, value, "--approve", what, "--", "echo", "ran"};
    EXPECT_EQ(caisson(command).exit_status, 125) << what;
    ASSERT_EQ(onTerminal({"approvals", "grant", what}, "[y/N]"), 0);
    const RunOutput once = caisson(command);
    EXPECT_EQ(once.out, "ran\n") << what << once.describe();
    const RunOutput twice = caisson(command);
    EXPECT_EQ(twice.exit_status, 125) << what << twice.describe();
    EXPECT_EQ(twice.out, "") << what;
  }
}

/// Both are on record as what they are, with the approval.
TEST_F(Owner, TimedApprovalIsValidForEachRunUntilItExpires) {
  CONFORMS("R-LEVEL-7", "R-LEVEL-20");
  for (const auto& [flag, value, what, field] : std::vector<std::array<std::string, 4>>{
           {"--level", "none", "level:none", "level"}, {"--net", "host", "net:host", "network"}}) {
    const std::vector<std::string> command{"run", flag, value, "--approve", what, "--", "echo", "ran"};
    ASSERT_EQ(onTerminal({"approvals", "grant", what, "--for", std::to_string(8 * slowness()) + "s"}, "[y/N]"), 0);
    EXPECT_EQ(caisson(command).out, "ran\n") << what;
    EXPECT_EQ(caisson(command).out, "ran\n") << what << " once more";
    EXPECT_TRUE(eventually([&] { return caisson({"approvals", "list"}).out == "nothing is approved\n"; },
                           std::chrono::seconds(15)));
    const RunOutput late = caisson(command);
    EXPECT_EQ(late.exit_status, 125) << what << late.describe();
    EXPECT_EQ(late.out, "") << what;
    int executed = 0, approved = 0;
    std::istringstream events(caisson({"audit", "show", "--json"}).out);
    for (std::string line; std::getline(events, line);) {
      const auto event = nlohmann::json::parse(line);
      if (event["event"] == "sandbox_execute" && event["data"][field] == value) ++executed;
      if (event["event"] == "approval_given" && event["data"]["what"] == what) ++approved;
    }
    EXPECT_EQ(executed, 2) << what;
    EXPECT_GE(approved, 1) << what;
  }
}

TEST_F(Owner, LevelNoneStillHasItsTimeAndOutputLimits) {
  CONFORMS("R-LEVEL-20");
  ASSERT_EQ(onTerminal({"approvals", "grant", "level:none", "--for", "1h"}, "[y/N]"), 0);
  const auto atLevelNone = [&](std::vector<std::string> options, const std::vector<std::string>& command) {
    options.insert(options.begin(), {"run", "--json", "--level", "none", "--approve", "level:none"});
    options.emplace_back("--");
    options.insert(options.end(), command.begin(), command.end());
    return caisson(options);
  };
  const RunOutput late = atLevelNone({"--timeout", "300ms"}, {"sleep", "20"});
  EXPECT_EQ(late.exit_status, 124) << late.describe();
  const RunOutput flood = atLevelNone({"--output-limit", "1K"}, {"head", "-c", "3K", "/dev/zero"});
  EXPECT_EQ(flood.json()["truncated"]["stdout"], true) << flood.describe();
}

/// It cannot be enforced there, so it is refused, with an approval too.
TEST_F(Owner, LevelNoneIsRefusedWhereAPathIsDenied) {
  CONFORMS("R-FILES-14");
  workspace.write("keys/secret", "canary");
  ASSERT_EQ(onTerminal({"approvals", "grant", "level:none", "--for", "1h"}, "[y/N]"), 0);
  const std::vector<std::string> none{"run", "--level", "none", "--approve", "level:none"};
  const auto with = [&](std::vector<std::string> options) {
    options.insert(options.begin(), none.begin(), none.end());
    options.insert(options.end(), {"--", "cat", "keys/secret"});
    return caisson(options);
  };
  EXPECT_EQ(with({}).out, "canary");
  const std::string file = workspace.write("deny.toml", "filesystem.denied = ['/workspace/keys']\n");
  for (const RunOutput& refused : {with({"--deny", "keys"}), with({"--policy", file})}) {
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_EQ(refused.out, "");
    EXPECT_TRUE(contains(refused.err, "filesystem.denied")) << refused.describe();
  }
  configure("[filesystem]\nalways_denied = ['" + (workspace / "keys") + "']\n");
  const RunOutput owned = with({});
  EXPECT_EQ(owned.exit_status, 125) << owned.describe();
  EXPECT_EQ(owned.out, "");
}

TEST_F(Owner, InvalidConfigurationStopsEveryRunAndNamesTheLine) {
  configure("[ceilings]\nmemmory = '8G'\n");
  const RunOutput output = caisson({"run", "--", "true"});
  EXPECT_EQ(output.exit_status, 125);
  EXPECT_TRUE(contains(output.err, "config.toml:2")) << output.describe();
  EXPECT_TRUE(contains(output.err, "ceilings.memmory")) << output.describe();
  configure("memory = '8G'\n");
  const RunOutput top = caisson({"run", "--", "true"});
  EXPECT_EQ(top.exit_status, 125);
  EXPECT_TRUE(contains(top.err, "config.toml:1: memory: ")) << top.describe();
}

TEST_F(Owner, ApprovalIsNeededWhereThePolicyRequiresOne) {
  const std::string file = workspace.write("ask.toml", "[approvals]\nrequired = ['deploy']\n");
  const RunOutput refused = caisson({"run", "--policy", file, "--", "true"});
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_TRUE(contains(refused.err, "policy:deploy")) << refused.describe();
}

// A file that came with a repository does not decide about less isolation.
TEST_F(Owner, APolicyFileCannotLowerTheProtectionAlone) {
  CONFORMS("R-LEVEL-8", "R-AUDIT-12", "R-AUDIT-2", "R-LEVEL-1");
  const std::vector<std::pair<std::string, std::string>> files{
      {"isolation.level = 'process'\n", "level:process"},
      {"extends = 'files'\nprocess.blocked_executables = []\n", "level:process"},
      {"isolation.tier = 'landlock'\nfilesystem.workspace.mode = 'ro'\n", "tier:landlock"},
      {"isolation.may_be_missing = ['cgroup', 'proc_subset']\n", "weaker:proc_subset"},
      {"isolation.may_be_missing = ['cgroup', 'proc-bound']\n", "weaker:proc_bound"},
      {"isolation.may_be_missing = ['cgroup', 'landlock']\n", "weaker:landlock"},
      {"audit.enabled = false\n", "audit:off"}};
  for (const auto& [text, what] : files) {
    const std::string file = workspace.write("lower.toml", text);
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
             {"run", "--policy", file, "--", "bash", "-c", "echo ran"}, {"session", "create", "--policy", file}}) {
      const RunOutput refused = caisson(command);
      EXPECT_EQ(refused.exit_status, 125) << text << refused.describe();
      EXPECT_TRUE(contains(refused.err, what + ": needs an owner's approval")) << text << refused.describe();
      EXPECT_FALSE(contains(refused.out, "ran")) << refused.describe();
    }
    ASSERT_EQ(onTerminal({"approvals", "grant", what}, "[y/N]"), 0);
    const RunOutput approved = caisson({"run", "--policy", file, "--approve", what, "--", "bash", "-c", "echo ran"});
    EXPECT_EQ(approved.out, "ran\n") << text << approved.describe();
    const RunOutput given = caisson({"audit", "show", "--json", "--event", "approval_given"});
    EXPECT_TRUE(contains(given.out, "\"" + what + "\"")) << text << given.describe();
  }
  EXPECT_EQ(caisson({"session", "list"}).out, "");
}

TEST_F(Owner, LevelGivenAsAFlagNeedsNoApprovalAndIsRecorded) {
  CONFORMS("R-LEVEL-8");
  const std::string file = workspace.write("lower.toml", "isolation.level = 'process'\n");
  EXPECT_EQ(caisson({"run", "--policy", file, "--level", "process", "--", "true"}).exit_status, 0);
  EXPECT_EQ(caisson({"run", "--policy", file, "--level", "full", "--", "true"}).exit_status, 0);
  EXPECT_EQ(caisson({"run", "--profile", "files", "--", "true"}).exit_status, 0);
  std::vector<std::string> by;
  std::istringstream events(caisson({"audit", "show", "--json", "--event", "approval_given"}).out);
  for (std::string line; std::getline(events, line);) {
    const auto event = nlohmann::json::parse(line);
    EXPECT_EQ(event["data"]["what"], "level:process");
    by.push_back(event["data"]["by"]);
  }
  EXPECT_EQ(by, (std::vector<std::string>{"--level on the command line", "--profile on the command line"}));
}

TEST_F(Owner, ApprovalIsRefusedWithoutATerminal) {
  CONFORMS("R-LEVEL-7", "R-APPROVAL-3");
  EXPECT_EQ(caisson({"approvals", "grant", "level:none"}).exit_status, 125);
  EXPECT_EQ(caisson({"approvals", "list"}).out, "nothing is approved\n");
  EXPECT_EQ(caisson({"run", "--level", "none", "--approve", "level:none", "--", "true"}).exit_status, 125);
  EXPECT_EQ(caisson({"policy", "trust", workspace.write("caisson.toml", "")}).exit_status, 125);
  EXPECT_EQ(caisson({"approvals", "revoke", "0000"}).exit_status, 125);
}

TEST_F(Owner, AProjectsPolicyIsNotUsedWithoutConsent) {
  CONFORMS("R-POLICY-13");
  workspace.write("caisson.toml", "extends = 'shell'\n[environment.set]\nFROM_PROJECT = 'yes'\n");
  const RunOutput output = caisson({"run", "--", "printenv", "FROM_PROJECT"});
  EXPECT_EQ(output.out, "") << output.describe();
  EXPECT_TRUE(contains(output.err, "caisson.toml is not used")) << output.describe();
  const RunOutput made = caisson({"session", "create"});
  ASSERT_EQ(made.exit_status, 0) << made.describe();
  EXPECT_TRUE(contains(made.err, "caisson.toml is not used")) << made.describe();
  const std::string id = made.out.substr(0, made.out.find('\n'));
  EXPECT_EQ(caisson({"session", "exec", id, "--", "printenv", "FROM_PROJECT"}).out, "");
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

TEST_F(Owner, PolicyInTheHomeDirectoryIsNotAProjectPolicy) {
  workspace.write("caisson.toml", "extends = 'shell'\n");
  workspace.makeDir("project");
  const TempDir links;
  links.openToAll();
  ASSERT_EQ(symlink(workspace.path().c_str(), (links / "home").c_str()), 0);
  for (const std::string& home_variable : {workspace.path(), links / "home"}) {
    const RunOutput output =
        runCaisson({"policy", "trust"}, {.env = {{"HOME", home_variable}}, .cwd = workspace / "project"});
    EXPECT_TRUE(contains(output.err, "no caisson.toml here or above")) << home_variable << output.describe();
  }
}

TEST_F(Owner, AGrantIsRedeemedOnceListedAndRevoked) {
  CONFORMS("R-APPROVAL-1");
  ASSERT_EQ(onTerminal({"approvals", "grant", "policy:deploy"}, "[y/N]"), 0);
  ASSERT_EQ(onTerminal({"approvals", "grant", "policy:publish", "--for", "1h"}, "[y/N]"), 0);
  EXPECT_EQ(caisson({"approvals", "list", "--json"}).json().size(), 2U);
  const std::string file = workspace.write("ask.toml", "[approvals]\nrequired = ['deploy']\n");
  const std::vector<std::string> deploy{"run", "--policy", file, "--approve", "policy:deploy", "--", "echo", "ran"};
  EXPECT_EQ(caisson(deploy).out, "ran\n");
  EXPECT_EQ(caisson(deploy).exit_status, 125);  // it was for one use

  workspace.write("ask.toml", "[approvals]\nrequired = ['publish']\n");
  const std::vector<std::string> publish{"run", "--policy", file, "--approve", "policy:publish", "--", "echo", "ran"};
  EXPECT_EQ(caisson(publish).out, "ran\n");
  EXPECT_EQ(caisson(publish).out, "ran\n");
  const auto approvals = caisson({"approvals", "list", "--json"}).json();
  ASSERT_EQ(approvals.size(), 1U);
  EXPECT_EQ(caisson({"approvals", "revoke", approvals[0]["id"]}).exit_status, 0);
  EXPECT_EQ(caisson(publish).exit_status, 125);
  const RunOutput audit = caisson({"audit", "show", "--json"});
  EXPECT_TRUE(contains(audit.out, "approval_given")) << audit.describe();
  EXPECT_TRUE(contains(audit.out, "approval_revoked")) << audit.describe();
}

TEST_F(Owner, ConsentToAProjectsPolicyAppliesToItsContent) {
  CONFORMS("R-POLICY-13");
  const std::string text = "extends = 'shell'\n[environment.set]\nFROM_PROJECT = 'yes'\n";
  workspace.write("caisson.toml", text);
  ASSERT_EQ(onTerminal({"policy", "trust"}, "as long as it stays as it is"), 0);
  EXPECT_EQ(caisson({"run", "--", "printenv", "FROM_PROJECT"}).out, "yes\n");
  EXPECT_EQ(caisson({"approvals", "revoke", caisson({"approvals", "list", "--json"}).json()[0]["id"]}).exit_status, 0);
  const RunOutput output = caisson({"run", "--", "printenv", "FROM_PROJECT"});
  EXPECT_EQ(output.out, "") << output.describe();
  EXPECT_TRUE(contains(output.err, "needs your consent")) << output.describe();
}

class ProjectConsent : public Owner {
 protected:
  void SetUp() override {
    Owner::SetUp();
    workspace.write("private/key.txt", "PRIVATE\n");
    workspace.write("caisson.toml", kText);
    workspace.makeDir("below");
    workspace.makeDir(".git");  // `agent exec` finds the project by it
    ASSERT_EQ(trust(), 0);
  }
  void TearDown() override { EXPECT_EQ(caisson({"clean", "--all"}).exit_status, 0); }
  [[nodiscard]] int trust() const { return onTerminal({"policy", "trust"}, "as long as it stays as it is"); }
  /// Every command that would use the project's policy is refused, with this in its message.
  void expectRefused(const std::string& message, const std::string& below = "") const {
    const std::string project = workspace.path();
    const std::vector<std::vector<std::string>> lines{
        {"run", "--workspace", project, "--", "cat", "private/key.txt"},
        {"session", "create", "--workspace", project},
        {"agent", "exec", "--", "cat " + project + "/private/key.txt"},
        {"agent", "--", "cat", project + "/private/key.txt"},
        {"mcp"},
        {"mcp", "--workspace", below.empty() ? project : project + "/" + below}};
    for (const std::vector<std::string>& line : lines) {
      const RunOutput output = caisson(line, below);
      EXPECT_EQ(output.exit_status, 125) << output.describe();
      EXPECT_FALSE(contains(output.out, "PRIVATE")) << output.describe();
      EXPECT_TRUE(contains(output.err, message)) << output.describe();
      EXPECT_TRUE(contains(output.err, "caisson policy trust")) << output.describe();
    }
  }
  [[nodiscard]] RunOutput readKey(std::vector<std::string> flags = {}, const std::string& below = "") const {
    std::vector<std::string> line{"run", "--workspace", workspace.path()};
    line.insert(line.end(), flags.begin(), flags.end());
    line.insert(line.end(), {"--", "cat", "private/key.txt"});
    return caisson(line, below);
  }

  static constexpr const char* kText = "extends = 'dev'\n[filesystem]\ndenied = ['/workspace/private']\n";
};

TEST_F(ProjectConsent, ChangedFileRefusesUntilItIsTrustedAgain) {
  CONFORMS("R-POLICY-13");
  const RunOutput denied = readKey();
  EXPECT_NE(denied.exit_status, 0) << denied.describe();
  EXPECT_NE(denied.exit_status, 125) << denied.describe();
  workspace.write("caisson.toml", std::string(kText) + "# changed\n");
  expectRefused("not the content that you consented to");
  expectRefused("not the content that you consented to", "below");
  EXPECT_EQ(readKey({"--profile", "dev"}).out, "PRIVATE\n");
  ASSERT_EQ(trust(), 0);
  EXPECT_EQ(readKey().exit_status, denied.exit_status);
  // The new consent replaces the old one.
  workspace.write("caisson.toml", kText);
  expectRefused("not the content that you consented to");
}

TEST_F(ProjectConsent, UnreadableFileRefuses) {
  ASSERT_EQ(unlink((workspace / "caisson.toml").c_str()), 0);
  EXPECT_EQ(readKey().out, "PRIVATE\n") << "without a file nothing refuses";
  workspace.makeDir("caisson.toml");
  expectRefused("not the content that you consented to");
}

TEST_F(ProjectConsent, NearerFileDoesNotReplaceTheTrustedOne) {
  CONFORMS("R-POLICY-13");
  workspace.write("below/caisson.toml", "extends = 'dev'\n");
  expectRefused("it would replace " + workspace.path() + "/caisson.toml", "below");
  EXPECT_NE(readKey({"--policy", workspace / "caisson.toml"}, "below").exit_status, 0);
  ASSERT_EQ(onTerminal({"policy", "trust", "below/caisson.toml"}, "as long as it stays as it is"), 0);
  EXPECT_EQ(readKey({}, "below").out, "PRIVATE\n");
}

TEST_F(ProjectConsent, RevokedConsentIsForgotten) {
  workspace.write("caisson.toml", std::string(kText) + "# changed\n");
  const auto approvals = caisson({"approvals", "list", "--json"}).json();
  ASSERT_EQ(approvals.size(), 1U);
  EXPECT_TRUE(contains(readKey().err, "caisson approvals revoke " + approvals[0]["id"].get<std::string>()));
  EXPECT_EQ(caisson({"approvals", "revoke", approvals[0]["id"]}).exit_status, 0);
  const RunOutput output = readKey();
  EXPECT_EQ(output.out, "PRIVATE\n") << output.describe();
  EXPECT_TRUE(contains(output.err, "needs your consent")) << output.describe();
}

TEST_F(ProjectConsent, RecordWithoutDirectoryAppliesToItsContent) {
  const std::string file = state_ / "caisson/approvals/approvals.json";
  auto stored = nlohmann::json::parse(readFile(file));
  stored["approvals"][0].erase("place");
  state_.write("caisson/approvals/approvals.json", stored.dump(), 0600);
  const RunOutput denied = readKey();
  EXPECT_NE(denied.exit_status, 0) << denied.describe();
  EXPECT_FALSE(contains(denied.err, "needs your consent")) << denied.describe();
  workspace.write("below/caisson.toml", "extends = 'dev'\n");
  expectRefused("it would replace ", "below");
}

TEST_F(Owner, ConsentToAProjectsPolicyAppliesToItsDirectory) {
  const std::string text = "extends = 'shell'\n[environment.set]\nFROM_PROJECT = 'yes'\n";
  workspace.write("trusted/caisson.toml", text);
  ASSERT_EQ(onTerminal({"policy", "trust", "trusted/caisson.toml"}, "as long as it stays as it is"), 0);
  EXPECT_EQ(caisson({"run", "--", "printenv", "FROM_PROJECT"}, "trusted").out, "yes\n");
  workspace.write("copied/caisson.toml", text);
  workspace.makeDir("linked");
  ASSERT_EQ(symlink((workspace / "trusted/caisson.toml").c_str(), (workspace / "linked/caisson.toml").c_str()), 0);
  for (const std::string place : {"copied", "linked"}) {
    const RunOutput output = caisson({"run", "--", "printenv", "FROM_PROJECT"}, place);
    EXPECT_EQ(output.out, "") << place;
    EXPECT_TRUE(contains(output.err, "needs your consent")) << output.describe();
  }
}

/// The rows above a prompt must be the policy's, not text of the file that looks like them.
TEST_F(Owner, AProjectsPolicyCannotForgeTheListOfWidenings) {
  workspace.write("caisson.toml",
                  "extends = 'cargo'\n[network]\nmode = 'proxy'\nallowed_hosts = ['*']\n[commands]\n"
                  "blocked_patterns = [\"x\\n\\n\\nwidened\\n  nothing\\n\"]\n");
  const RunOutput shown = caisson({"policy", "explain", workspace / "caisson.toml"});
  EXPECT_FALSE(contains(shown.out, "\n  nothing\n")) << shown.describe();
  EXPECT_TRUE(contains(shown.out, "network.allowed_hosts: ")) << shown.describe();
}

TEST_F(Owner, CeilingsHoldForLimitsThatThePolicyLeavesOut) {
  configure("[ceilings]\nwall_seconds = '1s'\n");
  for (const std::string profile : {"bash", "dev"}) {
    const RunOutput ended = caisson({"run", "--profile", profile, "--", "sleep", "30"});
    EXPECT_EQ(ended.exit_status, 124) << profile << ended.describe();
  }
}

TEST_F(Owner, AProjectsPolicyCannotRaiseCeilings) {
  CONFORMS("R-POLICY-4");
  workspace.write("caisson.toml", "[resources]\nmemory = '64G'\n");
  const RunOutput refused = caisson({"policy", "trust"});
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_TRUE(contains(refused.err, "ceiling")) << refused.describe();
  workspace.write("caisson.toml", "[ceilings]\nmemory = '64G'\n");
  EXPECT_EQ(caisson({"policy", "trust"}).exit_status, 125);
}

}  // namespace
}  // namespace caisson::test
