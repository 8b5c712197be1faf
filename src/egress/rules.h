// The one evaluator: may this host be reached on this port, and at this address? Every path of the egress (DNS, HTTP,
// CONNECT, SOCKS, captured connections) asks here and nowhere else.
//
// The order is always: canonical name -> judge() -> resolve -> judgeAddress() for every address of the answer ->
// connect to one of exactly these addresses.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "egress/host_name.h"

namespace caisson::egress {

/// Why something may or may not be reached, as a person reads it.
struct Decision {
  bool allowed = false;
  std::string rule;    ///< "network.allowed_hosts: *.example.org"
  std::string remedy;  ///< what would allow it; empty if allowed or if nothing can
  /// Refused only because nobody named it, not because somebody or a rule forbids it: a person may be asked.
  bool askable = false;
  std::string_view range = {};  ///< the kind of address that is always blocked, if that is why; blockedRange() names it
};

/// The texts of a policy's network section that the evaluator works from.
struct RuleTexts {
  std::vector<std::string> allowed_hosts;  ///< patterns, each with an optional ":port"
  std::vector<std::string> denied_hosts;
  std::vector<std::string> allowed_ports;  ///< "443", "8000-8010"
  std::vector<std::string> denied_ports;
  std::vector<std::string> private_hosts;  ///< names and addresses whose private addresses an owner opened

  bool operator==(const RuleTexts&) const = default;
};

/// "example.org" that name, "*.example.org" its subdomains, ".example.org" both, an address, "*" any public host.
struct HostPattern {
  enum class Kind : std::uint8_t { exact, subdomains, both, address, any };

  Kind kind = Kind::exact;
  Host host;                          ///< without the wildcard
  std::optional<std::uint16_t> port;  ///< the pattern holds for this port only, and opens it
  std::string text;                   ///< as it was written

  [[nodiscard]] bool matches(const Host& other) const;
  /// How many bytes at the front of `name` the pattern leaves free: what a tunnel could write into.
  [[nodiscard]] std::size_t freeBytes(std::string_view name) const;
};

/// The pattern that `text` means, or why it means none.
std::expected<HostPattern, std::string_view> parsePattern(std::string_view text);

class Rules {
 public:
  static Result<Rules> from(const RuleTexts& texts);

  /// Whether any port of the host could be allowed: what a DNS question is judged by.
  [[nodiscard]] Decision judgeName(const Host& host) const;
  [[nodiscard]] Decision judge(const Host& host, std::uint16_t port) const;
  /// Whether `host`, already judged, may be reached at this address. `own`: the address is one of this machine's.
  [[nodiscard]] Decision judgeAddress(const Host& host, const Address& address, bool own) const;
  /// Bytes of the name that no pattern fixes. 0 for names that are listed exactly, and under "*", where a program
  /// needs no tunnel.
  [[nodiscard]] std::size_t freeBytes(const Host& host) const;

  /// Live changes (N10). The later word wins: allowing a host takes back a denial of the same text, and the reverse.
  Result<void> allow(std::string_view pattern);
  Result<void> deny(std::string_view pattern);
  /// Takes it off the permitted ones; what else permits or denies a host stays.
  Result<void> forget(std::string_view pattern);

 private:
  struct PortRange {
    std::uint16_t first = 0, last = 0;
    bool allowed = false;
    [[nodiscard]] int width() const { return last - first; }
  };

  [[nodiscard]] Decision judgePort(std::uint16_t port) const;
  [[nodiscard]] const HostPattern* deniedBy(const Host& host, std::optional<std::uint16_t> port) const;
  [[nodiscard]] bool hasException(const Host& host) const;
  static Result<std::vector<HostPattern>> patterns(const std::vector<std::string>& texts, std::string_view key);
  Result<void> addPorts(const std::vector<std::string>& texts, bool allowed);

  std::vector<HostPattern> allowed_, denied_, private_;
  std::vector<PortRange> ports_;
};

/// The protocol that a port stands for and that a range alone does not open (ftp, ssh, telnet, smtp), or empty.
std::string_view guardedProtocol(std::uint16_t port);

}  // namespace caisson::egress
