// The single evaluator of network rules: may this host be reached on this port, and at this address? Every path of the
// egress (DNS, HTTP, CONNECT, SOCKS, captured connections) uses it.
//
// The order is always: canonical name -> judge() -> resolve -> judgeAddress() for every address of the answer ->
// connect to one of exactly these addresses.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "egress/host_name.h"

namespace caisson::egress {

/// Whether something may be reached, with the reason for the user.
struct Decision {
  bool allowed = false;
  std::string rule;    ///< "network.allowed_hosts: *.example.org"
  std::string remedy;  ///< what would allow it; empty if allowed or if nothing can
  /// Denied only because no rule lists it, not because a rule denies it: the user may be prompted.
  bool askable = false;
  std::string_view range = {};  ///< the blocked address range, if that is the reason; see blockedRange()
};

/// The parts of a policy's network section that the evaluator uses.
struct RuleTexts {
  std::vector<std::string> allowed_hosts;  ///< patterns, each with an optional ":port"
  std::vector<std::string> denied_hosts;
  std::vector<std::string> allowed_ports;  ///< "443", "8000-8010"
  std::vector<std::string> denied_ports;
  std::vector<std::string> private_hosts;  ///< names and addresses for which the owner allowed private addresses

  bool operator==(const RuleTexts&) const = default;
};

/// "example.org": that name; "*.example.org": its subdomains; ".example.org": both; an address; "*": any public host.
struct HostPattern {
  enum class Kind : std::uint8_t { exact, subdomains, both, address, any };

  Kind kind = Kind::exact;
  Host host;                          ///< without the wildcard
  std::optional<std::uint16_t> port;  ///< the pattern applies to this port only, and allows it
  std::string text;                   ///< as written

  /// Whether the host matches; the port is not compared.
  [[nodiscard]] bool matches(const Host& other) const;
  /// Whether it matches the same hosts and ports, however it was written.
  [[nodiscard]] bool sameAs(const HostPattern& other) const {
    return kind == other.kind && host == other.host && port == other.port;
  }
  /// How many leading bytes of `name` the pattern does not fix: the capacity for a DNS tunnel.
  [[nodiscard]] std::size_t freeBytes(std::string_view name) const;
};

/// Parses a pattern; returns the reason on error.
std::expected<HostPattern, std::string_view> parsePattern(std::string_view text);

class Rules {
 public:
  /// Parses the texts; an error names the key and the entry.
  static Result<Rules> from(const RuleTexts& texts);

  /// Whether any port of the host could be allowed: used for DNS queries. Metadata services never are, local names only
  /// with an entry in network.private_hosts.
  [[nodiscard]] Decision judgeName(const Host& host) const;
  /// Whether this host may be reached on this port. Denied hosts win; else an allowed pattern must match that names the
  /// port or, without a port, the port lists must allow it. The port of a pattern is a single port of the lists: it
  /// beats a denied range, but not a denied port.
  [[nodiscard]] Decision judge(const Host& host, std::uint16_t port) const;
  /// Whether `host`, already allowed, may be reached at this address. One in a blocked range or of this machine (`own`)
  /// needs an exception in network.private_hosts, where mayBeExcepted() permits that. With nullopt for `port`, only
  /// denials of every port count.
  [[nodiscard]] Decision judgeAddress(const Host& host, const Address& address, std::optional<std::uint16_t> port,
                                      bool own) const;
  /// Whether `host`, already allowed, may be reached by what it resolved to: every alias and every address is judged,
  /// and one denied part denies all. A name with both public and private addresses is suspicious.
  [[nodiscard]] Decision judgeResolved(const Host& host, std::optional<std::uint16_t> port,
                                       std::span<const std::string> aliases, std::span<const Address> addresses,
                                       const std::function<bool(const Address&)>& own) const;
  /// Leading bytes of the name that no allowed pattern fixes; all of them if no pattern matches. 0 for addresses, for
  /// names that are listed exactly, and under "*", where a program needs no tunnel.
  [[nodiscard]] std::size_t freeBytes(const Host& host) const;

  /// Live changes. Each removes the opposite rule of the same text; denials by other patterns still win. An error if
  /// the pattern is malformed.
  Result<void> allow(std::string_view pattern);
  Result<void> deny(std::string_view pattern);
  /// Removes it from the allowed patterns; other rules for the host stay.
  Result<void> forget(std::string_view pattern);

 private:
  struct PortRange {
    std::uint16_t first = 0, last = 0;
    bool allowed = false;  ///< whether the policy allows or denies the range
    [[nodiscard]] int width() const { return last - first; }
  };

  /// Checks a port against the port lists only: the narrowest entry wins, a denial among equals. A port of
  /// guardedProtocol() needs an entry for it alone.
  [[nodiscard]] Decision judgePort(std::uint16_t port) const;
  /// The denying pattern, or null. With nullopt for `port`, only patterns without a port count.
  [[nodiscard]] const HostPattern* deniedBy(const Host& host, std::optional<std::uint16_t> port) const;
  /// Whether network.denied_ports has an entry for this port alone.
  [[nodiscard]] bool isPortDenied(std::uint16_t port) const;
  /// Whether `alias`, a name that `host` led to, is denied.
  [[nodiscard]] Decision judgeAlias(const Host& host, std::string_view alias, std::optional<std::uint16_t> port) const;
  /// Whether network.private_hosts lists the host; the port of an entry is ignored.
  [[nodiscard]] bool hasException(const Host& host) const;
  /// Parses all `texts`; an error names the policy's `key`.
  static Result<std::vector<HostPattern>> patterns(const std::vector<std::string>& texts, std::string_view key);
  /// Parses ports and ranges and adds them to ports_.
  Result<void> addPorts(const std::vector<std::string>& texts, bool allowed);

  std::vector<HostPattern> allowed_, denied_, private_;
  std::vector<PortRange> ports_;
};

/// The protocol of a port that a port range alone does not allow (ftp, ssh, telnet, smtp), or empty.
std::string_view guardedProtocol(std::uint16_t port);

}  // namespace caisson::egress
