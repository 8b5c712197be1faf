// TCP on this machine's loopback, from the test's side.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <thread>
#include <utility>

namespace caisson::test {

/// A socket that is closed with this object.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket() { reset(); }

  [[nodiscard]] int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  void reset() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_;
};

inline sockaddr_in loopbackAddress(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// Connects to 127.0.0.1; an invalid socket if that fails. Reads time out after 10 s.
inline Socket connectTo(std::uint16_t port) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval timeout{10, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  const sockaddr_in address = loopbackAddress(port);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) socket.reset();
  return socket;
}

/// Sends everything, shuts down its side, and returns the response.
inline std::string converse(std::uint16_t port, const std::string& text) {
  const Socket socket = connectTo(port);
  if (!socket) return "no connection";
  std::jthread sender([&] {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t sent = ::send(socket.get(), text.data() + done, text.size() - done, MSG_NOSIGNAL);
      if (sent <= 0) break;
      done += static_cast<std::size_t>(sent);
    }
    ::shutdown(socket.get(), SHUT_WR);
  });
  std::string answer;
  char piece[65536];
  for (ssize_t got; (got = ::recv(socket.get(), piece, sizeof(piece), 0)) > 0;) {
    answer.append(piece, static_cast<std::size_t>(got));
  }
  return answer;
}

/// A free port of this machine.
inline std::uint16_t freePort() {
  const Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = loopbackAddress(0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

/// A Python program: answers each connection to port argv[1] (of the address argv[2], or 127.0.0.1) with "echo:" and
/// the received data.
inline constexpr const char* kEchoServer =
    "import socket, sys, threading\n"
    "address = sys.argv[2] if len(sys.argv) > 2 else '127.0.0.1'\n"
    "s = socket.socket(socket.AF_INET6 if ':' in address else socket.AF_INET)\n"
    "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
    "s.bind((address, int(sys.argv[1])))\n"
    "s.listen(50)\n"
    "print('ready', flush=True)\n"
    "def serve(c):\n"
    "  c.sendall(b'echo:')\n"
    "  while True:\n"
    "    b = c.recv(65536)\n"
    "    if not b: break\n"
    "    c.sendall(b)\n"
    "  c.close()\n"
    "while True:\n"
    "  threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()\n";

/// A Python program: sends argv[3] to argv[1], port argv[2], and prints the response, or "refused".
inline constexpr const char* kClient =
    "import socket, sys\n"
    "try:\n"
    "  s = socket.create_connection((sys.argv[1], int(sys.argv[2])), 10)\n"
    "  s.sendall(sys.argv[3].encode()); s.shutdown(1); d = b''\n"
    "  while True:\n"
    "    b = s.recv(65536)\n"
    "    if not b: break\n"
    "    d += b\n"
    "  print(d.decode())\n"
    "except ConnectionRefusedError: print('refused')\n"
    "except OSError as e: print('failed:', e)\n";

}  // namespace caisson::test
