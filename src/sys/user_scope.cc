#include "sys/user_scope.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/hex.h"
#include "sys/cgroup_files.h"
#include "sys/dbus.h"
#include "sys/fd.h"

namespace caisson::sys {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kTimeout = std::chrono::seconds(1);
constexpr const char* kHint = "start caisson with `systemd-run --user --scope -p Delegate=yes`";

Error busError(std::string_view call, const std::string& object, int error) {
  return sysError(Stage::limits, call, object, error, kHint);
}

std::string busPath() {
  const char* directory = std::getenv("XDG_RUNTIME_DIR");
  if (directory != nullptr && directory[0] == '/') return std::string(directory) + "/bus";
  return "/run/user/" + std::to_string(::geteuid()) + "/bus";
}

/// A connection with one deadline for all its operations.
class Connection {
 public:
  static Result<Connection> open(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return fail(busError("connect", path, ENAMETOOLONG));
    std::memcpy(address.sun_path, path.c_str(), path.size());
    Connection connection;
    connection.path_ = path;
    connection.fd_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!connection.fd_ || ::connect(connection.fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0)
      return fail(busError("connect", path, errno));
    // We authenticate to this peer and ask it to move us, so it must be this user or root.
    ucred peer{};
    socklen_t length = sizeof(peer);
    if (::getsockopt(connection.fd_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
        (peer.uid != ::geteuid() && peer.uid != 0))
      return fail(busError("connect", path, EPERM));
    return connection;
  }

  Result<void> send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent > 0) {
        bytes.remove_prefix(static_cast<std::size_t>(sent));
      } else if (errno == EAGAIN || errno == EINTR) {
        if (auto ready = wait(POLLOUT); !ready) return ready;
      } else {
        return fail(busError("send", path_, errno));
      }
    }
    return {};
  }

  /// Appends the next bytes to received().
  Result<void> receive() {
    char buffer[4096];
    for (;;) {
      const ssize_t got = ::recv(fd_.get(), buffer, sizeof(buffer), 0);
      if (got > 0) {
        received_.append(buffer, static_cast<std::size_t>(got));
        return {};
      }
      if (got == 0) return fail(busError("recv", path_, ECONNRESET));
      if (errno != EAGAIN && errno != EINTR) return fail(busError("recv", path_, errno));
      if (auto ready = wait(POLLIN); !ready) return ready;
    }
  }

  Result<void> authenticate() {
    const std::string hex = hexText(std::to_string(::geteuid()));
    if (auto sent = send(std::string(1, '\0') + "AUTH EXTERNAL " + hex + "\r\n"); !sent) return sent;
    std::size_t end = 0;
    while ((end = received_.find("\r\n")) == std::string::npos) {
      if (received_.size() > 4096) return fail(busError("authenticate", path_, EPROTO));
      if (auto got = receive(); !got) return got;
    }
    const bool accepted = received_.starts_with("OK ");
    received_.erase(0, end + 2);
    if (!accepted) return fail(busError("authenticate", path_, EACCES));
    return send("BEGIN\r\n");
  }

  /// Sends a call and waits for its reply.
  Result<void> call(const DbusCall& call) {
    if (auto sent = send(encodeCall(call)); !sent) return sent;
    for (;;) {
      bool broken = false;
      const auto message = decodeMessage(received_, broken);
      if (broken) return fail(busError(call.member, path_, EPROTO));
      if (!message) {
        if (auto got = receive(); !got) return got;
        continue;
      }
      received_.erase(0, message->size);
      if (message->answers != call.serial) continue;  // signals and other replies of the bus
      if (message->type == DbusMessage::Type::answer) return {};
      return fail(plainError(Stage::limits, call.member, "the user's service manager",
                             message->error + ": " + message->text, kHint));
    }
  }

 private:
  Result<void> wait(short events) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
    pollfd poll{fd_.get(), events, 0};
    if (left > 0 && ::poll(&poll, 1, static_cast<int>(left)) != 0) return {};
    return fail(busError("wait", path_, ETIMEDOUT));
  }

  Fd fd_;
  std::string path_;
  std::string received_;
  Clock::time_point deadline_ = Clock::now() + kTimeout;
};

}  // namespace

bool hasUserManager() {
  struct statfs system{};
  if (::geteuid() == 0 || ::statfs("/sys/fs/cgroup", &system) != 0 || system.f_type != CGROUP2_SUPER_MAGIC)
    return false;
  struct stat status{};
  return ::stat(busPath().c_str(), &status) == 0 && S_ISSOCK(status.st_mode) && status.st_uid == ::geteuid();
}

Result<void> requestScope(const std::string& socket_path, const std::string& unit) {
  auto connection = Connection::open(socket_path);
  if (!connection) return fail(connection.error());
  if (auto accepted = connection->authenticate(); !accepted) return accepted;
  auto greeted = connection->call({.destination = "org.freedesktop.DBus",
                                   .path = "/org/freedesktop/DBus",
                                   .interface = "org.freedesktop.DBus",
                                   .member = "Hello"});
  if (!greeted) return greeted;
  const std::string body = scopeRequest(unit, static_cast<std::uint32_t>(::getpid()));
  return connection->call({.destination = "org.freedesktop.systemd1",
                           .path = "/org/freedesktop/systemd1",
                           .interface = "org.freedesktop.systemd1.Manager",
                           .member = "StartTransientUnit",
                           .signature = kScopeRequestSignature,
                           .body = body,
                           .serial = 2});
}

Result<void> enterUserScope() {
  const std::string unit = "caisson-" + std::to_string(::getpid()) + ".scope";
  if (auto requested = requestScope(busPath(), unit); !requested) return requested;
  // The reply only means that a job was queued; our own cgroup shows when the move is done.
  for (const auto deadline = Clock::now() + kTimeout; Clock::now() < deadline; ::usleep(1000)) {
    const std::string own = readAt(AT_FDCWD, "/proc/self/cgroup").value_or("");
    if (own.find("/" + unit) != std::string::npos) return {};
  }
  return fail(busError("StartTransientUnit", unit, ETIMEDOUT));
}

}  // namespace caisson::sys
