// Declared tools: run under their policy, and need an owner's approval where required.
#include "functional/audit_fixture.h"
#include "functional/terminal.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class Tools : public AuditTest {
 protected:
  void SetUp() override {
    AuditTest::SetUp();
    if (IsSkipped()) return;
    workspace.write("notes", "one apple\ntwo pears\n");
    workspace.openToAll();
  }

  /// The exit status of `caisson WORDS...` at a terminal with this answer to the prompt.
  [[nodiscard]] std::optional<int> answering(const std::string& answer, std::vector<std::string> words,
                                             const std::string& prompt) const {
    words.insert(words.begin(), {"env", "CAISSON_HOME=" + home_.path(), caissonBinary()});
    Terminal terminal(words, workspace.path());
    EXPECT_TRUE(terminal.shows(prompt)) << terminal.screen();
    // Input at the moment the prompt appears is discarded, so the answer is repeated.
    for (int again = 0; again < 10; ++again) {
      terminal.type(answer + "\n");
      if (const auto status = terminal.wait(std::chrono::seconds(2))) return status;
    }
    return std::nullopt;
  }

  /// The same without a terminal.
  [[nodiscard]] RunOutput alone(std::vector<std::string> words) const {
    words.insert(words.begin(), {"setsid", "-w", caissonBinary()});
    return runProgram(words, options());
  }
};

TEST_F(Tools, RunUnderTheirPolicyWithValuesAsArguments) {
  CONFORMS("R-POLICY-5", "R-AUDIT-1");
  ASSERT_EQ(alone({"tool", "add", "search", "--description", "finds text", "--profile", "files", "--", "grep", "-n",
                   "--", "{pattern}", "{file}"})
                .exit_status,
            0);
  EXPECT_EQ(alone({"tool", "run", "search", "pattern=two p", "file=notes"}).out, "2:two pears\n");
  EXPECT_EQ(alone({"tool", "run", "search", "pattern=; id", "file=notes"}).exit_status, 1) << "grep found nothing";
  const RunOutput result = alone({"tool", "run", "search", "--json", "pattern=one", "file=notes"});
  EXPECT_EQ(result.json()["layers"]["level"], "process") << result.describe();
  EXPECT_EQ(events({"--event", "sandbox_execute"}).back()["data"]["tool"], "search");

  const auto listed = alone({"tool", "list", "--json"}).json();
  EXPECT_EQ(listed.at(0)["key"], "search");
  EXPECT_EQ(listed.at(0)["state"], "declared");
  const auto shown = alone({"tool", "show", "search", "--json"}).json();
  EXPECT_EQ(shown["values"], (nlohmann::json{"pattern", "file"}));
  EXPECT_EQ(shown["policy"]["isolation"]["level"], "process");
  EXPECT_TRUE(contains(alone({"tool", "show", "search"}).out, "finds text"));
}

TEST_F(Tools, WrongValuesAreNamed) {
  ASSERT_EQ(alone({"tool", "add", "search", "--profile", "files", "--", "grep", "{pattern}", "notes"}).exit_status, 0);
  for (const auto& [words, complaint] :
       std::vector<std::pair<std::vector<std::string>, std::string>>{{{"search"}, "pattern"},
                                                                     {{"search", "pattern=-r"}, "option"},
                                                                     {{"search", "pattern=a", "other=b"}, "other"},
                                                                     {{"search", "pattern=a", "pattern=b"}, "twice"},
                                                                     {{"search", "a"}, "KEY=VALUE"},
                                                                     {{"search", "pattern=a", "--", "more"}, "more"},
                                                                     {{"unknown"}, "no such tool"},
                                                                     {{"../audit/x"}, "not a tool's name"},
                                                                     {{}, "name"}}) {
    std::vector<std::string> command{"tool", "run"};
    command.insert(command.end(), words.begin(), words.end());
    const RunOutput output = alone(command);
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_TRUE(contains(output.err, complaint)) << output.describe();
  }
  EXPECT_EQ(alone({"tool", "add", "bad", "--", "sh", "-c", "ls {directory}"}).exit_status, 125);
  EXPECT_EQ(alone({"tool", "add", "search", "--", "true"}).exit_status, 125) << "the name is taken";
  EXPECT_EQ(alone({"tool", "add", "bash", "--", "bash", "-c", "{command}"}).exit_status, 125);
}

TEST_F(Tools, ShellAtLevelFullNeedsNoApproval) {
  ASSERT_EQ(alone({"tool", "add", "sh-tool", "--", "bash", "-c", "{command}"}).exit_status, 0);
  EXPECT_EQ(alone({"tool", "run", "sh-tool", "command=echo $((6 * 7))"}).out, "42\n");
}

TEST_F(Tools, ShellBelowLevelFullNeedsApprovalUnderAnyName) {
  CONFORMS("R-LEVEL-1", "R-LEVEL-8");
  workspace.write("script", "#!/bin/sh\necho ran\n", 0755);
  ASSERT_EQ(onHost("cp \"$(readlink -f /bin/sh)\" copy && ln -s /bin/bash link").exit_status, 0);
  workspace.write("listing.toml", "isolation.level = \"process\"\nprocess.allowed_executables = [\"grep\", \"" +
                                      (workspace / "copy") + "\"]\n");
  const std::vector<std::vector<std::string>> shells{
      {"--level", "process", "--", "sh", "-c", "{command}"},
      {"--level", "process", "--", "env", "sh", "-c", "{command}"},
      {"--level", "process", "--", "make"},
      {"--level", "process", "--", workspace / "script"},
      {"--level", "process", "--", workspace / "link"},
      {"--policy", "listing.toml", "--", workspace / "copy", "-c", "{command}"},
      {"--policy", "listing.toml", "--", "grep", "x"},
      {"--level", "none", "--", "true"},
      {"--tier", "landlock", "--", "true"}};
  for (const std::vector<std::string>& words : shells) {
    std::vector<std::string> command{"tool", "add", "t"};
    command.insert(command.end(), words.begin(), words.end());
    const RunOutput refused = alone(command);
    EXPECT_EQ(refused.exit_status, 125) << words.back() << refused.describe();
    EXPECT_TRUE(contains(refused.err, "tool:t: needs an owner's approval")) << refused.describe();
    EXPECT_TRUE(alone({"tool", "list", "--json"}).json().empty());
  }
  EXPECT_EQ(answering("n", {"tool", "add", "t", "--level", "process", "--", "sh", "-c", "{command}"},
                      "run a shell below level full"),
            125);
  EXPECT_TRUE(alone({"tool", "list", "--json"}).json().empty());
}

TEST_F(Tools, ApprovalCanBeRevoked) {
  ASSERT_EQ(answering("y", {"tool", "add", "t", "--level", "process", "--", "sh", "-c", "{command}"},
                      "run a shell below level full"),
            0);
  EXPECT_EQ(alone({"tool", "run", "t", "command=echo ran"}).out, "ran\n");
  const auto approvals = alone({"approvals", "list", "--json"}).json();
  ASSERT_EQ(approvals.at(0)["what"], "tool:t");
  ASSERT_EQ(alone({"approvals", "revoke", approvals.at(0)["id"]}).exit_status, 0);
  const RunOutput refused = alone({"tool", "run", "t", "command=echo ran"});
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_EQ(refused.out, "");

  // Another tool of the same name is not covered by the approval.
  ASSERT_EQ(alone({"tool", "remove", "t"}).exit_status, 0);
  ASSERT_EQ(answering("y", {"tool", "add", "t", "--level", "process", "--", "true"}, "below level full"), 0);
  ASSERT_EQ(alone({"tool", "remove", "t"}).exit_status, 0);
  EXPECT_TRUE(alone({"approvals", "list", "--json"}).json().empty());
  EXPECT_EQ(audit({"verify"}).exit_status, 0);
}

TEST_F(Tools, NetworkNeedsApproval) {
  CONFORMS("R-NETWORK-15");
  const RunOutput refused =
      alone({"tool", "add", "get", "--profile", "web-fetch", "--allow-host", "example.org", "--", "curl", "{url}"});
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_EQ(answering("y",
                      {"tool", "add", "get", "--profile", "web-fetch", "--allow-host", "example.org", "--", "curl",
                       "--", "{url}"},
                      "egress filter: example.org"),
            0);
  EXPECT_FALSE(events({"--event", "approval_given"}).empty());
}

TEST_F(Tools, InQuarantineAreRefused) {
  CONFORMS("R-SYSCALL-10");
  ASSERT_EQ(alone({"tool", "add", "hello", "--", "echo", "hello"}).exit_status, 0);
  EXPECT_EQ(alone({"tool", "run", "hello"}).out, "hello\n");
  ASSERT_EQ(alone({"tool", "quarantine", "hello", "--reason", "odd"}).exit_status, 0);
  const RunOutput refused = alone({"tool", "run", "hello"});
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_TRUE(contains(refused.err, "odd")) << refused.describe();
  EXPECT_EQ(alone({"tool", "list", "--json"}).json().at(0)["state"], "quarantined");
  EXPECT_TRUE(contains(alone({"tool", "show", "hello"}).out, "in quarantine: odd"));
  EXPECT_EQ(run({}, {"echo", "hello"}, options()).out, "hello\n") << "the same command by hand is not the tool";
  EXPECT_EQ(answering("y", {"tool", "release", "hello"}, "Release it?"), 0);
  EXPECT_EQ(alone({"tool", "run", "hello"}).out, "hello\n");
}

/// An escape attempt puts the tool away, by its name; a person can release it.
TEST_F(Tools, AreQuarantinedByAnEscapeAttempt) {
  CONFORMS("R-SYSCALL-10");
  requireOrSkip(systemHas("python3"), "no python3");
#if defined(__x86_64__)
  const std::string bpf = "321";
#else
  const std::string bpf = "280";
#endif
  const std::string script =
      "import ctypes; print('ran', flush=True); ctypes.CDLL(None).syscall(" + bpf + ", 99, 0, 0)";
  ASSERT_EQ(alone({"tool", "add", "odd", "--", "python3", "-c", script}).exit_status, 0);
  const auto caught = alone({"tool", "run", "odd", "--json"}).json();
  EXPECT_EQ(caught["stdout"], "ran\n") << caught;
  EXPECT_EQ(caught["escape"]["quarantined"], "odd") << caught;
  const RunOutput refused = alone({"tool", "run", "odd"});
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_EQ(refused.out, "");
  EXPECT_TRUE(contains(refused.err, "caisson tool release odd")) << refused.describe();
  EXPECT_EQ(answering("y", {"tool", "release", "odd"}, "Release it?"), 0);
  EXPECT_EQ(alone({"tool", "run", "odd"}).out, "ran\n");
}

/// What its policy does not allow fails when the tool tries it, though the caller could do it.
TEST_F(Tools, CannotDoMoreThanTheirPolicyAllows) {
  CONFORMS("R-POLICY-5");
  workspace.write("tool.toml",
                  "extends = \"bash\"\n[filesystem.workspace]\nmode = \"ro\"\n[process]\nallowed_executables = "
                  "[\"touch\", \"cat\", \"env\"]\n");
  ASSERT_EQ(alone({"tool", "add", "do", "--policy", "tool.toml", "--", "env", "{program}", "{file}"}).exit_status, 0);
  EXPECT_EQ(alone({"tool", "run", "do", "program=cat", "file=notes"}).out, "one apple\ntwo pears\n");
  EXPECT_NE(alone({"tool", "run", "do", "program=touch", "file=new"}).exit_status, 0) << "the workspace is read-only";
  EXPECT_FALSE(exists(workspace / "new"));
  const RunOutput other = alone({"tool", "run", "do", "program=head", "file=notes"});
  EXPECT_NE(other.exit_status, 0) << other.describe();
  EXPECT_EQ(other.out, "") << "head is not in its list";
}

TEST_F(Tools, MustObeyTheCurrentCeilings) {
  CONFORMS("R-POLICY-4");
  ASSERT_EQ(alone({"tool", "add", "hello", "--memory", "400M", "--", "echo", "hello"}).exit_status, 0);
  RunOptions how = options();
  how.env["XDG_CONFIG_HOME"] = workspace / "config";
  workspace.write("config/caisson/config.toml", "[ceilings]\nmemory = \"100M\"\n", 0600);
  const RunOutput refused = runCaisson({"tool", "run", "hello"}, how);
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_TRUE(contains(refused.err, "memory")) << refused.describe();
}

}  // namespace
}  // namespace caisson::test
