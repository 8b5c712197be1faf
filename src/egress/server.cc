#include "egress/server.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "egress/broker_link.h"
#include "egress/connection.h"
#include "egress/control.h"
#include "egress/dns_server.h"
#include "egress/packet_log.h"
#include "egress/sockets.h"
#include "sys/receive.h"

namespace caisson::egress {
namespace {

constexpr auto kTick = std::chrono::milliseconds(250);
constexpr auto kOverflowInterval = std::chrono::seconds(10);
constexpr int kAcceptsATurn = 64;
constexpr std::size_t kMaxUnsent = 4096;

std::vector<Address> parseServers(const std::vector<std::string>& texts) {
  std::vector<Address> servers;
  for (const std::string& text : texts) {
    if (const auto address = Address::parse(text)) servers.push_back(*address);
  }
  return servers;
}

}  // namespace

Server::Server(Settings given, Rules initial, sys::Fd supervisor)
    : settings(std::move(given)),
      rules(std::move(initial)),
      resolver(std::make_unique<Resolver>(loop, parseServers(settings.dns_servers))),
      supervisor_(std::move(supervisor)),
      budget_(settings.dns_queries_per_minute) {}

Server::~Server() = default;

Result<void> Server::open() {
  if (auto opened = loop.open(); !opened) return opened;
  return own_addresses.open();
}

Result<void> Server::serve(SandboxSockets sockets) {
  sockets_ = std::move(sockets);
  dns_ = std::make_unique<DnsServer>(*this);
  if (sockets_.dns) dns_->serve(sockets_.dns.get(), sockets_.dns_stream.get());
  if (sockets_.log) {
    packets_ = std::make_unique<PacketLog>(*this);
    packets_->serve(sockets_.log.get());
  }
  supervised_ = loop.watch(supervisor_.get(), EPOLLIN, this);
  const bool handed = sockets_.handed.valid();
  bool watched = supervised_ && loop.watch(handed ? sockets_.handed.get() : sockets_.proxy.get(), EPOLLIN, this);
  for (const sys::Fd& listener : sockets_.capture) watched = watched && loop.watch(listener.get(), EPOLLIN, this);
  if (control_) watched = watched && control_->watch();
  if (broker) watched = watched && broker->watch();
  if (!watched) return fail(sysError(Stage::launch, "epoll_ctl", "egress listeners", errno));
  sendReport({Report::Kind::ready,
              handed                ? "none, programs must use the proxy"
              : sockets_.redirected ? "every port"
                                    : "permitted ports",
              {},
              {}});
  return {};
}

void Server::useControl(sys::Fd init, sys::Fd listener) {
  control_ = std::make_unique<Control>(*this, std::move(init), std::move(listener));
}

void Server::useBroker(sys::Fd link) { broker = std::make_unique<BrokerLink>(*this, std::move(link)); }

void Server::run() {
  while (!ended_) {
    const bool waiting = !connections_.empty() || resolver->busy() || !paused_listeners_.empty() ||
                         (!control_ && requests_.hasOverflow());
    loop.turn(!unfinished_.empty() ? 0 : waiting ? static_cast<int>(kTick.count()) : -1);
    const auto unfinished = std::exchange(unfinished_, {});
    for (Connection* connection : unfinished) connection->resume();
    const auto now = Clock::now();
    if (now >= next_tick_) tick(now);
    if (std::exchange(retired_, false)) {
      std::erase_if(unfinished_, [](const Connection* connection) { return connection->closed(); });
      std::erase_if(connections_, [](const auto& connection) { return connection->closed(); });
    }
  }
  connections_.clear();  // each reports its byte counts
  if (packets_) packets_->finish();
  reportRemaining();
  sendReport({Report::Kind::totals, {}, {}, totals});
  if (supervisor_) sendUnsent(0);
}

void Server::tick(Clock::time_point now) {
  next_tick_ = now + kTick;
  for (const auto& [listener, watcher] : std::exchange(paused_listeners_, {})) loop.watch(listener, EPOLLIN, watcher);
  resolver->tick(now);
  dns_->tick(now);
  if (control_) control_->prompt_clients.tick(now);
  for (const auto& connection : connections_) connection->tick(now);
  if (now < next_overflow_ || !requests_.hasOverflow()) return;
  next_overflow_ = now + kOverflowInterval;
  sendOverflows();
}

bool Server::isCapture(int descriptor) const {
  return std::ranges::any_of(sockets_.capture, [&](const sys::Fd& fd) { return fd.get() == descriptor; });
}

void Server::onEvents(int descriptor, std::uint32_t events) {
  if (descriptor == supervisor_.get()) {
    if ((events & EPOLLOUT) != 0) sendUnsent(MSG_DONTWAIT);
    return onSupervisor();
  }
  if (descriptor == sockets_.handed.get()) return acceptHanded();
  accept(descriptor, !isCapture(descriptor));
}

void Server::acceptHanded() {
  for (int i = 0; i < kAcceptsATurn; ++i) {
    std::byte mark{};
    sys::Fd client;
    const ssize_t got = sys::receiveMessage(sockets_.handed.get(), {&mark, 1}, {&client, 1}, MSG_DONTWAIT);
    if (got == 0) {  // the supervisor makes no more connections
      loop.forget(sockets_.handed.get());
      sockets_.handed.reset();
    }
    if (got <= 0) return;
    if (client) take(std::move(client), true);
  }
}

void Server::accept(int listener, bool on_proxy_port) {
  for (int i = 0; i < kAcceptsATurn; ++i) {
    sys::Fd client(::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!client) return onAcceptFailed(listener, this, errno);
    take(std::move(client), on_proxy_port);
  }
}

int Server::bufferBytes() const {
  constexpr std::ptrdiff_t kMaxGrowing = 4;
  if (std::ranges::count_if(connections_, [](const auto& one) { return one->grows(); }) < kMaxGrowing) return 0;
  constexpr std::uint64_t kTotalBytes = 32 << 20, kMinBytes = 32 << 10, kMaxBytes = 256 << 10;
  const std::uint64_t share = kTotalBytes / std::max<std::uint64_t>(settings.max_connections, 1);
  return static_cast<int>(std::clamp(share, kMinBytes, kMaxBytes));
}

void Server::onAcceptFailed(int listener, Watcher* watcher, int error) {
  if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM) return;
  if (loop.watch(listener, 0, watcher)) paused_listeners_.emplace_back(listener, watcher);
}

void Server::take(sys::Fd client, bool on_proxy_port) {
  const auto local = originalTarget(client.get(), !on_proxy_port && sockets_.redirected);
  Request refusal;
  if (!local) refusal.rule = "the connection has no target";
  if (connections_.size() >= settings.max_connections) {
    refusal.rule = "network.max_connections: " + std::to_string(connections_.size()) + " are open";
    refusal.remedy = "close connections, or raise network.max_connections in the policy";
  }
  if (overByteLimit()) {
    refusal.rule = "network.max_bytes is used up";
    refusal.remedy = "raise network.max_bytes in the policy";
  }
  if (!refusal.rule.empty()) {
    refusal.operation = "connect";
    refusal.host = local ? local->address.text() : "";
    refusal.port = local ? local->port : std::uint16_t{0};
    report(std::move(refusal));
    return resetOnClose(client.get());
  }
  connections_.push_back(std::make_unique<Connection>(*this, std::move(client), *local));
  // The listeners accept on every address of the sandbox; only loopback is the proxy.
  if (on_proxy_port && blockedRange(local->address) == "loopback") {
    connections_.back()->beginProxy();
  } else {
    connections_.back()->beginCaptured(*local);
  }
}

std::size_t Server::freeBytes(const Host& host) const {
  return (settings.ask || settings.for_session) && !rules.judgeName(host).allowed ? 0 : rules.freeBytes(host);
}

void Server::lookUp(const Host& host, std::optional<std::uint16_t> port, const void* owner,
                    std::function<void(const Addresses&)> callback) {
  const auto judged = [this, host, port, callback](const Resolution& resolution) {
    Addresses result;
    result.failed = resolution.failed;
    result.decision = judgeResolved(host, port, resolution.aliases, resolution.addresses);
    if (result.decision.allowed) {
      result.aliases = resolution.aliases;
      result.list = resolution.addresses;
    }
    callback(result);
  };
  if (host.address) return judged({.addresses = {*host.address}});
  if (!resolver->knows(host.name)) {
    const auto verdict = budget_.charge(host.name, freeBytes(host), Clock::now());
    if (verdict != LookupBudget::Verdict::fine) {
      const bool many = verdict == LookupBudget::Verdict::too_many;
      return callback(
          {{false, many ? "network.dns_queries_per_minute is used up" : "too much text in names, as in a DNS tunnel",
            many ? "raise network.dns_queries_per_minute" : "name the hosts instead of a pattern"},
           false,
           {},
           {}});
    }
  }
  resolver->resolve(host.name, owner, judged);
}

void Server::findProxy(const void* owner, std::function<void(std::optional<Endpoint>)> callback) {
  const auto proxy = canonicalAuthority(settings.upstream_proxy, 0);
  if (!proxy) return callback(std::nullopt);
  if (proxy->host.address) return callback(Endpoint{*proxy->host.address, proxy->port});
  if (proxy->host.name == "localhost") return callback(Endpoint{Address::v4(INADDR_LOOPBACK), proxy->port});
  resolver->resolve(proxy->host.name, owner, [callback, port = proxy->port](const Resolution& found) {
    if (found.addresses.empty()) return callback(std::nullopt);
    callback(Endpoint{found.addresses.front(), port});
  });
}

void Server::countBytes(std::uint64_t sent, std::uint64_t received) {
  totals.sent += sent;
  totals.received += received;
}

void Server::again(Connection* connection) {
  // Once: an event and resume() may both find that there is more.
  if (std::ranges::find(unfinished_, connection) == unfinished_.end()) unfinished_.push_back(connection);
}

void Server::retire(Connection*) { retired_ = true; }

bool Server::report(Request request, std::string_view blocked_range) {
  if (!request.allowed) {
    if (request.operation != kUnreachable) ++totals.denied;
    const auto address = Address::parse(request.host);
    if (blocked_range.empty() && address && own_addresses.contains(*address)) blocked_range = "this host";
    request.category = categoryOf(request, blocked_range);
  }
  auto record = requests_.add(std::move(request), RequestLog::WallClock::now());
  if (!record) return false;
  sendReport({Report::Kind::request, {}, std::move(*record), {}});
  return true;
}

void Server::reportUnreachable(const std::string& host, std::uint16_t port, std::string_view why) {
  Request request;
  request.operation = kUnreachable;
  request.host = host;
  request.port = port;
  request.rule = "it is allowed, but it could not be reached: " + std::string(why);
  request.remedy = "check the name, the host, and the DNS servers that this machine uses (network.dns_servers)";
  report(std::move(request));
}

void Server::reportUnknown(std::uint64_t count) {
  totals.denied += count;
  requests_.addUnknown(count, RequestLog::WallClock::now());
}

void Server::reportRemaining() {
  for (Request& request : requests_.takeRepetitions()) {
    sendReport({Report::Kind::request, {}, std::move(request), {}});
  }
  sendOverflows();
}

void Server::sendOverflows() {
  for (const Overflow& overflow : requests_.takeOverflows()) {
    sendReport({Report::Kind::overflow, {}, {}, {}, {}, overflow});
  }
}

void Server::sendReport(const Report& report) {
  if (report.kind == Report::Kind::request && report.request.operation == kOpened) ++opened_;
  unsent_.push_back(encode(report));
  // Drops nothing: a program must not be able to hide a request behind a thousand others. If the supervisor is too
  // slow, the sandbox's network blocks.
  sendUnsent(unsent_.size() > kMaxUnsent ? 0 : MSG_DONTWAIT);
}

void Server::sendUnsent(int flags) {
  while (!unsent_.empty()) {
    const std::string& packet = unsent_.front();
    const ssize_t sent = ::send(supervisor_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | flags);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) break;
    if (sent < 0 && errno == EPIPE) unsent_.clear();  // the supervisor is gone
    if (!unsent_.empty()) unsent_.pop_front();
  }
  if (supervised_) {
    const std::uint32_t more = unsent_.empty() ? 0U : static_cast<std::uint32_t>(EPOLLOUT);
    loop.watch(supervisor_.get(), EPOLLIN | more, this);
  }
}

void Server::onSupervisor() {
  char packet[4096];
  const ssize_t got = ::recv(supervisor_.get(), packet, sizeof(packet), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return end();  // without its supervisor, requests would not be recorded
  const std::string_view received(packet, static_cast<std::size_t>(got));
  if (received == kWantsTotals) {
    reportRemaining();
    return sendReport({Report::Kind::totals, {}, {}, totals});
  }
  if (const auto recorded = decodeRecorded(received)) {
    for (const auto& connection : connections_) connection->recorded(*recorded);
    return;
  }
  (void)applyChange(received);
}

Result<void> Server::applyChange(std::string_view packet) {
  const auto change = decodeChange(packet);
  if (!change) return fail(plainError(Stage::policy, "egress", "change", "it is malformed"));
  if (change->kind == Change::Kind::permit || change->kind == Change::Kind::refuse) return answerQuestion(*change);
  if (change->kind == Change::Kind::mine || change->kind == Change::Kind::other) {
    return fail(plainError(Stage::policy, "egress", "change", "the owner of the connection is not known"));
  }
  auto applied = change->kind == Change::Kind::allow  ? rules.allow(change->pattern)
                 : change->kind == Change::Kind::deny ? rules.deny(change->pattern)
                                                      : rules.forget(change->pattern);
  if (!applied) return applied;
  questions_.answered(change->pattern, change->kind == Change::Kind::deny);
  if (control_) control_->prompt_clients.onRuleChanged(change->pattern, change->kind == Change::Kind::deny);
  for (const auto& connection : connections_) connection->judgeAgain();
  return {};
}

bool Server::canAsk() const { return settings.ask || (control_ && control_->prompt_clients.any()); }

Server::Wait Server::ask(const HostPort& target, const Decision& decision, int client, const Endpoint& accepted_on) {
  if (!canAsk() || !decision.askable) return {};
  // The user cannot allow what is always blocked.
  const auto& address = target.host.address;
  if (address && !judgeResolved(target.host, target.port, {}, {&*address, 1}).allowed) return {};
  if (!settings.ask) {
    const auto from = peerOf(client);
    const std::uint64_t ticket = from ? control_->prompt_clients.ask(target, *from, accepted_on) : 0;
    return {ticket != 0, ticket};
  }
  switch (questions_.next(target.text())) {
    case PromptLimiter::Step::refuse: return {};
    case PromptLimiter::Step::wait: return {true};
    case PromptLimiter::Step::ask: break;
  }
  Report question{Report::Kind::question, {}, {}, {}};
  question.request.host = target.host.text();
  question.request.port = target.port;
  sendReport(question);
  return {true};
}

void Server::answer(std::uint64_t ticket, bool permitted) {
  for (const auto& connection : connections_) connection->answered(ticket, permitted);
}

void Server::forgetTicket(std::uint64_t ticket) {
  if (control_) control_->prompt_clients.forget(ticket);
}

Result<void> Server::answerQuestion(const Change& change) {
  const auto target = canonicalAuthority(change.pattern, 0);
  if (!target) return fail(plainError(Stage::policy, "egress", change.pattern, target.error()));
  const bool refused = change.kind == Change::Kind::refuse;
  questions_.answered(target->text(), refused);
  for (const auto& connection : connections_) connection->answered(*target, !refused);
  return {};
}

}  // namespace caisson::egress
