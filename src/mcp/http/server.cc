#include "mcp/http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <system_error>
#include <thread>

namespace caisson::mcp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTimeout{30'000};  ///< for a request in progress, and for a peer to read
constexpr milliseconds kIdle{120'000};    ///< between requests

std::string_view reasonOf(int status) {
  switch (status) {
    case 200: return "OK";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "Error";
  }
}

std::string headOf(int status, std::string_view type, const HttpConnection::Headers& headers) {
  std::string head = "HTTP/1.1 " + std::to_string(status) + " " + std::string(reasonOf(status)) + "\r\n";
  if (!type.empty()) head += "Content-Type: " + std::string(type) + "\r\n";
  for (const auto& [name, value] : headers) head += std::string(name) + ": " + value + "\r\n";
  return head;
}

}  // namespace

HttpConnection::Event HttpConnection::wait(int descriptor, milliseconds timeout) const {
  std::array<pollfd, 3> ends{pollfd{descriptor, POLLIN, 0}, pollfd{socket_.get(), POLLRDHUP, 0},
                             pollfd{stop_, POLLIN, 0}};
  const int ready = ::poll(ends.data(), ends.size(), static_cast<int>(timeout.count()));
  if (ready <= 0) return Event::timeout;
  if (ends[1].revents != 0) return Event::closed;
  if (ends[0].revents != 0) return Event::woken;
  return Event::stopping;
}

HttpConnection::Read HttpConnection::read(std::string& into, milliseconds timeout) const {
  std::array<pollfd, 2> ends{pollfd{socket_.get(), POLLIN, 0}, pollfd{stop_, POLLIN, 0}};
  const int ready = ::poll(ends.data(), ends.size(), static_cast<int>(timeout.count()));
  if (ready == 0) return Read::timeout;
  if (ready < 0) return errno == EINTR ? Read::some : Read::end;
  if (ends[1].revents != 0) return Read::stopping;
  std::array<char, 16384> piece{};
  const ssize_t count = ::recv(socket_.get(), piece.data(), piece.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return Read::some;
  if (count <= 0) return Read::end;
  into.assign(piece.data(), static_cast<std::size_t>(count));
  return Read::some;
}

void HttpConnection::discardInput() const {
  constexpr std::size_t kMaxDiscarded = std::size_t{256} << 10U;
  const auto deadline = std::chrono::steady_clock::now() + milliseconds(500);
  ::shutdown(socket_.get(), SHUT_WR);
  std::string bytes;
  for (std::size_t discarded = 0; discarded < kMaxDiscarded; discarded += bytes.size()) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0 || read(bytes, left) != Read::some) return;
  }
}

bool HttpConnection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    pollfd end{socket_.get(), POLLOUT, 0};
    if (::poll(&end, 1, static_cast<int>(kTimeout.count())) == 0) return false;  // a peer that does not read
  }
  return true;
}

bool HttpConnection::respond(const HttpRequest& request, int status, std::string_view type, std::string_view body,
                             const Headers& headers) {
  std::string text = headOf(status, type, headers);
  if (status != 204) text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  text += request.keep_alive ? "\r\n" : "Connection: close\r\n\r\n";
  text += body;
  return write(text);
}

bool HttpConnection::beginStream(const HttpRequest& request, std::string_view type, const Headers& headers) {
  std::string text = headOf(200, type, headers);
  // An old client reads to the end of the connection; keep_alive is off for it.
  chunked_ = request.keep_alive;
  text += chunked_ ? "Transfer-Encoding: chunked\r\n\r\n" : "Connection: close\r\n\r\n";
  return write(text);
}

bool HttpConnection::writePiece(std::string_view piece) {
  if (!chunked_) return write(piece);
  std::array<char, 16> size{};
  const auto [end, problem] = std::to_chars(size.data(), size.data() + size.size(), piece.size(), 16);
  return write(std::string(size.data(), end) + "\r\n" + std::string(piece) + "\r\n");
}

bool HttpConnection::endStream() { return !chunked_ || write("0\r\n\r\n"); }

int HttpServer::portOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  // The port has the same offset in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

HttpServer::HttpServer(sys::Fd socket, Admission admission, Handler handler)
    : socket_(std::move(socket)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      admission_(std::move(admission)),
      handler_(std::move(handler)) {}

HttpServer::~HttpServer() { stop(); }

void HttpServer::stop() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(stop_.get(), &one, sizeof one));
  std::unique_lock lock(mutex_);
  gone_.wait(lock, [this] { return connections_ == 0; });
}

void HttpServer::serve(int until) {
  for (;;) {
    std::array<pollfd, 2> ends{pollfd{socket_.get(), POLLIN, 0}, pollfd{until, POLLIN, 0}};
    if (::poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) return;
    if (ends[1].revents != 0) return;
    sys::Fd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      // Out of descriptors: the connection stays in the queue; retrying at once would only waste CPU.
      if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) std::this_thread::sleep_for(milliseconds(50));
      continue;
    }
    {
      const std::lock_guard lock(mutex_);
      if (connections_ >= kMaxConnections) {
        static constexpr std::string_view kBusy =
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        static_cast<void>(::send(socket.get(), kBusy.data(), kBusy.size(), MSG_NOSIGNAL));
        continue;
      }
      ++connections_;
    }
    const int descriptor = socket.release();
    try {
      std::thread([this, descriptor] { converse(sys::Fd(descriptor)); }).detach();
    } catch (const std::system_error&) {
      ::close(descriptor);
      const std::lock_guard lock(mutex_);
      --connections_;
    }
  }
}

void HttpServer::converse(sys::Fd socket) {
  const int no_delay = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &no_delay, sizeof no_delay);
  {
    HttpConnection connection(std::move(socket), stop_.get());
    HttpReader reader({});
    auto deadline = std::chrono::steady_clock::now() + kTimeout;
    for (bool open = true; open;) {
      HttpReader::Next next = reader.next();
      if (const auto* refusal = std::get_if<HttpRefusal>(&next)) {
        connection.respond({.keep_alive = false}, refusal->status, "text/plain; charset=utf-8", refusal->reason + "\n");
        break;
      }
      if (const auto* request = std::get_if<HttpRequest>(&next)) {
        if (admission_(*request, connection)) handler_(*request, connection);
        open = request->keep_alive;
        deadline = std::chrono::steady_clock::now() + kIdle;
        continue;
      }
      if (const HttpRequest* head = reader.takeHead()) {
        HttpRequest last = *head;
        last.keep_alive = false;  // without the body, the start of the next request is unknown
        if (!admission_(last, connection)) {
          connection.discardInput();
          break;
        }
      }
      if (reader.takeExpectation() && !connection.write("HTTP/1.1 100 Continue\r\n\r\n")) break;
      const auto left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
      const bool was_idle = reader.idle();
      std::string bytes;
      if (left.count() <= 0 || connection.read(bytes, left) != HttpConnection::Read::some) break;
      reader.add(bytes);
      if (was_idle && !reader.idle()) deadline = std::chrono::steady_clock::now() + kTimeout;
    }
  }
  const std::lock_guard lock(mutex_);
  --connections_;
  gone_.notify_all();
}

}  // namespace caisson::mcp
