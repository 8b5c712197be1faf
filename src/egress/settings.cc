#include "egress/settings.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "egress/records.h"
#include "policy/rules/credential.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kMaxTexts = 8;
constexpr std::string_view kChanges[] = {"allow",  "deny", "forget", "permit",
                                         "refuse", "mine", "other"};  // in the order of Change::Kind

bool readNumbers(const std::vector<std::string>& texts, Settings& s) {
  const auto connections = numberIn(texts[0]), bytes = numberIn(texts[1]), queries = numberIn(texts[2]);
  const auto idle = numberIn(texts[3]);
  const auto abi = numberIn(texts[7], std::numeric_limits<int>::max());
  const auto missing_sni = flagIn(texts[4]), encrypted_hello = flagIn(texts[5]);
  const auto for_session = flagIn(texts[8]), ask = flagIn(texts[9]), handed = flagIn(texts[11]);
  if (!connections || !bytes || !queries || !idle || !abi) return false;
  if (!missing_sni || !encrypted_hello || !for_session || !ask || !handed) return false;
  s.handed_connections = *handed;
  if (!texts[6].empty()) {
    const auto user = numberIn(texts[6], std::numeric_limits<uid_t>::max());
    if (!user) return false;
    s.become = static_cast<uid_t>(*user);
  }
  s.max_connections = *connections;
  s.max_bytes = *bytes;
  s.dns_queries_per_minute = *queries;
  s.idle_seconds = *idle;
  s.allow_missing_sni = *missing_sni;
  s.allow_encrypted_hello = *encrypted_hello;
  s.landlock_abi = static_cast<int>(*abi);
  s.for_session = *for_session;
  s.ask = *ask;
  s.upstream_proxy = texts[10];
  return true;
}

}  // namespace

Settings settingsFor(const policy::Network& network) {
  Settings settings;
  settings.rules = {.allowed_hosts = network.allowed_hosts,
                    .denied_hosts = network.denied_hosts,
                    .allowed_ports = network.allowed_ports,
                    .denied_ports = network.denied_ports,
                    .private_hosts = network.private_hosts};
  settings.dns_servers = network.dns_servers;
  constexpr std::string_view kScheme = "http://";
  if (network.upstream_proxy.starts_with(kScheme)) {
    settings.upstream_proxy = network.upstream_proxy.substr(kScheme.size());
  }
  for (const policy::Credential& one : network.credentials) {
    std::string target = policy::targetOf(one);
    if (std::ranges::find(settings.brokered, target) == settings.brokered.end()) {
      settings.brokered.push_back(std::move(target));
    }
  }
  settings.max_connections = network.max_connections;
  settings.max_bytes = network.max_bytes.value_or(0);
  settings.dns_queries_per_minute = network.dns_queries_per_minute;
  settings.idle_seconds = static_cast<std::uint64_t>(network.idle_seconds);
  settings.allow_missing_sni = network.allow_missing_server_name;
  settings.allow_encrypted_hello = network.allow_encrypted_hello;
  return settings;
}

std::string encode(const Settings& s) {
  return pack(
      {pack(s.rules.allowed_hosts), pack(s.rules.denied_hosts), pack(s.rules.allowed_ports), pack(s.rules.denied_ports),
       pack(s.rules.private_hosts), pack(s.dns_servers), pack(s.brokered),
       pack({std::to_string(s.max_connections), std::to_string(s.max_bytes), std::to_string(s.dns_queries_per_minute),
             std::to_string(s.idle_seconds), s.allow_missing_sni ? "1" : "0", s.allow_encrypted_hello ? "1" : "0",
             s.become ? std::to_string(*s.become) : "", std::to_string(s.landlock_abi), s.for_session ? "1" : "0",
             s.ask ? "1" : "0", s.upstream_proxy, s.handed_connections ? "1" : "0"})});
}

std::optional<Settings> decodeSettings(std::string_view packet) {
  const auto parts = unpack(packet, kMaxTexts);
  if (!parts || parts->size() != 8) return std::nullopt;
  Settings s;
  std::vector<std::string>* lists[] = {&s.rules.allowed_hosts,
                                       &s.rules.denied_hosts,
                                       &s.rules.allowed_ports,
                                       &s.rules.denied_ports,
                                       &s.rules.private_hosts,
                                       &s.dns_servers,
                                       &s.brokered};
  for (std::size_t i = 0; i < 7; ++i) {
    auto list = unpack((*parts)[i], 65536);
    if (!list) return std::nullopt;
    *lists[i] = std::move(*list);
  }
  const auto numbers = unpack((*parts)[7], 12);
  if (!numbers || numbers->size() != 12) return std::nullopt;
  if (!readNumbers(*numbers, s)) return std::nullopt;
  return s;
}

std::string encode(const Change& change) {
  return pack({std::string(kChanges[static_cast<std::size_t>(change.kind)]), change.pattern});
}

std::optional<Change> decodeChange(std::string_view packet) {
  auto texts = unpack(packet, 2);
  if (!texts || texts->size() != 2) return std::nullopt;
  const auto* const word = std::find(std::begin(kChanges), std::end(kChanges), (*texts)[0]);
  if (word == std::end(kChanges)) return std::nullopt;
  return Change{static_cast<Change::Kind>(word - std::begin(kChanges)), std::move((*texts)[1])};
}

}  // namespace caisson::egress
