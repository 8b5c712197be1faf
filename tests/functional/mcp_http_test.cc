// `caisson mcp --http`: what connections can take from the server.
#include <poll.h>

#include <algorithm>

#include "mcp_fixture.h"
#include "support/loopback.h"
#include "support/scripts.h"

namespace caisson::test {
namespace {

class McpOverHttp : public Mcp {
 protected:
  void SetUp() override {
    Mcp::SetUp();
    if (IsSkipped()) return;
    auto variables = environment();
    variables["CAISSON_LOG"] = "info";
    const std::string log = home / "log";
    server = std::make_unique<BackgroundProgram>(
        std::vector<std::string>{"/bin/sh", "-c", "exec \"$0\" mcp --http 0 --http-without-token 2> \"$1\"",
                                 caissonBinary(), log},
        RunOptions{.env = variables});
    ASSERT_TRUE(eventually([&] {
      const std::string text = exists(log) ? readFile(log) : "";
      const std::size_t at = text.find("\"port\":");
      if (at == std::string::npos || text.find('\n', at) == std::string::npos) return false;
      port = static_cast<std::uint16_t>(std::stoi(text.substr(at + 7)));
      return true;
    })) << readFile(log);
  }
  /// A new connection on which this was sent.
  [[nodiscard]] Socket send(const std::string& text) const {
    Socket socket = connectTo(port);
    EXPECT_TRUE(socket);
    EXPECT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
    return socket;
  }
  /// The status of a response; 0: there is none yet.
  static int statusOn(const Socket& socket, std::chrono::milliseconds wait) {
    pollfd readable{socket.get(), POLLIN, 0};
    if (::poll(&readable, 1, static_cast<int>(wait.count())) <= 0) return 0;
    char start[12];
    return ::recv(socket.get(), start, sizeof start, MSG_PEEK) == sizeof start
               ? std::stoi(std::string(start, sizeof start).substr(9))
               : -1;
  }
  static std::string head(const std::string& method, const std::string& more = {}) {
    return method + " /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n" + more + "\r\n";
  }

  std::unique_ptr<BackgroundProgram> server;
  std::uint16_t port = 0;
};

TEST_F(McpOverHttp, NumberOfConnectionsIsLimited) {
  std::vector<Socket> sockets;
  int served = 0, refused = 0;
  for (int i = 0; i < 600; ++i) {
    sockets.push_back(send(head("GET")));
    const int status = statusOn(sockets.back(), std::chrono::seconds(20));
    served += status == 405 ? 1 : 0;
    refused += status == 503 ? 1 : 0;
  }
  EXPECT_LE(served, 512);
  EXPECT_GE(served, 200) << "a lower limit of descriptors allows fewer than 512";
  EXPECT_EQ(served + refused, 600);
  sockets.clear();
  EXPECT_TRUE(eventually([&] { return statusOn(send(head("GET")), std::chrono::seconds(20)) == 405; }));
}

TEST_F(McpOverHttp, UnfinishedBodiesAreLimited) {
  constexpr int kFit = 16;  // 128 MiB of 8 MiB each
  std::vector<Socket> sockets;
  for (int i = 0; i < kFit + 4; ++i)
    sockets.push_back(
        send(head("POST", i % 2 == 0 ? "Content-Length: 8388608\r\n" : "Transfer-Encoding: chunked\r\n")));
  const auto refused = [&] {
    return std::ranges::count_if(sockets,
                                 [](const Socket& one) { return statusOn(one, std::chrono::milliseconds(0)) == 503; });
  };
  EXPECT_TRUE(eventually([&] { return refused() == 4; }, std::chrono::seconds(20))) << refused();
  EXPECT_EQ(statusOn(send(head("POST", "Content-Length: 2\r\n") + "{}"), std::chrono::seconds(20)), 503);
  EXPECT_EQ(statusOn(send(head("GET")), std::chrono::seconds(20)), 405);
  sockets.clear();
  EXPECT_TRUE(eventually(
      [&] { return statusOn(send(head("POST", "Content-Length: 2\r\n") + "{}"), std::chrono::seconds(20)) == 415; },
      std::chrono::seconds(20)));
}

}  // namespace
}  // namespace caisson::test
