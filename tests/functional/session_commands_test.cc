// What a person types with sessions: variables, directories and limits of one command, short ids, a shell.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "functional/terminal.h"
#include "support/environment.h"
#include "support/run.h"
#include "support/session_cli.h"

namespace caisson::test {
namespace {

class SessionCommands : public testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    requireOrSkip(fullIsolationAvailable(&why), why);
    id_ = cli.create();
  }
  [[nodiscard]] static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  const SessionCli cli;
  std::string id_;
};

TEST_F(SessionCommands, EnvSetsVariablesOfOneCommand) {
  ASSERT_EQ(::setenv("CAISSON_TEST_PASSED", "from the caller", 1), 0);
  const RunOutput output = cli.exec(id_, {"sh", "-c", "echo \"$A|$CAISSON_TEST_PASSED|$EMPTY|\""},
                                    {"--env", "A=b c=d", "--env", "CAISSON_TEST_PASSED", "--env", "EMPTY="});
  EXPECT_EQ(output.out, "b c=d|from the caller||\n") << output.describe();
  EXPECT_EQ(cli.exec(id_, {"sh", "-c", "echo \"$A|\""}).out, "|\n") << "a variable is left for the next command";
}

TEST_F(SessionCommands, EnvSaysWhatCannotBePassed) {
  const RunOutput unset = cli.exec(id_, {"true"}, {"--env", "CAISSON_TEST_NOT_SET"});
  EXPECT_EQ(unset.exit_status, 0);
  EXPECT_TRUE(contains(unset.err, "CAISSON_TEST_NOT_SET")) << unset.describe();
  for (const char* bad : {"A B=1", "=x", "A\tB=1"}) {
    const RunOutput refused = cli.exec(id_, {"true"}, {"--env", bad});
    EXPECT_EQ(refused.exit_status, 125) << bad;
    EXPECT_TRUE(contains(refused.err, "--env")) << refused.describe();
  }
}

TEST_F(SessionCommands, CwdIsADirectoryOfTheSandbox) {
  ASSERT_EQ(cli.exec(id_, {"mkdir", "-p", "src/deep"}).exit_status, 0);
  EXPECT_EQ(cli.exec(id_, {"pwd"}, {"--cwd", "src/deep"}).out, "/workspace/src/deep\n");
  EXPECT_EQ(cli.exec(id_, {"pwd"}, {"--cwd", "/tmp"}).out, "/tmp\n");
  const RunOutput missing = cli.exec(id_, {"pwd"}, {"--cwd", "no/such"});
  EXPECT_EQ(missing.exit_status, 125) << missing.describe();
  EXPECT_TRUE(contains(missing.err, "no/such")) << missing.describe();
}

TEST_F(SessionCommands, OutputLimitCutsAndFailsTheCommand) {
  const RunOutput cut = cli.exec(id_, {"head", "-c", "5000", "/dev/zero"}, {"--output-limit", "1000"});
  EXPECT_EQ(cut.out.size(), 1000U);
  EXPECT_EQ(cut.exit_status, 125) << cut.describe();
  EXPECT_EQ(cli.exec(id_, {"head", "-c", "5000", "/dev/zero"}).out.size(), 5000U) << "not cut without the flag";
  EXPECT_EQ(cli.exec(id_, {"true"}, {"--output-limit", "lots"}).exit_status, 125);
  EXPECT_EQ(cli.exec(id_, {"true"}, {"--output-limit", "1M", "--background"}).exit_status, 125);
}

TEST_F(SessionCommands, BeginningOfAnIdIsEnough) {
  EXPECT_EQ(cli.exec(id_.substr(0, 9), {"echo", "x"}).out, "x\n");
  EXPECT_EQ(cli.caisson({"session", "info", id_.substr(0, 12)}).exit_status, 0);
  EXPECT_EQ(cli.exec(id_.substr(0, 5), {"true"}).exit_status, 125) << "two digits are not enough";
  EXPECT_EQ(cli.exec("cs-" + std::string(8, id_[3] == '0' ? '1' : '0'), {"true"}).exit_status, 125);
  EXPECT_EQ(cli.caisson({"session", "destroy", id_.substr(0, 12)}).exit_status, 0);
  EXPECT_EQ(cli.exec(id_, {"true"}).exit_status, 125);
}

TEST_F(SessionCommands, AmbiguousPrefixOfAnIdIsRejected) {
  std::string other = id_;
  other.back() = other.back() == '0' ? '1' : '0';
  ASSERT_EQ(::mkdir((cli.home / "state/sessions/" + other).c_str(), 0700), 0);
  const RunOutput refused = cli.exec(id_.substr(0, 12), {"true"});
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_TRUE(contains(refused.err, "ambiguous session id")) << refused.describe();
  EXPECT_EQ(cli.exec(id_, {"true"}).exit_status, 0) << "the whole id is clear";
}

TEST_F(SessionCommands, NetworkAllowGivesASessionItsFirstHost) {
  const RunOutput denied = cli.caisson({"session", "network", id_, "deny", "example.org"});
  EXPECT_EQ(denied.exit_status, 125);
  EXPECT_TRUE(contains(denied.err, "has no network")) << denied.describe();
  ASSERT_EQ(cli.exec(id_, {"sh", "-c", "touch /tmp/gone kept"}).exit_status, 0);
  cli.start(id_, {"sh", "-c", "sleep 300; :", cli.marker()});
  const RunOutput busy = cli.caisson({"session", "network", id_, "allow", "example.org"});
  EXPECT_EQ(busy.exit_status, 125) << "its processes would be killed unasked";
  EXPECT_TRUE(contains(busy.err, "--stop")) << busy.describe();
  const RunOutput allowed = cli.caisson({"session", "network", "--stop", id_, "allow", "example.org"});
  EXPECT_EQ(allowed.exit_status, 0) << allowed.describe();
  EXPECT_TRUE(contains(allowed.err, "starts anew")) << allowed.describe();
  const auto info = cli.caisson({"session", "info", "--json", id_}).json();
  EXPECT_EQ(info["network"], "proxy") << info;
  EXPECT_EQ(cli.exec(id_, {"sh", "-c", "ls kept /tmp; echo $http_proxy"}).out,
            "kept\n\n/tmp:\nhttp://127.0.0.1:3128\n");
  EXPECT_EQ(cli.caisson({"session", "network", id_, "allow", "second.example"}).exit_status, 0) << "no restart now";
  bool recorded = false;
  for (const auto& event : cli.events("lifecycle")) recorded = recorded || contains(event.dump(), "allow example.org");
  EXPECT_TRUE(recorded) << "the decision is not in the audit log";
}

TEST_F(SessionCommands, PsListsAndStopEndsLeftBehindProcesses) {
  ASSERT_EQ(cli.script(id_, "setsid sleep 300 > /dev/null 2>&1 < /dev/null &").exit_status, 0);
  ASSERT_TRUE(eventually([&] { return contains(cli.caisson({"session", "ps", id_}).out, "sleep"); }));
  const RunOutput listed = cli.caisson({"session", "ps", id_});
  EXPECT_TRUE(contains(listed.out, "left behind  pid ")) << listed.describe();
  EXPECT_TRUE(contains(listed.out, "sleep")) << listed.describe();
  const auto result = cli.caisson({"session", "ps", "--json", id_}).json();
  ASSERT_EQ(result["left_behind"].size(), 1U) << result;
  EXPECT_GT(result["left_behind"][0]["pid"], 0);
  const RunOutput busy = cli.caisson({"session", "checkpoint", id_, "c"});
  EXPECT_EQ(busy.exit_status, 125);
  EXPECT_TRUE(contains(busy.err, "session ps")) << busy.describe();
  const RunOutput stopped = cli.caisson({"session", "stop", "--left-behind", id_});
  EXPECT_EQ(stopped.exit_status, 0) << stopped.describe();
  EXPECT_TRUE(contains(stopped.err, "sleep")) << stopped.describe();
  EXPECT_EQ(cli.caisson({"session", "ps", id_}).out, "");
  EXPECT_EQ(cli.caisson({"session", "checkpoint", id_, "c"}).exit_status, 0);
}

TEST_F(SessionCommands, StopLeftBehindKillsProcessesThatIgnoreSigtermButNoCommands) {
  cli.start(id_, {"sh", "-c", "sleep 300; :", cli.marker()});
  ASSERT_EQ(cli.script(id_, "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' " + cli.marker() +
                                " > /dev/null 2>&1 < /dev/null &")
                .exit_status,
            0);
  ASSERT_TRUE(eventually([&] { return contains(cli.caisson({"session", "ps", id_}).out, "left behind"); }));
  const RunOutput stopped = cli.caisson({"session", "stop", "--left-behind", "--grace", "0.1s", id_});
  EXPECT_EQ(stopped.exit_status, 0) << stopped.describe();
  const std::string after = cli.caisson({"session", "ps", id_}).out;
  EXPECT_FALSE(contains(after, "left behind")) << after;
  EXPECT_TRUE(contains(after, "1  running")) << "a command was ended: " << after;
}

TEST_F(SessionCommands, CreateInAHomeSaysThatThereIsNoWorkspace) {
  RunOptions how = cli.options();
  how.env["HOME"] = cli.workspace.path();
  const RunOutput made = runCaisson({"session", "create"}, how);
  EXPECT_EQ(made.exit_status, 0) << made.describe();
  EXPECT_TRUE(contains(made.err, "no workspace")) << made.describe();
  EXPECT_TRUE(contains(made.err, "--workspace DIR")) << made.describe();
  const auto result = runCaisson({"session", "create", "--json"}, how).json();
  EXPECT_EQ(result["workspace"], "") << result;
  EXPECT_EQ(result["notices"].size(), 1U) << result;
  const RunOutput asked = runCaisson({"session", "create", "--workspace", ":none"}, how);
  EXPECT_EQ(asked.err, "") << "it was asked for";
  EXPECT_EQ(cli.caisson({"session", "create"}).err, "");
}

/// An approval cannot make these possible, so none is asked for.
TEST_F(SessionCommands, CreateRefusesHostNetworkAndLevelNoneBeforeApprovals) {
  const std::string file = cli.workspace.write("host.toml", "extends = \"dev\"\nnetwork.mode = \"host\"\n");
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"--net", "host"}, "--net host: a session cannot use the host's network"},
      {{"--net", "host", "--approve", "net:host"}, "--net host: a session cannot use the host's network"},
      {{"--policy", file}, "network.mode: a session cannot use the host's network"},
      {{"--level", "none"}, "--level none: a session cannot run without isolation"},
  };
  for (const auto& [flags, message] : cases) {
    std::vector<std::string> line{"session", "create"};
    line.insert(line.end(), flags.begin(), flags.end());
    const RunOutput refused = cli.caisson(line);
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_TRUE(contains(refused.err, message)) << refused.describe();
    EXPECT_FALSE(contains(refused.err, "approv")) << refused.describe();
  }
  const std::string sessions = cli.caisson({"session", "list"}).out;
  EXPECT_EQ(std::ranges::count(sessions, '\n'), 1) << "one was created: " << sessions;
}

TEST_F(SessionCommands, WrongArgumentsNameWhatIsExpected) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{"restore", "x"}, "session restore: expected 2 arguments: ID CHECKPOINT\n"},
      {{"checkpoint"}, "session checkpoint: expected 1 to 2 arguments: ID [NAME]\n"},
      {{"destroy"}, "session destroy: expected at least 1 argument: ID...\n"},
      {{"create", "--ttl", "abc"},
       "--ttl: invalid duration \"abc\": expected a number with a unit, for example 90s, 30m or 2h\n"},
      {{"create", "--ttl", "0"}, "--ttl: invalid duration \"0\": expected more than 0 seconds\n"},
  };
  for (const auto& [words, message] : cases) {
    std::vector<std::string> line{"session"};
    line.insert(line.end(), words.begin(), words.end());
    const RunOutput refused = cli.caisson(line);
    EXPECT_EQ(refused.exit_status, 125) << refused.describe();
    EXPECT_TRUE(contains(refused.err, message)) << refused.describe();
  }
}

TEST_F(SessionCommands, DestroyTakesSeveralSessions) {
  const std::string second = cli.create();
  EXPECT_EQ(cli.caisson({"session", "destroy", id_, second}).exit_status, 0);
  EXPECT_EQ(cli.caisson({"session", "list"}).out, "");
  EXPECT_NE(cli.caisson({"session", "destroy", id_, second}).exit_status, 0);
}

/// What bash offers for the last of these words.
class Completion : public SessionCommands {
 protected:
  [[nodiscard]] std::string complete(const std::string& words) const {
    RunOptions how = cli.options();
    how.env["CAISSON"] = caissonBinary();
    const RunOutput output = runProgram(
        {"bash", "-c",
         // Not the program that the line names: pressing a key must not run a file of this directory.
         "caisson() { \"$CAISSON\" \"$@\"; }; source <(caisson __completions bash); COMP_WORDS=(./caisson " + words +
             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _caisson; printf '%s\\n' \"${COMPREPLY[@]}\""},
        how);
    EXPECT_EQ(output.err, "") << output.describe();
    return "\n" + output.out;
  }
};

TEST_F(Completion, OffersSessionsByNameAndId) {
  ASSERT_EQ(cli.caisson({"session", "create", "--name", "fix-login"}).exit_status, 0);
  for (const char* verb : {"exec", "ps", "network", "destroy", "checkpoint"}) {
    const std::string offered = complete("session " + std::string(verb) + " ''");
    EXPECT_TRUE(contains(offered, "\nfix-login\n")) << verb << offered;
    EXPECT_TRUE(contains(offered, "\n" + id_ + "\n")) << verb << offered;
  }
  EXPECT_EQ(complete("session exec fix"), "\nfix-login\n");
  EXPECT_EQ(complete("session exec --timeout 5s fix"), "\nfix-login\n") << "the value of an option is not an operand";
  EXPECT_EQ(complete("session network fix-login a"), "\nallow\n");
  EXPECT_EQ(complete("session destroy fix-login fix"), "\nfix-login\n");
}

TEST_F(Completion, OffersHosts) {
  EXPECT_TRUE(contains(complete("run --allow-host pre"), "\npreset:npm\n"));
  EXPECT_TRUE(contains(complete("session network fix-login allow ''"), "\npreset:npm\n"));
  EXPECT_EQ(complete("run --allow-host preset : np"), "\nnpm\n") << "bash divides words at a colon";
  EXPECT_TRUE(contains(complete("run --allow-host preset :"), "\nnpm\n"));
  EXPECT_EQ(complete("mcp install curs"), "\ncursor\n");
}

TEST_F(Completion, OffersEventsAndProfiles) {
  EXPECT_TRUE(contains(complete("audit show --event proxy"), "\nproxy_request\n"));
  EXPECT_TRUE(contains(complete("run --profile str"), "\nstrict\n"));
  const RunOutput unknown = cli.caisson({"audit", "show", "--event", "nosuch"});
  EXPECT_EQ(unknown.exit_status, 125);
  EXPECT_TRUE(contains(unknown.err, "sandbox_execute")) << unknown.describe();
}

TEST_F(SessionCommands, ShellShowsTheSessionInItsPrompt) {
  const RunOutput named = cli.caisson({"session", "create", "--name", "fix-login"});
  ASSERT_EQ(named.exit_status, 0) << named.describe();
  Terminal terminal({"env", "CAISSON_HOME=" + (cli.home / "state"), caissonBinary(), "session", "shell", "fix-login"},
                    cli.workspace.path());
  ASSERT_TRUE(terminal.shows("(fix-login) /workspace")) << terminal.screen();
  terminal.type("echo made-$((40 + 2)); cd /tmp\r");
  EXPECT_TRUE(terminal.shows("made-42")) << terminal.screen();
  EXPECT_TRUE(terminal.shows("(fix-login) /tmp")) << terminal.screen();
  terminal.type("exit 3\r");
  EXPECT_EQ(terminal.wait(), 3) << terminal.screen();
}

TEST_F(SessionCommands, ShellNeedsATerminal) {
  const RunOutput refused = cli.caisson({"session", "shell", id_});
  EXPECT_EQ(refused.exit_status, 125);
  EXPECT_TRUE(contains(refused.err, "session exec")) << refused.describe();
}

}  // namespace
}  // namespace caisson::test
