#include "egress/http_head.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace caisson::egress::http {
namespace {

constexpr std::size_t kLineBytes = 4096;  // of a first line that may become a request

constexpr bool isToken(char c) {
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || isDigit(c)) return true;
  return c != 0 && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

/// What some servers accept between or before the words of a request line; not a line feed.
constexpr bool isBlank(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == ' ' || (byte >= 0x09 && byte <= 0x0d && c != '\n') || (byte >= 0x1c && byte <= 0x1f) || byte == 0x85 ||
         byte == 0xa0;
}

bool isMethod(std::string_view word) {
  static constexpr std::string_view kMethods[] = {"GET",   "HEAD",    "POST",  "PUT",     "DELETE",
                                                  "PATCH", "OPTIONS", "TRACE", "CONNECT", "PRI"};
  return std::ranges::find(kMethods, word) != std::end(kMethods);
}

bool isTokenText(std::string_view text) { return !text.empty() && std::ranges::all_of(text, isToken); }

/// The lines of a head up to its empty line; `more` while that is missing. Only CR LF ends a line.
struct Lines {
  Status status = Status::more;
  std::string_view flaw;
  std::size_t used = 0;
  std::vector<std::string_view> lines;
};

Lines splitLines(std::string_view bytes) {
  Lines result;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < bytes.size() && i < kHeadBytes; ++i) {
    const char c = bytes[i];
    if (c == '\n') {
      if (i == begin || bytes[i - 1] != '\r') {
        result.status = Status::bad;
        result.flaw = "a line ends without CR";
        return result;
      }
      const std::string_view line = bytes.substr(begin, i - 1 - begin);
      begin = i + 1;
      if (line.empty()) {
        result.used = begin;
        result.status = Status::done;
        return result;
      }
      if (result.lines.size() > kMaxFields) break;
      result.lines.push_back(line);
      continue;
    }
    const bool lone_return = c == '\r' && i + 1 < bytes.size() && bytes[i + 1] != '\n';
    const bool control = (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\r') || c == 0x7f;
    if (lone_return || control) {
      result.status = Status::bad;
      result.flaw = "a control character in the head";
      return result;
    }
  }
  if (bytes.size() >= kHeadBytes || result.lines.size() > kMaxFields) {
    result.status = Status::bad;
    result.flaw = "the head is too large";
  }
  return result;
}

std::string_view parseFields(const std::vector<std::string_view>& lines, std::vector<Field>& fields) {
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::size_t colon = lines[i].find(':');
    if (colon == std::string_view::npos) return "a field without a colon";
    const Field field{lines[i].substr(0, colon), trimmed(lines[i].substr(colon + 1))};
    if (!isTokenText(field.name)) return "a field name with a blank or an odd character";  // also folded lines
    fields.push_back(field);
  }
  return {};
}

const Field* findField(const std::vector<Field>& fields, std::string_view name) {
  for (const Field& field : fields) {
    if (sameName(field.name, name)) return &field;
  }
  return nullptr;
}

std::size_t countFields(const std::vector<Field>& fields, std::string_view name) {
  return static_cast<std::size_t>(
      std::ranges::count_if(fields, [&](const Field& field) { return sameName(field.name, name); }));
}

bool listHas(std::string_view list, std::string_view word) {
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (sameName(trimmed(list.substr(begin, end - begin)), word)) return true;
    begin = end + 1;
  }
  return false;
}

bool connectionSays(const std::vector<Field>& fields, std::string_view word) {
  return std::ranges::any_of(fields, [&](const Field& field) {
    return (sameName(field.name, "connection") || sameName(field.name, "proxy-connection")) &&
           listHas(field.value, word);
  });
}

/// Parses Content-Length and Transfer-Encoding; returns the error, or empty.
std::string_view parseFraming(const std::vector<Field>& fields, int minor, Framing& framing) {
  const std::size_t lengths = countFields(fields, "content-length");
  const std::size_t codings = countFields(fields, "transfer-encoding");
  if (lengths > 1) return "two lengths";
  if (codings > 1) return "two transfer codings";
  if (lengths > 0 && codings > 0) return "a length beside a transfer coding";
  if (codings > 0) {
    if (minor == 0) return "a transfer coding in HTTP/1.0";
    if (!sameName(findField(fields, "transfer-encoding")->value, "chunked")) return "a transfer coding but chunked";
    framing.kind = Framing::Kind::chunked;
  } else if (lengths > 0) {
    const std::string_view value = findField(fields, "content-length")->value;
    if (value.empty() || value.size() > 18 || !std::ranges::all_of(value, isDigit))
      return "a length that is not a number";
    std::from_chars(value.data(), value.data() + value.size(), framing.length);
    framing.kind = framing.length == 0 ? Framing::Kind::none : Framing::Kind::length;
  }
  return {};
}

std::string_view parseVersion(std::string_view text, int& minor) {
  if (text == "HTTP/1.1") {
    minor = 1;
  } else if (text == "HTTP/1.0") {
    minor = 0;
  } else {
    return "a version other than HTTP/1.0 and HTTP/1.1";
  }
  return {};
}

bool isTargetText(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

std::string_view parseTarget(RequestHead& head) {
  std::string_view target = head.target;
  if (head.method == "CONNECT") {
    head.connect = true;
    auto authority = canonicalAuthority(target, 0);
    if (!authority) return authority.error();
    head.authority = std::move(*authority);
    head.has_authority = true;
    return {};
  }
  if (target.starts_with('/')) {
    head.path = target;
    return {};
  }
  if (target == "*" && head.method == "OPTIONS") {
    head.path = target;
    return {};
  }
  if (target.size() < 7 || !sameName(target.substr(0, 7), "http://"))
    return "a target that is neither a path nor http://";
  target.remove_prefix(7);
  const std::size_t end = std::min(target.find_first_of("/?#"), target.size());
  const std::string_view authority = target.substr(0, end);
  if (authority.find('@') != std::string_view::npos) return "a user name in the URL";
  auto parsed = canonicalAuthority(authority, 80);
  if (!parsed) return parsed.error();
  head.authority = std::move(*parsed);
  head.has_authority = true;
  head.absolute = true;
  head.path = target.substr(end);
  if (head.path.empty()) {
    head.path = "/";
  } else if (!head.path.starts_with('/')) {
    return "a URL without a path";
  }
  return {};
}

/// The Host field: exactly one in HTTP/1.1, and it must match the target.
std::string_view parseHost(RequestHead& head, std::uint16_t default_port) {
  const std::size_t count = countFields(head.fields, "host");
  if (count > 1) return "two Host fields";
  if (count == 0) return head.minor == 1 && !head.connect ? "no Host field" : std::string_view();
  const Field* field = findField(head.fields, "host");
  const std::uint16_t port = head.has_authority ? (head.absolute ? 80 : head.authority.port) : default_port;
  auto host = canonicalAuthority(field->value, port);
  if (!host) return "the Host field is not a host name";
  if (head.has_authority) {
    const bool same = host->host == head.authority.host && host->port == head.authority.port;
    return same ? std::string_view() : "the Host field and the target disagree";
  }
  head.authority = std::move(*host);
  head.has_authority = true;
  return {};
}

std::string_view parseRequestLine(std::string_view line, RequestHead& head) {
  const std::size_t first = line.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || line.find(' ', second + 1) != std::string_view::npos) {
    return "a request line that has not three parts";
  }
  head.method = line.substr(0, first);
  head.target = line.substr(first + 1, second - first - 1);
  if (!isTokenText(head.method)) return "an odd method";
  if (head.target.empty() || !isTargetText(head.target)) return "an odd target";
  return parseVersion(line.substr(second + 1), head.minor);
}

}  // namespace

bool sameName(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

RequestHead parseRequest(std::string_view bytes, std::uint16_t default_port) {
  RequestHead head;
  const Lines split = splitLines(bytes);
  head.status = split.status;
  head.flaw = split.flaw;
  head.used = split.used;
  if (head.status != Status::done) return head;
  const auto refuse = [&](std::string_view flaw) {
    head.status = Status::bad;
    head.flaw = flaw;
  };
  if (split.lines.empty()) {
    refuse("no request line");
    return head;
  }
  std::string_view flaw = parseRequestLine(split.lines[0], head);
  if (flaw.empty()) flaw = parseFields(split.lines, head.fields);
  if (flaw.empty()) flaw = parseTarget(head);
  if (flaw.empty()) flaw = parseHost(head, default_port);
  if (flaw.empty()) flaw = parseFraming(head.fields, head.minor, head.body);
  if (flaw.empty() && head.connect && head.body.kind != Framing::Kind::none) flaw = "a CONNECT with a body";
  if (!flaw.empty()) {
    refuse(flaw);
    return head;
  }
  const Field* upgrade = findField(head.fields, "upgrade");
  head.websocket =
      upgrade != nullptr && sameName(upgrade->value, "websocket") && connectionSays(head.fields, "upgrade");
  head.keep_alive = head.minor == 1 ? !connectionSays(head.fields, "close") : connectionSays(head.fields, "keep-alive");
  return head;
}

ResponseHead parseResponse(std::string_view bytes, bool to_head) {
  ResponseHead head;
  const Lines split = splitLines(bytes);
  head.status = split.status;
  head.flaw = split.flaw;
  head.used = split.used;
  if (head.status != Status::done) return head;
  std::string_view flaw;
  const std::string_view line = split.lines.empty() ? std::string_view() : split.lines[0];
  const bool shaped = line.size() >= 12 && line[8] == ' ' && std::ranges::all_of(line.substr(9, 3), isDigit) &&
                      (line.size() == 12 || line[12] == ' ');
  flaw = shaped ? parseVersion(line.substr(0, 8), head.minor) : "no status line";
  if (flaw.empty()) flaw = parseFields(split.lines, head.fields);
  if (flaw.empty()) flaw = parseFraming(head.fields, head.minor, head.body);
  if (!flaw.empty()) {
    head.status = Status::bad;
    head.flaw = flaw;
    return head;
  }
  std::from_chars(line.data() + 9, line.data() + 12, head.code);
  const bool never_body = to_head || head.code / 100 == 1 || head.code == 204 || head.code == 304;
  if (never_body) {
    head.body = {};
  } else if (head.body.kind == Framing::Kind::none && countFields(head.fields, "content-length") == 0) {
    head.body.kind = Framing::Kind::until_close;
  }
  head.keep_alive = head.minor == 1 ? !connectionSays(head.fields, "close") : connectionSays(head.fields, "keep-alive");
  if (head.code / 100 == 3) {
    if (const Field* location = findField(head.fields, "location")) head.location = location->value;
  }
  return head;
}

Looks looksLikeRequest(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size() && (isBlank(bytes[at]) || bytes[at] == '\n')) ++at;
  const std::size_t begin = at;
  while (at < bytes.size() && isToken(bytes[at]) && at - begin < 24) ++at;
  if (at == bytes.size()) return at < kLineBytes ? Looks::more : Looks::other;
  const std::string_view word = bytes.substr(begin, at - begin);
  const bool line_end = bytes[at] == '\n' || (bytes[at] == '\r' && at + 1 < bytes.size() && bytes[at + 1] == '\n');
  const bool usual = bytes[at] == ' ' || bytes[at] == '\t';
  if (!line_end && !usual && isMethod(word))
    return bytes[at] == '\r' && at + 1 == bytes.size() ? Looks::more : Looks::http;
  if (!isBlank(bytes[at]) || line_end || at == begin) return Looks::other;
  // "WORD rest" is a request if `rest` is a target; a line such as "HELO name" is not.
  while (at < bytes.size() && isBlank(bytes[at])) ++at;
  if (at == bytes.size()) return at < kLineBytes ? Looks::more : Looks::other;
  const std::size_t next = at;
  const std::string_view rest = bytes.substr(next);
  if (rest[0] == '/' || rest[0] == '*') return Looks::http;
  const std::size_t line = rest.find('\n');
  if (line == std::string_view::npos) return rest.size() < kLineBytes ? Looks::more : Looks::other;
  return rest.substr(0, line).find("HTTP/") != std::string_view::npos ? Looks::http : Looks::other;
}

std::string rewriteForOrigin(const RequestHead& head, const OriginForm& form) {
  std::string out;
  out.reserve(head.used + form.extra.size() + 64);
  out.append(head.method).append(" ").append(head.path).append(head.minor == 1 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n");
  const Host& host = head.authority.host;
  const bool brackets = host.address && !host.address->isV4();
  out.append("Host: ").append(brackets ? "[" + host.text() + "]" : host.text());
  if (head.authority.port != form.default_port) out.append(":").append(std::to_string(head.authority.port));
  out.append("\r\n");
  for (const Field& field : head.fields) {
    static constexpr std::string_view kDropped[] = {
        "host",       "proxy-connection", "proxy-authorization", "keep-alive",
        "connection", "upgrade",          "http2-settings",      "te"};
    const auto same = [&](std::string_view name) { return sameName(name, field.name); };
    if (std::ranges::any_of(kDropped, same) || std::ranges::any_of(form.without, same)) continue;
    // Also drops fields that the sender declared hop-by-hop.
    if (!sameName(field.name, "content-length") && !sameName(field.name, "transfer-encoding") &&
        connectionSays(head.fields, field.name)) {
      continue;
    }
    out.append(field.name).append(": ").append(field.value).append("\r\n");
  }
  if (head.websocket) {
    out.append("Connection: Upgrade\r\nUpgrade: websocket\r\n");
  } else if (!head.keep_alive) {
    out.append("Connection: close\r\n");
  } else if (head.minor == 0) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append(form.extra);
  out.append("\r\n");
  return out;
}

}  // namespace caisson::egress::http
