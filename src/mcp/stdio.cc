#include "mcp/stdio.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "mcp/lines.h"

namespace caisson::mcp {
namespace {

/// A client whose input ended may still read: `printf ... | caisson mcp` gets its answers.
constexpr std::chrono::milliseconds kGrace{2000};

class LineChannel final : public Channel {
 public:
  explicit LineChannel(int descriptor) : descriptor_(descriptor) {}

  void send(const Json& message) override {
    const std::string line = writeJson(message) + "\n";
    const std::lock_guard lock(mutex_);
    std::string_view rest = line;
    while (!rest.empty() && !gone_) {
      const ssize_t count = ::write(descriptor_, rest.data(), rest.size());
      if (count >= 0) {
        rest.remove_prefix(static_cast<std::size_t>(count));
      } else if (errno == EAGAIN) {
        pollfd end{descriptor_, POLLOUT, 0};
        ::poll(&end, 1, -1);
      } else if (errno != EINTR) {
        gone_ = true;
      }
    }
  }

 private:
  int descriptor_;
  std::mutex mutex_;
  bool gone_ = false;
};

void receiveLine(Server& server, const std::shared_ptr<Client>& client, const std::shared_ptr<Channel>& channel,
                 std::string_view line, bool whole) {
  if (!whole)
    return Server::refuse({Json(), {code::kParse, "the message is too large; the limit is 8 MiB", {}}}, *channel);
  auto value = parseJson(line);
  if (!value) return Server::refuse({Json(), {code::kParse, value.error(), {}}}, *channel);
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
  const auto channel = std::make_shared<LineChannel>(output);
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
  server.endSubscriptions();
  client->cancelAll();
}

}  // namespace caisson::mcp
