// The `caisson-broker` program: holds the secrets of one sandbox's credentials, and its certificate authority's key.
//
// Started only by a supervisor, without environment and arguments. It reads its settings, creates the authority, drops
// all other rights (no files, no network, some thirty system calls) and then only transforms bytes between client and
// host, over sockets that the egress process passes to it.
#include <openssl/ssl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <list>
#include <map>

#include "base/version.h"
#include "broker/authority.h"
#include "broker/confine.h"
#include "broker/relay.h"
#include "broker/settings.h"
#include "sys/receive.h"

namespace caisson::broker {
namespace {

constexpr std::string_view kMark = "{secret}";

class Program final : public Broker, public egress::Watcher {
 public:
  /// Does everything that needs files or takes time; returns the authority's certificate.
  Result<std::string> prepare(const Settings& settings);
  void serve(sys::Fd egress);
  void onEvents(int descriptor, std::uint32_t events) override;

 private:
  Result<void> addHost(const Settings& settings, const Authority& authority, const egress::HostPort& target);

  std::list<Host> hosts_;
  std::list<SecretBytes> values_;
  std::list<std::unique_ptr<Relay>> relays_;
  std::uint64_t max_connections_ = 0;
  bool ended_ = false;
};

/// The value with the secret inserted, in protected memory like the secret itself.
SecretBytes fill(std::string_view pattern, std::string_view secret) {
  const std::size_t mark = pattern.find(kMark);
  if (mark == std::string_view::npos) return SecretBytes(0);
  SecretBytes value(pattern.size() - kMark.size() + secret.size());
  if (!value.valid()) return value;
  const std::string_view before = pattern.substr(0, mark), after = pattern.substr(mark + kMark.size());
  char* end = value.data();
  for (const std::string_view part : {before, secret, after}) end = std::copy(part.begin(), part.end(), end);
  return value;
}

bool isFieldText(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

Result<void> Program::addHost(const Settings& settings, const Authority& authority, const egress::HostPort& target) {
  Host host{target, {}, {}, {}};
  std::string_view authorities = settings.authorities;
  for (const CredentialView& one : settings.credentials) {
    if (one.target != target.text()) continue;
    if (!one.authorities.empty()) authorities = one.authorities;
    const SecretBytes& value = values_.emplace_back(fill(one.value, one.secret));
    if (!value.valid() || !isFieldText(value.text())) {
      return fail(plainError(Stage::launch, "broker", one.name, "its value cannot stand in a header"));
    }
    host.injections.push_back({one.name, one.header, value.text(), one.secret});
  }
  auto server = authority.serverFor(target.host.name);
  if (!server) return fail(server.error());
  auto client = clientTrusting(authorities);
  if (!client) return fail(client.error());
  host.server = std::move(*server);
  host.client = std::move(*client);
  hosts_.push_back(std::move(host));
  return {};
}

Result<std::string> Program::prepare(const Settings& settings) {
  max_connections_ = settings.max_connections;
  std::vector<egress::HostPort> targets;
  std::vector<std::string> names;
  for (const CredentialView& one : settings.credentials) {
    auto target = egress::canonicalAuthority(one.target, 0);
    if (!target || target->host.address) return fail(plainError(Stage::launch, "broker", one.target, "no host name"));
    if (std::ranges::find(targets, *target) != targets.end()) continue;
    if (std::ranges::find(names, target->host.name) == names.end()) names.push_back(target->host.name);
    targets.push_back(std::move(*target));
  }
  const auto authority = Authority::make(names, settings.lifetime_seconds);
  if (!authority) return fail(authority.error());
  for (const egress::HostPort& target : targets) {
    if (auto added = addHost(settings, *authority, target); !added) return fail(added.error());
  }
  if (auto opened = loop.open(); !opened) return fail(opened.error());
  return authority->pem();
}

void Program::serve(sys::Fd egress) {
  egress_ = std::move(egress);
  if (!loop.watch(egress_.get(), EPOLLIN, this)) return;
  while (!ended_) {
    loop.turn(unfinished_.empty() ? -1 : 0);
    const auto unfinished = std::exchange(unfinished_, {});
    for (Relay* relay : unfinished) relay->progress();
    if (!std::exchange(retired_, false)) continue;
    std::erase_if(unfinished_, [](const Relay* relay) { return relay->closed(); });
    std::erase_if(relays_, [](const auto& relay) { return relay->closed(); });
  }
}

/// Receives a connection to a host with a credential from the egress, and drops it beyond max_connections. Ends the
/// program when the egress closes the link.
void Program::onEvents(int, std::uint32_t) {
  char packet[egress::kBrokerPacketBytes];
  sys::Fd ends[2];
  const auto room = std::as_writable_bytes(std::span(packet));
  const ssize_t got = sys::receiveMessage(egress_.get(), room, ends, MSG_DONTWAIT);
  if (got == -EAGAIN) return;
  if (got <= 0) {
    ended_ = true;
    return;
  }
  const auto target = egress::decodeHandOver({packet, static_cast<std::size_t>(got)});
  if (!target || !ends[0] || !ends[1] || relays_.size() >= max_connections_) return;
  const auto host = std::ranges::find_if(hosts_, [&](const Host& one) { return one.target.text() == *target; });
  if (host == hosts_.end()) return;
  relays_.push_back(std::make_unique<Relay>(*this, *host, std::move(ends[0]), std::move(ends[1])));
  relays_.back()->begin();
}

/// Call before any secret is read: disables core files and ptrace.
void hide() {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::signal(SIGPIPE, SIG_IGN);  // a client that disconnects must not kill us
}

int giveUp(const Error& error) {
  (void)sendCounted(kStarterEnd, encode(Answer{false, error.message()}));
  return 1;
}

int run() {
  hide();
  OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
  const auto packet = receiveCounted(kStarterEnd);
  if (!packet) return 1;  // not started by a supervisor: there is no peer to report to
  const auto settings = decodeSettings(packet->text());
  if (!settings && protocolOf(packet->text()) != kBrokerProtocol) {
    return giveUp(plainError(
        Stage::launch, "broker", "caisson-broker",
        "the sandbox's supervisor is of another version than this broker (" + std::string(ownVersion()) + ")",
        "close the session's ports and try again: that starts a supervisor of this version"));
  }
  if (!settings) return giveUp(plainError(Stage::launch, "broker", "settings", "they are malformed"));
  Program program;
  const auto certificate = program.prepare(*settings);
  if (!certificate) return giveUp(certificate.error());
  if (auto confined = confine(*settings); !confined) return giveUp(confined.error());
  if (!sendCounted(kStarterEnd, encode(Answer{true, *certificate}))) return 1;
  ::close(kStarterEnd);
  program.serve(sys::Fd(kEgressEnd));
  return 0;
}

}  // namespace
}  // namespace caisson::broker

int main() { ::_exit(caisson::broker::run()); }
