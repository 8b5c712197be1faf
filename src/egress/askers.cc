#include "egress/askers.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "egress/server.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxAskers = 16;
constexpr auto kTimeout = std::chrono::seconds(2);

std::string textOf(const Endpoint& endpoint) { return HostPort{{{}, endpoint.address}, endpoint.port}.text(); }

}  // namespace

bool Askers::tell(const Asker& asker, const Report& report) {
  const std::string packet = encode(report);
  // Never wait for a client that does not read: it misses this message. The connection is then denied, unless another
  // client claims it.
  return ::send(asker.socket.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

void Askers::add(sys::Fd client) {
  if (askers_.size() >= kMaxAskers || !server_.loop.watch(client.get(), EPOLLIN, this)) return;
  askers_.push_back({++last_asker_, std::move(client), {}});
  tell(askers_.back(), {Report::Kind::ready, {}, {}, {}});
}

std::uint64_t Askers::ask(const HostPort& target, const Endpoint& from, const Endpoint& to) {
  Report whose{Report::Kind::whose, {}, {}, {}};
  whose.claim = {last_ticket_ + 1, textOf(from), textOf(to)};
  Waiting waiting{.target = target, .unheard = {}, .owner = 0, .since = Clock::now()};
  for (const Asker& asker : askers_) {
    if (asker.questions.mayAsk(target.text()) && tell(asker, whose)) waiting.unheard.insert(asker.number);
  }
  if (waiting.unheard.empty()) return 0;
  waiting_.emplace(++last_ticket_, std::move(waiting));
  return last_ticket_;
}

void Askers::answer(std::uint64_t ticket, bool permitted) {
  if (waiting_.erase(ticket) > 0) server_.answer(ticket, permitted);
}

void Askers::onEvents(int descriptor, std::uint32_t) {
  const auto asker = std::ranges::find_if(askers_, [&](const Asker& one) { return one.socket.get() == descriptor; });
  if (asker == askers_.end()) return;
  char packet[4096];
  const ssize_t got = ::recv(descriptor, packet, sizeof(packet), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0 || !onChange(*asker, {packet, static_cast<std::size_t>(got)})) drop(asker);
}

bool Askers::onChange(Asker& asker, std::string_view packet) {
  const auto change = decodeChange(packet);
  if (!change) return false;
  if (change->kind == Change::Kind::mine || change->kind == Change::Kind::other) return onClaim(asker, *change);
  if (change->kind != Change::Kind::permit && change->kind != Change::Kind::refuse) return false;
  const auto target = canonicalAuthority(change->pattern, 0);
  if (!target) return false;
  onAnswer(asker, *target, change->kind == Change::Kind::permit);
  return true;
}

bool Askers::onClaim(Asker& asker, const Change& change) {
  const auto ticket = numberIn(change.pattern);
  if (!ticket) return false;
  const auto found = waiting_.find(*ticket);
  if (found == waiting_.end() || !found->second.unheard.contains(asker.number)) return true;  // no longer pending
  if (change.kind == Change::Kind::other) {
    notTheirs(asker.number, *ticket);
    return true;
  }
  Waiting& waiting = found->second;
  waiting.unheard.clear();
  waiting.owner = asker.number;
  switch (asker.questions.about(waiting.target.text())) {
    case Questions::Step::refuse: answer(*ticket, false); return true;
    case Questions::Step::wait: return true;
    case Questions::Step::ask: break;
  }
  Report question{Report::Kind::question, {}, {}, {}};
  question.request.host = waiting.target.host.text();
  question.request.port = waiting.target.port;
  if (!tell(asker, question))
    onAnswer(asker, HostPort(waiting.target), false);  // a copy, since onAnswer erases the entry
  return true;
}

void Askers::onAnswer(Asker& asker, const HostPort& target, bool permitted) {
  asker.questions.answered(target.text(), !permitted);
  std::vector<std::uint64_t> theirs;
  for (const auto& [ticket, waiting] : waiting_) {
    if (waiting.owner == asker.number && waiting.target == target) theirs.push_back(ticket);
  }
  for (const std::uint64_t ticket : theirs) answer(ticket, permitted);
}

void Askers::notTheirs(std::uint64_t asker, std::uint64_t ticket) {
  const auto found = waiting_.find(ticket);
  if (found == waiting_.end()) return;
  Waiting& waiting = found->second;
  waiting.unheard.erase(asker);
  if (waiting.owner == asker || (waiting.owner == 0 && waiting.unheard.empty())) answer(ticket, false);
}

void Askers::drop(std::list<Asker>::iterator asker) {
  const std::uint64_t number = asker->number;
  server_.loop.forget(asker->socket.get());
  askers_.erase(asker);
  std::vector<std::uint64_t> tickets;
  for (const auto& [ticket, waiting] : waiting_) tickets.push_back(ticket);
  for (const std::uint64_t ticket : tickets) notTheirs(number, ticket);
}

void Askers::ruled(const std::string& pattern, bool denied) {
  for (Asker& asker : askers_) asker.questions.answered(pattern, denied);
}

void Askers::tick(Clock::time_point now) {
  std::vector<std::uint64_t> late;
  for (const auto& [ticket, waiting] : waiting_) {
    if (waiting.owner == 0 && now - waiting.since > kTimeout) late.push_back(ticket);
  }
  for (const std::uint64_t ticket : late) answer(ticket, false);
}

}  // namespace caisson::egress
