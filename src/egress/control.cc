#include "egress/control.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "egress/server.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxClients = 16;

}  // namespace

Control::Control(Server& server, sys::Fd init, sys::Fd listener)
    : prompt_clients(server), server_(server), init_(std::move(init)), listener_(std::move(listener)) {}

bool Control::watch() {
  return server_.loop.watch(init_.get(), EPOLLIN, this) && server_.loop.watch(listener_.get(), EPOLLIN, this);
}

void Control::onEvents(int descriptor, std::uint32_t) {
  if (descriptor == init_.get()) return server_.end();
  if (descriptor == listener_.get()) return accept();
  answer(descriptor);
}

void Control::accept() {
  sys::Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!client) return server_.onAcceptFailed(listener_.get(), this, errno);
  if (clients_.size() >= kMaxClients) return;
  server_.loop.watch(client.get(), EPOLLIN, this);
  clients_.push_back(std::move(client));
}

void Control::answer(int descriptor) {
  char packet[4096];
  const ssize_t got = ::recv(descriptor, packet, sizeof(packet), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const auto send = [&](const std::string& text) {
    return ::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
  };
  const auto client = std::ranges::find(clients_, descriptor, &sys::Fd::get);
  if (client == clients_.end()) return;
  if (got > 0) {
    const std::string_view asked(packet, static_cast<std::size_t>(got));
    if (asked == kWantsPrompts) {
      server_.loop.forget(descriptor);
      prompt_clients.add(std::move(*client));
      clients_.erase(client);
      return;
    }
    const auto applied = server_.applyChange(asked);
    send(applied ? encode({Report::Kind::ready, {}, {}, {}})
                 : encode({Report::Kind::failed, applied.error().message(), {}, {}}));
  }
  server_.loop.forget(descriptor);
  clients_.erase(client);
}

}  // namespace caisson::egress
