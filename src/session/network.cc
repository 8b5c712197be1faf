// A session's egress: started with its sandbox, ended with it, its rules changed while it runs (N10).
#include "session/network.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "egress/process.h"
#include "policy/validate.h"
#include "session/handle.h"
#include "supervise/egress.h"

namespace caisson::session {
namespace {

constexpr int kAnswerMs = 5000;

sockaddr_un addressIn(const sys::RootDir& directory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Through the descriptor: the path itself may be longer than an address has room for.
  std::snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", directory.descriptor(),
                kEgressSocket);
  return address;
}

Result<sys::Fd> listenIn(const sys::RootDir& directory) {
  sys::Fd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return fail(sysError(Stage::launch, "socket", "session egress", errno));
  if (auto removed = directory.remove(kEgressSocket); !removed) return fail(removed.error());
  const sockaddr_un address = addressIn(directory);
  if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(listener.get(), 16) != 0) {
    return fail(sysError(Stage::state, "bind", directory.knownAs() + "/" + kEgressSocket, errno,
                         "the file system of CAISSON_HOME must hold sockets; set CAISSON_HOME to a local disk"));
  }
  return listener;
}

/// Asks the session's egress process; `take` gets each report of its answer.
Result<void> ask(const sys::RootDir& directory, const std::string& packet,
                 const std::function<void(const egress::Report&)>& take) {
  const sys::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = addressIn(directory);
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return fail(sysError(Stage::state, "connect", "session egress", errno, "the next command starts it again"));
  }
  if (::send(socket.get(), packet.data(), packet.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(packet.size())) {
    return fail(sysError(Stage::state, "send", "session egress", errno));
  }
  std::string room(egress::kPacketBytes, '\0');
  for (;;) {
    pollfd wait{socket.get(), POLLIN, 0};
    if (::poll(&wait, 1, kAnswerMs) <= 0) return fail(sysError(Stage::state, "poll", "session egress", ETIMEDOUT));
    const ssize_t got = ::recv(socket.get(), room.data(), room.size(), 0);
    if (got <= 0) return {};
    if (const auto report = egress::decodeReport({room.data(), static_cast<std::size_t>(got)})) take(*report);
  }
}

void put(std::vector<std::string>& to, std::vector<std::string>& from, const std::string& pattern) {
  std::erase(from, pattern);
  std::erase(to, pattern);
  to.push_back(pattern);
}

}  // namespace

Result<void> startEgress(const plan::Plan& plan, const sys::RootDir& directory, sys::Fd link, int init) {
  auto listener = listenIn(directory);
  if (!listener) return fail(listener.error());
  return egress::startResident(supervise::egressSettings(plan), std::move(link), init, listener->get());
}

Result<void> Handle::changeNetwork(bool allow, std::string_view pattern) {
  auto held = lock();
  if (!held) return fail(held.error());
  policy::Network& network = metadata_.policy.network;
  if (network.mode != policy::NetworkMode::proxy) {
    return fail(plainError(Stage::policy, "session network", id(), "the session was made without an egress",
                           "make one with --net proxy"));
  }
  const std::string text(pattern);
  put(allow ? network.allowed_hosts : network.denied_hosts, allow ? network.denied_hosts : network.allowed_hosts, text);
  if (auto checked = policy::validate(metadata_.policy); !checked) return checked;
  if (auto written = writeMetadata(directory_, metadata_); !written) return written;
  planner_.reset();
  if (!isAlive(directory_)) return {};  // the next command starts it with the new rules
  std::optional<Error> failure;
  auto asked = ask(directory_, egress::encode(egress::Change{allow, text}), [&](const egress::Report& report) {
    if (report.kind == egress::Report::Kind::failed) {
      failure = plainError(Stage::policy, "session network", text, report.text);
    }
  });
  if (!asked) return asked;
  if (failure) return fail(*failure);
  return {};
}

void Handle::addNetworkRecord(RunResult& result) {
  if (metadata_.policy.network.mode != policy::NetworkMode::proxy) return;
  supervise::EgressRecord record;
  auto log = audit::Log::open();
  (void)ask(directory_, "reports",
            [&](const egress::Report& report) { record.take(report, log ? &*log : nullptr, id()); });
  record.fill(result);
}

}  // namespace caisson::session
