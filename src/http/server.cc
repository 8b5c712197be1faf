#include "http/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <arpa/inet.h>

#include <algorithm>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "http/connection.h"
#include "sys/own_file.h"
#include "sys/unix_peer.h"

namespace caisson::http {
namespace {

/// Each connection may need two descriptors: its own, and that of a download, a terminal or a preview. Some are for
/// everything else.
std::size_t allowedConnections(std::size_t wanted) {
  constexpr std::size_t kOthers = 512;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  const auto descriptors = static_cast<std::size_t>(limit.rlim_cur);
  const std::size_t usable = descriptors > 2 * kOthers ? descriptors - kOthers : descriptors / 2;
  return std::min(wanted, usable / 2);
}

/// What counts as one peer: a user or host that has one of these addresses can use all of them.
std::string groupOf(const sockaddr_storage& address, const std::string& text) {
  if (address.ss_family == AF_INET) {
    const auto& inet = *reinterpret_cast<const sockaddr_in*>(&address);
    return ntohl(inet.sin_addr.s_addr) >> 24U == IN_LOOPBACKNET ? "loopback" : text;
  }
  if (address.ss_family != AF_INET6) return text;
  in6_addr inet = reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
  if (IN6_IS_ADDR_LOOPBACK(&inet) || (IN6_IS_ADDR_V4MAPPED(&inet) && inet.s6_addr[12] == IN_LOOPBACKNET))
    return "loopback";
  if (IN6_IS_ADDR_V4MAPPED(&inet)) return text;
  std::fill(inet.s6_addr + 8, inet.s6_addr + 16, std::uint8_t{0});
  char network[INET6_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET6, &inet, network, sizeof network);
  return network;
}

Peer describePeer(int socket, const sockaddr_storage& address, std::size_t listener) {
  Peer peer{.listener = listener};
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET)
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr, text, sizeof text);
  if (address.ss_family == AF_INET6)
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr, text, sizeof text);
  peer.address = text;
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) {
    if (const auto identified = sys::identifyPeer(socket)) {
      peer.uid = identified->uid;
      peer.is_owner = identified->is_owner;
    }
    peer.address = "unix";
  }
  peer.group = groupOf(address, peer.address);
  return peer;
}

}  // namespace

struct Server::State {
  State(ServerOptions server_options, Handler& handler)
      : options(std::move(server_options)), loop(handler, options.limits, options.lanes) {
    loop.limits.connections = allowedConnections(loop.limits.connections);
    loop.limits.reserved = std::min(loop.limits.reserved, loop.limits.connections / 4);
    loop.limits.connections_per_peer =
        std::min(loop.limits.connections_per_peer, loop.limits.connections - loop.limits.reserved);
  }

  /// Accepts on one listener until it is closed.
  asio::awaitable<void> accept(std::size_t index);
  void open(int socket, const sockaddr_storage& address, std::size_t index);
  /// The connection to close for a new one: the oldest without a known caller, else one of the caller with most, which
  /// has been idle for the longest time. Null if there is none. `group`: only of this peer.
  Connection* findDispensable(const std::string* group);
  /// Whether there is room for a connection of this peer, after closing another one if necessary.
  bool makeRoom(const Peer& peer, bool own);
  /// Whether a connection can be registered with epoll, after closing another one if necessary.
  bool findWatch(bool own);
  /// Answers without a connection, and closes the socket.
  void refuse(sys::Fd socket, std::size_t index, std::string_view reason);
  asio::awaitable<void> stopWhenReadable(int until);

  ServerOptions options;
  Loop loop;
  std::vector<std::unique_ptr<asio::ssl::context>> tls;
  std::vector<std::unique_ptr<asio::posix::stream_descriptor>> listeners;
};

asio::awaitable<void> Server::State::accept(std::size_t index) {
  asio::posix::stream_descriptor& listener = *listeners[index];
  asio::steady_timer retry(loop.io);
  BoostError code;
  while (listener.is_open()) {
    co_await listener.async_wait(asio::posix::stream_descriptor::wait_read,
                                 asio::redirect_error(asio::use_awaitable, code));
    if (code) co_return;
    for (int batch = 0; batch < 64; ++batch) {
      sockaddr_storage address{};
      socklen_t size = sizeof address;
      const int socket = ::accept4(listener.native_handle(), reinterpret_cast<sockaddr*>(&address), &size,
                                   SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (socket >= 0) {
        open(socket, address, index);
        continue;
      }
      if (errno == EAGAIN) break;
      // Out of descriptors: the connection stays in the queue; retrying at once would only waste CPU.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
        retry.expires_after(std::chrono::milliseconds(50));
        co_await retry.async_wait(asio::redirect_error(asio::use_awaitable, code));
        break;
      }
    }
  }
}

Connection* Server::State::findDispensable(const std::string* group) {
  const auto matches = [&](const auto& place) { return group == nullptr || place.second->peer().group == *group; };
  const auto newcomer = std::find_if(loop.newcomers.begin(), loop.newcomers.end(), matches);
  if (newcomer != loop.newcomers.end()) return newcomer->second;
  Connection* found = nullptr;
  std::size_t most = 0;
  for (const auto& [name, holder] : loop.holders) {
    const auto idle = std::find_if(holder.idle.begin(), holder.idle.end(), matches);
    if (holder.connections <= most || idle == holder.idle.end()) continue;
    most = holder.connections;
    found = idle->second;
  }
  return found;
}

bool Server::State::makeRoom(const Peer& peer, bool own) {
  const Limits& limits = loop.limits;
  const auto same = loop.per_peer.find(peer.group);
  const std::size_t from_peer = same == loop.per_peer.end() ? 0 : same->second;
  const bool peer_full = !own && from_peer >= limits.connections_per_peer;
  const bool full = loop.connections.size() >= limits.connections - (own ? 0 : limits.reserved);
  if (!peer_full && !full) return true;
  Connection* const connection = findDispensable(peer_full ? &peer.group : nullptr);
  if (connection == nullptr) return false;
  connection->abort();
  return true;
}

bool Server::State::findWatch(bool own) {
  if (loop.watches.makeRoom(own)) return true;
  Connection* const connection = findDispensable(nullptr);
  if (connection == nullptr) return false;
  connection->abort();
  return loop.watches.makeRoom(own);
}

void Server::State::refuse(sys::Fd socket, std::size_t index, std::string_view reason) {
  ++loop.stats.refused;
  if (tls[index]) return;
  Response response = loop.handler.failure(503, reason);
  std::string text = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n";
  for (const auto& [name, value] : response.headers) text.append(name).append(": ").append(value).append("\r\n");
  const auto* const body = std::get_if<std::string>(&response.body);
  text += "Content-Length: " + std::to_string(body == nullptr ? 0 : body->size()) + "\r\n\r\n";
  if (body != nullptr) text += *body;
  static_cast<void>(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  // Closing with unread bytes resets the connection, and the peer may lose the response.
  ::shutdown(socket.get(), SHUT_WR);
  static_cast<void>(::recv(socket.get(), loop.scratch.data(), loop.scratch.size(), MSG_DONTWAIT));
}

void Server::State::open(int descriptor, const sockaddr_storage& address, std::size_t index) {
  sys::Fd owned(descriptor);
  Peer peer = describePeer(descriptor, address, index);
  ++loop.stats.accepted;
  const bool own = peer.is_owner;
  if (!makeRoom(peer, own)) return refuse(std::move(owned), index, "too many connections");
  if (!findWatch(own)) return refuse(std::move(owned), index, kNoWatches);
  const int on = 1;
  const bool is_unix = peer.uid.has_value();
  if (!is_unix) ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const asio::generic::stream_protocol protocol(is_unix ? AF_UNIX : address.ss_family, is_unix ? 0 : IPPROTO_TCP);
  BoostError code;
  Socket socket(loop.io);
  socket.assign(protocol, descriptor, code);
  if (code) return refuse(std::move(owned), index, kNoWatches);
  static_cast<void>(owned.release());
  loop.watches.refill();
  socket.non_blocking(true, code);
  peer.tls = tls[index] != nullptr;
  auto connection = std::make_shared<Connection>(loop, std::move(socket), std::move(peer), tls[index].get());
  if (own) connection->setKnown();
  asio::co_spawn(loop.io, [connection] { return connection->serve(); }, asio::detached);
}

asio::awaitable<void> Server::State::stopWhenReadable(int until) {
  asio::posix::stream_descriptor signal(loop.io);
  asio::steady_timer timer(loop.io);
  BoostError code;
  signal.assign(until, code);
  if (!code) {
    co_await signal.async_wait(asio::posix::stream_descriptor::wait_read,
                               asio::redirect_error(asio::use_awaitable, code));
    signal.release();
  } else {  // no epoll watch is left
    for (pollfd ready{until, POLLIN, 0}; ::poll(&ready, 1, 0) == 0;) {
      timer.expires_after(std::chrono::milliseconds(100));
      co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, code));
    }
  }
  loop.stopping = true;
  for (const auto& listener : listeners) listener->close(code);
  const auto everyone = std::vector<Connection*>(loop.connections.begin(), loop.connections.end());
  for (Connection* connection : everyone) connection->stop();
  const auto deadline = Clock::now() + loop.limits.stop_timeout;
  while (!loop.connections.empty() && Clock::now() < deadline) {
    timer.expires_after(std::chrono::milliseconds(20));
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, code));
  }
  const auto rest = std::vector<Connection*>(loop.connections.begin(), loop.connections.end());
  for (Connection* connection : rest) connection->abort();
}

Result<std::unique_ptr<Server>> Server::create(ServerOptions options, Handler& handler) {
  auto state = std::make_unique<State>(std::move(options), handler);
  for (ListenSocket& listener : state->options.listeners) {
    std::unique_ptr<asio::ssl::context> context;
    if (!listener.tls_cert.empty()) {
      context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
      SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
      SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);
      BoostError code;
      const auto key = sys::readSecretFile(listener.tls_key);
      if (!key) return std::unexpected(key.error());
      context->use_certificate_chain_file(listener.tls_cert, code);
      const std::string problem_file = code ? listener.tls_cert : listener.tls_key;
      if (!code) context->use_private_key(asio::buffer(*key), asio::ssl::context::pem, code);
      if (code)
        return std::unexpected(Error{.stage = Stage::usage,
                                     .call = "load certificate",
                                     .object = problem_file,
                                     .reason = code.message(),
                                     .hint = "give PEM files that this user can read"});
    }
    state->tls.push_back(std::move(context));
    auto descriptor = std::make_unique<asio::posix::stream_descriptor>(state->loop.io);
    BoostError code;
    descriptor->assign(listener.socket.get(), code);
    if (code)
      return std::unexpected(Error{.stage = Stage::launch,
                                   .call = "epoll_ctl",
                                   .object = listener.address,
                                   .sys_errno = code.value(),
                                   .hint = "if this user has no epoll watches left, end the program that uses them, or "
                                           "raise fs.epoll.max_user_watches"});
    static_cast<void>(listener.socket.release());
    state->listeners.push_back(std::move(descriptor));
  }
  return std::unique_ptr<Server>(new Server(std::move(state)));
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}
Server::~Server() = default;

void Server::run(int until) {
  for (std::size_t i = 0; i < state_->listeners.size(); ++i)
    asio::co_spawn(state_->loop.io, state_->accept(i), asio::detached);
  asio::co_spawn(state_->loop.io, state_->stopWhenReadable(until), asio::detached);
  state_->loop.io.run();
}

const ServerStats& Server::stats() const { return state_->loop.stats; }

}  // namespace caisson::http
