// Ports between a session and the host's loopback, client side.
#include "session/network/ports.h"

#include <charconv>

#include "plan/network.h"
#include "session/client/session_context.h"
#include "session/tier/tier_command.h"
#include "session/tier/tier_files.h"

namespace caisson::session {
namespace {

constexpr std::uint16_t kFirstUnprivileged = 1024;

bool readNumber(std::string_view text, std::uint16_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

/// Whether a list of ports and ranges ("8000", "8000-8010") has this one.
bool lists(const std::vector<std::string>& entries, std::uint16_t port) {
  for (const std::string& entry : entries) {
    const std::size_t dash = entry.find('-');
    std::uint16_t first = 0, last = 0;
    if (!readNumber(std::string_view(entry).substr(0, dash), first)) continue;
    last = first;
    if (dash != std::string::npos && !readNumber(std::string_view(entry).substr(dash + 1), last)) continue;
    if (port >= first && port <= last) return true;
  }
  return false;
}

}  // namespace

Result<OpenPort> SessionContext::openPort(std::uint16_t port, std::uint16_t host_port, bool inward) {
  if (inLandlockTier(metadata_.policy)) {
    return fail(notInTier("session expose", metadata_, "ports need a network namespace", "use tier `namespaces`"));
  }
  const policy::Network& network = metadata_.policy.network;
  const std::string text = std::to_string(port);
  if (port == 0 || (inward && port < kFirstUnprivileged)) {
    return fail(plainError(Stage::usage, "session expose", text, "not a usable port",
                           inward ? "ports below 1024 cannot be opened inside" : "give a port from 1 to 65535"));
  }
  if (network.mode == policy::NetworkMode::proxy && plan::isEgressPort(port)) {
    return fail(plainError(Stage::usage, "session expose", text, plan::takenByEgress(port), "use another port"));
  }
  if (inward && host_port == 0) host_port = port;
  const char* key = inward ? "network.host_ports" : "network.exposed_ports";
  if (!lists(inward ? network.host_ports : network.exposed_ports, inward ? host_port : port)) {
    return fail(plainError(Stage::policy, "session expose", inward ? std::to_string(host_port) : text,
                           std::string("the session's policy does not list it in ") + key,
                           std::string("make the session with a policy that does: ") + key + " = [\"" + text + "\"]"));
  }
  auto connection = connect();
  if (!connection) return fail(connection.error());
  if (auto noted = note(inward ? "host port granted" : "port exposed", text); !noted) return fail(noted.error());
  auto answer =
      (*connection)
          ->ask(MessageType::open_port, codec::encode(PortOptions{port, host_port, inward}), "session expose", id());
  if (!answer) return fail(answer.error());
  const auto opened = codec::decode<PortOptions>(answer->value);
  if (!opened) return fail(goneError("session expose", id()));
  return OpenPort{opened->port, opened->host_port, opened->inward};
}

Result<std::vector<OpenPort>> SessionContext::openPorts() {
  std::vector<OpenPort> ports;
  auto entries = directory_.list(kPortDirectory);
  if (!entries && entries.error().sys_errno == ENOENT) return ports;
  if (!entries) return fail(entries.error());
  for (const sys::DirectoryEntry& entry : *entries) {
    OpenPort one;
    one.inward = entry.name.starts_with("in-");
    if (!readNumber(std::string_view(entry.name).substr(one.inward ? 3 : 4), one.port)) continue;
    // The supervisor holds the lock; a file left by a killed one is not an open port.
    if (!isLocked(directory_, portFile(one.port, one.inward).c_str())) continue;
    auto text = directory_.readFile(portFile(one.port, one.inward), 64);
    if (text && readNumber(std::string_view(*text).substr(0, text->find('\n')), one.host_port)) ports.push_back(one);
  }
  return ports;
}

Result<void> SessionContext::closePort(std::uint16_t port, bool inward) {
  auto opened = SupervisorConnection::open(directory_);
  if (!opened) return fail(opened.error());
  if (!*opened) {
    return fail(plainError(Stage::usage, "session expose", std::to_string(port), "it is not open",
                           "`caisson session expose ID` lists the open ports"));
  }
  auto closed =
      (*opened)->ask(MessageType::close_port, codec::encode(PortOptions{port, 0, inward}), "session expose", id());
  if (!closed) return fail(closed.error());
  return note(inward ? "host port taken back" : "port closed", std::to_string(port));
}

}  // namespace caisson::session
