#include "mcp/stdio.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <thread>

#include "mcp/lines.h"

namespace caisson::mcp {
namespace {

/// A client whose input ended may still read: `printf ... | caisson mcp` gets its answers.
constexpr std::chrono::milliseconds kGrace{2000};

/// How long to wait at exit for a client that does not read.
constexpr std::chrono::milliseconds kLastWords{500};

/// Writes lines to a descriptor that others may share, so it does not change its mode. No write blocks forever: a
/// client that does not read delays only its own calls, and at exit they are abandoned.
class LineChannel final : public Channel {
 public:
  LineChannel(int descriptor, int until) : descriptor_(descriptor), until_(until) {}

  void send(const Json& message) override {
    const std::string line = writeJson(message) + "\n";
    const std::lock_guard lock(mutex_);
    for (std::string_view rest = line; !rest.empty() && !gone_;) {
      const ssize_t count = writeSome(rest);
      if (count >= 0) {
        rest.remove_prefix(static_cast<std::size_t>(count));
      } else if (errno != EAGAIN && errno != EINTR) {
        gone_ = true;
      }
    }
  }

  /// Stops waiting for the client.
  void abandon() { abandoned_ = true; }

 private:
  ssize_t writeSome(std::string_view bytes) {
    // Node gives its children sockets, most others pipes. A pipe that polls as writable accepts PIPE_BUF bytes.
    if (socket_) {
      const ssize_t count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count >= 0 || (errno != ENOTSOCK && errno != EAGAIN)) return count;
      if (errno == ENOTSOCK) socket_ = false;
    }
    std::array<pollfd, 2> ends{pollfd{descriptor_, POLLOUT, 0}, pollfd{until_, POLLIN, 0}};
    const int ready = ::poll(ends.data(), ends.size(), static_cast<int>(kLastWords.count()));
    if ((ends[0].revents & POLLOUT) == 0 && (abandoned_ || ends[1].revents != 0 || (ready > 0 && ends[0].revents != 0)))
      gone_ = true;
    if (ready <= 0 || ends[0].revents == 0 || gone_ || socket_) {
      errno = EAGAIN;
      return -1;
    }
    return ::write(descriptor_, bytes.data(), std::min<std::size_t>(bytes.size(), PIPE_BUF));
  }

  int descriptor_;
  int until_;
  std::mutex mutex_;
  bool gone_ = false;
  bool socket_ = true;
  std::atomic<bool> abandoned_ = false;
};

void receiveLine(Server& server, const std::shared_ptr<Client>& client, const std::shared_ptr<Channel>& channel,
                 std::string_view line, bool whole) {
  if (!whole)
    return Server::refuse({Json(), {code::kParse, "the message is too large; the limit is 8 MiB", {}}}, *channel);
  auto value = parseJson(line);
  if (!value) return Server::refuse(unreadable(line, value.error()), *channel);
  auto message = decodeMessage(std::move(*value));
  if (!message) return Server::refuse(message.error(), *channel);
  server.receive(client, std::move(*message), channel, Server::Expect::either);
}

}  // namespace

Result<sys::Fd> takeStandardOutput() {
  sys::Fd output(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!output || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return std::unexpected(
        Error{.stage = Stage::usage, .call = "dup", .object = "standard output", .sys_errno = errno});
  return output;
}

void serveStdio(Server& server, int input, int output, int until) {
  const auto client = std::make_shared<Client>();
  const auto channel = std::make_shared<LineChannel>(output, until);
  client->setStream(channel);
  LineSplitter lines(JsonLimits{}.bytes);
  std::vector<char> piece(std::size_t{64} << 10U);
  bool told_to_stop = false;
  for (;;) {
    std::array<pollfd, 3> ends{pollfd{input, POLLIN, 0}, pollfd{until, POLLIN, 0}, pollfd{output, 0, 0}};
    if (::poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) break;
    told_to_stop = ends[1].revents != 0 || (ends[2].revents & (POLLERR | POLLNVAL)) != 0;
    if (told_to_stop) break;
    if (ends[0].revents == 0) continue;
    const ssize_t count = ::read(input, piece.data(), piece.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) break;
    lines.add({piece.data(), static_cast<std::size_t>(count)},
              [&](std::string_view line, bool whole) { receiveLine(server, client, channel, line, whole); });
  }
  if (!told_to_stop) client->settle(kGrace, until);
  channel->abandon();
  server.endSubscriptions();
  client->cancelAll();
}

}  // namespace caisson::mcp
