// Messages between the egress process and the credential broker: packets of length-prefixed strings.
//
// The broker holds the secrets and does not trust the egress: it has its own list of hosts with a credential, and sends
// a secret only to a host that proves its identity by TLS. So compromising the egress process reveals no secret.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::egress {

/// To the broker, with two stream sockets: the client's, whose first bytes are a TLS hello, and the host's, on which
/// nothing has been sent yet.
std::string encodeHandOver(std::string_view target);
/// The target, "host:port"; nullopt for a malformed packet.
std::optional<std::string> decodeHandOver(std::string_view packet);

/// To the egress: a credential was used in a request, or something was denied.
struct BrokerReport {
  bool used = false;
  std::string target;     ///< "host:port"
  std::string operation;  ///< of a denial: "tls", "http"
  std::string text;       ///< the credential and its header, or the reason
};

std::string encode(const BrokerReport& report);
std::optional<BrokerReport> decodeBrokerReport(std::string_view packet);

inline constexpr std::size_t kBrokerPacketBytes = 4096;

}  // namespace caisson::egress
