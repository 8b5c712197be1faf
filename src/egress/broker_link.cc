#include "egress/broker_link.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "egress/broker_messages.h"
#include "egress/server.h"
#include "sys/receive.h"

namespace caisson::egress {
namespace {

constexpr std::string_view kGone = "the credential broker has ended";

/// Sends `packet` with both descriptors, without blocking.
bool sendWith(int link, const std::string& packet, int first, int second) {
  iovec part{const_cast<char*>(packet.data()), packet.size()};
  alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof(room);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(2 * sizeof(int));
  const int both[2] = {first, second};
  std::memcpy(CMSG_DATA(rights), both, sizeof(both));
  return ::sendmsg(link, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(packet.size());
}

}  // namespace

bool BrokerLink::watch() { return server_.loop.watch(link_.get(), EPOLLIN, this); }

bool BrokerLink::handles(const HostPort& target) const {
  return std::ranges::find(server_.settings.brokered, target.text()) != server_.settings.brokered.end();
}

std::expected<BrokerLink::Ends, std::string_view> BrokerLink::handOver(const HostPort& target) {
  if (!link_) return std::unexpected(kGone);
  int client[2], upstream[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, client) != 0) {
    return std::unexpected("too many descriptors are open");
  }
  Ends ours{sys::Fd(client[0]), {}};
  const sys::Fd their_client(client[1]);
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, upstream) != 0) {
    return std::unexpected("too many descriptors are open");
  }
  ours.upstream = sys::Fd(upstream[0]);
  const sys::Fd their_upstream(upstream[1]);
  if (!sendWith(link_.get(), encodeHandOver(target.text()), their_client.get(), their_upstream.get())) {
    return std::unexpected(errno == EPIPE ? kGone : "the credential broker takes no further connection now");
  }
  return ours;
}

void BrokerLink::onEvents(int descriptor, std::uint32_t) {
  char packet[kBrokerPacketBytes];
  const ssize_t got = sys::receiveMessage(descriptor, std::as_writable_bytes(std::span(packet)), {}, MSG_DONTWAIT);
  if (got == -EAGAIN) return;
  Request request;
  if (got <= 0) {
    server_.loop.forget(link_.get());
    link_.reset();
    request.operation = "credential";
    request.host = "broker";
    request.rule = kGone;
    request.remedy = "hosts with a credential are out of reach now; start again";
    server_.report(std::move(request));
    return;
  }
  const auto report = decodeBrokerReport({packet, static_cast<std::size_t>(got)});
  if (!report) return;
  const auto target = canonicalAuthority(report->target, 0);
  if (!target) return;
  request.operation = report->used ? "credential" : report->operation;
  request.host = target->host.text();
  request.port = target->port;
  request.allowed = report->used;
  request.rule = report->text;
  server_.report(std::move(request));
}

}  // namespace caisson::egress
