// A command in quarantine is refused until a person releases it.
#include <filesystem>
#include <fstream>

#include "functional/audit_fixture.h"
#include "functional/terminal.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class Quarantine : public AuditTest {
 protected:
  [[nodiscard]] Terminal atTerminal(std::vector<std::string> words) const {
    words.insert(words.begin(), {"env", "CAISSON_HOME=" + home_.path(), caissonBinary()});
    return {words, workspace.path()};
  }

  /// The exit status after this answer. Input before the prompt is discarded, so it may be repeated.
  static std::optional<int> answer(Terminal& terminal, const std::string& text,
                                   const std::string& prompt = "Release it?") {
    EXPECT_TRUE(terminal.shows(prompt)) << terminal.screen();
    std::optional<int> status;
    for (int tries = 0; !status && tries < 20; ++tries) {
      terminal.type(text + "\n");
      status = terminal.wait(std::chrono::seconds(1));
    }
    return status;
  }
};

TEST_F(Quarantine, CommandIsRefusedUntilAUserReleasesIt) {
  CONFORMS("R-SYSCALL-10", "R-AUDIT-4");
  ASSERT_EQ(caisson({"tool", "quarantine", "--reason", "it reached out", "--", "echo", "one"}).exit_status, 0);
  const RunOutput refused = run({}, {"echo", "one"}, options());
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_EQ(refused.out, "");
  EXPECT_TRUE(contains(refused.err, "it reached out")) << refused.err;
  EXPECT_TRUE(contains(refused.err, "caisson tool release sha256:")) << refused.err;
  const auto result = run({"--json"}, {"echo", "one"}, options()).json();
  EXPECT_EQ(result["outcome"], "denied");
  EXPECT_EQ(result["denials"][0]["rule"], "quarantine");
  EXPECT_EQ(run({}, {"echo", "two"}, options()).out, "two\n") << "another command is not meant";
  EXPECT_EQ(events({"--event", "sandbox_refused"}).size(), 2U);

  const std::string key = caisson({"tool", "list", "--json"}).json().at(0)["key"];
  EXPECT_EQ(runProgram({"setsid", "-w", caissonBinary(), "tool", "release", key}, options()).exit_status, 125)
      << "there was no terminal to ask on";
  EXPECT_EQ(run({}, {"echo", "one"}, options()).exit_status, 125);
  Terminal no = atTerminal({"tool", "release", key});
  EXPECT_EQ(answer(no, "n"), 125) << no.screen();
  EXPECT_EQ(run({}, {"echo", "one"}, options()).exit_status, 125);
  Terminal yes = atTerminal({"tool", "release", "--", "echo", "one"});
  EXPECT_EQ(answer(yes, "y"), 0) << yes.screen();
  EXPECT_EQ(run({}, {"echo", "one"}, options()).out, "one\n");
  EXPECT_EQ(events({"--event", "tool_quarantined"}).size(), 1U);
  EXPECT_EQ(events({"--event", "tool_released"}).size(), 1U);
  EXPECT_EQ(audit({"verify"}).exit_status, 0);
}

/// A policy that disables the audit log does not disable the quarantine.
TEST_F(Quarantine, AppliesWithoutTheAuditLog) {
  CONFORMS("R-SYSCALL-10");
  ASSERT_EQ(caisson({"tool", "quarantine", "--", "echo", "one"}).exit_status, 0);
  workspace.write("off.toml", "extends = \"bash\"\naudit.enabled = false\n");
  Terminal yes = atTerminal({"approvals", "grant", "audit:off", "--for", "1h"});
  ASSERT_EQ(answer(yes, "y", "[y/N]"), 0) << yes.screen();
  const std::vector<std::string> off{"--policy", "off.toml", "--approve", "audit:off"};
  EXPECT_EQ(run(off, {"echo", "two"}, options()).exit_status, 0);
  EXPECT_EQ(run(off, {"echo", "one"}, options()).exit_status, 125);
}

TEST_F(Quarantine, AppliesInSessions) {
  CONFORMS("R-SYSCALL-10");
  const RunOutput created = caisson({"session", "create", "--workspace", ":none"});
  ASSERT_EQ(created.exit_status, 0) << created.describe();
  const std::string id = created.out.substr(0, created.out.find('\n'));
  ASSERT_EQ(caisson({"tool", "quarantine", "--reason", "r", "--", "echo", "one"}).exit_status, 0);
  const RunOutput refused = caisson({"session", "exec", id, "--", "echo", "one"});
  EXPECT_EQ(refused.exit_status, 125) << refused.describe();
  EXPECT_TRUE(contains(refused.err, "caisson tool release")) << refused.err;
  EXPECT_EQ(caisson({"session", "exec", id, "--background", "--", "echo", "one"}).exit_status, 125);
  EXPECT_EQ(caisson({"session", "exec", id, "--", "echo", "two"}).out, "two\n");
  EXPECT_EQ(events({"--event", "sandbox_refused"}).size(), 2U);
  EXPECT_EQ(caisson({"session", "destroy", id}).exit_status, 0);
}

TEST_F(Quarantine, InterpretersAndInvalidKeysAreRejected) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"bash"},
                                                {"/usr/bin/python3.11"},
                                                {"--", "bash"},
                                                {"--", "sh", "-i"},
                                                {"a", "b"},
                                                {"a", "--", "b"},
                                                {""},
                                                {}}) {
    std::vector<std::string> all = {"tool", "quarantine"};
    all.insert(all.end(), words.begin(), words.end());
    const RunOutput output = caisson(all);
    EXPECT_EQ(output.exit_status, 125) << output.describe();
    EXPECT_TRUE(output.err.starts_with("caisson: ")) << output.err;
  }
  EXPECT_EQ(caisson({"tool", "list"}).out, "No tool is declared, and nothing is in quarantine.\n");
  EXPECT_EQ(caisson({"tool", "release", "unknown"}).exit_status, 125);
}

TEST_F(Quarantine, DamagedEntryStillApplies) {
  ASSERT_EQ(caisson({"tool", "quarantine", "--", "echo", "one"}).exit_status, 0);
  for (const auto& entry : std::filesystem::directory_iterator(home_ / "quarantine")) {
    std::ofstream(entry.path(), std::ios::trunc) << "{";
  }
  const RunOutput refused = run({}, {"echo", "one"}, options());
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_TRUE(contains(refused.err, "damaged")) << refused.err;
}

/// A name chosen by a payload must not move the cursor or hide the prompt.
TEST_F(Quarantine, NamesAreEscaped) {
  ASSERT_EQ(caisson({"tool", "quarantine", "--", "echo", "\x1b[2J\xe2\x80\xae"}).exit_status, 0);
  const std::string list = caisson({"tool", "list"}).out;
  EXPECT_FALSE(contains(list, "\x1b")) << list;
  EXPECT_FALSE(contains(list, "\xe2\x80\xae")) << list;
}

}  // namespace
}  // namespace caisson::test
