// An unlisted host requested by a command of a session: the user at that command's terminal decides, only for that
// command's connections.
#include "network/session_prompt.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(SessionPrompt, AnswerOnceAllowsOnlyTheWaitingConnection) {
  forgetQueries();
  const auto terminal = start(kOneAndTwo);
  ASSERT_TRUE(terminal->shows(kPrompt)) << terminal->screen();
  EXPECT_EQ(queries(), "");  // no query leaves before the answer
  expectOneConnectionAllowed(*terminal);
  EXPECT_FALSE(contains(exec("curl -sS http://evil.test/").out, "from 80"));
}

/// A network client in a session without network: the user is asked before it runs, and the session keeps the host.
TEST_F(SessionPrompt, AppearsBeforeANetworkClientInASessionWithoutNetwork) {
  CONFORMS("R-NETWORK-16");
  const std::string offline = createOfflineSession();
  const std::vector<std::string> fetch{"curl", "-sS", "--max-time", "5", "http://example.org/x"};
  const auto begin = [&] {
    std::vector<std::string> words{
        "/usr/bin/env", "CAISSON_HOME=" + home_, "TERM=xterm", caissonBinary(), "session", "exec", offline, "--"};
    words.insert(words.end(), fetch.begin(), fetch.end());
    return std::make_unique<Terminal>(words, files.path());
  };
  for (const bool yes : {false, true}) {
    auto terminal = begin();
    ASSERT_TRUE(terminal->shows("Let it reach example.org through")) << terminal->screen();
    sleepFor(milliseconds(200));  // input before the prompt is discarded
    terminal->type(yes ? "y\r" : "n\r");
    EXPECT_EQ(terminal->wait() == 0, yes) << terminal->screen();
    EXPECT_EQ(contains(terminal->screen(), "example.org /x from 80"), yes) << terminal->screen();
  }
  auto again = begin();
  EXPECT_EQ(again->wait(), 0) << again->screen();
  EXPECT_FALSE(contains(again->screen(), "[y/N]")) << "the host is open: " << again->screen();
}

TEST_F(SessionPrompt, IsANoticeBeforeANetworkClientWithoutATerminal) {
  CONFORMS("R-NETWORK-16");
  const std::string offline = createOfflineSession();
  const RunOutput output =
      caisson({"session", "exec", offline, "--", "curl", "-sS", "--max-time", "5", "http://example.org/"});
  EXPECT_NE(output.exit_status, 0) << output.describe();
  const std::string notice = "caisson session network " + offline + " allow example.org";
  const std::size_t at = output.err.find(notice);
  ASSERT_NE(at, std::string::npos) << output.describe();
  EXPECT_EQ(output.err.find(notice, at + 1), std::string::npos) << "once is enough: " << output.describe();
}

TEST_F(SessionPrompt, AnswerSessionAllowsThatPortForAllItsCommands) {
  const auto terminal = start(kTwoPorts);
  expectOnePortAllowed(*terminal, "session #\r");
  EXPECT_EQ(exec("curl -sS http://evil.test/later").out, "evil.test /later from 80\n");
  EXPECT_FALSE(contains(exec("curl -sS http://evil.test:8080/").out, "from 8080"));
  EXPECT_EQ(caisson({"approvals", "list", "--json"}).json().size(), 0U);
  auto elsewhere = start("curl -sS http://evil.test/elsewhere; echo over", createSession());
  answerPrompt(*elsewhere, "evil.test:80", "\r");
  EXPECT_TRUE(elsewhere->wait());
  EXPECT_FALSE(contains(elsewhere->screen(), "from 80")) << elsewhere->screen();
  EXPECT_EQ(caisson({"session", "network", id_, "deny", "evil.test:80"}).exit_status, 0);
  EXPECT_FALSE(contains(exec("curl -sS http://evil.test/").out, "from 80"));
}

TEST_F(SessionPrompt, PermanentApprovalIsStoredUntilRevoked) {
  expectStoredUntilRevoked(
      "good #\r", [&](const std::string& script) { return start(script); },
      [&](const std::string& script) { return start(script, createSession()); },
      [&](const auto& words) { return caisson(words); });
}

TEST_F(SessionPrompt, AnswerNoAppliesToTheRestOfTheCommandAndNoQueryLeaves) {
  forgetQueries();
  auto terminal = start(std::string("for i in 1 2 3; do ") + kDirect + "curl -sS http://evil.test/; done; echo over");
  answerPrompt(*terminal, "evil.test:80", "n\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_EQ(countPrompts(*terminal), 1) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "over")) << terminal->screen();
  auto next = start("for h in a b c; do curl -sS http://$h.test/; done; echo over");
  answerPrompt(*next, "a.test:80", "never\r");
  EXPECT_TRUE(next->wait()) << next->screen();
  EXPECT_EQ(countPrompts(*next), 1) << next->screen();
  EXPECT_EQ(queries(), "");
}

TEST_F(SessionPrompt, StaysOnTheScreenUntilAnswered) {
  auto terminal = start(
      "(while :; do printf '\\033[2J\\033[Hcaisson: nothing to see\\r\\n'; echo s; sleep 0.02; done) & "
      "sleep 0.3; curl -sS http://evil.test/; kill %1; read -t 1 line; echo \"over <$line>\"");
  ASSERT_TRUE(terminal->shows(kPrompt)) << terminal->screen();
  sleepFor(milliseconds(500));
  terminal->shows("nothing that is there", milliseconds(10));  // reads pending output
  EXPECT_TRUE(terminal->screen().ends_with("/N] ")) << terminal->screen();
  terminal->type("n\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "over <>")) << terminal->screen();
}

/// The payload sees each key and connects in the middle of a word: the rest of the word must not answer.
TEST_F(SessionPrompt, KeysTypedForTheProgramAreIgnored) {
  CONFORMS("R-APPROVAL-2");
  auto terminal = start(
      "stty raw -echo; printf 'Remove it? '; read -N 2 key; curl -sS http://evil.test/; curl -sS http://a.test/; echo "
      "over");
  ASSERT_TRUE(terminal->shows("Remove it?")) << terminal->screen();
  terminal->type("ye");
  ASSERT_TRUE(terminal->shows("approval needed")) << terminal->screen();
  terminal->type("s");
  sleepFor(milliseconds(100));  // as fast as a user types
  terminal->type("\r");
  ASSERT_TRUE(terminal->shows(kPrompt)) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "evil.test:80 ")) << "it is answered: " << terminal->screen();
  terminal->type("s\r");  // after a pause, too
  EXPECT_TRUE(terminal->shows("evil.test:80 stays refused")) << terminal->screen();
  answerPrompt(*terminal, "a.test:80", "\x03", 2);
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
  EXPECT_FALSE(contains(exec("curl -sS http://evil.test/").out, "from 80"));
}

TEST_F(SessionPrompt, DoesNotAppearForOtherCommands) {
  auto terminal = start("echo ready; read line; curl -sS http://evil.test/asked; echo over");
  ASSERT_TRUE(terminal->shows("ready")) << terminal->screen();
  forgetQueries();
  background("captured", std::string(kDirect) + "curl -sS http://evil.test/");
  background("proxied", "curl -sS http://evil.test/");
  const RunOutput piped = exec("curl -sS http://evil.test/", {"--json"});  // no terminal: denied
  EXPECT_TRUE(contains(piped.json()["stdout"].dump(), "evil.test:80 is refused")) << piped.describe();
  for (const char* name : {"captured", "proxied"}) {
    const std::string output = outputOf(name);
    EXPECT_FALSE(contains(output, "from 80")) << output;
    EXPECT_TRUE(contains(output, "over 0") || contains(output, "over 1")) << name << ": " << output;
  }
  EXPECT_EQ(queries(), "");
  terminal->shows("nothing that is there", milliseconds(0));
  EXPECT_EQ(countPrompts(*terminal), 0) << terminal->screen();
  terminal->type("\r");
  answerPrompt(*terminal, "evil.test:80", "o #\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "/asked from 80")) << terminal->screen();
}

/// The last `tick N.` before the given occurrence of a word: the program's own time, whatever the machine's load.
int ticksBefore(const std::string& screen, const std::string& word, int occurrence) {
  std::size_t at = 0;
  for (int i = 0; i < occurrence; ++i) at = screen.find(word, at + 1);
  const std::size_t tick = screen.rfind("tick ", at);
  return tick == std::string::npos ? -1 : std::atoi(screen.c_str() + tick + 5);
}
constexpr int kMaxTicks = 8;  // 0.8 s; a search that blocks takes several

/// Many processes with many descriptors, and connections that none of them holds: finding the owner takes long.
TEST_F(SessionPrompt, SlowSearchForTheOwnerDoesNotBlockTheTerminal) {
  const std::string script = R"(
import os, resource, signal, socket, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_NOFILE, (9000, 9000))
read, write = os.pipe()
for i in range(300):
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_RDONLY)
        for k in range(8000): os.dup(null)
        os.write(write, b"x")
        time.sleep(120)
        os._exit(0)
for i in range(300): os.read(read, 1)
if os.fork() == 0:  # a process that has left the command
    os.setsid()
    if os.fork() > 0: os._exit(0)
    keep = []
    while True:
        keep.append(socket.create_connection(("127.0.0.1", 3128)))
        name = b"h%d.example:443" % len(keep)
        keep[-1].sendall(b"CONNECT " + name + b" HTTP/1.1\r\nHost: " + name + b"\r\n\r\n")
        if len(keep) > 40: keep[-40].close()
        time.sleep(0.05)
signal.signal(signal.SIGINT, lambda *_: print("interrupted", flush=True))
for i in range(400):
    print("tick %d." % i, flush=True)
    time.sleep(0.1)
)";
  const std::string policy =
      files.write("many.toml",
                  "extends = 'dev'\n[network]\nmode = 'proxy'\ndns_servers = ['93.184.0.2']\n"
                  "allowed_hosts = ['example.org']\n[process]\nmax_processes = 1000\n[resources]\nopen_files = 9000\n");
  auto terminal = start("exec /usr/bin/python3 - <<'EOF'" + script + "EOF\n", createSession(policy));
  ASSERT_TRUE(terminal->shows("tick 0.", seconds(30))) << terminal->screen();
  for (int key = 1; key <= 5; ++key) {
    ASSERT_TRUE(terminal->shows("tick " + std::to_string(10 * key) + ".", seconds(30))) << terminal->screen();
    terminal->type("\x03");
    EXPECT_TRUE(eventually(
        [&] {
          terminal->shows("nothing that is there", milliseconds(0));  // reads pending output
          return occurrences(terminal->screen(), "interrupted") >= key;
        },
        seconds(30)))
        << terminal->screen();
    EXPECT_LE(ticksBefore(terminal->screen(), "interrupted", key), 10 * key + kMaxTicks) << terminal->screen();
  }
}

TEST_F(SessionPrompt, AppearsOnTheTerminalOfItsCommand) {
  auto one = start("curl -sS http://evil.test/one; echo over");
  ASSERT_TRUE(one->shows(kPrompt)) << one->screen();
  auto two = start("curl -sS http://evil.test/two; echo over");
  ASSERT_TRUE(two->shows(kPrompt)) << two->screen();
  answerPrompt(*two, "evil.test:80", "n\r");
  EXPECT_TRUE(two->wait()) << two->screen();
  EXPECT_FALSE(contains(two->screen(), "from 80")) << two->screen();
  EXPECT_FALSE(one->wait(milliseconds(300))) << one->screen();  // that was not its answer
  answerPrompt(*one, "evil.test:80", "o #\r");
  EXPECT_TRUE(one->wait()) << one->screen();
  EXPECT_TRUE(contains(one->screen(), "/one from 80")) << one->screen();
  EXPECT_EQ(countPrompts(*one) + countPrompts(*two), 2);
}

TEST_F(SessionPrompt, TerminalIsRestoredAfterAKilledCommand) {
  auto terminal = start("curl -sS http://evil.test/; sleep 60", id_, {"--timeout", "3s"});
  const termios before = Terminal({"sleep", "60"}, "/").settings();  // of a terminal that was never set to raw
  ASSERT_TRUE(terminal->shows(kPrompt)) << terminal->screen();
  EXPECT_EQ(terminal->wait(), 124) << terminal->screen();
  EXPECT_TRUE(sameSettings(before, terminal->settings()));
  EXPECT_TRUE(contains(terminal->screen(), "the command is over; nothing was allowed")) << terminal->screen();
  EXPECT_EQ(exec("curl -sS http://example.org/a").out, "example.org /a from 80\n");
}

}  // namespace
}  // namespace caisson::test
