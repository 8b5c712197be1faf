// Clients of a session's egress that answer its prompts: what a client does wrong or leaves out denies the host.
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "network/session_prompt.h"

namespace caisson::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

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
class FakePromptClient {
 public:
  explicit FakePromptClient(const std::string& session) : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    const EgressAddress address(session);
    EXPECT_EQ(::connect(socket_, address.get(), EgressAddress::kSize), 0) << session << ": " << std::strerror(errno);
    send("questions");
    EXPECT_EQ(receive().substr(4, 5), "ready");
  }
  ~FakePromptClient() { disconnect(); }
  FakePromptClient(const FakePromptClient&) = delete;
  FakePromptClient& operator=(const FakePromptClient&) = delete;

  void send(const std::string& packet) const {
    EXPECT_EQ(::send(socket_, packet.data(), packet.size(), MSG_NOSIGNAL), static_cast<ssize_t>(packet.size()));
  }
  /// The next packet; empty if none comes or the egress has disconnected.
  [[nodiscard]] std::string receive(seconds timeout = seconds(20)) const {
    pollfd wait{socket_, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(milliseconds(timeout).count())) <= 0) return {};
    char packet[4096];
    const ssize_t got = ::recv(socket_, packet, sizeof(packet), 0);
    return {packet, got > 0 ? static_cast<std::size_t>(got) : 0};
  }
  void disconnect() {
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

TEST_F(SessionPrompt, ClientThatExitsWithoutAnAnswerDeniesTheHost) {
  FakePromptClient client(home_ + "/sessions/" + id_);
  forgetQueries();
  background("left", std::string(kDirect) + "curl -sS http://evil.test/");
  const auto whose = FakePromptClient::unpack(client.receive());
  ASSERT_EQ(whose.size(), 4U);
  EXPECT_EQ(whose[0], "whose");
  client.send(FakePromptClient::pack({"mine", whose[1]}));
  EXPECT_EQ(FakePromptClient::unpack(client.receive()), (std::vector<std::string>{"question", "evil.test", "80"}));
  EXPECT_NE(exec("test -e /tmp/left").exit_status, 0);  // it is still waiting
  client.disconnect();                                  // as the kernel does for a killed process
  const std::string output = outputOf("left");
  EXPECT_TRUE(contains(output, "over")) << output;
  EXPECT_FALSE(contains(output, "from 80")) << output;
  EXPECT_EQ(queries(), "");
}

TEST_F(SessionPrompt, SilentClientDoesNotBlockOthers) {
  const FakePromptClient silent(home_ + "/sessions/" + id_);
  background("held", "curl -sS http://evil.test/");
  const std::string output = outputOf("held");
  EXPECT_TRUE(contains(output, "evil.test:80 is refused")) << output;
  auto terminal = start("curl -sS http://evil.test/answered; echo over");
  answerPrompt(*terminal, "evil.test:80", "o #\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_TRUE(contains(terminal->screen(), "/answered from 80")) << terminal->screen();
}

TEST_F(SessionPrompt, AnswerIsAcceptedOnlyFromThePromptedClient) {
  const FakePromptClient stranger(home_ + "/sessions/" + id_);
  auto terminal = start("curl -sS http://evil.test/; echo over");
  const auto whose = FakePromptClient::unpack(stranger.receive());
  ASSERT_EQ(whose.size(), 4U);
  stranger.send(FakePromptClient::pack({"other", whose[1]}));
  ASSERT_TRUE(terminal->shows(kPrompt)) << terminal->screen();
  stranger.send(FakePromptClient::pack({"permit", "evil.test:80"}));
  stranger.send(FakePromptClient::pack({"mine", whose[1]}));  // belongs to another client by now
  stranger.send(FakePromptClient::pack({"permit", "evil.test:80"}));
  EXPECT_FALSE(terminal->wait(milliseconds(500)));
  answerPrompt(*terminal, "evil.test:80", "n\r");
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_FALSE(contains(terminal->screen(), "from 80")) << terminal->screen();
  stranger.send("nonsense");
  EXPECT_EQ(stranger.receive(), "");  // disconnected
}

TEST_F(SessionPrompt, KilledCommandLeavesNoWaitingConnection) {
  // The terminal runs `env`, which execs caisson: killing it kills the prompting process.
  auto terminal = start("curl -sS http://evil.test/; sleep 60");
  ASSERT_TRUE(terminal->shows(kPrompt)) << terminal->screen();
  terminal->signal(SIGKILL);
  EXPECT_EQ(terminal->wait(), 128 + SIGKILL);
  EXPECT_TRUE(eventually([&] { return !contains(exec("cat /proc/net/tcp").out, ":0050 01 "); }));
  EXPECT_EQ(exec("curl -sS http://example.org/a").out, "example.org /a from 80\n");
  auto next = start("curl -sS http://evil.test/next; echo over");
  answerPrompt(*next, "evil.test:80", "o #\r");
  EXPECT_TRUE(next->wait()) << next->screen();
  EXPECT_TRUE(contains(next->screen(), "/next from 80")) << next->screen();
}

TEST_F(SessionPrompt, EgressWithoutPromptsStillWorks) {
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
  const std::string reply = FakePromptClient::pack({"failed", "egress: change: it is malformed"});
  EXPECT_EQ(::send(client, reply.data(), reply.size(), MSG_NOSIGNAL), static_cast<ssize_t>(reply.size()));
  ::close(client);
  EXPECT_TRUE(terminal->shows("evil.test:80 is refused")) << terminal->screen();
  ::close(listener);
  ASSERT_EQ(::rename((path + ".new").c_str(), path.c_str()), 0);
  EXPECT_TRUE(terminal->wait()) << terminal->screen();
  EXPECT_EQ(countPrompts(*terminal), 0) << terminal->screen();
}

}  // namespace
}  // namespace caisson::test
