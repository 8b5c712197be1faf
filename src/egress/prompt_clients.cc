#include "egress/prompt_clients.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "egress/server.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxPromptClients = 16;
constexpr auto kTimeout = std::chrono::seconds(2);

std::string textOf(const Endpoint& endpoint) { return HostPort{{{}, endpoint.address}, endpoint.port}.text(); }

}  // namespace

bool PromptClients::send(const PromptClient& client, const Report& report) {
  const std::string packet = encode(report);
  // Never wait for a client that does not read: it misses this message. The connection is then denied, unless another
  // client claims it.
  return ::send(client.socket.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

void PromptClients::add(sys::Fd socket) {
  if (clients_.size() >= kMaxPromptClients || !server_.loop.watch(socket.get(), EPOLLIN, this)) return;
  clients_.push_back({++last_client_, std::move(socket), {}});
  send(clients_.back(), {Report::Kind::ready, {}, {}, {}});
}

std::uint64_t PromptClients::ask(const HostPort& target, const Endpoint& from, const Endpoint& to) {
  Report whose{Report::Kind::whose, {}, {}, {}};
  whose.claim = {last_ticket_ + 1, textOf(from), textOf(to)};
  Waiting waiting{.target = target, .pending_replies = {}, .owner = 0, .since = Clock::now()};
  for (const PromptClient& client : clients_) {
    if (client.questions.mayAsk(target.text()) && send(client, whose)) waiting.pending_replies.insert(client.number);
  }
  if (waiting.pending_replies.empty()) return 0;
  waiting_.emplace(++last_ticket_, std::move(waiting));
  return last_ticket_;
}

void PromptClients::answer(std::uint64_t ticket, bool permitted) {
  if (waiting_.erase(ticket) > 0) server_.answer(ticket, permitted);
}

void PromptClients::onEvents(int descriptor, std::uint32_t) {
  const auto client =
      std::ranges::find_if(clients_, [&](const PromptClient& one) { return one.socket.get() == descriptor; });
  if (client == clients_.end()) return;
  char packet[4096];
  const ssize_t got = ::recv(descriptor, packet, sizeof(packet), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0 || !onChange(*client, {packet, static_cast<std::size_t>(got)})) drop(client);
}

bool PromptClients::onChange(PromptClient& client, std::string_view packet) {
  const auto change = decodeChange(packet);
  if (!change) return false;
  if (change->kind == Change::Kind::mine || change->kind == Change::Kind::other) return onClaim(client, *change);
  if (change->kind != Change::Kind::permit && change->kind != Change::Kind::refuse) return false;
  const auto target = canonicalAuthority(change->pattern, 0);
  if (!target) return false;
  onAnswer(client, *target, change->kind == Change::Kind::permit);
  return true;
}

bool PromptClients::onClaim(PromptClient& client, const Change& change) {
  const auto ticket = numberIn(change.pattern);
  if (!ticket) return false;
  const auto found = waiting_.find(*ticket);
  if (found == waiting_.end() || !found->second.pending_replies.contains(client.number))
    return true;  // no longer pending
  if (change.kind == Change::Kind::other) {
    onNotOwner(client.number, *ticket);
    return true;
  }
  Waiting& waiting = found->second;
  waiting.pending_replies.clear();
  waiting.owner = client.number;
  switch (client.questions.next(waiting.target.text())) {
    case PromptLimiter::Step::refuse: answer(*ticket, false); return true;
    case PromptLimiter::Step::wait: return true;
    case PromptLimiter::Step::ask: break;
  }
  Report question{Report::Kind::question, {}, {}, {}};
  question.request.host = waiting.target.host.text();
  question.request.port = waiting.target.port;
  if (!send(client, question))
    onAnswer(client, HostPort(waiting.target), false);  // a copy, since onAnswer erases the entry
  return true;
}

void PromptClients::onAnswer(PromptClient& client, const HostPort& target, bool permitted) {
  client.questions.answered(target.text(), !permitted);
  std::vector<std::uint64_t> theirs;
  for (const auto& [ticket, waiting] : waiting_) {
    if (waiting.owner == client.number && waiting.target == target) theirs.push_back(ticket);
  }
  for (const std::uint64_t ticket : theirs) answer(ticket, permitted);
}

void PromptClients::onNotOwner(std::uint64_t client, std::uint64_t ticket) {
  const auto found = waiting_.find(ticket);
  if (found == waiting_.end()) return;
  Waiting& waiting = found->second;
  waiting.pending_replies.erase(client);
  if (waiting.owner == client || (waiting.owner == 0 && waiting.pending_replies.empty())) answer(ticket, false);
}

void PromptClients::drop(std::list<PromptClient>::iterator client) {
  const std::uint64_t number = client->number;
  server_.loop.forget(client->socket.get());
  clients_.erase(client);
  std::vector<std::uint64_t> tickets;
  for (const auto& [ticket, waiting] : waiting_) tickets.push_back(ticket);
  for (const std::uint64_t ticket : tickets) onNotOwner(number, ticket);
}

void PromptClients::onRuleChanged(const std::string& pattern, bool denied) {
  for (PromptClient& client : clients_) client.questions.answered(pattern, denied);
}

void PromptClients::tick(Clock::time_point now) {
  std::vector<std::uint64_t> late;
  for (const auto& [ticket, waiting] : waiting_) {
    if (waiting.owner == 0 && now - waiting.since > kTimeout) late.push_back(ticket);
  }
  for (const std::uint64_t ticket : late) answer(ticket, false);
}

}  // namespace caisson::egress
