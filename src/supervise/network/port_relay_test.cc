#include "supervise/network/port_relay.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace caisson::supervise {
namespace {

struct HostListener {
  sys::Fd socket;
  sockaddr_in address{};
};

HostListener listenOnLoopback() {
  HostListener listener{sys::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
  listener.address.sin_family = AF_INET;
  listener.address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&listener.address);
  socklen_t size = sizeof(listener.address);
  EXPECT_EQ(::bind(listener.socket.get(), address, size), 0);
  EXPECT_EQ(::listen(listener.socket.get(), 8), 0);
  EXPECT_EQ(::getsockname(listener.socket.get(), address, &size), 0);
  return listener;
}

sys::Fd connectTo(const sockaddr_in& address) {
  sys::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int result = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  EXPECT_TRUE(result == 0 || errno == EINPROGRESS);
  return socket;
}

/// A client, the relay, and a server that the relay connects to; the test runs the relay's event loop.
class PortRelayTest : public testing::Test {
 protected:
  PortRelayTest() {
    HostListener front = listenOnLoopback();
    front_ = front.address;
    relay_.listenAt(std::move(front.socket));
  }

  /// Turns the relay until `done` or ten seconds have passed.
  template <class Done>
  bool turnUntil(Done done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      loop_.at(std::chrono::steady_clock::now() + std::chrono::milliseconds(5), [&] { loop_.stop(); });
      loop_.run();
    }
    return true;
  }

  bool acceptAtServer() {
    return turnUntil([&] {
      server_ = sys::Fd(::accept4(back_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      return server_.valid();
    });
  }

  /// Reads until the end of the stream.
  std::string readAll(int socket) {
    std::string all;
    EXPECT_TRUE(turnUntil([&] {
      char piece[65536];
      const ssize_t got = ::read(socket, piece, sizeof(piece));
      if (got > 0) all.append(piece, static_cast<std::size_t>(got));
      return got == 0 || (got < 0 && errno == ECONNRESET);
    }));
    return all;
  }

  PortRelay::Options options() {
    PortRelay::Options options;
    options.port = ntohs(back_.address.sin_port);
    options.make_socket = [this](int family, const PortRelay::SocketReady& ready) {
      if (later_) return void(requested_ = ready);
      ready(available_ ? sys::Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) : sys::Fd());
    };
    options.finished = [this](const PortRelay::Finished& one) { finished_.push_back(one); };
    return options;
  }

  HostListener back_ = listenOnLoopback();
  sockaddr_in front_{};
  bool available_ = true, later_ = false;
  PortRelay::SocketReady requested_;
  std::vector<PortRelay::Finished> finished_;
  sys::EventLoop loop_;
  PortRelay relay_{loop_, options()};
  sys::Fd server_;
};

TEST_F(PortRelayTest, CarriesBothDirectionsAndEachEnd) {
  const sys::Fd client = connectTo(front_);
  ASSERT_TRUE(acceptAtServer());
  ASSERT_EQ(::write(client.get(), "question", 8), 8);
  ::shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(readAll(server_.get()), "question");
  ASSERT_EQ(::write(server_.get(), "answer", 6), 6);
  server_.reset();
  EXPECT_EQ(readAll(client.get()), "answer");
  ASSERT_TRUE(turnUntil([&] { return finished_.size() == 1; }));
  EXPECT_EQ(finished_[0].sent, 8U);
  EXPECT_EQ(finished_[0].received, 6U);
  EXPECT_EQ(finished_[0].error, 0);
}

TEST_F(PortRelayTest, SocketThatIsConnectedToItselfCountsAsRefused) {
  // The kernel picks such a port by chance after some thousand connections; here it is chosen.
  const sockaddr_in unused = std::exchange(back_, {}).address;
  PortRelay::Options mine = options();
  mine.port = ntohs(unused.sin_port);
  mine.make_socket = [&](int family, const PortRelay::SocketReady& ready) {
    sys::Fd socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&unused), sizeof(unused)), 0);
    ready(std::move(socket));
  };
  PortRelay relay(loop_, mine);
  HostListener front = listenOnLoopback();
  relay.listenAt(std::move(front.socket));
  const sys::Fd client = connectTo(front.address);
  ASSERT_TRUE(turnUntil([&] { return finished_.size() == 1; }));
  EXPECT_EQ(finished_[0].error, ECONNREFUSED);
  const sys::Fd service(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(service.get(), reinterpret_cast<const sockaddr*>(&unused), sizeof(unused)), 0) << errno;
}

TEST_F(PortRelayTest, IdleConnectionEnds) {
  PortRelay::Options mine = options();
  mine.idle_limit = std::chrono::milliseconds(300);
  PortRelay relay(loop_, mine);
  HostListener front = listenOnLoopback();
  relay.listenAt(std::move(front.socket));
  const sys::Fd client = connectTo(front.address);
  ASSERT_TRUE(acceptAtServer());
  const auto start = std::chrono::steady_clock::now();
  ASSERT_EQ(::write(client.get(), "x", 1), 1);
  EXPECT_EQ(readAll(client.get()), "");
  EXPECT_GE(std::chrono::steady_clock::now() - start, mine.idle_limit);
  EXPECT_TRUE(turnUntil([&] { return finished_.size() == 1; }));
  EXPECT_EQ(relay.connections(), 0U);
}

TEST_F(PortRelayTest, LosesNothingOfALargeStream) {
  const sys::Fd client = connectTo(front_);
  ASSERT_TRUE(acceptAtServer());
  std::string sent(4U << 20, '\0');
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 + i / 251);
  std::string received;
  std::size_t written = 0;
  ASSERT_TRUE(turnUntil([&] {
    const ssize_t put = ::write(client.get(), sent.data() + written, sent.size() - written);
    if (put > 0) written += static_cast<std::size_t>(put);
    char piece[65536];
    const ssize_t got = ::read(server_.get(), piece, sizeof(piece));
    if (got > 0) received.append(piece, static_cast<std::size_t>(got));
    return received.size() >= sent.size();
  }));
  EXPECT_EQ(received, sent);
}

TEST_F(PortRelayTest, ClosesTheClientWithoutAServer) {
  available_ = false;
  const sys::Fd client = connectTo(front_);
  EXPECT_EQ(readAll(client.get()), "");
}

TEST_F(PortRelayTest, ClosesTheClientWhenTheServerRefuses) {
  back_.socket.reset();
  const sys::Fd client = connectTo(front_);
  EXPECT_EQ(readAll(client.get()), "");
}

TEST_F(PortRelayTest, ReportsWhyTheServerWasNotReached) {
  back_.socket.reset();
  const sys::Fd client = connectTo(front_);
  ASSERT_TRUE(turnUntil([&] { return finished_.size() == 1; }));
  EXPECT_EQ(finished_[0].error, ECONNREFUSED);
}

TEST_F(PortRelayTest, WaitsForASocketThatComesLater) {
  later_ = true;
  const sys::Fd client = connectTo(front_);
  ASSERT_TRUE(turnUntil([&] { return static_cast<bool>(requested_); }));
  ASSERT_EQ(::write(client.get(), "x", 1), 1);
  requested_(sys::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
  ASSERT_TRUE(acceptAtServer());
  ::shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(readAll(server_.get()), "x");
}

TEST_F(PortRelayTest, CutsAConnectionWithUrgentData) {
  const sys::Fd client = connectTo(front_);
  ASSERT_TRUE(acceptAtServer());
  ASSERT_EQ(::send(client.get(), "!", 1, MSG_OOB), 1);
  ASSERT_EQ(::send(client.get(), "after", 5, 0), 5);
  // splice cannot pass the urgent byte, and the socket stays readable: the relay must not loop.
  EXPECT_TRUE(turnUntil([&] { return relay_.connections() == 0; }));
}

TEST_F(PortRelayTest, NoticesAClientThatWasKilledAfterItsRequest) {
  sys::Fd client = connectTo(front_);
  ASSERT_TRUE(acceptAtServer());
  ::shutdown(client.get(), SHUT_WR);
  EXPECT_EQ(readAll(server_.get()), "");
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  client.reset();
  EXPECT_TRUE(turnUntil([&] { return relay_.connections() == 0; })) << "the server holds its side open";
}

TEST_F(PortRelayTest, RefusesMoreThanItsMaximum) {
  std::vector<sys::Fd> clients;
  for (std::size_t i = 0; i < PortRelay::kMaxConnections + 20; ++i) {
    clients.push_back(connectTo(front_));
    loop_.at(std::chrono::steady_clock::now() + std::chrono::milliseconds(1), [&] { loop_.stop(); });
    loop_.run();
  }
  ASSERT_TRUE(turnUntil([&] { return relay_.connections() == PortRelay::kMaxConnections; }));
  std::size_t reset = 0;
  ASSERT_TRUE(turnUntil([&] {
    reset = 0;
    for (const sys::Fd& client : clients) {
      pollfd state{client.get(), 0, 0};
      if (::poll(&state, 1, 0) == 1) ++reset;
    }
    return reset == 20;
  })) << reset;
}

TEST_F(PortRelayTest, DrainDeliversWhatWasSentAndEnds) {
  const sys::Fd client = connectTo(front_);
  ASSERT_TRUE(acceptAtServer());
  ASSERT_EQ(::write(server_.get(), "last words", 10), 10);
  server_.reset();
  relay_.drain(false);
  EXPECT_EQ(readAll(client.get()), "last words");
  EXPECT_TRUE(turnUntil([&] { return relay_.connections() == 0; }));
  EXPECT_TRUE(relay_.listeners().empty());
}

TEST_F(PortRelayTest, ConnectionsDoNotMix) {
  const sys::Fd first = connectTo(front_);
  ASSERT_TRUE(acceptAtServer());
  const sys::Fd first_server = std::move(server_);
  const sys::Fd second = connectTo(front_);
  ASSERT_TRUE(acceptAtServer());
  ASSERT_EQ(::write(second.get(), "2", 1), 1);
  ASSERT_EQ(::write(first.get(), "1", 1), 1);
  ::shutdown(first.get(), SHUT_WR);
  ::shutdown(second.get(), SHUT_WR);
  EXPECT_EQ(readAll(first_server.get()), "1");
  EXPECT_EQ(readAll(server_.get()), "2");
}

}  // namespace
}  // namespace caisson::supervise
