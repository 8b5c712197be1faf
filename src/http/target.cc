#include "http/target.h"

#include <algorithm>
#include <charconv>

#include "base/hex.h"
#include "base/percent.h"
#include "base/text.h"

namespace caisson::http {
namespace {

bool isPrintable(char c) { return c > 0x20 && c < 0x7F; }

std::optional<std::uint64_t> readNumber(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool readSegments(std::string_view path, std::vector<std::string>& segments) {
  if (path == "/") return true;
  while (!path.empty()) {
    path.remove_prefix(1);  // the slash
    const std::size_t end = std::min(path.find('/'), path.size());
    auto segment = decodePercent(path.substr(0, end));
    if (!segment || segment->empty() || *segment == "." || *segment == "..") return false;
    segments.push_back(*std::move(segment));
    path.remove_prefix(end);
  }
  return true;
}

}  // namespace

const std::string* Target::parameter(std::string_view name) const {
  for (const auto& [key, value] : query)
    if (key == name) return &value;
  return nullptr;
}

std::string_view Target::path() const { return std::string_view(text).substr(0, text.find('?')); }

std::optional<Target> parseTarget(std::string_view text) {
  constexpr std::size_t kMaxParameters = 64;
  if (!text.starts_with('/') || !std::all_of(text.begin(), text.end(), isPrintable)) return std::nullopt;
  if (text.find('#') != std::string_view::npos) return std::nullopt;
  Target target{.text = std::string(text)};
  const std::size_t question = text.find('?');
  if (!readSegments(text.substr(0, question), target.segments)) return std::nullopt;
  if (question == std::string_view::npos) return target;
  for (const std::string_view part : split(text.substr(question + 1), '&')) {
    const std::size_t equals = part.find('=');
    auto key = decodePercent(part.substr(0, equals), true);
    auto value = decodePercent(equals == std::string_view::npos ? "" : part.substr(equals + 1), true);
    if (!key || !value || target.query.size() >= kMaxParameters) return std::nullopt;
    target.query.emplace_back(*std::move(key), *std::move(value));
  }
  return target;
}

std::optional<Authority> parseAuthority(std::string_view text) {
  Authority authority;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    authority.host = lowered(text.substr(1, end - 1));
    port = text.substr(end + 1);
    if (!std::all_of(authority.host.begin(), authority.host.end(),
                     [](char c) { return hexDigit(c) >= 0 || c == ':' || c == '.'; }))
      return std::nullopt;
  } else {
    const std::size_t colon = text.find(':');
    authority.host = lowered(text.substr(0, colon));
    if (colon != std::string_view::npos) port = text.substr(colon);
    const bool plain = std::all_of(authority.host.begin(), authority.host.end(), [](char c) {
      return isDigit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_';
    });
    if (!plain) return std::nullopt;
  }
  if (authority.host.empty()) return std::nullopt;
  if (port.empty()) return authority;
  const auto number = port.starts_with(':') ? readNumber(port.substr(1)) : std::nullopt;
  if (!number || *number > 65535) return std::nullopt;
  authority.port = std::to_string(*number);
  return authority;
}

std::optional<Origin> parseOrigin(std::string_view text) {
  const std::size_t end = text.find("://");
  if (end == std::string_view::npos) return std::nullopt;
  auto authority = parseAuthority(text.substr(end + 3));
  if (!authority) return std::nullopt;
  return Origin{lowered(text.substr(0, end)), *std::move(authority)};
}

bool isLoopback(const Authority& authority) {
  const std::string_view host = authority.host;
  if (host == "localhost" || host == "::1") return true;
  if (!host.starts_with("127.")) return false;
  const auto parts = split(host, '.');
  return parts.size() == 4 && std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           const auto number = readNumber(part);
           return number && *number < 256;
         });
}

Range parseRange(std::string_view header, std::uint64_t size) {
  const Range whole{.offset = 0, .length = size};
  constexpr std::string_view kUnit = "bytes=";
  if (!header.starts_with(kUnit) || header.find(',') != std::string_view::npos) return whole;
  header.remove_prefix(kUnit.size());
  const std::size_t dash = header.find('-');
  if (dash == std::string_view::npos) return whole;
  const std::string_view from = header.substr(0, dash), to = header.substr(dash + 1);
  if (from.empty()) {
    const auto last = readNumber(to);
    if (!last) return whole;
    if (*last == 0 || size == 0) return {.unsatisfiable = true};
    const std::uint64_t length = std::min(*last, size);
    return {.offset = size - length, .length = length, .partial = true};
  }
  const auto first = readNumber(from);
  const auto last = to.empty() ? std::optional<std::uint64_t>(size == 0 ? 0 : size - 1) : readNumber(to);
  if (!first || !last) return whole;
  if (*first >= size) return {.unsatisfiable = true};
  if (*last < *first) return whole;
  return {.offset = *first, .length = std::min(*last, size - 1) - *first + 1, .partial = true};
}

std::string_view findHeadFlaw(std::string_view head) {
  bool first = true;
  while (!head.empty()) {
    const std::size_t end = head.find("\r\n");
    if (end == std::string_view::npos) return "incomplete line";
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    for (const char c : line) {
      if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F) return "control character in the head";
    }
    if (line.empty()) return head.empty() ? "" : "bytes after the head";
    if (!first) {
      if (line.front() == ' ' || line.front() == '\t') return "folded header line";
      const std::size_t colon = line.find(':');
      if (colon == 0 || colon == std::string_view::npos) return "header line without a name";
      if (line[colon - 1] == ' ' || line[colon - 1] == '\t') return "blank before the colon of a header";
    }
    first = false;
  }
  return "incomplete head";
}

}  // namespace caisson::http
