#include "egress/program.h"

#include <sys/socket.h>

#include <cerrno>
#include <span>

#include "egress/confine.h"
#include "egress/server.h"
#include "isolation/block.h"
#include "sys/receive.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kSettingsBytes = 256 * 1024;
static_assert(isolation::kMaxEgressSockets <= sys::kMaxReceived);

int giveUp(int supervisor, const Error& error) {
  const std::string packet = encode({Report::Kind::failed, error.message(), {}, {}});
  ::send(supervisor, packet.data(), packet.size(), MSG_NOSIGNAL);
  return 1;
}

Result<Settings> receiveSettings(int supervisor) {
  std::string packet(kSettingsBytes, '\0');
  const ssize_t got = ::recv(supervisor, packet.data(), packet.size(), 0);
  if (got <= 0) return fail(sysError(Stage::launch, "recv", "egress settings", got < 0 ? errno : EPIPE));
  packet.resize(static_cast<std::size_t>(got));
  auto settings = decodeSettings(packet);
  if (!settings) return fail(plainError(Stage::launch, "egress", "settings", "they are malformed"));
  return std::move(*settings);
}

Result<SandboxSockets> receiveSockets() {
  isolation::EgressHandOver message{};
  std::vector<sys::Fd> descriptors(isolation::kMaxEgressSockets);
  const auto bytes = std::as_writable_bytes(std::span(&message, 1));
  const ssize_t got = sys::receiveMessage(kSandboxEnd, bytes, descriptors);
  if (got != static_cast<ssize_t>(bytes.size())) {
    return fail(sysError(Stage::launch, "recvmsg", "egress sockets", got < 0 ? static_cast<int>(-got) : EPIPE));
  }
  std::erase_if(descriptors, [](const sys::Fd& one) { return !one; });
  if (descriptors.size() < 4U + message.has_log || descriptors.size() != message.count) {
    return fail(plainError(Stage::launch, "recvmsg", "egress sockets", "some did not arrive", "raise ulimit -n"));
  }
  SandboxSockets sockets;
  std::size_t next = 0;
  sockets.redirected = message.redirected != 0;
  sockets.proxy = std::move(descriptors[next++]);
  sockets.dns = std::move(descriptors[next++]);
  sockets.dns_stream = std::move(descriptors[next++]);
  if (message.has_log != 0) sockets.log = std::move(descriptors[next++]);
  while (next < descriptors.size()) sockets.capture.push_back(std::move(descriptors[next++]));
  return sockets;
}

}  // namespace

int programMain() {
  auto settings = receiveSettings(kSupervisorEnd);
  if (!settings) return giveUp(kSupervisorEnd, settings.error());
  auto rules = Rules::from(settings->rules);
  if (!rules) return giveUp(kSupervisorEnd, rules.error());
  Server server(*settings, std::move(*rules), sys::Fd(kSupervisorEnd));
  if (auto opened = server.open(); !opened) return giveUp(kSupervisorEnd, opened.error());
  if (auto confined = confine(server.settings); !confined) return giveUp(kSupervisorEnd, confined.error());
  if (server.settings.for_session) server.useControl(sys::Fd(kInitDescriptor), sys::Fd(kListenerDescriptor));
  if (!server.settings.brokered.empty()) server.useBroker(sys::Fd(kBrokerEnd));
  Result<SandboxSockets> sockets;
  if (server.settings.handed_connections) {
    sockets->handed = sys::Fd(kSandboxEnd);
  } else {
    sockets = receiveSockets();
    if (!sockets) return giveUp(kSupervisorEnd, sockets.error());
    ::close(kSandboxEnd);
  }
  if (auto served = server.serve(std::move(*sockets)); !served) return giveUp(kSupervisorEnd, served.error());
  server.run();
  return 0;
}

}  // namespace caisson::egress
