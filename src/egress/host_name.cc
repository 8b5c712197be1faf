#include "egress/host_name.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.h"

namespace caisson::egress {
namespace {

constexpr std::size_t kNameBytes = 253;
constexpr std::size_t kLabelBytes = 63;

constexpr bool isLetter(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool isHex(char c) { return isDigit(c) || (c >= 'a' && c <= 'f'); }

std::vector<std::string_view> labelsOf(std::string_view name) {
  std::vector<std::string_view> labels;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    labels.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return labels;
}

/// Parses a number like the C library does in addresses: 0x is hexadecimal, a leading 0 octal.
std::optional<std::uint64_t> looseNumber(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
    if (text.empty()) return 0;
  } else if (text.size() > 1 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
  }
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Resolvers treat a name that ends in a number as an address in some notation.
bool endsInNumber(std::string_view label) {
  if (label.starts_with("0x")) return std::ranges::all_of(label.substr(2), isHex);
  return !label.empty() && std::ranges::all_of(label, isDigit);
}

/// One to four numbers, the last filling the remaining bytes: 127.1, 0x7f000001, 2130706433, 0177.0.0.1.
std::optional<Address> looseV4(const std::vector<std::string_view>& parts) {
  if (parts.size() > 4) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto number = looseNumber(parts[i]);
    if (!number || parts[i].empty()) return std::nullopt;
    const bool last = i + 1 == parts.size();
    const std::size_t bits = last ? 32 - 8 * i : 8;
    if (*number >> bits != 0) return std::nullopt;
    value = last ? (value << bits) | *number : (value << 8) | *number;
  }
  return Address::v4(static_cast<std::uint32_t>(value));
}

/// Whether `text` (after xn--) is Punycode (RFC 3492) for non-ASCII text. A label that decodes to ASCII, or to a
/// character that some software treats as a dot, could be read as another name.
bool isHonestPunycode(std::string_view text) {
  std::uint64_t code_point = 128, index = 0, bias = 72;
  const std::size_t dash = text.rfind('-');
  std::uint64_t length = dash == std::string_view::npos ? 0 : dash;
  std::size_t at = dash == std::string_view::npos ? 0 : dash + 1;
  bool first = true;
  if (at >= text.size()) return false;
  while (at < text.size()) {
    const std::uint64_t before = index;
    std::uint64_t weight = 1;
    for (std::uint64_t k = 36;; k += 36) {
      if (at >= text.size()) return false;
      const char c = text[at++];
      if (!isLetter(c) && !isDigit(c)) return false;
      const auto digit = static_cast<std::uint64_t>(isLetter(c) ? c - 'a' : c - '0' + 26);
      index += digit * weight;
      if (index > 0x7fffffff) return false;
      const std::uint64_t threshold = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
      if (digit < threshold) break;
      weight *= 36 - threshold;
      if (weight > 0x7fffffff) return false;
    }
    ++length;
    std::uint64_t delta = first ? (index - before) / 700 : (index - before) / 2;
    first = false;
    delta += delta / length;
    std::uint64_t k = 0;
    for (; delta > 455; k += 36) delta /= 35;
    bias = k + 36 * delta / (delta + 38);
    code_point += index / length;
    index %= length;
    const bool surrogate = code_point >= 0xd800 && code_point <= 0xdfff;
    const bool dot = code_point == 0x3002 || code_point == 0xff0e || code_point == 0xff61;
    const bool full_width = code_point >= 0xff01 && code_point <= 0xff5e;
    if (code_point < 0xa1 || code_point > 0x10ffff || surrogate || dot || full_width) return false;
    ++index;
  }
  return true;
}

std::string_view flawOfLabel(std::string_view label) {
  if (label.empty()) return "it has an empty label";
  if (label.size() > kLabelBytes) return "a label has more than 63 bytes";
  if (label.front() == '-' || label.back() == '-') return "a label begins or ends with a hyphen";
  if (label.starts_with("xn--") && !isHonestPunycode(label.substr(4))) return "a label is not valid Punycode";
  return {};
}

}  // namespace

std::expected<Host, std::string_view> canonicalHost(std::string_view raw) {
  if (raw.empty()) return std::unexpected("it is empty");
  if (raw.front() == '[' || std::ranges::count(raw, ':') >= 2) {
    const bool bracketed = raw.front() == '[';
    if (bracketed && !raw.ends_with(']')) return std::unexpected("a bracket is not closed");
    const auto address = Address::parse(bracketed ? raw.substr(1, raw.size() - 2) : raw);
    if (!address || (bracketed && raw.find(':') == std::string_view::npos)) {
      return std::unexpected("it is not an IPv6 address");
    }
    return Host{{}, address};
  }
  if (raw.ends_with('.')) raw.remove_suffix(1);
  if (raw.size() > kNameBytes) return std::unexpected("it has more than 253 bytes");
  std::string name(raw);
  for (char& c : name) {
    c = lower(c);
    if (isLetter(c) || isDigit(c) || c == '-' || c == '_' || c == '.') continue;
    if (static_cast<unsigned char>(c) >= 0x80)
      return std::unexpected("it is not ASCII; international names go in their xn-- form");
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return std::unexpected("it has a control character");
    return std::unexpected("it has a character that no host name has");
  }
  const std::vector<std::string_view> labels = labelsOf(name);
  for (const std::string_view label : labels) {
    if (const std::string_view flaw = flawOfLabel(label); !flaw.empty()) return std::unexpected(flaw);
  }
  if (endsInNumber(labels.back())) {
    const auto address = looseV4(labels);
    if (!address) return std::unexpected("it ends in a number but is not an address");
    return Host{{}, address};
  }
  return Host{std::move(name), std::nullopt};
}

std::string HostPort::text() const {
  const bool brackets = host.address && !host.address->isV4();
  return (brackets ? "[" + host.text() + "]" : host.text()) + ":" + std::to_string(port);
}

std::optional<std::uint16_t> parsePort(std::string_view text) {
  if (text.empty() || text.size() > 5 || text[0] == '0' || !std::ranges::all_of(text, isDigit)) return std::nullopt;
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  if (value > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(value);
}

std::expected<HostPort, std::string_view> canonicalAuthority(std::string_view raw, std::uint16_t default_port) {
  std::string_view host = raw;
  std::optional<std::uint16_t> port = default_port;
  const std::size_t bracket = raw.rfind(']');
  const std::size_t colon = raw.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    host = raw.substr(0, colon);
    port = parsePort(raw.substr(colon + 1));
    if (!port) return std::unexpected("the port is not a number from 1 to 65535");
  }
  if (*port == 0) return std::unexpected("it names no port");
  auto canonical = canonicalHost(host);
  if (!canonical) return std::unexpected(canonical.error());
  return HostPort{std::move(*canonical), *port};
}

bool isMetadataName(std::string_view canonical) {
  constexpr std::string_view kNames[] = {"instance-data", "instance-data.ec2.internal", "metadata", "metadata.goog",
                                         "metadata.google.internal"};
  return std::ranges::find(kNames, canonical) != std::end(kNames);
}

bool isLocalName(std::string_view canonical) {
  for (const std::string_view top : {"localhost", "local", "internal"}) {
    if (canonical == top) return true;
    if (canonical.size() > top.size() && canonical.ends_with(top) &&
        canonical[canonical.size() - top.size() - 1] == '.') {
      return true;
    }
  }
  return canonical == "localhost.localdomain";
}

}  // namespace caisson::egress
