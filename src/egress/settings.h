// The settings of the egress process at its start: everything it may do, as data.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "egress/rules.h"
#include "policy/model.h"

namespace caisson::egress {

struct Settings {
  RuleTexts rules;
  std::vector<std::string> dns_servers;  ///< addresses; queried in this order
  std::vector<std::string> brokered;     ///< "host:port" whose TLS the credential broker terminates
  std::string upstream_proxy;            ///< "host:port" of the proxy for all connections, or empty
  std::uint64_t max_connections = 64;
  std::uint64_t max_bytes = 0;  ///< both directions together; 0: unlimited
  std::uint64_t dns_queries_per_minute = 120;
  std::uint64_t idle_seconds = 300;    ///< a connection without traffic for this long is closed
  bool allow_missing_sni = false;      ///< TLS hellos without a server name
  bool allow_encrypted_hello = false;  ///< TLS hellos with an encrypted server name
  std::optional<uid_t> become;         ///< if the caller is root, the egress runs as this user and group
  int landlock_abi = 0;
  bool ask = false;  ///< the user can be prompted for hosts that the policy does not list
  /// The supervisor makes the connections and sends one end of each, since there is no network namespace.
  bool handed_connections = false;
  bool for_session = false;  ///< accepts changes from clients, and exits also when pid 1 of the sandbox does

  bool operator==(const Settings&) const = default;
};

/// The settings that a policy determines. The caller sets `become`, `landlock_abi`, `ask` and, if the policy names no
/// DNS servers, those of the host.
Settings settingsFor(const policy::Network& network);

std::string encode(const Settings& settings);
std::optional<Settings> decodeSettings(std::string_view packet);

/// A change at runtime. `forget` removes a pattern from the allowed ones without denying it. `permit` and `refuse`
/// answer a question about one host and port, for the connections that wait for it. `mine` and `other` answer a Claim:
/// the pattern is its ticket.
struct Change {
  enum class Kind : std::uint8_t { allow, deny, forget, permit, refuse, mine, other };
  Kind kind = Kind::deny;
  std::string pattern;  ///< of hosts; see above

  bool operator==(const Change&) const = default;
};

std::string encode(const Change& change);
std::optional<Change> decodeChange(std::string_view packet);

}  // namespace caisson::egress
