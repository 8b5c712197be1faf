// An unlisted host requested by a command of a session: the user at that command's terminal decides, only for that
// command's connections.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "functional/terminal.h"
#include "network/network.h"
#include "support/conforms.h"

namespace caisson::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kQuestion = "Allow it? [o ";  // then the code
class SessionQuestion : public NetworkTest {
 protected:
  void SetUp() override {
    NetworkTest::SetUp();
    home_ = files.makeDir("home", 0700);
    id_ = createSession();
  }
  void TearDown() override {
    for (const std::string& id : made_) caisson({"session", "destroy", id});
  }
  std::string createSession() { return createSession(policyFor({"example.org"}, "")); }
  std::string createSession(const std::string& policy) {
    const RunOutput made = caisson({"session", "create", "--policy", policy, "--workspace", ":none"});
    EXPECT_EQ(made.exit_status, 0) << made.describe();
    made_.push_back(made.out.substr(0, made.out.find('\n')));
    return made_.back();
  }
  RunOutput caisson(const std::vector<std::string>& words) const {
    RunOptions how;
    how.cwd = files.path();
    how.env["CAISSON_HOME"] = home_;
    return runCaisson(words, how);
  }
  std::string createOfflineSession() {
    const std::string policy =
        files.write("offline.toml", "extends = 'bash'\n[network]\ndns_servers = ['93.184.0.2']\n");
    return createSession(policy);
  }
  /// Without a terminal.
  [[nodiscard]] RunOutput exec(const std::string& script, const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words{"session", "exec", id_};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "bash", "-c", script});
    return caisson(words);
  }
  [[nodiscard]] std::unique_ptr<Terminal> start(const std::string& script, const std::string& id,
                                                const std::vector<std::string>& options = {}) const {
    std::vector<std::string> words{
        "/usr/bin/env", "CAISSON_HOME=" + home_, "TERM=xterm", caissonBinary(), "session", "exec", id};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "bash", "-c", script});
    return std::make_unique<Terminal>(words, files.path());
  }
  [[nodiscard]] std::unique_ptr<Terminal> start(const std::string& script) const { return start(script, id_); }

  /// `keys` with the code of the last prompt for each "#".
  static std::string withCode(const Terminal& terminal, std::string keys) {
    const std::string code = terminal.screen().substr(terminal.screen().rfind(kQuestion) + std::strlen(kQuestion), 4);
    EXPECT_EQ(code.find_first_not_of("0123456789"), std::string::npos) << terminal.screen();
    for (std::size_t at = 0; (at = keys.find('#', at)) != std::string::npos;) keys.replace(at, 1, code);
    return keys;
  }
  static int questions(const Terminal& terminal) {
    int count = 0;
    for (std::size_t at = 0; (at = terminal.screen().find(kQuestion, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  static int times(const std::string& text, const std::string& part) {
    int count = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  static void answer(Terminal& terminal, const std::string& what, const std::string& keys, int count = 1) {
    EXPECT_TRUE(eventually([&] {
      terminal.shows("nothing that is there", milliseconds(0));  // reads pending output
      return questions(terminal) >= count;
    })) << terminal.screen();
    EXPECT_TRUE(contains(terminal.screen(), "approval needed: host:" + what + "\r\n")) << terminal.screen();
    terminal.type(withCode(terminal, keys));
  }
  /// Starts a background command that writes its output and duration to /tmp/`name` when it has ended.
  void background(const std::string& name, const std::string& script) const {
    const RunOutput started =
        caisson({"session", "exec", id_, "--background", "--", "bash", "-c",
                 "SECONDS=0; (" + script + ") >/tmp/" + name + ".new 2>&1; echo over $SECONDS >>/tmp/" + name +
                     ".new; mv /tmp/" + name + ".new /tmp/" + name});
    EXPECT_EQ(started.exit_status, 0) << started.describe();
  }
  std::string outputOf(const std::string& name) const {
    std::string text;
    eventually([&] {
      const RunOutput output = exec("cat /tmp/" + name);
      text = output.out;
      return output.exit_status == 0;
    });
    return text;
  }

  std::string home_, id_;
  std::vector<std::string> made_;
};

TEST_F(SessionQuestion, OnceIsForTheConnectionThatWaitsAndNoOther) {
  forgetQueries();
  auto terminal = start("curl -sS http://evil.test/one; curl -sS http://evil.test/two; echo over");
  ASSERT_TRUE(terminal->shows(kQuestion)) << terminal->screen();
  EXPECT_EQ(queries(), "");  // no query leaves before the answer
  answer(*terminal, "evil.test:80", "o #\r");
  EXPECT_TRUE(terminal->shows("evil.test /one from 80")) << terminal->screen();
  answer(*terminal, "evil.test:80", "n\r", 2);
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "/two from 80")) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "over")) << terminal->screen();
  EXPECT_FALSE(contains(exec("curl -sS http://evil.test/").out, "from 80"));
}

/// A network client in a session without network: the user is asked before it runs, and the session keeps the host.
TEST_F(SessionQuestion, ComesBeforeANetworkClientInASessionWithoutNetwork) {
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

TEST_F(SessionQuestion, IsANoticeBeforeANetworkClientWithoutATerminal) {
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

TEST_F(SessionQuestion, ForTheSessionIsForAllItsCommandsAndForThatPort) {
  auto terminal =
      start("for i in 1 2; do curl -sS http://evil.test/$i; done; curl -sS http://evil.test:8080/; echo over");
  answer(*terminal, "evil.test:80", "session #\r");
  answer(*terminal, "evil.test:8080", "\r", 2);
  EXPECT_EQ(terminal->wait(), 0) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "/2 from 80")) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "from 8080")) << terminal->screen();
  EXPECT_EQ(exec("curl -sS http://evil.test/later").out, "evil.test /later from 80\n");
  EXPECT_FALSE(contains(exec("curl -sS http://evil.test:8080/").out, "from 8080"));
  EXPECT_EQ(caisson({"approvals", "list", "--json"}).json().size(), 0U);
  auto elsewhere = start("curl -sS http://evil.test/elsewhere; echo over", createSession());
  answer(*elsewhere, "evil.test:80", "\r");
  EXPECT_TRUE(elsewhere->wait());
  EXPECT_FALSE(contains(elsewhere->screen(), "from 80")) << elsewhere->screen();
  EXPECT_EQ(caisson({"session", "network", id_, "deny", "evil.test:80"}).exit_status, 0);
  EXPECT_FALSE(contains(exec("curl -sS http://evil.test/").out, "from 80"));
}

TEST_F(SessionQuestion, ForGoodIsOnRecordUntilItIsRevoked) {
  auto first = start("curl -sS http://evil.test/1");
  answer(*first, "evil.test:80", "good #\r");
  EXPECT_EQ(first->wait(), 0) << first->screen();
  EXPECT_TRUE(contains(first->screen(), "/1 from 80")) << first->screen();
  const auto kept = caisson({"approvals", "list", "--json"}).json();
  ASSERT_EQ(kept.size(), 1U) << kept;
  EXPECT_EQ(kept[0]["what"], "host:evil.test:80");
  auto second = start("curl -sS http://evil.test/2", createSession());
  EXPECT_EQ(second->wait(), 0) << second->screen();
  EXPECT_EQ(questions(*second), 0) << second->screen();
  EXPECT_TRUE(contains(second->screen(), "/2 from 80")) << second->screen();
  ASSERT_EQ(caisson({"approvals", "revoke", kept[0]["id"]}).exit_status, 0);
  auto third = start("curl -sS http://evil.test/3");
  answer(*third, "evil.test:80", "no\r");
  EXPECT_TRUE(third->wait());
  EXPECT_FALSE(contains(third->screen(), "from 80")) << third->screen();
}

TEST_F(SessionQuestion, NoIsForTheRestOfTheCommandAndNothingLeaves) {
  forgetQueries();
  auto terminal = start(std::string("for i in 1 2 3; do ") + kDirect + "curl -sS http://evil.test/; done; echo over");
  answer(*terminal, "evil.test:80", "n\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_EQ(questions(*terminal), 1) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "over")) << terminal->screen();
  auto next = start("for h in a b c; do curl -sS http://$h.test/; done; echo over");
  answer(*next, "a.test:80", "never\r");
  EXPECT_TRUE(next->wait()) << next->screen();
  EXPECT_EQ(questions(*next), 1) << next->screen();
  EXPECT_EQ(queries(), "");
}

TEST_F(SessionQuestion, WhatIsOnTheScreenIsTheQuestionUntilItIsAnswered) {
  auto terminal = start(
      "(while :; do printf '\\033[2J\\033[Hcaisson: nothing to see\\r\\n'; echo s; sleep 0.02; done) & "
      "sleep 0.3; curl -sS http://evil.test/; kill %1; read -t 1 line; echo \"over <$line>\"");
  ASSERT_TRUE(terminal->shows(kQuestion)) << terminal->screen();
  sleepFor(milliseconds(500));
  terminal->shows("nothing that is there", milliseconds(10));  // reads pending output
  EXPECT_TRUE(terminal->screen().ends_with("/N] ")) << terminal->screen();
  terminal->type("n\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "over <>")) << terminal->screen();
}

/// The payload sees each key and connects in the middle of a word: the rest of the word must not answer.
TEST_F(SessionQuestion, KeysTypedForTheProgramAreNoAnswer) {
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
  ASSERT_TRUE(terminal->shows(kQuestion)) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "evil.test:80 ")) << "it is answered: " << terminal->screen();
  terminal->type("s\r");  // after a pause, too
  EXPECT_TRUE(terminal->shows("evil.test:80 stays refused")) << terminal->screen();
  answer(*terminal, "a.test:80", "\x03", 2);
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
  EXPECT_FALSE(contains(exec("curl -sS http://evil.test/").out, "from 80"));
}

TEST_F(SessionQuestion, NobodyIsAskedAboutWhatAnotherCommandDoes) {
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
  EXPECT_EQ(questions(*terminal), 0) << terminal->screen();
  terminal->type("\r");
  answer(*terminal, "evil.test:80", "o #\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "/asked from 80")) << terminal->screen();
}

/// Many processes with many descriptors, and connections that none of them holds: finding the owner takes long.
TEST_F(SessionQuestion, ASlowSearchForTheOwnerDoesNotHoldTheTerminal) {
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
  const auto begin = std::chrono::steady_clock::now();
  for (int key = 1; key <= 5; ++key) {
    ASSERT_TRUE(terminal->shows("tick " + std::to_string(10 * key) + ".", seconds(30))) << terminal->screen();
    terminal->type("\x03");
    EXPECT_TRUE(eventually(
        [&] {
          terminal->shows("nothing that is there", milliseconds(0));  // reads pending output
          return times(terminal->screen(), "interrupted") >= key;
        },
        seconds(30)))
        << terminal->screen();
  }
  // Five seconds of the program's own.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(9)) << terminal->screen();
}

TEST_F(SessionQuestion, EachCommandIsAskedOnItsOwnTerminal) {
  auto one = start("curl -sS http://evil.test/one; echo over");
  ASSERT_TRUE(one->shows(kQuestion)) << one->screen();
  auto two = start("curl -sS http://evil.test/two; echo over");
  ASSERT_TRUE(two->shows(kQuestion)) << two->screen();
  answer(*two, "evil.test:80", "n\r");
  EXPECT_TRUE(two->wait()) << two->screen();
  EXPECT_FALSE(contains(two->screen(), "from 80")) << two->screen();
  EXPECT_FALSE(one->wait(milliseconds(300))) << one->screen();  // that was not its answer
  answer(*one, "evil.test:80", "o #\r");
  EXPECT_TRUE(one->wait()) << one->screen();
  EXPECT_TRUE(contains(one->screen(), "/one from 80")) << one->screen();
  EXPECT_EQ(questions(*one) + questions(*two), 2);
}

TEST_F(SessionQuestion, AfterACommandThatWasEndedTheTerminalIsAsItWas) {
  auto terminal = start("curl -sS http://evil.test/; sleep 60", id_, {"--timeout", "3s"});
  const termios before = Terminal({"sleep", "60"}, "/").settings();  // of a terminal that was never set to raw
  ASSERT_TRUE(terminal->shows(kQuestion)) << terminal->screen();
  EXPECT_EQ(terminal->wait(), 124) << terminal->screen();
  EXPECT_TRUE(sameSettings(before, terminal->settings()));
  EXPECT_TRUE(contains(terminal->screen(), "the command is over; nothing was allowed")) << terminal->screen();
  EXPECT_EQ(exec("curl -sS http://example.org/a").out, "example.org /a from 80\n");
}

/// A session's egress socket, through a descriptor of its directory: the path may be too long for a socket address.
class EgressAddress {
 public:
  explicit EgressAddress(const std::string& session)
      : directory_(::open(session.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    EXPECT_GE(directory_, 0) << session;
    address_.sun_family = AF_UNIX;
    std::snprintf(address_.sun_path, sizeof(address_.sun_path), "/proc/self/fd/%d/egress", directory_);
  }
  ~EgressAddress() { ::close(directory_); }
  EgressAddress(const EgressAddress&) = delete;
  EgressAddress& operator=(const EgressAddress&) = delete;

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  static constexpr socklen_t kSize = sizeof(sockaddr_un);

 private:
  int directory_;
  sockaddr_un address_{};
};

/// Acts as a client with a terminal towards a session's egress.
class FakeAsker {
 public:
  explicit FakeAsker(const std::string& session) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const EgressAddress address(session);
    EXPECT_EQ(::connect(socket_, address.get(), EgressAddress::kSize), 0) << session << ": " << std::strerror(errno);
    say("questions");
    EXPECT_EQ(hear().substr(4, 5), "ready");
  }
  ~FakeAsker() { leave(); }
  FakeAsker(const FakeAsker&) = delete;
  FakeAsker& operator=(const FakeAsker&) = delete;

  void say(const std::string& packet) const {
    EXPECT_EQ(::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL), static_cast<ssize_t>(packet.size()));
  }
  /// The next packet; empty if none comes or the egress has disconnected.
  [[nodiscard]] std::string hear(seconds patience = seconds(20)) const {
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(milliseconds(patience).count())) <= 0) return {};
    char packet[4096];
    const ssize_t got = ::recv(socket_, packet, sizeof(packet), 0);
    return {packet, got > 0 ? static_cast<std::size_t>(got) : 0};
  }
  void leave() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  static std::string pack(const std::vector<std::string>& texts) {
    std::string packet;
    for (const std::string& text : texts) {
      packet += static_cast<char>(text.size());
      packet += std::string(3, '\0') + text;
    }
    return packet;
  }
  static std::vector<std::string> unpack(const std::string& packet) {
    std::vector<std::string> texts;
    for (std::size_t at = 0; at + 4 <= packet.size(); at += 4 + static_cast<unsigned char>(packet[at]))
      texts.push_back(packet.substr(at + 4, static_cast<unsigned char>(packet[at])));
    return texts;
  }

 private:
  int socket_;
};

TEST_F(SessionQuestion, WhoGoesAwayWithoutAnAnswerLeavesARefusal) {
  FakeAsker asker(home_ + "/sessions/" + id_);
  forgetQueries();
  background("left", std::string(kDirect) + "curl -sS http://evil.test/");
  const auto whose = FakeAsker::unpack(asker.hear());
  ASSERT_EQ(whose.size(), 4U);
  EXPECT_EQ(whose[0], "whose");
  asker.say(FakeAsker::pack({"mine", whose[1]}));
  EXPECT_EQ(FakeAsker::unpack(asker.hear()), (std::vector<std::string>{"question", "evil.test", "80"}));
  EXPECT_NE(exec("test -e /tmp/left").exit_status, 0);  // it is still waiting
  asker.leave();                                        // as the kernel does for a killed process
  const std::string output = outputOf("left");
  EXPECT_TRUE(contains(output, "over")) << output;
  EXPECT_FALSE(contains(output, "from 80")) << output;
  EXPECT_EQ(queries(), "");
}

TEST_F(SessionQuestion, OneThatSaysNothingHoldsNobodyUp) {
  const FakeAsker mute(home_ + "/sessions/" + id_);
  background("held", "curl -sS http://evil.test/");
  const std::string output = outputOf("held");
  EXPECT_TRUE(contains(output, "evil.test:80 is refused")) << output;
  auto terminal = start("curl -sS http://evil.test/answered; echo over");
  answer(*terminal, "evil.test:80", "o #\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "/answered from 80")) << terminal->screen();
}

TEST_F(SessionQuestion, AnAnswerCountsOnlyFromWhoWasAsked) {
  const FakeAsker stranger(home_ + "/sessions/" + id_);
  auto terminal = start("curl -sS http://evil.test/; echo over");
  const auto whose = FakeAsker::unpack(stranger.hear());
  ASSERT_EQ(whose.size(), 4U);
  stranger.say(FakeAsker::pack({"other", whose[1]}));
  ASSERT_TRUE(terminal->shows(kQuestion)) << terminal->screen();
  stranger.say(FakeAsker::pack({"permit", "evil.test:80"}));
  stranger.say(FakeAsker::pack({"mine", whose[1]}));  // belongs to another client by now
  stranger.say(FakeAsker::pack({"permit", "evil.test:80"}));
  EXPECT_FALSE(terminal->wait(milliseconds(500)));
  answer(*terminal, "evil.test:80", "n\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
  stranger.say("nonsense");
  EXPECT_EQ(stranger.hear(), "");  // disconnected
}

TEST_F(SessionQuestion, AKilledCommandLeavesNothingWaiting) {
  // The terminal runs `env`, which execs caisson: killing it kills the prompting process.
  auto terminal = start("curl -sS http://evil.test/; sleep 60");
  ASSERT_TRUE(terminal->shows(kQuestion)) << terminal->screen();
  terminal->signal(SIGKILL);
  EXPECT_EQ(terminal->wait(), 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return !contains(exec("cat /proc/net/tcp").out, ":0050 01 "); }));
  EXPECT_EQ(exec("curl -sS http://example.org/a").out, "example.org /a from 80\n");
  auto next = start("curl -sS http://evil.test/next; echo over");
  answer(*next, "evil.test:80", "o #\r");
  EXPECT_TRUE(next->wait()) << next->screen();
  EXPECT_TRUE(contains(next->screen(), "/next from 80")) << next->screen();
}

TEST_F(SessionQuestion, AnEgressThatPutsNoQuestionsIsUsedAsItIs) {
  // An egress of an older caisson treats the request as a malformed change: it replies with an error and disconnects.
  const std::string path = home_ + "/sessions/" + id_ + "/egress";
  ASSERT_EQ(exec("true").exit_status, 0);
  ASSERT_EQ(::rename(path.c_str(), (path + ".new").c_str()), 0);
  const int listener = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::bind(listener, EgressAddress(home_ + "/sessions/" + id_).get(), EgressAddress::kSize), 0);
  ASSERT_EQ(::listen(listener, 4), 0);
  auto terminal = start("curl -sS http://evil.test/; echo over");
  pollfd wait{listener, POLLIN, 0};
  ASSERT_EQ(::poll(&wait, 1, 20000), 1) << terminal->screen();
  const int client = ::accept(listener, nullptr, nullptr);
  ASSERT_GE(client, 0);
  const std::string answer = FakeAsker::pack({"failed", "egress: change: it is malformed"});
  EXPECT_EQ(::send(client, answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
  ::close(client);
  EXPECT_TRUE(terminal->shows("evil.test:80 is refused")) << terminal->screen();
  ::close(listener);
  ASSERT_EQ(::rename((path + ".new").c_str(), path.c_str()), 0);
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_EQ(questions(*terminal), 0) << terminal->screen();
}

}  // namespace
}  // namespace caisson::test
