// A real server on loopback, driven through raw sockets.
#include "http/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <fstream>
#include <thread>

#include "support/conforms.h"

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
    if (head.target.text == "/refused") admission.response = failure(403, "refused");
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
  std::atomic<bool> cancelled{false};
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
    options.limits.connections_per_peer = 20;
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
  static void say(const sys::Fd& socket, std::string_view text) {
    ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
  }
  /// Everything until the server closes, or `until` was seen.
  static std::string hear(const sys::Fd& socket, std::string_view until = "\n never") {
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
    say(socket, text);
    return hear(socket);
  }

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

TEST_F(HttpServerTest, LimitsOfHeadAndBodyBind) {
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
  say(socket, "POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 500\r\nExpect: 100-continue\r\n\r\n");
  const std::string text = hear(socket);
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
    say(socket, "GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  for (int i = 0; i < 500 && !handler_.cancelled; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_TRUE(handler_.cancelled);
}

TEST_F(HttpServerTest, SlowReaderIsDisconnected) {
  const sys::Fd socket = open();
  say(socket, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n");
  for (int i = 0; i < 500 && (i < 5 || server_->stats().open > 0); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(server_->stats().open, 0U);
}

TEST_F(HttpServerTest, ConnectionsOfOnePeerAreLimited) {
  std::vector<sys::Fd> sockets;
  for (int i = 0; i < 20; ++i) {
    sockets.push_back(open());
    say(sockets.back(), "GET /known HTTP/1.1\r\nHost: x\r\n\r\n");
    ASSERT_TRUE(hear(sockets.back(), "GET /known").starts_with("HTTP/1.1 200")) << i;
  }
  EXPECT_TRUE(hear(open()).starts_with("HTTP/1.1 503"));
  say(sockets.front(), "GET /still HTTP/1.1\r\n" + std::string(kEnd));
  EXPECT_TRUE(hear(sockets.front()).starts_with("HTTP/1.1 200")) << "a connection of a known caller was closed";
}

TEST_F(HttpServerTest, ConnectionWithoutAKnownCallerGivesWayToANewOne) {
  std::vector<sys::Fd> sockets;
  for (int i = 0; i < 20; ++i) sockets.push_back(open());
  for (int i = 0; i < 500 && server_->stats().open < 20; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_TRUE(exchange("GET / HTTP/1.1\r\n" + std::string(kEnd)).starts_with("HTTP/1.1 200"));
  EXPECT_EQ(hear(sockets.front()), "");
}

TEST_F(HttpServerTest, StopFinishesTheRunningRequest) {
  const sys::Fd socket = open();
  say(socket, "GET /count HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_NE(hear(socket, "0\r\n\r\n").find("Transfer-Encoding"), std::string::npos);
  stopServer();
  EXPECT_EQ(hear(socket), "");
}

}  // namespace
}  // namespace caisson::http
