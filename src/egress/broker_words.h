// What the egress process and the credential broker tell each other: packets of counted texts.
//
// The broker holds the secrets and trusts nothing here: it knows by itself which hosts have a credential, and shows it
// only to who proves to be that host. So whoever takes over the egress process gains no secret by these words.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::egress {

/// To the broker, with two stream sockets: the client's side, which has said a TLS hello, and the host's, which has
/// heard nothing yet.
std::string encodeHandOver(std::string_view target);
std::optional<std::string> decodeHandOver(std::string_view packet);

/// To the egress: a credential went out in a request, or something was refused.
struct BrokerWord {
  bool used = false;
  std::string target;     ///< "host:port"
  std::string operation;  ///< of a refusal: "tls", "http"
  std::string text;       ///< the credential and its header, or why
};

std::string encode(const BrokerWord& word);
std::optional<BrokerWord> decodeBrokerWord(std::string_view packet);

inline constexpr std::size_t kBrokerPacketBytes = 4096;

}  // namespace caisson::egress
