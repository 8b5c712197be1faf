// Sockets to listen on: TCP, unix, and those of a service manager.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "http/server.h"

namespace caisson::http {
namespace {

constexpr int kBacklog = 1024;
constexpr const char* kOnlyLoopback = "only loopback addresses are served without TLS";

bool isLoopbackAddress(const sockaddr_storage& address) {
  constexpr std::uint8_t kLoopbackNet = 127;
  if (address.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(&address)->sin_addr.s_addr) >> 24U == kLoopbackNet;
  const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&six) != 0 || (IN6_IS_ADDR_V4MAPPED(&six) != 0 && six.s6_addr[12] == kLoopbackNet);
}

std::unexpected<Error> refuseAddress(std::string_view address, int number, std::string reason, std::string hint) {
  return std::unexpected(Error{.stage = Stage::usage,
                               .call = "listen",
                               .object = std::string(address),
                               .sys_errno = number,
                               .reason = std::move(reason),
                               .hint = std::move(hint)});
}

bool readPort(std::string_view text, std::uint16_t& port) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), port);
  return problem == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// Whether a process accepts connections on the socket at `address`. A helper that a killed server was starting holds
/// its sockets for a moment, so the process that listened must be alive.
bool isServed(const sockaddr_un& address) {
  const sys::Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno == EAGAIN;  // its queue is full
  ucred listener{};
  socklen_t size = sizeof listener;
  if (::getsockopt(probe.get(), SOL_SOCKET, SO_PEERCRED, &listener, &size) != 0 || listener.pid <= 0) return true;
  return ::kill(listener.pid, 0) == 0 || errno != ESRCH;
}

/// Whether every user may replace files in the directory of `path`. In /tmp (sticky) they may not.
bool isOpenToAll(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct stat status{};
  return ::stat(directory.c_str(), &status) == 0 && (status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0;
}

/// bind(), again for a second while the address is in use: for the same reason as in isServed().
bool bindTcp(int socket, const sockaddr* address, socklen_t size) {
  constexpr int kTries = 20;
  constexpr timespec kPause{0, 50'000'000};
  for (int tries = 1; ::bind(socket, address, size) != 0; ++tries) {
    if (errno != EADDRINUSE || tries == kTries) return false;
    ::nanosleep(&kPause, nullptr);
  }
  return true;
}

}  // namespace

Result<ListenSocket> listenTcp(std::string_view address, bool anywhere, std::string_view tls_hint) {
  const std::size_t colon = address.rfind(':');
  std::string host(colon == std::string_view::npos ? "127.0.0.1" : address.substr(0, colon));
  std::uint16_t port = 0;
  if (!readPort(colon == std::string_view::npos ? address : address.substr(colon + 1), port))
    return refuseAddress(address, 0, "expected PORT, HOST:PORT or [HOST]:PORT", "for example 127.0.0.1:7080");
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty() || host == "localhost") host = "127.0.0.1";

  sockaddr_in four{.sin_family = AF_INET, .sin_port = htons(port)};
  sockaddr_in6 six{.sin6_family = AF_INET6, .sin6_port = htons(port)};
  const bool is_four = ::inet_pton(AF_INET, host.c_str(), &four.sin_addr) == 1;
  const bool is_six = !is_four && ::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) == 1;
  if (!is_four && !is_six)
    return refuseAddress(address, 0, "the host is not an IP address", "for example 127.0.0.1:7080");
  const bool loopback =
      (is_four && ntohl(four.sin_addr.s_addr) >> 24U == 127) || (is_six && IN6_IS_ADDR_LOOPBACK(&six.sin6_addr) != 0);
  if (!loopback && !anywhere)
    return refuseAddress(
        address, 0, kOnlyLoopback,
        "use 127.0.0.1:PORT, and for other machines an SSH tunnel or a TLS proxy" + std::string(tls_hint));

  sys::Fd socket(::socket(is_four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return refuseAddress(address, errno, "", "");
  const int reuse = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  const auto* const where =
      is_four ? reinterpret_cast<const sockaddr*>(&four) : reinterpret_cast<const sockaddr*>(&six);
  const socklen_t size = is_four ? sizeof four : sizeof six;
  if (!bindTcp(socket.get(), where, size) || ::listen(socket.get(), kBacklog) != 0)
    return refuseAddress(address, errno, "", errno == EADDRINUSE ? "choose another port, or 0 for any" : "");
  const int bound = portOf(socket.get());
  return ListenSocket{.socket = std::move(socket),
                      .address = (is_six ? "[" + host + "]" : host) + ":" + std::to_string(bound)};
}

Result<ListenSocket> listenUnix(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return refuseAddress(path, ENAMETOOLONG, "", "a socket's path has at most 107 bytes: use --socket");
  std::memcpy(address.sun_path, path.c_str(), path.size());
  if (isOpenToAll(path))
    return refuseAddress(path, EACCES, "all users may write to its directory, and replace the socket by theirs",
                         "choose a directory of your own");
  sys::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return refuseAddress(path, errno, "", "");
  // Only one server at a time may probe and replace the socket.
  const sys::Fd lock(::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX | LOCK_NB) != 0)
    return refuseAddress(path, errno, "", "is another server starting?");
  struct stat status;
  if (::lstat(path.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode))
      return refuseAddress(path, EEXIST, "it exists and is not a socket", "use another path");
    if (isServed(address))
      return refuseAddress(path, EADDRINUSE, "", "a server runs already; use --socket for another path");
    ::unlink(path.c_str());
  }
  // Private before it exists, not by a later chmod.
  const mode_t mask = ::umask(0177);
  const int bound = ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int problem = errno;
  ::umask(mask);
  if (bound != 0) return refuseAddress(path, problem, "", "");
  if (::listen(socket.get(), kBacklog) != 0) return refuseAddress(path, errno, "", "");
  return ListenSocket{.socket = std::move(socket), .address = path};
}

Result<std::vector<ListenSocket>> inheritedSockets(bool anywhere) {
  constexpr int kFirst = 3;
  const char* const pid = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  const int number =
      pid != nullptr && count != nullptr && std::atoi(pid) == ::getpid() ? std::min(std::atoi(count), 16) : 0;
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  std::vector<ListenSocket> sockets;
  if (number > 0) {
    for (int fd = kFirst; fd < kFirst + number; ++fd) {
      int listening = 0;
      socklen_t size = sizeof listening;
      if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) continue;
      ::fcntl(fd, F_SETFD, FD_CLOEXEC);
      ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
      sockaddr_storage address{};
      size = sizeof address;
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
      const bool is_unix = address.ss_family == AF_UNIX;
      const std::string name = is_unix ? "unix socket " + std::to_string(fd) : "port " + std::to_string(portOf(fd));
      if (!is_unix && address.ss_family != AF_INET && address.ss_family != AF_INET6)
        return refuseAddress("socket " + std::to_string(fd), EAFNOSUPPORT,
                             "the service manager passed a socket that is neither a unix nor a TCP socket",
                             "change ListenStream in the socket unit");
      if (!is_unix && !anywhere && !isLoopbackAddress(address))
        return refuseAddress(
            name, 0, kOnlyLoopback,
            "change ListenStream in the socket unit to 127.0.0.1:PORT, or give --tls-cert FILE --tls-key FILE");
      sockets.push_back({.socket = sys::Fd(fd), .address = name});
    }
  }
  return sockets;
}

int portOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return 0;
  // The port has the same offset in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace caisson::http
