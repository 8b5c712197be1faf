#include "egress/rules.h"

#include <algorithm>

namespace caisson::egress {
namespace {

Error unusable(std::string_view key, std::string_view text, std::string_view why) {
  return plainError(Stage::policy, "egress", std::string(key) + ": " + std::string(text), why,
                    "use a host name, \"*.name\", \".name\", an address or \"*\"");
}

bool isBelow(std::string_view name, std::string_view top) {
  return name.size() > top.size() + 1 && name.ends_with(top) && name[name.size() - top.size() - 1] == '.';
}

}  // namespace

std::string_view guardedProtocol(std::uint16_t port) {
  switch (port) {
    case 20:
    case 21: return "ftp";
    case 22: return "ssh";
    case 23: return "telnet";
    case 25:
    case 465:
    case 587: return "smtp";
    default: return {};
  }
}

bool HostPattern::matches(const Host& other) const {
  switch (kind) {
    case Kind::any: return true;
    case Kind::address: return other.address == host.address;
    case Kind::exact: return !other.address && other.name == host.name;
    case Kind::subdomains: return !other.address && isBelow(other.name, host.name);
    case Kind::both: return !other.address && (other.name == host.name || isBelow(other.name, host.name));
  }
  return false;
}

std::size_t HostPattern::freeBytes(std::string_view name) const {
  if (kind == Kind::subdomains || kind == Kind::both) return name.size() - std::min(name.size(), host.name.size());
  return 0;
}

std::expected<HostPattern, std::string_view> parsePattern(std::string_view text) {
  HostPattern pattern;
  pattern.text = text;
  if (Address::parse(text)) {  // a bare IPv6 address: its colons are not a port
    pattern.kind = HostPattern::Kind::address;
    pattern.host.address = Address::parse(text);
    return pattern;
  }
  std::string_view host = text;
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    pattern.port = parsePort(text.substr(colon + 1));
    if (!pattern.port) return std::unexpected("the port is not a number from 1 to 65535");
    host = text.substr(0, colon);
  }
  if (host == "*") {
    pattern.kind = HostPattern::Kind::any;
    return pattern;
  }
  pattern.kind = HostPattern::Kind::exact;
  if (host.starts_with("*.")) {
    pattern.kind = HostPattern::Kind::subdomains;
    host.remove_prefix(2);
  } else if (host.starts_with('.')) {
    pattern.kind = HostPattern::Kind::both;
    host.remove_prefix(1);
  }
  auto canonical = canonicalHost(host);
  if (!canonical) return std::unexpected(canonical.error());
  if (canonical->address) {
    if (pattern.kind != HostPattern::Kind::exact) return std::unexpected("an address has no subdomains");
    pattern.kind = HostPattern::Kind::address;
  }
  pattern.host = std::move(*canonical);
  return pattern;
}

Result<std::vector<HostPattern>> Rules::patterns(const std::vector<std::string>& texts, std::string_view key) {
  std::vector<HostPattern> result;
  result.reserve(texts.size());
  for (const std::string& text : texts) {
    auto pattern = parsePattern(text);
    if (!pattern) return fail(unusable(key, text, pattern.error()));
    result.push_back(std::move(*pattern));
  }
  return result;
}

Result<void> Rules::addPorts(const std::vector<std::string>& texts, bool allowed) {
  for (const std::string& text : texts) {
    const std::size_t dash = text.find('-');
    const auto first = parsePort(std::string_view(text).substr(0, dash));
    const auto last = dash == std::string::npos ? first : parsePort(std::string_view(text).substr(dash + 1));
    if (!first || !last || *first > *last) {
      return fail(plainError(Stage::policy, "egress", text, "it is neither a port nor a range of ports",
                             "use a number such as 443 or a range such as 8000-8010"));
    }
    ports_.push_back({*first, *last, allowed});
  }
  return {};
}

Result<Rules> Rules::from(const RuleTexts& texts) {
  Rules rules;
  auto allowed = patterns(texts.allowed_hosts, "network.allowed_hosts");
  if (!allowed) return fail(allowed.error());
  auto denied = patterns(texts.denied_hosts, "network.denied_hosts");
  if (!denied) return fail(denied.error());
  auto opened = patterns(texts.private_hosts, "network.private_hosts");
  if (!opened) return fail(opened.error());
  for (const HostPattern& pattern : *opened) {
    if (pattern.kind != HostPattern::Kind::exact && pattern.kind != HostPattern::Kind::address) {
      return fail(unusable("network.private_hosts", pattern.text, "an exception names one host, not a pattern"));
    }
  }
  rules.allowed_ = std::move(*allowed);
  rules.denied_ = std::move(*denied);
  rules.private_ = std::move(*opened);
  if (auto added = rules.addPorts(texts.allowed_ports, true); !added) return fail(added.error());
  if (auto added = rules.addPorts(texts.denied_ports, false); !added) return fail(added.error());
  return rules;
}

bool Rules::hasException(const Host& host) const {
  return std::ranges::any_of(private_, [&](const HostPattern& pattern) { return pattern.matches(host); });
}

const HostPattern* Rules::deniedBy(const Host& host, std::optional<std::uint16_t> port) const {
  const auto inner = host.address ? embeddedV4(*host.address) : std::nullopt;  // the same host, through a gateway
  for (const HostPattern& pattern : denied_) {
    if (pattern.port && pattern.port != port) continue;
    if (pattern.matches(host) || (inner && pattern.matches({{}, inner}))) return &pattern;
  }
  return nullptr;
}

bool Rules::isPortDenied(std::uint16_t port) const {
  return std::ranges::any_of(
      ports_, [&](const PortRange& range) { return !range.allowed && range.first == port && range.last == port; });
}

Decision Rules::judgeName(const Host& host) const {
  if (const HostPattern* denial = deniedBy(host, std::nullopt)) {
    return {false, "network.denied_hosts: " + denial->text, "take the entry out of network.denied_hosts"};
  }
  // A metadata service has no exception, and no advice says how to open it: its answers are credentials of the whole
  // machine.
  if (!host.address && isMetadataName(host.name)) return {false, "metadata services are always blocked", {}};
  if (!host.address && isLocalName(host.name) && !hasException(host))
    return {false, "local names are always blocked", "an owner can name the host in network.private_hosts"};
  for (const HostPattern& pattern : allowed_) {
    if (pattern.matches(host)) return {true, "network.allowed_hosts: " + pattern.text, {}};
  }
  constexpr std::string_view kRule = "no entry of network.allowed_hosts";
  const std::string remedy = "--allow-host " + host.text();
  // For an address that stays blocked whatever is allowed, the way to allow it would be wrong advice.
  const std::string_view range = host.address ? blockedRange(*host.address) : std::string_view();
  if (!range.empty() && !mayBeExcepted(range)) return {false, std::string(kRule), {}};
  if (!range.empty() && !hasException(host))
    return {false, std::string(kRule), remedy + ", once an owner named it in network.private_hosts"};
  return {false, std::string(kRule), remedy, true};
}

Decision Rules::judgePort(std::uint16_t port) const {
  // The narrowest entry decides; between equally narrow ones, the denial.
  const PortRange* best = nullptr;
  for (const PortRange& range : ports_) {
    if (port < range.first || port > range.last) continue;
    if (best == nullptr || range.width() < best->width() || (range.width() == best->width() && !range.allowed)) {
      best = &range;
    }
  }
  const std::string remedy = "--allow-port " + std::to_string(port);
  if (best == nullptr)
    return {false, "port " + std::to_string(port) + " is not in network.allowed_ports", remedy, true};
  if (!best->allowed)
    return {false, "network.denied_ports", "take the port out of network.denied_ports, or name it alone"};
  const std::string_view protocol = guardedProtocol(port);
  if (!protocol.empty() && best->width() > 0) {
    return {false, std::string(protocol) + " needs its port named, a range does not open it", remedy, true};
  }
  return {true, "network.allowed_ports", {}};
}

Decision Rules::judge(const Host& host, std::uint16_t port) const {
  if (const HostPattern* denial = deniedBy(host, port)) {
    return {false, "network.denied_hosts: " + denial->text, "take the entry out of network.denied_hosts"};
  }
  Decision by_name = judgeName(host);
  if (!by_name.allowed) {
    const Decision by_port = judgePort(port);
    by_name.askable = by_name.askable && (by_port.allowed || by_port.askable);  // a denied port cannot be asked about
    return by_name;
  }
  Decision refusal;
  for (const HostPattern& pattern : allowed_) {
    if (!pattern.matches(host) || (pattern.port && pattern.port != port)) continue;
    if (pattern.port && !isPortDenied(port)) return {true, "network.allowed_hosts: " + pattern.text, {}};
    Decision by_port = judgePort(port);
    if (by_port.allowed) return {true, "network.allowed_hosts: " + pattern.text, {}};
    refusal = std::move(by_port);
  }
  if (!refusal.rule.empty()) return refusal;
  const std::string target = host.address && !host.address->isV4() ? "[" + host.text() + "]" : host.text();
  return {false, "the entry of network.allowed_hosts is for another port",
          "--allow-host " + target + ":" + std::to_string(port), true};
}

Decision Rules::judgeResolved(const Host& host, std::optional<std::uint16_t> port, std::span<const std::string> aliases,
                              std::span<const Address> addresses,
                              const std::function<bool(const Address&)>& own) const {
  for (const std::string& alias : aliases) {
    if (Decision decision = judgeAlias(host, alias, port); !decision.allowed) return decision;
  }
  for (const Address& address : addresses) {
    if (Decision decision = judgeAddress(host, address, port, own(address)); !decision.allowed) return decision;
  }
  return {true, {}, {}};
}

Decision Rules::judgeAlias(const Host& host, std::string_view alias, std::optional<std::uint16_t> port) const {
  const auto canonical = canonicalHost(alias);
  if (!canonical) return {false, "an alias of " + host.text() + " is not a host name", {}};
  const std::string which = " (an alias of " + host.text() + ")";
  if (const HostPattern* denial = deniedBy(*canonical, port)) {
    return {false, "network.denied_hosts: " + denial->text + which, "take the entry out of network.denied_hosts"};
  }
  if (isMetadataName(canonical->name)) return {false, "metadata services are always blocked" + which, {}};
  if (isLocalName(canonical->name) && !hasException(host) && !hasException(*canonical)) {
    return {false, "local names are always blocked" + which, "an owner can name the host in network.private_hosts"};
  }
  return {true, {}, {}};
}

Decision Rules::judgeAddress(const Host& host, const Address& address, std::optional<std::uint16_t> port,
                             bool own) const {
  if (const HostPattern* denial = deniedBy({{}, address}, port)) {
    return {false, "network.denied_hosts: " + denial->text, "take the entry out of network.denied_hosts"};
  }
  std::string_view range = blockedRange(address);
  if (range.empty() && own) range = "this host";
  if (range.empty()) return {true, {}, {}};
  if (mayBeExcepted(range) && hasException(host)) return {true, "network.private_hosts: " + host.text(), {}};
  std::string remedy;
  if (mayBeExcepted(range)) remedy = "an owner can name the host in network.private_hosts";
  return {false, std::string(range) + " addresses are always blocked: " + address.text(), std::move(remedy), false,
          range};
}

std::size_t Rules::freeBytes(const Host& host) const {
  if (host.address) return 0;
  std::size_t least = host.name.size();
  for (const HostPattern& pattern : allowed_) {
    if (pattern.matches(host)) least = std::min(least, pattern.freeBytes(host.name));
  }
  return least;
}

Result<void> Rules::allow(std::string_view text) {
  auto pattern = parsePattern(text);
  if (!pattern) return fail(unusable("allow", text, pattern.error()));
  std::erase_if(denied_, [&](const HostPattern& old) { return old.sameAs(*pattern); });
  std::erase_if(allowed_, [&](const HostPattern& old) { return old.sameAs(*pattern); });
  allowed_.push_back(std::move(*pattern));
  return {};
}

Result<void> Rules::deny(std::string_view text) {
  auto pattern = parsePattern(text);
  if (!pattern) return fail(unusable("deny", text, pattern.error()));
  std::erase_if(allowed_, [&](const HostPattern& old) { return old.sameAs(*pattern); });
  std::erase_if(denied_, [&](const HostPattern& old) { return old.sameAs(*pattern); });
  denied_.push_back(std::move(*pattern));
  return {};
}

Result<void> Rules::forget(std::string_view text) {
  auto pattern = parsePattern(text);
  if (!pattern) return fail(unusable("forget", text, pattern.error()));
  std::erase_if(allowed_, [&](const HostPattern& old) { return old.sameAs(*pattern); });
  return {};
}

}  // namespace caisson::egress
