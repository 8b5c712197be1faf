#include "image/reference.h"

#include <arpa/inet.h>

#include <algorithm>

#include "base/text.h"

namespace caisson::image {
namespace {

constexpr std::string_view kDefaultHost = "docker.io";
constexpr std::string_view kDefaultOwner = "library/";
constexpr std::size_t kMaxName = 255;
constexpr std::size_t kMaxTag = 128;

bool isLowerOrDigit(char c) { return (c >= 'a' && c <= 'z') || isDigit(c); }
bool isWord(char c) { return isLowerOrDigit(lower(c)) || c == '_'; }

Error referenceError(std::string_view text, std::string_view reason) {
  return plainError(Stage::usage, "image", printable(text), reason,
                    "for example debian:12 or ghcr.io/owner/app@sha256:...");
}

/// Letters and digits, separated by one `.`, one or two `_`, or any number of `-`.
bool isComponent(std::string_view text) {
  if (text.empty() || !isLowerOrDigit(text.front()) || !isLowerOrDigit(text.back())) return false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (isLowerOrDigit(text[at])) continue;
    std::size_t end = at;
    while (end < text.size() && text[end] == text[at]) ++end;
    const std::size_t run = end - at;
    const bool known = text[at] == '-' || (text[at] == '.' && run == 1) || (text[at] == '_' && run <= 2);
    if (!known || !isLowerOrDigit(text[end])) return false;
    at = end;
  }
  return true;
}

bool isRepository(std::string_view text) {
  while (true) {
    const std::size_t slash = text.find('/');
    if (!isComponent(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

bool isTag(std::string_view text) {
  return !text.empty() && text.size() <= kMaxTag && isWord(text.front()) &&
         std::ranges::all_of(text, [](char c) { return isWord(c) || c == '.' || c == '-'; });
}

bool isPort(std::string_view text) { return !text.empty() && text.size() <= 5 && std::ranges::all_of(text, isDigit); }

/// A host name, an IPv4 address or a bracketed IPv6 address, with an optional port.
bool isHost(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return false;
    in6_addr address{};
    const std::string inside(text.substr(1, end - 1));
    if (inside.find('\0') != std::string::npos || ::inet_pton(AF_INET6, inside.c_str(), &address) != 1) return false;
    const std::string_view rest = text.substr(end + 1);
    return rest.empty() || (rest[0] == ':' && isPort(rest.substr(1)));
  }
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos && !isPort(text.substr(colon + 1))) return false;
  const std::string_view name = text.substr(0, colon);
  if (name.empty() || !isLowerOrDigit(lower(name.front())) || !isLowerOrDigit(lower(name.back()))) return false;
  return std::ranges::all_of(name, [](char c) { return isLowerOrDigit(lower(c)) || c == '.' || c == '-'; }) &&
         name.find("..") == std::string_view::npos;
}

/// Docker's rule: the first component is a host if it has a dot or a port, or is `localhost`.
bool looksLikeHost(std::string_view component) {
  return component == "localhost" || component.find_first_of(".:") != std::string_view::npos;
}

/// A registry has one name: rules for signatures that were written for `ghcr.io` also hold for `ghcr.io:443`. A host
/// that needs its port to look like one keeps it.
std::string withoutDefaultPort(const std::string& host) {
  const std::size_t colon = host.rfind(':');
  if (colon == std::string::npos || host.ends_with(']')) return host;
  const std::size_t digits = host.find_first_not_of('0', colon + 1);
  if (digits == std::string::npos) return host;
  const std::string name = host.substr(0, colon), port = host.substr(digits);
  return port == "443" && looksLikeHost(name) ? name : name + ":" + port;
}

}  // namespace

bool isImageId(std::string_view text) {
  return text.size() >= kMinIdDigits &&
         std::ranges::all_of(text, [](char c) { return isDigit(c) || (c >= 'a' && c <= 'f'); });
}

Result<Reference> Reference::parse(std::string_view text) {
  Reference result;
  std::string_view rest = text;
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    result.digest = ContentDigest::parse(rest.substr(at + 1));
    if (!result.digest) return fail(referenceError(text, "invalid digest: expected sha256: and 64 hexadecimal digits"));
    rest = rest.substr(0, at);
  }
  const std::size_t slash = rest.find('/');
  result.host = kDefaultHost;
  if (slash != std::string_view::npos && looksLikeHost(rest.substr(0, slash))) {
    result.host = lowered(rest.substr(0, slash));
    rest.remove_prefix(slash + 1);
    if (!isHost(result.host)) return fail(referenceError(text, "invalid registry host"));
    result.host = withoutDefaultPort(result.host);
    if (result.host == "index.docker.io" || result.host == "registry-1.docker.io") result.host = kDefaultHost;
  }
  if (const std::size_t colon = rest.rfind(':'); colon != std::string_view::npos) {
    result.tag = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
    if (!isTag(result.tag)) return fail(referenceError(text, "invalid tag"));
  } else if (!result.digest) {
    result.tag = "latest";
  }
  if (!isRepository(rest))
    return fail(referenceError(text, "invalid image name: expected lower-case letters and digits"));
  const bool official = result.host == kDefaultHost && rest.find('/') == std::string_view::npos;
  result.repository = (official ? std::string(kDefaultOwner) : "") + std::string(rest);
  if (result.name().size() > kMaxName) return fail(referenceError(text, "the image name is too long"));
  return result;
}

bool Reference::looksLikeId() const {
  if (host != kDefaultHost || !repository.starts_with(kDefaultOwner)) return false;
  const std::string_view short_name = std::string_view(repository).substr(kDefaultOwner.size());
  if (short_name == "sha256") return isImageId(lowered(tag));
  return isImageId(short_name) && (tag.empty() || tag == "latest");
}

std::string Reference::familiar() const {
  std::string_view short_name = repository;
  std::string prefix;
  if (host != kDefaultHost) prefix = host + "/";
  if (host == kDefaultHost && short_name.starts_with(kDefaultOwner)) short_name.remove_prefix(kDefaultOwner.size());
  return prefix + std::string(short_name) + (tag.empty() ? "" : ":" + tag) + (digest ? "@" + digest->text() : "");
}

}  // namespace caisson::image
