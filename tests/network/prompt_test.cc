// An unlisted host while a user is at the terminal: that user decides.
#include <csignal>

#include "network/prompt.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

class RunPrompt : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    home_ = files.makeDir("home", 0700);
  }
  /// Runs a script with `caisson run` on a terminal; only example.org is allowed.
  [[nodiscard]] std::unique_ptr<Terminal> start(const std::string& script, const std::string& more = {},
                                                const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words{
        "/usr/bin/env", "CAISSON_HOME=" + home_,          "TERM=xterm",  caissonBinary(), "run",
        "--policy",     policyFor({"example.org"}, more), "--workspace", ":none"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "bash", "-c", script});
    return std::make_unique<Terminal>(words, files.path());
  }
  [[nodiscard]] RunOutput caisson(const std::vector<std::string>& words) const {
    RunOptions how;
    how.cwd = files.path();
    how.env["CAISSON_HOME"] = home_;
    return runCaisson(words, how);
  }

  std::string home_;
};

TEST_F(RunPrompt, AnswerOnceAllowsOnlyTheWaitingConnection) {
  CONFORMS("R-NETWORK-15");
  const auto terminal = start(kOneAndTwo);
  expectOneConnectionAllowed(*terminal);
}

/// A network client in a sandbox without network: asked about before it runs.
TEST_F(RunPrompt, AppearsBeforeANetworkClientWithoutANetwork) {
  CONFORMS("R-NETWORK-16");
  const std::string policy = files.write("offline.toml",
                                         "extends = 'bash'\n[network]\ndns_servers = ['93.184.0.2']\n"
                                         "allowed_hosts = ['evil.test']\n");
  const auto begin = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words{
        "/usr/bin/env", "CAISSON_HOME=" + home_, "TERM=xterm", caissonBinary(), "run", "--policy",
        policy,         "--workspace",           ":none"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "sh", "-c", "curl -sS http://example.org/x; curl -sS http://evil.test/y"});
    return std::make_unique<Terminal>(words, files.path());
  };
  for (const bool yes : {true, false}) {
    auto terminal = begin({});
    ASSERT_TRUE(terminal->shows("Let it reach example.org through")) << terminal->screen();
    EXPECT_TRUE(contains(terminal->screen(), "The policy chooses the name servers: 93.184.0.2")) << terminal->screen();
    sleepFor(std::chrono::milliseconds(200));  // input before the prompt is discarded
    terminal->type(yes ? "y\r" : "n\r");
    // The policy allows evil.test, but the answer was about example.org.
    if (yes) answerPrompt(*terminal, "evil.test:80", "n\r");
    ASSERT_TRUE(terminal->wait()) << terminal->screen();
    EXPECT_EQ(contains(terminal->screen(), "example.org /x from 80"), yes) << terminal->screen();
    EXPECT_FALSE(contains(terminal->screen(), "evil.test /y from 80")) << terminal->screen();
  }
  auto typed = begin({"--net", "none"});
  EXPECT_NE(typed->wait(), 0) << typed->screen();
  EXPECT_FALSE(contains(typed->screen(), "[y/N]")) << "the user chose no network: " << typed->screen();
  const std::string audit = caisson({"audit", "show", "--json"}).out;
  EXPECT_TRUE(contains(audit, "\"approval_given\"") && contains(audit, "\"approval_denied\"")) << audit;
}

TEST_F(RunPrompt, AnswerRunAllowsThatPortForTheRun) {
  const auto terminal = start(kTwoPorts);
  expectOnePortAllowed(*terminal, "r #\r");
  EXPECT_EQ(caisson({"approvals", "list", "--json"}).json().size(), 0U);
  auto next = start("curl -sS http://evil.test/3");
  answerPrompt(*next, "evil.test:80", "\r");
  EXPECT_TRUE(next->wait());
  EXPECT_FALSE(contains(next->screen(), "from 80")) << next->screen();
}

TEST_F(RunPrompt, PermanentApprovalIsStoredUntilRevoked) {
  const auto begin = [&](const std::string& script) { return start(script); };
  expectStoredUntilRevoked("good#\r", begin, begin, [&](const auto& words) { return caisson(words); });
}

TEST_F(RunPrompt, AppearsForEveryWayToReachAHost) {
  auto terminal = start(std::string(kDirect) + "curl -sS http://evil.test/captured; " + kDirect +
                        "curl -sS http://93.184.0.4/address; curl -sSk https://other.example.org/tls; "
                        "curl -sS --socks5-hostname 127.0.0.1:3128 http://www.example.org/socks; "
                        "curl -sSL 'http://example.org/redirect?http://dual.example.org/followed'; echo over");
  int number = 0;
  for (const char* host :
       {"evil.test:80", "93.184.0.4:80", "other.example.org:443", "www.example.org:80", "dual.example.org:80"}) {
    answerPrompt(*terminal, host, "o #\r", ++number);
  }
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  for (const char* words :
       {"/captured from 80", "/address from 80", "/tls from 443", "/socks from 80", "/followed from 80"}) {
    EXPECT_TRUE(contains(terminal->screen(), words)) << words << terminal->screen();
  }
}

TEST_F(RunPrompt, AnswerNoIsRememberedAndNoQueryLeaves) {
  forgetQueries();
  auto terminal = start(std::string("for i in 1 2 3; do ") + kDirect + "curl -sS http://evil.test/; done; echo over");
  answerPrompt(*terminal, "evil.test:80", "n\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_EQ(countPrompts(*terminal), 1) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
  EXPECT_EQ(queries(), "");
  const RunOutput log = caisson({"audit", "show", "--json"});
  EXPECT_EQ(occurrences(log.out, "APPROVAL_ASKED") + occurrences(log.out, "approval_asked"), 1) << log.describe();
  EXPECT_EQ(occurrences(log.out, "APPROVAL_DENIED") + occurrences(log.out, "approval_denied"), 1) << log.describe();
}

TEST_F(RunPrompt, NeverAsAnAnswerStopsFurtherPrompts) {
  auto terminal = start("for h in a b c; do curl -sS http://$h.test/; done; echo over");
  answerPrompt(*terminal, "a.test:80", "never\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_EQ(countPrompts(*terminal), 1) << terminal->screen();
}

TEST_F(RunPrompt, UnclearAnswerDeniesWithoutASecondPrompt) {
  for (const std::string reply :
       {"yes\r", "\x1b]10;rgb:ffff/ffff/ffff\x1b\\\r", "\x1b[24;80Ro #\r", "\x1bo #\r", "g #\r"}) {
    auto terminal = start("curl -sS http://evil.test/; read -t 1 rest; echo over");
    answerPrompt(*terminal, "evil.test:80", reply + "r #\rgood #\r");
    EXPECT_TRUE(terminal->shows("evil.test:80 stays refused")) << terminal->screen();
    EXPECT_TRUE(terminal->wait()) << terminal->screen();
    EXPECT_EQ(countPrompts(*terminal), 1) << terminal->screen();
    EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
  }
}

TEST_F(RunPrompt, TerminalIsResetBeforeIt) {
  auto terminal = start(
      "printf '\\033[?1049h\\033[3;4r\\033]10;#000000\\033\\\\\\033]11;#000000\\033\\\\\\033]0;half a title'; "
      "curl -sS http://evil.test/; echo over");
  answerPrompt(*terminal, "evil.test:80", "n\r");
  const std::string& screen = terminal->screen();
  const std::size_t attack = screen.find("half a title"), prompt = screen.find("approval needed");
  ASSERT_LT(attack, prompt) << screen;
  const std::string between = screen.substr(attack, prompt - attack);
  for (const char* part : {"\x18", "\x1b]110\x1b\\", "\x1b]111\x1b\\", "\x1b[r", "\x1b[?1047l"}) {
    EXPECT_TRUE(contains(between, part)) << part + 1;
  }
  EXPECT_TRUE(terminal->wait());
}

TEST_F(RunPrompt, InterruptKeyDenies) {
  auto terminal = start("curl -sS http://evil.test/; echo over");
  answerPrompt(*terminal, "evil.test:80", "r\x7f\x03");
  EXPECT_TRUE(terminal->shows("evil.test:80 stays refused")) << terminal->screen();
  EXPECT_EQ(terminal->wait(), 0) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "over")) << terminal->screen();
}

TEST_F(RunPrompt, InterruptKeyDeniesEveryWaitingHost) {
  auto terminal = start(
      "for h in a b c d e; do curl -sS http://$h.test/ & done; wait; curl -sS http://later.test/; echo waiting; "
      "read line; echo over");
  ASSERT_TRUE(terminal->shows("approval needed")) << terminal->screen();
  terminal->type("\x03");  // also before the code is shown
  ASSERT_TRUE(terminal->shows("later.test:80 is refused")) << terminal->screen();
  EXPECT_EQ(occurrences(terminal->screen(), "approval needed"), 1) << terminal->screen();
  ASSERT_TRUE(terminal->shows("waiting")) << terminal->screen();
  terminal->type("\x03");  // from now on for the program
  EXPECT_EQ(terminal->wait(), 128 + SIGINT) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "over")) << terminal->screen();
}

/// The payload sees each key and connects in the middle of a word: the rest of the word must not answer.
TEST_F(RunPrompt, KeysTypedForTheProgramAreIgnored) {
  CONFORMS("R-APPROVAL-2");
  for (const std::string word : {"no", "log", "server"}) {
    const std::string begin = word.substr(0, word.size() - 1);
    auto terminal = start("stty raw -echo; printf 'Remove it? '; read -N " + std::to_string(begin.size()) +
                          " key; curl -sS http://evil.test/; echo over");
    ASSERT_TRUE(terminal->shows("Remove it?")) << terminal->screen();
    terminal->type(begin);
    ASSERT_TRUE(terminal->shows("approval needed")) << terminal->screen();
    terminal->type(word.substr(word.size() - 1));
    sleepFor(std::chrono::milliseconds(100));  // as fast as a user types
    terminal->type("\r");
    ASSERT_TRUE(terminal->shows(kPrompt)) << terminal->screen();
    EXPECT_FALSE(contains(terminal->screen(), "evil.test:80 ")) << "it is answered: " << terminal->screen();
    // The same after a pause.
    terminal->type(word.substr(word.size() - 1) + "\r");
    EXPECT_TRUE(terminal->shows("evil.test:80 stays refused")) << terminal->screen();
    EXPECT_TRUE(terminal->wait()) << terminal->screen();
    EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
  }
  EXPECT_EQ(caisson({"approvals", "list", "--json"}).json().size(), 0U);
  EXPECT_FALSE(contains(caisson({"audit", "show", "--json"}).out, "\"approval_given\""));
}

TEST_F(RunPrompt, CodeOfAnotherPromptIsRejected) {
  auto terminal = start("curl -sS http://evil.test/; curl -sS http://www.example.org/; echo over");
  answerPrompt(*terminal, "evil.test:80", "n\r");
  const std::string first = withPromptCode(*terminal, "#");
  EXPECT_TRUE(eventually([&] {
    terminal->shows(kPrompt, std::chrono::milliseconds(0));
    return countPrompts(*terminal) >= 2;
  })) << terminal->screen();
  const bool same = withPromptCode(*terminal, "#") == first;  // one of ten thousand times
  terminal->type(same ? "n\r" : "o " + first + "\r");
  EXPECT_TRUE(terminal->shows("www.example.org:80 stays refused")) << terminal->screen();
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
}

TEST_F(RunPrompt, PayloadCanNeitherOverwriteNorAnswerIt) {
  CONFORMS("R-APPROVAL-2");
  auto terminal = start(
      "(while :; do printf '\\033[2J\\033[Hcaisson: nothing to see\\r\\n'; echo r; sleep 0.02; done) & "
      "sleep 0.3; curl -sS http://evil.test/; kill %1; read -t 1 line; echo \"over <$line>\"");
  ASSERT_TRUE(terminal->shows(kPrompt)) << terminal->screen();
  sleepFor(std::chrono::milliseconds(500));
  terminal->shows("nothing that is there", std::chrono::milliseconds(10));  // reads pending output
  const std::string& screen = terminal->screen();
  EXPECT_TRUE(screen.ends_with("/N] ")) << screen;
  terminal->type("n\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "over <>")) << terminal->screen();  // the payload did not receive the answer
}

TEST_F(RunPrompt, KeysTypedBeforeItAreIgnored) {
  CONFORMS("R-APPROVAL-2");
  auto terminal = start("stty -echo; echo ready; sleep 0.5; curl -sS http://evil.test/; echo over");
  ASSERT_TRUE(terminal->shows("ready"));
  terminal->type("g\rr\ro\r");
  ASSERT_TRUE(terminal->shows(kPrompt)) << terminal->screen();
  EXPECT_FALSE(terminal->wait(std::chrono::milliseconds(500)));
  terminal->type("\r");
  EXPECT_TRUE(terminal->wait());
  EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
}

TEST_F(RunPrompt, DoesNotAppearForForbiddenHosts) {
  CONFORMS("R-NETWORK-5");
  auto terminal = start(
      "curl -sS http://evil.test/; curl -sS http://169.254.169.254/; curl -sS http://printer.local/; "
      "curl -sS http://metadata.google.internal/; " +
          std::string(kDirect) + "curl -sS -m 5 http://10.0.0.1/; curl -sS http://www.example.org:8081/; echo over",
      "denied_hosts = [\"evil.test\"]\ndenied_ports = [\"8081\"]\nallowed_ports = [\"80\"]");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_EQ(countPrompts(*terminal), 0) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "over")) << terminal->screen();
}

TEST_F(RunPrompt, TerminalIsRestoredAfterAKilledRun) {
  auto terminal = start("curl -sS http://evil.test/; sleep 60", "", {"--timeout", "3s"});
  const termios before = Terminal({"sleep", "60"}, "/").settings();  // of a terminal that was never set to raw
  ASSERT_TRUE(terminal->shows(kPrompt)) << terminal->screen();
  EXPECT_EQ(terminal->wait(), 124) << terminal->screen();
  EXPECT_TRUE(sameSettings(before, terminal->settings()));
  EXPECT_TRUE(contains(terminal->screen(), "nothing was allowed")) << terminal->screen();
}

TEST_F(RunPrompt, WithoutATerminalTheHostIsDenied) {
  CONFORMS("R-NETWORK-15", "R-APPROVAL-3");
  RunOptions how;
  how.cwd = files.path();
  how.env["CAISSON_HOME"] = home_;
  const RunOutput output = runCaisson({"run", "--policy", policyFor({"example.org"}, ""), "--workspace", ":none", "--",
                                       "curl", "-sS", "http://evil.test/"},
                                      how);
  EXPECT_TRUE(contains(output.out, "--allow-host evil.test")) << output.describe();
  EXPECT_FALSE(contains(output.out + output.err, "Allow it?")) << output.describe();
  auto json = start("curl -sS http://evil.test/", "", {"--json"});  // for programs, so no prompt
  EXPECT_TRUE(json->wait()) << json->screen();
  EXPECT_EQ(countPrompts(*json), 0) << json->screen();
  EXPECT_TRUE(contains(json->screen(), "no entry of network.allowed_hosts")) << json->screen();
}

}  // namespace
}  // namespace caisson::test
