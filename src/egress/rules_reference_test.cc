// Random rules, names, aliases and addresses against a second implementation of the documented rules (docs/network.md),
// which shares no code with Rules but the fixed facts about single addresses below.
#include "egress/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace caisson::egress {
namespace {

enum class Range : std::uint8_t { open, exceptable, never };

struct KnownAddress {
  const char* text;
  Range range;
  const char* inner;  ///< the IPv4 address that it leads to, or ""
};
constexpr KnownAddress kAddresses[] = {
    {"93.184.0.2", Range::open, ""},
    {"93.184.0.3", Range::open, ""},
    {"2606:4700:aa::2", Range::open, ""},
    {"64:ff9b::5db8:3", Range::open, "93.184.0.3"},
    {"2002:5db8:3::", Range::open, "93.184.0.3"},
    {"10.0.0.1", Range::exceptable, ""},
    {"127.0.0.1", Range::exceptable, ""},
    {"64:ff9b::a00:1", Range::exceptable, "10.0.0.1"},
    {"169.254.169.254", Range::never, ""},
    {"224.0.0.1", Range::never, ""},
};
constexpr const char* kNames[] = {"a.test",      "b.a.test",    "c.b.a.test",   "ba.test",
                                  "evil.test",   "x.evil.test", "notevil.test", "localhost",
                                  "db.internal", "tv.local",    "test",         "metadata.google.internal"};
constexpr std::uint16_t kPorts[] = {22, 25, 80, 443, 444, 8000, 8080};
constexpr const char* kPortTexts[] = {"22",    "80",     "443",     "444",       "8080",
                                      "20-30", "1-1023", "440-450", "8000-8090", "1-65535"};

struct Case {
  RuleTexts rules;
  std::string host;
  std::uint16_t port = 0;
  std::vector<std::string> aliases, addresses;
  bool own = false;  ///< the addresses are this machine's
};

bool endsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool isAddress(const std::string& text) {
  return std::ranges::any_of(kAddresses, [&](const KnownAddress& one) { return text == one.text; });
}

const KnownAddress& known(const std::string& text) {
  return *std::ranges::find_if(kAddresses, [&](const KnownAddress& one) { return text == one.text; });
}

/// Splits "host:port" and "[v6]:port".
std::pair<std::string, int> splitEntry(const std::string& entry) {
  if (isAddress(entry)) return {entry, 0};
  if (entry[0] == '[') {
    const auto end = entry.find(']');
    return {entry.substr(1, end - 1), end + 1 == entry.size() ? 0 : std::stoi(entry.substr(end + 2))};
  }
  const auto colon = entry.find(':');
  if (colon == std::string::npos) return {entry, 0};
  return {entry.substr(0, colon), std::stoi(entry.substr(colon + 1))};
}

bool entryMatches(const std::string& pattern, const std::string& host) {
  if (pattern == "*") return true;
  if (isAddress(host) || isAddress(pattern)) return pattern == host;
  if (pattern.starts_with("*.")) return endsWith(host, pattern.substr(1)) && host.size() > pattern.size() - 1;
  if (pattern.starts_with(".")) return host == pattern.substr(1) || endsWith(host, pattern);
  return host == pattern;
}

bool denied(const Case& one, const std::string& host) {
  for (const std::string& entry : one.rules.denied_hosts) {
    const auto [pattern, port] = splitEntry(entry);
    if (port != 0 && port != one.port) continue;
    if (entryMatches(pattern, host)) return true;
    if (isAddress(host) && *known(host).inner != '\0' && entryMatches(pattern, known(host).inner)) return true;
  }
  return false;
}

bool excepted(const Case& one, const std::string& host) {
  return std::ranges::any_of(one.rules.private_hosts, [&](const std::string& entry) { return entry == host; });
}

bool localName(const std::string& name) {
  return name == "localhost" || endsWith(name, ".local") || endsWith(name, ".internal");
}

struct PortEntry {
  int first, last;
  bool allowed;
};

bool portAllowed(const Case& one) {
  std::vector<PortEntry> entries;
  const auto add = [&](const std::vector<std::string>& texts, bool allowed) {
    for (const std::string& text : texts) {
      const auto dash = text.find('-');
      const int first = std::stoi(text);
      const int last = dash == std::string::npos ? first : std::stoi(text.substr(dash + 1));
      if (one.port >= first && one.port <= last) entries.push_back({first, last, allowed});
    }
  };
  add(one.rules.allowed_ports, true);
  add(one.rules.denied_ports, false);
  if (entries.empty()) return false;
  int narrowest = 70000;
  for (const PortEntry& entry : entries) narrowest = std::min(narrowest, entry.last - entry.first);
  for (const PortEntry& entry : entries) {
    if (entry.last - entry.first == narrowest && !entry.allowed) return false;
  }
  const bool guarded = one.port == 22 || one.port == 25;
  return !guarded || narrowest == 0;
}

bool portDeniedAlone(const Case& one) {
  return std::ranges::find(one.rules.denied_ports, std::to_string(one.port)) != one.rules.denied_ports.end();
}

bool referenceAllows(const Case& one) {
  if (denied(one, one.host)) return false;
  if (!isAddress(one.host)) {
    if (one.host == "metadata.google.internal") return false;
    if (localName(one.host) && !excepted(one, one.host)) return false;
  }
  bool listed = false;
  for (const std::string& entry : one.rules.allowed_hosts) {
    const auto [pattern, port] = splitEntry(entry);
    if (!entryMatches(pattern, one.host)) continue;
    if (port == 0 ? portAllowed(one) : port == one.port && !portDeniedAlone(one)) listed = true;
  }
  if (!listed) return false;
  for (const std::string& alias : one.aliases) {
    if (denied(one, alias) || alias == "metadata.google.internal") return false;
    if (localName(alias) && !excepted(one, one.host) && !excepted(one, alias)) return false;
  }
  for (const std::string& text : one.addresses) {
    if (denied(one, text)) return false;
    const Range range = known(text).range == Range::open && one.own ? Range::exceptable : known(text).range;
    if (range == Range::never || (range == Range::exceptable && !excepted(one, one.host))) return false;
  }
  return true;
}

bool productAllows(const Case& one) {
  const auto rules = Rules::from(one.rules);
  if (!rules) {
    ADD_FAILURE() << rules.error().message();
    return false;
  }
  const auto host = canonicalHost(one.host);
  if (!host || !rules->judge(*host, one.port).allowed) return false;
  std::vector<Address> addresses;
  for (const std::string& text : one.addresses) addresses.push_back(*Address::parse(text));
  return rules->judgeResolved(*host, one.port, one.aliases, addresses, [&](const Address&) { return one.own; }).allowed;
}

class Cases {
 public:
  explicit Cases(unsigned seed) : random_(seed) {}

  Case next() {
    Case one;
    fill(one.rules.allowed_hosts, 3, [&] { return entry(); });
    if (draw(3) == 0) one.rules.allowed_hosts.emplace_back("*");
    fill(one.rules.denied_hosts, 2, [&] { return entry(); });
    fill(one.rules.allowed_ports, 3, [&] { return std::string(pick(kPortTexts)); });
    fill(one.rules.denied_ports, 2, [&] { return std::string(pick(kPortTexts)); });
    fill(one.rules.private_hosts, 2, [&] { return plainHost(); });
    one.host = plainHost();
    one.port = pick(kPorts);
    one.own = draw(12) == 0;
    if (isAddress(one.host)) {
      one.addresses = {one.host};
      return one;
    }
    fill(one.aliases, 2, [&] { return std::string(pick(kNames)); });
    one.addresses.emplace_back(address());
    fill(one.addresses, 2, [&] { return address(); });
    return one;
  }

 private:
  unsigned draw(unsigned below) { return static_cast<unsigned>(random_() % below); }
  template <typename T, std::size_t N>
  const T& pick(const T (&all)[N]) {
    return all[draw(N)];
  }
  template <typename Make>
  void fill(std::vector<std::string>& list, unsigned most, Make make) {
    for (unsigned count = draw(most + 1); count > 0; --count) list.push_back(make());
  }
  /// Mostly one of the first, public ones.
  std::string address() { return draw(4) != 0 ? kAddresses[draw(4)].text : pick(kAddresses).text; }
  std::string plainHost() { return draw(6) == 0 ? address() : std::string(pick(kNames)); }
  std::string entry() {
    std::string host = plainHost();
    const std::string port = draw(4) == 0 ? ":" + std::to_string(pick(kPorts)) : "";
    if (isAddress(host))
      return port.empty() || host.find(':') == std::string::npos ? host + port : "[" + host + "]" + port;
    const unsigned form = draw(4);
    return (form == 0 ? "*." : form == 1 ? "." : "") + host + port;
  }

  std::mt19937 random_;
};

std::string describe(const Case& one) {
  std::string text = one.host + ":" + std::to_string(one.port) + (one.own ? " own" : "");
  const auto add = [&](const char* name, const std::vector<std::string>& list) {
    text.append("\n").append(name);
    for (const std::string& entry : list) text.append(" ").append(entry);
  };
  add("aliases", one.aliases);
  add("addresses", one.addresses);
  add("allowed_hosts", one.rules.allowed_hosts);
  add("denied_hosts", one.rules.denied_hosts);
  add("allowed_ports", one.rules.allowed_ports);
  add("denied_ports", one.rules.denied_ports);
  add("private_hosts", one.rules.private_hosts);
  return text;
}

TEST(RulesReference, RandomRulesDecideAsDocumented) {
  Cases cases(1);
  int allowed = 0;
  constexpr int kCases = 20000;
  for (int i = 0; i < kCases; ++i) {
    const Case one = cases.next();
    const bool expected = referenceAllows(one);
    ASSERT_EQ(productAllows(one), expected) << describe(one);
    allowed += expected ? 1 : 0;
  }
  EXPECT_GT(allowed, kCases / 50) << "the cases are too strict to show anything";
}

}  // namespace
}  // namespace caisson::egress
