#include "session/client/host_prompt.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "egress/host_name.h"
#include "egress/prompt_clients.h"
#include "session/network/network.h"
#include "session/store/metadata.h"
#include "supervise/processes/socket_owner.h"

namespace caisson::session {
namespace {

constexpr int kReadyMs = 2000;
constexpr auto kSearchTime = std::chrono::milliseconds(100);

std::optional<egress::Report> receive(const sys::Fd& socket, bool& ended) {
  std::string room(egress::kPacketBytes, '\0');
  const ssize_t got = ::recv(socket.get(), room.data(), room.size(), MSG_DONTWAIT);
  ended = got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
  if (got <= 0) return std::nullopt;
  return egress::decodeReport({room.data(), static_cast<std::size_t>(got)});
}

}  // namespace

std::unique_ptr<HostPrompt> HostPrompt::attach(const sys::RootDir& directory, const std::string& session, Open open) {
  const auto init = readInitRecord(directory);
  auto socket = connectEgress(directory);
  if (!init || !socket || !init->init.isAlive()) return nullptr;
  const std::string_view wanted = egress::kWantsPrompts;
  if (::send(socket->get(), wanted.data(), wanted.size(), MSG_NOSIGNAL) < 0) return nullptr;
  pollfd wait{socket->get(), POLLIN, 0};
  if (::poll(&wait, 1, kReadyMs) <= 0) return nullptr;
  bool ended = false;
  const auto report = receive(*socket, ended);
  if (!report || report->kind != egress::Report::Kind::ready) return nullptr;
  return std::unique_ptr<HostPrompt>(new HostPrompt(std::move(*socket), init->init.pid, session, std::move(open)));
}

HostPrompt::HostPrompt(sys::Fd socket, pid_t init, const std::string& session, Open open)
    : socket_(std::move(socket)),
      init_(init),
      open_(std::move(open)),
      questions_(supervise::HostPrompter::Span::session, session,
                 [this](const supervise::HostPrompter::Verdict& verdict) { return carryOut(verdict); }) {}

void HostPrompt::onEvents() {
  bool ended = false;
  const auto report = receive(socket_, ended);
  if (ended) return close();
  if (!report) return;
  using Kind = egress::Change::Kind;
  if (report->kind == egress::Report::Kind::whose) {
    (void)send({isOurs(report->claim) ? Kind::mine : Kind::other, std::to_string(report->claim.ticket)});
  } else if (report->kind == egress::Report::Kind::question) {
    questions_.add(report->request);
  }
}

bool HostPrompt::isOurs(const egress::Claim& claim) {
  const auto from = egress::canonicalAuthority(claim.from, 0), to = egress::canonicalAuthority(claim.to, 0);
  const auto start = supervise::HostPrompter::Clock::now();
  const bool ours = from && to && supervise::commandHolds(init_, root_, *from, *to, start + kSearchTime);
  const auto end = supervise::HostPrompter::Clock::now();
  busy_until_ = end + 4 * (end - start);
  return ours;
}

Result<void> HostPrompt::carryOut(const supervise::HostPrompter::Verdict& verdict) {
  if (verdict.change.kind != egress::Change::Kind::allow) return send(verdict.change);
  return open_(verdict.change.pattern, verdict.while_approved);  // which also updates the egress
}

Result<void> HostPrompt::send(const egress::Change& change) const {
  const std::string packet = egress::encode(change);
  if (::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
    return fail(sysError(Stage::supervise, "send", "session egress", errno, "run the command again"));
  }
  return {};
}

void HostPrompt::close() {
  questions_.withdraw();
  socket_.reset();
}

}  // namespace caisson::session
