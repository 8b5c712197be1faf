#include "session/supervisor/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "session/client/worker.h"
#include "session/supervisor/supervisor.h"
#include "supervise/alert.h"
#include "supervise/syscalls/set_id_bits.h"
#include "sys/deadline.h"
#include "sys/descriptor_limit.h"
#include "sys/pipe.h"

// In the namespace of the type, so that codec.h finds it.
namespace caisson::supervise {
template <class A, session::Of<MaskCopy> T>
void fields(A& archive, T& v) {
  archive(v.directory, v.part);
}
template <class A, session::Of<MaskTarget> T>
void fields(A& archive, T& v) {
  archive(v.directory, v.paths, v.uid, v.gid, v.copies, v.kept);
}
}  // namespace caisson::supervise

namespace caisson::session {

template <class A, Of<OverlayOptions> T>
void fields(A& archive, T& v) {
  archive(v.target, v.lower, v.upper, v.work, v.executable, v.uid, v.gid);
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kRemountTimeout = std::chrono::seconds(12);
constexpr auto kModeTimeout = std::chrono::seconds(2);
constexpr auto kAlertTimeout = std::chrono::seconds(60);
constexpr int kReapPauseMs = 100;

/// TreeBounds in a message.
struct MeasureOptions {
  std::uint64_t bytes = 0, inodes = 0;
  std::uint64_t timeout_ms = 0;
  bool has_since = false;
  std::int64_t since_seconds = 0, since_nanoseconds = 0;
};
template <class A, Of<MeasureOptions> T>
void fields(A& archive, T& v) {
  archive(v.bytes, v.inodes, v.timeout_ms, v.has_since, v.since_seconds, v.since_nanoseconds);
}

/// A mode, and in the reply an errno.
struct ModeNumber {
  std::uint32_t number = 0;
};
template <class A, Of<ModeNumber> T>
void fields(A& archive, T& v) {
  archive(v.number);
}

struct Problems {
  std::vector<std::string> list;
};
template <class A, Of<Problems> T>
void fields(A& archive, T& v) {
  archive(v.list);
}

Error launcherGone() {
  return plainError(Stage::supervise, "session", "launcher", "the session's launcher does not answer",
                    "it was killed, or the host is overloaded; use the session again");
}

/// The process that serves one supervisor after another.
class LauncherProcess {
 public:
  LauncherProcess(const Store& store, std::string id) : store_(store), id_(std::move(id)) {}

  int run(int status) {
    for (;;) {
      int ends[2];
      if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return 1;
      socket_ = sys::Fd(ends[0]);
      sys::Fd theirs(ends[1]);
      const pid_t child = ::fork();
      if (child < 0) return 1;
      if (child == 0) {
        socket_.reset();
        return runSupervisor(store_, id_, Launcher(std::move(theirs)), std::move(next_), status);
      }
      ++children_;
      if (status >= 0) ::close(status);
      status = -1;
      theirs.reset();
      next_ = {};
      if (!serveUntilEnd()) return 0;
    }
  }

 private:
  /// False: the supervisor exited. True: fork another one.
  bool serveUntilEnd() {
    for (;;) {
      reap();
      pollfd wait{socket_.get(), POLLIN, 0};
      // The supervisor is a child too, but its exit shows at the socket.
      const int ready = ::poll(&wait, 1, children_ > 1 ? kReapPauseMs : -1);
      if (ready < 0 && errno != EINTR) return false;
      if (ready <= 0) continue;
      Packet packet;
      const Receipt receipt = receivePacket(socket_.get(), packet);
      if (receipt == Receipt::nothing) continue;
      if (receipt != Receipt::message) return false;
      if (packet.type == MessageType::restart && packet.descriptors.size() == 2) {
        next_.start = std::move(packet.value);
        next_.listener = std::move(packet.descriptors[0]);
        next_.client = std::move(packet.descriptors[1]);
        return true;
      }
      serve(std::move(packet));
    }
  }

  void reap() {
    while (children_ > 0 && ::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) --children_;
  }

  void serve(Packet packet) {
    switch (packet.type) {
      case MessageType::keep_port: return keepPort(std::move(packet));
      case MessageType::squash: return squash(packet);
      case MessageType::remount: return remount(packet);
      case MessageType::mask: return mask(packet);
      case MessageType::measure: return measure(packet);
      case MessageType::set_mode: return setMode(packet);
      case MessageType::alert: {
        const pid_t child = ::fork();
        if (child > 0) ++children_;
        if (child != 0) return;
        sendAlert(packet);
        ::_exit(0);
      }
      default: return;
    }
  }

  void squash(const Packet& packet) const {
    const auto request = codec::decode<SquashRequest>(packet.value);
    if (request) (void)startWorker(store_.paths(), {request->reclaim ? "reclaim" : "squash", id_});
  }

  void keepPort(Packet packet) {
    const auto options = codec::decode<PortOptions>(packet.value);
    if (!options || packet.descriptors.empty()) return;
    KeptPort& port = next_.ports.emplace_back();
    port.options = *options;
    port.lock = std::move(packet.descriptors[0]);
    if (packet.descriptors.size() > 1) port.listener = std::move(packet.descriptors[1]);
  }

  void remount(const Packet& packet) {
    const auto options = codec::decode<OverlayOptions>(packet.value);
    if (!options || packet.descriptors.size() != 3) return;
    const auto mounted = remountOverlay(packet.descriptors[0].get(), packet.descriptors[1].get(), *options);
    if (!mounted && mounted.error().sys_errno == ETIMEDOUT) ++children_;  // it was killed, and is reaped later
    const int reply = packet.descriptors[2].get();
    if (mounted) {
      (void)sendPacket(reply, MessageType::done, {});
    } else {
      (void)sendPacket(reply, MessageType::failed, codec::encode(mounted.error()));
    }
  }

  void mask(const Packet& packet) {
    const auto target = codec::decode<supervise::MaskTarget>(packet.value);
    if (!target || packet.descriptors.size() != 2) return;
    const long helper =
        supervise::startMaskHelper({.init = packet.descriptors[0].get()}, *target, packet.descriptors[1].get());
    if (helper > 0) ++children_;  // otherwise the closed pipe reports it
  }

  void measure(const Packet& packet) {
    const auto options = codec::decode<MeasureOptions>(packet.value);
    if (!options || packet.descriptors.size() < 2) return;
    const int sandbox = packet.descriptors.size() > 2 ? packet.descriptors[2].get() : -1;
    supervise::TreeBounds bounds{.bytes = options->bytes, .inodes = options->inodes};
    if (options->has_since) {
      bounds.since = timespec{.tv_sec = static_cast<time_t>(options->since_seconds),
                              .tv_nsec = static_cast<long>(options->since_nanoseconds)};
    }
    bounds.deadline = Clock::now() + std::chrono::milliseconds(options->timeout_ms);
    const long helper =
        supervise::startMeasureHelper(packet.descriptors[0].get(), bounds, packet.descriptors[1].get(), sandbox);
    if (helper > 0) ++children_;  // otherwise the closed pipe reports it
  }

  static void setMode(const Packet& packet) {
    const auto mode = codec::decode<ModeNumber>(packet.value);
    if (!mode || packet.descriptors.size() != 3) return;
    const int error =
        supervise::changeModeInside(packet.descriptors[0].get(), packet.descriptors[1].get(), mode->number);
    (void)sendPacket(packet.descriptors[2].get(), MessageType::done,
                     codec::encode(ModeNumber{static_cast<std::uint32_t>(error)}));
  }

  static void sendAlert(const Packet& packet) {
    if (packet.descriptors.size() != 1) return;
    (void)sendPacket(packet.descriptors[0].get(), MessageType::done,
                     codec::encode(Problems{supervise::sendAlert(packet.value)}));
  }

  const Store& store_;
  const std::string id_;
  sys::Fd socket_;
  Succession next_;
  int children_ = 0;
};

}  // namespace

Result<Packet> Launcher::request(MessageType type, const std::string& value, std::vector<int> descriptors,
                                 Clock::duration timeout) {
  int ends[2];
  if (!socket_ || ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return fail(launcherGone());
  const sys::Fd ours(ends[0]);
  sys::Fd theirs(ends[1]);
  descriptors.push_back(theirs.get());
  if (sendPacket(socket_.get(), type, value, std::move(descriptors)) != 0) return fail(launcherGone());
  theirs.reset();
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    pollfd wait{ours.get(), POLLIN, 0};
    const int ready = ::poll(&wait, 1, sys::millisecondsUntil(deadline));
    if (ready < 0 && errno == EINTR) continue;
    Packet packet;
    const Receipt receipt = ready > 0 ? receivePacket(ours.get(), packet) : Receipt::closed;
    if (receipt == Receipt::message) return packet;
    if (receipt != Receipt::nothing) return fail(launcherGone());
  }
}

Result<void> Launcher::remount(int init_pidfd, int layer, const OverlayOptions& options) {
  auto answer = request(MessageType::remount, codec::encode(options), {init_pidfd, layer}, kRemountTimeout);
  if (!answer) return fail(answer.error());
  if (answer->type == MessageType::done) return {};
  auto failure = codec::decode<Error>(answer->value);
  return fail(failure ? std::move(*failure) : launcherGone());
}

Result<supervise::LiveMask> Launcher::mask(int init_pidfd, const supervise::MaskTarget& target) {
  auto pipe = sys::makePipe(Stage::mounts, target.directory);
  if (!pipe) return fail(pipe.error());
  sys::Fd ours = std::move(pipe->read);
  const sys::Fd theirs = std::move(pipe->write);
  if (!socket_ ||
      sendPacket(socket_.get(), MessageType::mask, codec::encode(target), {init_pidfd, theirs.get()}, false) != 0) {
    return fail(launcherGone());
  }
  return supervise::LiveMask(std::move(ours));
}

std::optional<supervise::ClosedMeasure> Launcher::measure(int directory, const supervise::TreeBounds& bounds,
                                                          int sandbox) {
  if (!socket_ || !bounds.deadline) return std::nullopt;
  auto pipe = sys::makePipe(Stage::state);
  if (!pipe) return std::nullopt;
  sys::Fd ours = std::move(pipe->read);
  const sys::Fd theirs = std::move(pipe->write);
  MeasureOptions options{.bytes = bounds.bytes, .inodes = bounds.inodes, .has_since = bounds.since.has_value()};
  options.timeout_ms = static_cast<std::uint64_t>(std::max(0, sys::millisecondsUntil(*bounds.deadline)));
  if (bounds.since) {
    options.since_seconds = bounds.since->tv_sec;
    options.since_nanoseconds = bounds.since->tv_nsec;
  }
  std::vector<int> descriptors{directory, theirs.get()};
  if (sandbox >= 0) descriptors.push_back(sandbox);
  if (sendPacket(socket_.get(), MessageType::measure, codec::encode(options), std::move(descriptors), false) != 0) {
    return std::nullopt;
  }
  return supervise::ClosedMeasure(std::move(ours));
}

int Launcher::setMode(int sandbox, int object, mode_t mode) {
  auto answer = request(MessageType::set_mode, codec::encode(ModeNumber{mode}), {sandbox, object}, kModeTimeout);
  const auto error = answer ? codec::decode<ModeNumber>(answer->value) : std::nullopt;
  return error ? static_cast<int>(error->number) : EPERM;
}

std::vector<std::string> Launcher::sendAlert(const std::string& text) {
  auto answer = request(MessageType::alert, text, {}, kAlertTimeout);
  if (!answer) return {answer.error().message()};
  const auto problems = codec::decode<Problems>(answer->value);
  return problems ? problems->list : std::vector<std::string>{launcherGone().message()};
}

void Launcher::squash(bool reclaim) {
  if (socket_) (void)sendPacket(socket_.get(), MessageType::squash, codec::encode(SquashRequest{.reclaim = reclaim}));
}

bool Launcher::succeed(int listener, int client, const std::string& start, const std::vector<KeptPort>& ports) {
  if (!socket_) return false;
  for (const KeptPort& port : ports) {
    std::vector<int> descriptors{port.lock.get()};
    if (port.listener) descriptors.push_back(port.listener.get());
    if (sendPacket(socket_.get(), MessageType::keep_port, codec::encode(port.options), descriptors) != 0) return false;
  }
  return sendPacket(socket_.get(), MessageType::restart, start, {listener, client}) == 0;
}

int superviseMain(const Store& store, const std::string& id, int status) {
  // Signals of the starting process and a closed pipe must not kill it.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, nullptr);
  ::prctl(PR_SET_DUMPABLE, 0);
  ::umask(022);
  sys::raiseDescriptorLimit();
  return LauncherProcess(store, id).run(status);
}

}  // namespace caisson::session
