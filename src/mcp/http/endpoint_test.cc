// MCP over real sockets, in one process: admission checks, and many concurrent clients (`make tsan` runs it under
// ThreadSanitizer).
#include "http/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "mcp/conformance/fixture.h"
#include "mcp/http/endpoint.h"
#include "mcp/server/features_testing.h"
#include "support/conforms.h"

namespace caisson::mcp {
namespace {

constexpr std::string_view kToken = "0123456789abcdef0123456789abcdef";

class McpHttp : public testing::Test {
 protected:
  explicit McpHttp(std::unique_ptr<Features> served = makeFixture()) : features(std::move(served)) {
    auto listening = http::listenTcp("0", false);
    EXPECT_TRUE(listening);
    port = http::portOf(listening->socket.get());
    http::ServerOptions options;
    options.listeners.push_back(*std::move(listening));
    options.limits.stop_timeout = std::chrono::milliseconds(1000);
    http_server = *http::Server::create(std::move(options), endpoint);
    serving = std::thread([this] { http_server->run(ending.get()); });
  }
  ~McpHttp() override {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(ending.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    serving.join();
    server.endSubscriptions();
  }

  [[nodiscard]] sys::Fd connect() const {
    sys::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(static_cast<std::uint16_t>(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    return socket;
  }
  static void put(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  static std::string all(int socket) {
    std::string text;
    char piece[4096];
    for (ssize_t count = 0; (count = ::recv(socket, piece, sizeof piece, 0)) > 0;)
      text.append(piece, static_cast<std::size_t>(count));
    return text;
  }
  std::string exchange(const std::string& request) const {
    const sys::Fd socket = connect();
    put(socket.get(), request);
    return all(socket.get());
  }
  static std::string head(const std::string& method, const std::string& more = {}) {
    return method + " /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer " +
           std::string(kToken) + "\r\n" + more;
  }
  /// A request of 2026-07-28 as HTTP.
  static std::string post(const Json& id, const std::string& method, Json params, const std::string& name = {}) {
    params["_meta"][meta::kProtocolVersion] = kModernVersion;
    params["_meta"][meta::kClientCapabilities] = Json::object();
    const std::string body = writeJson(makeRequest(id, method, std::move(params)));
    return head("POST", "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: " + method +
                            "\r\n" + (name.empty() ? "" : "Mcp-Name: " + name + "\r\n") +
                            "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  static int statusOf(const std::string& response) {
    return response.size() > 12 ? std::stoi(response.substr(9, 3)) : 0;
  }

  std::unique_ptr<Features> features;
  Server server{*features};
  HttpEndpoint endpoint{server, std::string(kToken)};
  sys::Fd ending{::eventfd(0, EFD_CLOEXEC)};
  int port = 0;
  std::unique_ptr<http::Server> http_server;
  std::thread serving;
};

TEST_F(McpHttp, RequestsNeedTheTokenAndALocalOrigin) {
  CONFORMS("R-SESSION-19");
  const std::string request = post(1, "tools/list", Json::object());
  EXPECT_EQ(statusOf(exchange(request)), 200);
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string other = request;
    other.replace(other.find(from), from.size(), to);
    return statusOf(exchange(other));
  };
  EXPECT_EQ(changed(kToken, "0123456789abcdef0123456789abcdeg"), 401);
  EXPECT_EQ(changed(kToken, ""), 401);
  EXPECT_EQ(changed("Bearer", "Basic"), 401);
  EXPECT_EQ(changed("Host: 127.0.0.1", "Host: evil.example"), 403);
  EXPECT_EQ(changed("Host: 127.0.0.1", "Origin: http://evil.example\r\nHost: 127.0.0.1"), 403);
  EXPECT_EQ(changed("Host: 127.0.0.1", "Origin: null\r\nHost: 127.0.0.1"), 403);
  EXPECT_EQ(changed("Host: 127.0.0.1", "Origin: http://localhost:3\r\nHost: 127.0.0.1"), 200);
  EXPECT_EQ(changed("/mcp", "/other"), 404);
  EXPECT_EQ(changed("application/json", "text/plain"), 415);
  EXPECT_EQ(statusOf(exchange(head("PUT", "\r\n"))), 405);
  EXPECT_EQ(statusOf(exchange(head("GET", "\r\n"))), 405);
  EXPECT_EQ(statusOf(exchange(head("DELETE", "Mcp-Session-Id: x\r\n\r\n"))), 404);
}

TEST_F(McpHttp, UnauthenticatedRequestsAreRefusedBeforeTheirBody) {
  const std::string body = "Content-Type: application/json\r\nContent-Length: 8000000\r\n\r\n";
  const std::string stranger = "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer wrong\r\n" + body;
  const std::string rebound = "POST /mcp HTTP/1.1\r\nHost: evil.example\r\n" + body;
  for (const auto& [request, status] : {std::pair(stranger, 401), std::pair(rebound, 403)}) {
    const sys::Fd socket = connect();
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    ASSERT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    put(socket.get(), request);
    EXPECT_EQ(statusOf(all(socket.get())), status) << "nothing of the body was sent";
  }
  const sys::Fd socket = connect();
  put(socket.get(), stranger);
  const std::string piece(65536, 'x');
  std::size_t sent = 0;
  while (sent < 100U << 20U) {
    const ssize_t count = ::send(socket.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
    if (count <= 0) break;
    sent += static_cast<std::size_t>(count);
  }
  EXPECT_LT(sent, 100U << 20U) << "the connection is closed";
}

TEST_F(McpHttp, BodyOfAuthenticatedRequestsIsRead) {
  const std::string request = post(1, "tools/list", {{"filler", std::string(3U << 20U, 'x')}});
  EXPECT_EQ(statusOf(exchange(request)), 200);
}

TEST_F(McpHttp, OnlyLoopbackIsListenedOn) {
  for (const char* address : {"0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.com:80", "70000", "x", ""})
    EXPECT_FALSE(http::listenTcp(address, false)) << address;
  for (const char* address : {"127.0.0.1:0", "localhost:0", "0"})
    EXPECT_TRUE(http::listenTcp(address, false)) << address;
}

TEST_F(McpHttp, ClosingTheConnectionCancels) {
  auto socket = connect();
  put(socket.get(), post(1, "subscriptions/listen", {{"notifications", {{"toolsListChanged", true}}}}));
  char piece[1024];
  EXPECT_GT(::recv(socket.get(), piece, sizeof piece, 0), 0);
  socket.reset();
  // The stream is closed; announcements are dropped and nothing waits.
  for (int i = 0; i < 100; ++i) server.changed(Announcer::Change::tools);
}

TEST_F(McpHttp, ManyClientsAtOnceGetTheirOwnAnswers) {
  CONFORMS("R-SESSION-19");
  constexpr int kClients = 64;
  constexpr int kRounds = 8;
  std::atomic<int> right = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      for (int round = 0; round < kRounds; ++round) {
        const std::string mark = "client-" + std::to_string(client) + "-" + std::to_string(round) + "-end";
        switch (round % 4) {
          case 0: {  // a progress stream that is aborted
            const sys::Fd socket = connect();
            put(socket.get(),
                post(mark, "tools/call", {{"name", "test_tool_with_progress"}, {"_meta", {{"progressToken", 1}}}},
                     "test_tool_with_progress"));
            break;
          }
          case 1: {  // one that is read to the end
            const std::string answer = exchange(
                post(mark, "tools/call", {{"name", "test_tool_with_progress"}, {"_meta", {{"progressToken", mark}}}},
                     "test_tool_with_progress"));
            right += answer.find("\"id\":\"" + mark + "\"") != std::string::npos &&
                     answer.find("\"progress\":50.0") != std::string::npos;
            continue;
          }
          case 2:
            exchange(post(mark, "tools/call", {{"name", "test_trigger_tool_change"}}, "test_trigger_tool_change"));
            break;
          default: break;
        }
        const std::string answer =
            exchange(post(mark, "prompts/get",
                          {{"name", "test_prompt_with_arguments"}, {"arguments", {{"arg1", mark}, {"arg2", "x"}}}},
                          "test_prompt_with_arguments"));
        right += answer.find("\"id\":\"" + mark + "\"") != std::string::npos &&
                 answer.find("arg1='" + mark + "'") != std::string::npos;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(right, kClients * kRounds);
}

/// Answers that fit into no buffer of the kernel. Four of them reach the limit.
class McpHttpLarge : public McpHttp {
 protected:
  McpHttpLarge() : McpHttp(std::make_unique<LargeFeatures>(std::size_t{15} << 20U)) {}
  static std::string call(int id) { return post(id, "tools/call", {{"name", "large"}}, "large"); }
  static bool isResult(std::string_view response) { return response.find("\"large\":\"xxx") != std::string::npos; }
};

TEST_F(McpHttpLarge, AnswersThatNoClientReadsTakeABoundedAmountOfMemory) {
  constexpr int kClients = 16;
  std::vector<sys::Fd> sockets;
  std::vector<pollfd> arriving;
  for (int id = 0; id < kClients; ++id) {
    sockets.push_back(connect());
    put(sockets.back().get(), call(id));
    arriving.push_back({sockets.back().get(), POLLIN, 0});
  }
  for (pollfd& one : arriving) ASSERT_EQ(::poll(&one, 1, 30'000), 1) << "no response begins";
  int results = 0, errors = 0;
  for (const sys::Fd& socket : sockets) {
    const std::string response = all(socket.get());
    results += isResult(response) ? 1 : 0;
    errors += response.find("its result is lost") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(results + errors, kClients);
  EXPECT_GE(results, 1);
  EXPECT_LE(results, 4);
  EXPECT_TRUE(isResult(exchange(call(100)))) << "the others were read";
}

TEST_F(McpHttpLarge, AnswersThatWereReadAreNotCounted) {
  const auto legacy = [&](const std::string& session, const std::string& method, Json params) {
    const std::string body = writeJson(makeRequest(1, method, std::move(params)));
    return exchange(head("POST", "Content-Type: application/json\r\n" + session +
                                     "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body));
  };
  const std::string begun = legacy("", "initialize",
                                   {{"protocolVersion", "2025-06-18"},
                                    {"capabilities", Json::object()},
                                    {"clientInfo", {{"name", "test"}, {"version", "1"}}}});
  const std::size_t at = begun.find("Mcp-Session-Id: ");
  ASSERT_NE(at, std::string::npos) << begun;
  const std::string session = begun.substr(at, begun.find("\r\n", at) + 2 - at);
  for (int round = 0; round < 8; ++round) {
    EXPECT_TRUE(isResult(exchange(call(round)))) << round;
    EXPECT_TRUE(isResult(legacy(session, "tools/call", {{"name", "large"}}))) << round;
  }
}

}  // namespace
}  // namespace caisson::mcp
