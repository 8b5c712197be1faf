// The HTTP server listens on loopback addresses only. The token is sent unencrypted, so remote access needs a tunnel or
// a proxy with TLS.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>

#include "mcp/http/server.h"

namespace caisson::mcp {
namespace {

Error refusal(std::string_view address, int number, std::string reason, std::string hint) {
  return {.stage = Stage::usage,
          .call = "mcp --http",
          .object = std::string(address),
          .sys_errno = number,
          .reason = std::move(reason),
          .hint = std::move(hint)};
}

bool readPort(std::string_view text, std::uint16_t& port) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  return problem == std::errc() && end == text.data() + text.size() && !text.empty();
}

}  // namespace

Result<sys::Fd> HttpServer::listen(std::string_view address) {
  const std::size_t colon = address.rfind(':');
  std::string host(colon == std::string_view::npos ? "127.0.0.1" : address.substr(0, colon));
  std::uint16_t port = 0;
  if (!readPort(colon == std::string_view::npos ? address : address.substr(colon + 1), port))
    return std::unexpected(refusal(address, 0, "expected PORT, HOST:PORT or [HOST]:PORT", "try --http 127.0.0.1:7070"));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty() || host == "localhost") host = "127.0.0.1";

  sockaddr_in four{.sin_family = AF_INET, .sin_port = htons(port)};
  sockaddr_in6 six{.sin6_family = AF_INET6, .sin6_port = htons(port)};
  const bool is_four = ::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1;
  const bool is_six = !is_four && ::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1;
  const bool loopback =
      (is_four && ntohl(four.sin_addr.s_addr) >> 24U == 127) || (is_six && IN6_IS_ADDR_LOOPBACK(&six.sin6_addr) != 0);
  if (!loopback)
    return std::unexpected(refusal(address, 0, "only loopback addresses are served",
                                   "listen on 127.0.0.1 and put an SSH tunnel or a proxy with TLS in front"));

  sys::Fd socket(::socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return std::unexpected(refusal(address, errno, "", ""));
  const int reuse = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  const auto* const where =
      is_four ? reinterpret_cast<const sockaddr*>(&four) : reinterpret_cast<const sockaddr*>(&six);
  const socklen_t size = is_four ? sizeof four : sizeof six;
  if (::bind(socket.get(), where, size) != 0 || ::listen(socket.get(), 128) != 0)
    return std::unexpected(refusal(address, errno, "", errno == EADDRINUSE ? "choose another port, or 0 for any" : ""));
  return socket;
}

}  // namespace caisson::mcp
