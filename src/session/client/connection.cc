#include "session/client/connection.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdio>
#include <mutex>

#include "base/version.h"
#include "session/sandbox.h"
#include "session/store/session_paths.h"
#include "sys/deadline.h"

namespace caisson::session {
namespace {

using Clock = std::chrono::steady_clock;

/// Descriptors in flight are counted per user against the sender's soft limit, which a payload may have reached: raises
/// it to the hard limit while sending.
class RaisedFileLimit {
 public:
  RaisedFileLimit() : held_(mutex()) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit raised = before_;
    raised.rlim_cur = raised.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &raised);
  }
  ~RaisedFileLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  RaisedFileLimit(const RaisedFileLimit&) = delete;
  RaisedFileLimit& operator=(const RaisedFileLimit&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  std::lock_guard<std::mutex> held_;
  rlimit before_{};
};

/// A session is never killed for its version: its user decides.
Error otherVersion(const Packet& packet, std::string_view object) {
  const auto welcome = codec::decode<Welcome>(packet.value);
  const bool known = packet.type == MessageType::welcome && welcome && !welcome->version.empty();
  const std::string other = known ? "caisson " + welcome->version : "another version of caisson";
  return otherVersionError(
      "connect", object,
      "its supervisor was started by " + other + " and speaks " + describe(packet.sender) +
          " of the session protocol; this caisson (" + std::string(ownVersion()) + ") speaks " +
          describe(ownProtocols()),
      "use " + (known ? other : "the caisson that started it") +
          ", or end the session's processes and keep its files: caisson session checkpoint --stop " +
          (isId(object) ? std::string(object) : "ID"));
}

/// The id of the session, for errors.
std::string idOf(const sys::RootDir& directory) {
  const std::string name = directory.knownAs().substr(directory.knownAs().rfind('/') + 1);
  return isId(name) ? name : "session";
}

}  // namespace

Result<std::optional<SupervisorConnection>> SupervisorConnection::open(const sys::RootDir& directory,
                                                                       bool any_version) {
  sys::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket) return fail(sysError(Stage::state, "socket", "session", errno));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", directory.descriptor(),
                kControlSocket);
  // A supervisor that does not accept has a full backlog: connect() would block forever.
  const timeval patience{kRequestTimeout.count(), 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  int connected;
  do {
    connected = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  } while (connected != 0 && errno == EINTR);
  if (connected != 0) {
    if (errno == ECONNREFUSED || errno == ENOENT) return std::nullopt;
    return fail(sysError(Stage::state, "connect", directory.knownAs() + "/" + kControlSocket, errno));
  }
  SupervisorConnection connection(std::move(socket), any_version);
  auto packet = connection.receive("connect", idOf(directory), Clock::now() + kRequestTimeout);
  if (!packet && isGone(packet.error())) return std::nullopt;  // it was just exiting
  if (!packet) return fail(packet.error());
  if (packet->type == MessageType::failed) {
    if (auto refusal = codec::decode<Error>(packet->value)) return fail(*std::move(refusal));
  }
  const auto welcome = codec::decode<Welcome>(packet->value);
  if (any_version && !welcome) return connection;
  if (packet->type != MessageType::welcome || !welcome) {
    return fail(plainError(Stage::state, "connect", idOf(directory), "its supervisor sent a malformed welcome",
                           "please report it; caisson session destroy ends the session"));
  }
  connection.welcome_ = *welcome;
  return connection;
}

int SupervisorConnection::send(MessageType type, const std::string& value, std::vector<int> descriptors) const {
  int error = sendPacket(socket_.get(), type, value, descriptors);
  if (error != ETOOMANYREFS) return error;
  const RaisedFileLimit raised;
  return sendPacket(socket_.get(), type, value, std::move(descriptors));
}

bool SupervisorConnection::isClosed() const {
  pollfd look{socket_.get(), POLLIN, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLHUP | POLLERR)) != 0;
}

Result<Packet> SupervisorConnection::receive(std::string_view call, std::string_view object,
                                             Clock::time_point deadline) const {
  for (;;) {
    pollfd wait{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, sys::millisecondsUntil(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      return fail(sysError(Stage::state, call, object, ETIMEDOUT,
                           "the session's supervisor does not answer; `caisson session destroy` ends the session"));
    }
    Packet packet;
    const Receipt receipt = receivePacket(socket_.get(), packet);
    if (receipt == Receipt::message) return packet;
    if (receipt == Receipt::other_version && any_version_) return packet;
    if (receipt == Receipt::other_version) return fail(otherVersion(packet, object));
    if (receipt == Receipt::closed) return fail(goneError(call, object));
  }
}

Result<Packet> SupervisorConnection::ask(MessageType type, const std::string& value, std::string_view call,
                                         std::string_view object, std::vector<int> descriptors,
                                         Clock::duration timeout) const {
  const int error = send(type, value, std::move(descriptors));
  if (error == EPIPE || error == ECONNRESET) return fail(goneError(call, object));
  if (error != 0) {
    return fail(sysError(Stage::state, call, object, error,
                         error == ETOOMANYREFS ? "too many descriptors of this user are in flight; try again" : ""));
  }
  auto packet = receive(call, object, Clock::now() + timeout);
  if (!packet || packet->type != MessageType::failed) return packet;
  auto failure = codec::decode<Error>(packet->value);
  return fail(failure ? std::move(*failure) : goneError(call, object));
}

Result<void> SupervisorConnection::startSandbox(const StartOptions& options, std::string_view session) {
  auto answer = ask(MessageType::start, codec::encode(options), "session", session, {}, kSandboxTimeout);
  if (!answer) return fail(answer.error());
  const auto welcome = codec::decode<Welcome>(answer->value);
  if (!welcome) return fail(goneError("session", session));
  welcome_ = *welcome;
  return {};
}

Error goneError(std::string_view call, std::string_view object) {
  Error error = sysError(Stage::state, call, object, ENOTCONN,
                         "it expired, exceeded its memory limit, or was killed; see `caisson session list`");
  error.reason = "the session's sandbox ended meanwhile";
  return error;
}

bool isGone(const Error& error) { return error.sys_errno == ENOTCONN; }

Result<void> endSandbox(const sys::RootDir& directory) {
  auto opened = SupervisorConnection::openAny(directory);
  if (opened && *opened) {
    const SettleOptions options{.stop_processes = true, .end_supervisor = true};
    auto ended =
        (*opened)->ask(MessageType::settle, codec::encode(options), "end", "session", {}, std::chrono::seconds(15));
    if (ended) return {};
  }
  return killSandbox(directory);
}

}  // namespace caisson::session
