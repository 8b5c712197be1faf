// A session's egress: starts and ends with its sandbox; its rules can change while it runs.
#include "session/network/network.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <span>

#include "approval/owner.h"
#include "approval/store.h"
#include "egress/process.h"
#include "policy/decode/validate.h"
#include "policy/rules/network_client.h"
#include "session/client/session_context.h"
#include "session/store/rollback.h"
#include "supervise/network/egress.h"
#include "sys/receive.h"

namespace caisson::session {
namespace {

using Kind = egress::Change::Kind;

constexpr int kAnswerMs = 5000;

sockaddr_un addressIn(const sys::RootDir& directory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Through the descriptor: the path itself may exceed the length of a socket address.
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

/// Sends a request to the session's egress process; `take` gets each report of the response.
Result<void> ask(const sys::RootDir& directory, const std::string& packet,
                 const std::function<void(const egress::Report&)>& take) {
  const auto connected = connectEgress(directory);
  if (!connected) return fail(connected.error());
  const sys::Fd& socket = *connected;
  if (::send(socket.get(), packet.data(), packet.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(packet.size())) {
    return fail(sysError(Stage::state, "send", "session egress", errno));
  }
  std::string room(egress::kPacketBytes, '\0');
  for (;;) {
    pollfd wait{socket.get(), POLLIN, 0};
    if (::poll(&wait, 1, kAnswerMs) <= 0) return fail(sysError(Stage::state, "poll", "session egress", ETIMEDOUT));
    const ssize_t got = sys::receiveMessage(socket.get(), std::as_writable_bytes(std::span(room)), {});
    if (got <= 0) return {};
    if (const auto report = egress::decodeReport({room.data(), static_cast<std::size_t>(got)})) take(*report);
  }
}

/// Removes the pattern from both lists and appends it to `to`.
void put(std::vector<std::string>& to, std::vector<std::string>& from, const std::string& pattern) {
  std::erase(from, pattern);
  std::erase(to, pattern);
  to.push_back(pattern);
}

}  // namespace

std::string_view networkName(policy::NetworkMode mode) {
  switch (mode) {
    case policy::NetworkMode::none: return "none";
    case policy::NetworkMode::proxy: return "proxy";
    case policy::NetworkMode::host: return "host";
  }
  return "none";
}

Result<sys::Fd> connectEgress(const sys::RootDir& directory) {
  sys::Fd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const sockaddr_un address = addressIn(directory);
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return fail(sysError(Stage::state, "connect", "session egress", errno, "the next command starts it again"));
  }
  return socket;
}

Result<egress::Process> startEgress(const plan::Plan& plan, const sys::RootDir& directory, EgressLinks links,
                                    int init) {
  auto listener = listenIn(directory);
  if (!listener) return fail(listener.error());
  return egress::Process::startForSession(sys::kOwnProgram, supervise::egressSettings(plan), std::move(links.sandbox),
                                          std::move(links.broker), init, listener->get());
}

Result<void> SessionContext::applyNetwork(Metadata after, const std::vector<egress::Change>& changes) {
  if (auto checked = policy::validate(after.policy, approval::noCeilings()); !checked) return checked;
  const bool more = after.policy.network.allowed_hosts.size() > metadata_.policy.network.allowed_hosts.size();
  if (auto written = writeMetadata(directory_, after, more ? kMaxGrownMetadataBytes : kMaxMetadataBytes); !written)
    return written;
  metadata_ = std::move(after);
  if (!isAlive(directory_)) return {};  // the next command starts it with the new rules
  if (auto reloaded = reload(); !reloaded) return reloaded;
  for (const egress::Change& change : changes) {
    std::optional<Error> failure =
        plainError(Stage::state, "session network", change.pattern, "the session's egress gave no answer", "try again");
    auto asked = ask(directory_, egress::encode(change), [&](const egress::Report& report) {
      if (report.kind == egress::Report::Kind::ready) failure.reset();
      if (report.kind == egress::Report::Kind::failed) {
        failure = plainError(Stage::policy, "session network", change.pattern, report.text);
      }
    });
    if (!asked) return asked;
    if (failure) return fail(*failure);
  }
  return {};
}

Result<void> SessionContext::changeNetwork(bool allow, std::string_view pattern) {
  auto held = lock();
  if (!held) return fail(held.error());
  if (auto checked = checkProtocol(); !checked) return checked;
  Metadata after = metadata_;
  policy::Network& network = after.policy.network;
  if (network.mode != policy::NetworkMode::proxy) {
    return fail(plainError(Stage::policy, "session network", id(), "the session has no network, so no host is allowed",
                           "`caisson session network " + id() + " allow HOST` gives it one"));
  }
  const std::string text(pattern);
  put(allow ? network.allowed_hosts : network.denied_hosts, allow ? network.denied_hosts : network.allowed_hosts, text);
  std::erase(after.granted, text);  // it is now allowed without an approval, or not at all
  return applyNetwork(std::move(after), {{allow ? Kind::allow : Kind::deny, text}});
}

Result<void> SessionContext::openHost(std::string_view pattern, HostTerm term, WhenBusy when_busy) {
  auto held = lock();
  if (!held) return fail(held.error());
  Metadata after = metadata_;
  policy::Network& network = after.policy.network;
  if (network.mode == policy::NetworkMode::host) {
    return fail(plainError(Stage::policy, "session network", id(), "the session has the host's own network already"));
  }
  const std::string text(pattern);
  if (network.mode == policy::NetworkMode::none) {
    auto owner = approval::loadOwner();
    if (!owner) return fail(owner.error());
    policy::openNetwork(network, std::move(owner->private_hosts));
  }
  put(network.allowed_hosts, network.denied_hosts, text);
  std::erase(after.granted, text);
  if (term == HostTerm::while_approved) after.granted.push_back(text);
  if (auto checked = policy::validate(after.policy, approval::noCeilings()); !checked) return checked;
  if (metadata_.policy.network.mode == policy::NetworkMode::none) {
    // The egress must be started together with the sandbox.
    if (auto settled = settle("session network", when_busy); !settled) return settled;
  }
  if (auto checked = checkProtocol(); !checked) return checked;
  if (auto noted = note("network", "allow " + text); !noted) return noted;
  if (metadata_.policy.network.mode == policy::NetworkMode::none) {
    // Programs would read what the offline sandbox left in the home: ~/.npmrc, ~/.gitconfig.
    if (auto discarded = discardScratch(directory_); !discarded) return discarded;
  }
  return applyNetwork(std::move(after), {{Kind::allow, text}});
}

std::unique_ptr<HostPrompt> SessionContext::promptForHosts(const ExecRequest& request) {
  if (!request.ask_for_hosts) return nullptr;
  const auto relays = [](StreamMode mode, int stream) { return mode == StreamMode::relay && ::isatty(stream) == 1; };
  const bool sees = relays(request.out, STDOUT_FILENO) || relays(request.err, STDERR_FILENO);
  const bool types = request.interactive && request.relay_stdin && ::isatty(STDIN_FILENO) == 1;
  if (!sees || !types || metadata_.policy.network.mode != policy::NetworkMode::proxy) return nullptr;
  return HostPrompt::attach(directory_, id(), [this](const std::string& target, bool while_approved) -> Result<void> {
    // Use a separate context: the command of this one runs with the metadata it was planned from.
    auto found = store_->find("session network", id());
    if (!found) return fail(found.error());
    const HostTerm term = while_approved ? HostTerm::while_approved : HostTerm::session;
    return SessionContext(store_, std::move(*found)).openHost(target, term, WhenBusy::refuse);
  });
}

Result<void> SessionContext::closeHost(std::string_view pattern) {
  auto held = lock();
  if (!held) return fail(held.error());
  Metadata after = metadata_;
  const std::string text(pattern);
  std::erase(after.granted, text);
  if (std::erase(after.policy.network.allowed_hosts, text) == 0) return {};
  (void)note("network", "close " + text);  // even without the log: closing must always be possible
  return applyNetwork(std::move(after), {{Kind::forget, text}});
}

Result<void> SessionContext::reviewHosts() {
  if (metadata_.granted.empty()) return {};
  auto store = approval::Store::open();
  if (!store) return fail(store.error());
  auto held = lock();
  if (!held) return fail(held.error());
  const auto approvals = store->list(std::time(nullptr));
  if (!approvals) return fail(approvals.error());
  Metadata after = metadata_;
  std::vector<egress::Change> changes;
  for (const std::string& host : metadata_.granted) {
    const bool stands = std::any_of(approvals->begin(), approvals->end(), [&](const approval::Approval& one) {
      const bool here =
          one.scope == approval::Scope::timed || (one.scope == approval::Scope::session && one.session == id());
      return here && one.what == "host:" + host;
    });
    if (stands) continue;
    std::erase(after.granted, host);
    std::erase(after.policy.network.allowed_hosts, host);
    changes.push_back({Kind::forget, host});
    (void)note("network", "close " + host);
  }
  if (changes.empty()) return {};
  return applyNetwork(std::move(after), changes);
}

}  // namespace caisson::session
