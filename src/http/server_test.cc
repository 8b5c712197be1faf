// A real server on loopback, driven through raw sockets.
#include "http/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <climits>
#include <filesystem>
#include <fstream>
#include <semaphore>
#include <thread>

#include "http/watch_reserve.h"
#include "support/conforms.h"

namespace {

/// As many epoll watches this process may have.
std::atomic<long> max_watches{LONG_MAX};

long countWatches() {
  long count = 0;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    if (std::filesystem::read_symlink(entry.path(), gone) != "anon_inode:[eventpoll]") continue;
    std::ifstream info("/proc/self/fdinfo/" + entry.path().filename().string());
    for (std::string line; std::getline(info, line);) count += line.starts_with("tfd:") ? 1 : 0;
  }
  return count;
}

}  // namespace

/// Stands before the C library's, with a limit like the kernel's, which counts millions of watches of the whole user.
extern "C" int epoll_ctl(int epoll, int operation, int descriptor, epoll_event* event) noexcept {
  if (operation == EPOLL_CTL_ADD && max_watches != LONG_MAX && countWatches() >= max_watches) {
    errno = ENOSPC;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_epoll_ctl, epoll, operation, descriptor, event));
}

namespace caisson::http {
namespace {

/// Counts to three, with a pause before each number.
class Counting final : public Source {
 public:
  Next next(std::string& piece) override {
    if (paused_ = !paused_; paused_) return {State::wait, std::chrono::milliseconds(1)};
    piece = std::to_string(++count_);
    return {count_ == 3 ? State::end : State::data};
  }

 private:
  int count_ = 0;
  bool paused_ = false;
};

class Endless final : public Source {
 public:
  Next next(std::string& piece) override {
    piece.assign(65536, 'x');
    return {State::data};
  }
};

class TestHandler final : public Handler {
 public:
  Admission admit(const RequestHead& head) override {
    Admission admission{.body_limit = 1000};
    admission.known = head.target.text == "/known";
    if (head.target.text == "/throw") throw std::runtime_error("a fault on the loop");
    if (head.target.text == "/refused") {
      texts_at_refusal = texts.load();
      admission.response = failure(403, "refused");
    }
    if (head.target.text == "/upload") {
      admission.stream_body = true;
      admission.body_limit = 10'000'000;
      admission.lane = Lane::transfer;
    }
    if (head.target.text == "/wait") admission.lane = Lane::command;
    return admission;
  }
  Response handle(Request& request) override {
    const std::string& path = request.head.target.text;
    if (path == "/count") return {.body = std::make_shared<Counting>()};
    if (path == "/endless") return {.body = std::make_shared<Endless>()};
    if (path == "/socket") return relay();
    if (path == "/wait") {
      pollfd gone{request.cancel_descriptor, POLLIN, 0};
      cancelled = ::poll(&gone, 1, 10'000) == 1;
      return {.body = std::string("done")};
    }
    if (path == "/upload") {
      std::size_t total = 0;
      std::vector<char> buffer(1000);
      for (;;) {
        const auto got = request.stream->read(buffer);
        if (!got) return failure(400, got.error().reason);
        if (*got == 0) break;
        total += *got;
      }
      return {.body = std::to_string(total)};
    }
    if (path == "/file") {
      sys::Fd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
      return {.body = FileBody{std::move(file), 1, 3}};
    }
    return {.body = request.head.method + " " + path + " " + request.body};
  }
  Response failure(int status, std::string_view reason) override {
    return {.status = status, .body = std::string(reason)};
  }
  /// A WebSocket to one end of a pair; `far_end` is the other one.
  Response relay() {
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) return failure(500, "pair");
    far_end = sys::Fd(pair[1]);
    SocketBody body{.descriptor = sys::Fd(pair[0])};
    body.on_text = [this](std::string_view text) {
      ++texts;
      if (text != "stop") return;
      stopped.release();
      static_cast<void>(go_on.try_acquire_for(std::chrono::seconds(20)));
    };
    body.on_end = [this] {
      relay_ended = true;
      return std::string();
    };
    return {.status = 101, .body = std::move(body)};
  }

  std::atomic<bool> cancelled{false}, relay_ended{false};
  std::atomic<int> texts{0}, texts_at_refusal{-1};
  std::counting_semaphore<> stopped{0}, go_on{0};  ///< the loop stops at a text "stop"
  sys::Fd far_end;
};

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto socket = listenTcp("127.0.0.1:0", false);
    ASSERT_TRUE(socket);
    port_ = portOf(socket->socket.get());
    ServerOptions options;
    options.listeners.push_back(*std::move(socket));
    options.limits.head_timeout = std::chrono::milliseconds(300);
    options.limits.body_timeout = std::chrono::milliseconds(300);
    options.limits.write_timeout = std::chrono::milliseconds(300);
    options.limits.stop_timeout = std::chrono::milliseconds(2000);
    options.limits.connections_per_peer = per_peer_;
    if (!unix_path_.empty()) {
      auto own = listenUnix(unix_path_);
      ASSERT_TRUE(own);
      options.listeners.push_back(*std::move(own));
    }
    auto server = Server::create(std::move(options), handler_);
    ASSERT_TRUE(server);
    server_ = *std::move(server);
    thread_ = std::thread([this] { server_->run(stop_.get()); });
  }
  void TearDown() override {
    stopServer();
    server_.reset();
  }
  void stopServer() {
    const std::uint64_t one = 1;
    static_cast<void>(::write(stop_.get(), &one, sizeof one));
    if (thread_.joinable()) thread_.join();
  }
  sys::Fd open() const {
    sys::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in where{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(port_))};
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
    return socket;
  }
  static void send(const sys::Fd& socket, std::string_view text) {
    ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  /// Everything until the server closes, or `until` was seen.
  static std::string receive(const sys::Fd& socket, std::string_view until = "\n never") {
    std::string text;
    char buffer[4096];
    pollfd ready{socket.get(), POLLIN, 0};
    while (text.find(until) == std::string::npos && ::poll(&ready, 1, 5000) == 1) {
      const ssize_t got = ::recv(socket.get(), buffer, sizeof buffer, 0);
      if (got <= 0) break;
      text.append(buffer, static_cast<std::size_t>(got));
    }
    return text;
  }
  std::string exchange(std::string_view text) const {
    const sys::Fd socket = open();
    send(socket, text);
    return receive(socket);
  }

  static std::string frame(unsigned first, std::string_view payload) {
    std::string text(1, static_cast<char>(first));
    text += static_cast<char>(0x80U | payload.size());
    return text.append(4, '\0').append(payload);
  }
  sys::Fd openSocket() const {
    sys::Fd socket = open();
    send(socket, kUpgrade);
    EXPECT_TRUE(receive(socket, "\r\n\r\n").starts_with("HTTP/1.1 101"));
    return socket;
  }
  static bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return condition();
  }

  static constexpr std::string_view kUpgrade =
      "GET /socket HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
  std::size_t per_peer_ = 20;
  std::string unix_path_;
  TestHandler handler_;
  sys::Fd stop_{::eventfd(0, EFD_CLOEXEC)};
  int port_ = 0;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

constexpr std::string_view kEnd = "Host: x\r\nConnection: close\r\n\r\n";

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  const std::string text = exchange(
      "GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhiGET /c "
      "HTTP/1.1\r\n" +
      std::string(kEnd));
  EXPECT_LT(text.find("GET /a "), text.find("POST /b hi"));
  EXPECT_LT(text.find("POST /b hi"), text.find("GET /c "));
}

TEST_F(HttpServerTest, MalformedRequestsGet400AndAClosedConnection) {
  CONFORMS("R-SESSION-11");
  for (const std::string text :
       {"GET / HTTP/1.1\r\n\r\n", "GET /../x HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", "nonsense\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"})
    EXPECT_EQ(exchange(text).substr(0, 12), "HTTP/1.1 400") << text;
}

TEST_F(HttpServerTest, LimitsOfHeadAndBodyAreEnforced) {
  EXPECT_EQ(exchange("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(20'000, 'a') + "\r\n\r\n").substr(9, 3), "431");
  std::string many = "GET / HTTP/1.1\r\nHost: x\r\n";
  for (int i = 0; i < 200; ++i) many += "A: b\r\n";
  EXPECT_EQ(exchange(many + "\r\n").substr(9, 3), "431");
  EXPECT_EQ(exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n").substr(9, 3), "413");
  EXPECT_EQ(exchange("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + std::string(2000, 'a'))
                .substr(9, 3),
            "413");
}

TEST_F(HttpServerTest, SlowHeadsAndBodiesTimeOut) {
  EXPECT_EQ(exchange("GET / HT").substr(9, 3), "408");
  EXPECT_EQ(exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc").substr(9, 3), "408");
  EXPECT_EQ(exchange("POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc").substr(9, 3), "400");
}

TEST_F(HttpServerTest, RefusalIsSentBeforeTheBody) {
  const sys::Fd socket = open();
  send(socket, "POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\nExpect: 100-continue\r\n\r\n");
  const std::string text = receive(socket);
  EXPECT_EQ(text.substr(9, 3), "403");
  EXPECT_EQ(text.find("100 Continue"), std::string::npos);
}

TEST_F(HttpServerTest, StreamsUploadsAndChunkedResponses) {
  const std::string body(5'000'000, 'x');
  const std::string text = exchange("POST /upload HTTP/1.1\r\nContent-Length: 5000000\r\n" + std::string(kEnd) + body);
  EXPECT_TRUE(text.ends_with("\r\n\r\n5000000")) << text;
  EXPECT_TRUE(
      exchange("GET /count HTTP/1.1\r\n" + std::string(kEnd)).ends_with("1\r\n1\r\n1\r\n2\r\n1\r\n3\r\n0\r\n\r\n"));
  EXPECT_TRUE(exchange("GET /file HTTP/1.1\r\n" + std::string(kEnd)).ends_with("\r\n\r\nELF"));
}

TEST_F(HttpServerTest, VanishedPeerCancelsItsRequest) {
  {
    const sys::Fd socket = open();
    send(socket, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  for (int i = 0; i < 500 && !handler_.cancelled; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(handler_.cancelled);
}

TEST_F(HttpServerTest, SlowReaderIsDisconnected) {
  const sys::Fd socket = open();
  send(socket, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
  for (int i = 0; i < 500 && (i < 5 || server_->stats().open > 0); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(server_->stats().open, 0U);
}

TEST_F(HttpServerTest, ConnectionsOfOnePeerAreLimited) {
  std::vector<sys::Fd> sockets;
  for (int i = 0; i < 20; ++i) {
    sockets.push_back(open());
    send(sockets.back(), "GET /known HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(receive(sockets.back(), "GET /known").starts_with("HTTP/1.1 200")) << i;
  }
  EXPECT_TRUE(receive(open()).starts_with("HTTP/1.1 503"));
  send(sockets.front(), "GET /still HTTP/1.1\r\n" + std::string(kEnd));
  EXPECT_TRUE(receive(sockets.front()).starts_with("HTTP/1.1 200")) << "a connection of a known caller was closed";
}

TEST_F(HttpServerTest, UnauthenticatedConnectionIsReplacedByANewOne) {
  std::vector<sys::Fd> sockets;
  for (int i = 0; i < 20; ++i) sockets.push_back(open());
  for (int i = 0; i < 500 && server_->stats().open < 20; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(exchange("GET / HTTP/1.1\r\n" + std::string(kEnd)).starts_with("HTTP/1.1 200"));
  EXPECT_EQ(receive(sockets.front()), "");
}

TEST_F(HttpServerTest, StopFinishesTheRunningRequest) {
  const sys::Fd socket = open();
  send(socket, "GET /count HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(receive(socket, "0\r\n\r\n").find("Transfer-Encoding"), std::string::npos);
  stopServer();
  EXPECT_EQ(receive(socket), "");
}

TEST_F(HttpServerTest, ExceptionEndsItsConnectionOnly) {
  const sys::Fd other = open();
  send(other, "GET /known HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(receive(other, "GET /known").starts_with("HTTP/1.1 200"));
  const sys::Fd socket = open();
  send(socket, "GET /throw HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(receive(socket), "");
  EXPECT_TRUE(eventually([&] { return server_->stats().open == 1; }));
  send(other, "GET /still HTTP/1.1\r\n" + std::string(kEnd));
  EXPECT_TRUE(receive(other).starts_with("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, WebSocketFramesOutOfSequenceEndTheConnection) {
  for (const std::string& frames : {frame(0x80, ""), frame(0x01, "a") + frame(0x81, "b")}) {
    const sys::Fd socket = openSocket();
    send(socket, frames);
    EXPECT_NE(receive(socket, "\x88").find('\x88'), std::string::npos);
  }
  const sys::Fd socket = openSocket();
  const int before = handler_.texts;
  send(socket, frame(0x01, "a") + frame(0x89, "ping") + frame(0x00, "b") + frame(0x80, ""));
  EXPECT_TRUE(eventually([&] { return handler_.texts == before + 1; }));
}

TEST_F(HttpServerTest, ManyWebSocketFramesDoNotDelayOtherClients) {
  constexpr int kFrames = 6000;
  const sys::Fd other = open();
  send(other, "GET /known HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(receive(other, "GET /known").starts_with("HTTP/1.1 200"));
  const sys::Fd socket = openSocket();
  // The loop stops twice: until all frames are there to be read at once, and until the other request is there.
  send(socket, frame(0x81, "stop"));
  ASSERT_TRUE(handler_.stopped.try_acquire_for(std::chrono::seconds(20)));
  std::string frames = frame(0x81, "stop");
  for (int i = 0; i < kFrames; ++i) frames += frame(0x81, "x");
  ASSERT_EQ(::send(socket.get(), frames.data(), frames.size(), MSG_NOSIGNAL), static_cast<ssize_t>(frames.size()));
  handler_.go_on.release();
  ASSERT_TRUE(handler_.stopped.try_acquire_for(std::chrono::seconds(20)));
  send(other, "GET /refused HTTP/1.1\r\n" + std::string(kEnd));
  handler_.go_on.release();
  EXPECT_EQ(receive(other).substr(9, 3), "403");
  EXPECT_LT(handler_.texts_at_refusal, kFrames / 2);
  EXPECT_TRUE(eventually([&] { return handler_.texts == kFrames + 2; }));
}

/// All epoll watches of the user are in use, except those that the server holds.
class EpollWatchesTest : public HttpServerTest {
 protected:
  EpollWatchesTest() {
    per_peer_ = 200;
    unix_path_ = "/tmp/ca-watches-" + std::to_string(::getpid());
  }
  ~EpollWatchesTest() override {
    max_watches = LONG_MAX;
    ::unlink(unix_path_.c_str());
    ::unlink((unix_path_ + ".lock").c_str());
  }
  static bool isServed(const sys::Fd& socket) {
    send(socket, "GET /known HTTP/1.1\r\nHost: x\r\n\r\n");
    return receive(socket, "GET /known").starts_with("HTTP/1.1 200");
  }
  sys::Fd openUnix() const {
    sys::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un where{.sun_family = AF_UNIX, .sun_path = {}};
    unix_path_.copy(where.sun_path, sizeof where.sun_path - 1);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
    return socket;
  }
  bool isIdle() const { return server_->stats().open == 0 && server_->stats().streams == 0; }
};

TEST_F(EpollWatchesTest, ReserveServesNewConnectionsThenTheyGet503) {
  ASSERT_TRUE(isServed(open()));
  ASSERT_TRUE(eventually([&] { return isIdle(); }));
  max_watches = countWatches();
  for (int round = 0; round < 2; ++round) {  // the second uses what the first gave back
    std::vector<sys::Fd> sockets;
    while (sockets.size() < 48) {
      sockets.push_back(open());
      ASSERT_TRUE(isServed(sockets.back())) << round << " " << sockets.size();
    }
    const std::string refusal = receive(open());
    EXPECT_TRUE(refusal.starts_with("HTTP/1.1 503") && refusal.ends_with(kNoWatches)) << refusal;
    const sys::Fd own = openUnix();
    EXPECT_TRUE(isServed(own)) << "the last ones are for the owner";
    sockets.clear();
    send(own, "GET /known HTTP/1.1\r\n" + std::string(kEnd));
    receive(own);
    ASSERT_TRUE(eventually([&] { return isIdle(); }));
  }
}

TEST_F(EpollWatchesTest, RelayWithoutAWatchGets503AndLeavesNothing) {
  const sys::Fd socket = open();
  ASSERT_TRUE(isServed(socket));
  max_watches = countWatches();
  send(socket, kUpgrade);
  EXPECT_TRUE(receive(socket).starts_with("HTTP/1.1 503"));
  char byte = 0;
  EXPECT_EQ(::recv(handler_.far_end.get(), &byte, 1, 0), 0) << "the descriptor is still open";
  EXPECT_TRUE(eventually([&] { return handler_.relay_ended && isIdle(); }));
}

TEST_F(EpollWatchesTest, ServerIsNotCreatedWithoutAWatch) {
  max_watches = 0;
  auto socket = listenTcp("127.0.0.1:0", false);
  ASSERT_TRUE(socket);
  ServerOptions options;
  options.listeners.push_back(*std::move(socket));
  const auto server = Server::create(std::move(options), handler_);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().sys_errno, ENOSPC);
}

}  // namespace
}  // namespace caisson::http
