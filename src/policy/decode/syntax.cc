#include "policy/decode/syntax.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/never_allowed_calls.h"
#include "base/syscall_names.h"
#include "base/text.h"
#include "policy/profiles/presets.h"
#include "policy/rules/pattern.h"
#include "policy/rules/protected_files.h"

namespace caisson::policy {

namespace {

constexpr bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool hasControl(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

bool climbs(std::string_view path) {
  for (std::size_t start = 0; start <= path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    if (path.substr(start, end - start) == "..") return true;
    start = end + 1;
  }
  return false;
}

std::optional<Flaw> flawOfPath(std::string_view path) {
  if (path.starts_with("~")) {
    return Flaw{"an absolute path", "`~` is expanded in paths of the host only, not in paths inside the sandbox"};
  }
  if (!path.starts_with("/")) return Flaw{"an absolute path", {}};
  if (climbs(path)) return Flaw{"a path without \"..\"", "write the path it leads to"};
  if (path.size() >= 4096) return Flaw{"a path of less than 4096 bytes", {}};
  if (hasControl(path)) return Flaw{"a path without control characters", {}};
  return std::nullopt;
}

/// Checks a directory inside the sandbox: absolute, or relative to the workspace.
std::optional<Flaw> flawOfDirectory(std::string_view path) {
  if (path.empty()) return std::nullopt;
  if (path.starts_with("~")) return Flaw{"a directory inside", "the home inside is /home/sandbox; write it out"};
  return flawOfPath(path.starts_with('/') ? std::string(path) : "/" + std::string(path));
}

/// Checks a host path that is to be shown. The kernel's trees would defeat the sandbox: a shown /proc gives access to
/// the host's processes.
std::optional<Flaw> flawOfShownPath(std::string_view path) {
  if (auto flaw = flawOfPath(path)) return flaw;
  const std::string normal = normalPath(path);
  if (normal == "/") return Flaw{"a path below the root", "name the directories that are needed"};
  for (const std::string_view top : {"/proc", "/sys", "/dev"}) {
    if (isWithin(normal, top)) return Flaw{"a path outside /proc, /sys and /dev", "the sandbox makes its own of these"};
  }
  return std::nullopt;
}

bool isHostLabel(std::string_view label) {
  if (label.empty() || label.size() > 63 || label.front() == '-' || label.back() == '-') return false;
  return std::ranges::all_of(label, [](char c) { return isLetter(c) || isDigit(c) || c == '-' || c == '_'; });
}

bool isDomain(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty() || name.size() > 253) return false;
  std::string_view label;
  for (std::size_t start = 0; start <= name.size();) {
    const std::size_t end = std::min(name.find('.', start), name.size());
    label = name.substr(start, end - start);
    if (!isHostLabel(label)) return false;
    start = end + 1;
  }
  // Many resolvers parse a name whose last label is a number ("0x7f.1", "2130706433") as an address.
  const bool hexadecimal = label.starts_with("0x") || label.starts_with("0X");
  return !hexadecimal && !std::ranges::all_of(label, isDigit);
}

bool isAddress(std::string_view text) {
  std::string terminated(text);
  in6_addr room{};
  return ::inet_pton(AF_INET, terminated.c_str(), &room) == 1 || ::inet_pton(AF_INET6, terminated.c_str(), &room) == 1;
}

std::optional<int> decimal(std::string_view text) {
  int number = 0;
  if (text.empty() || text.size() > 6 || !std::ranges::all_of(text, isDigit)) return std::nullopt;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

bool isHostPattern(std::string_view text) {
  if (text.starts_with(kPresetPrefix)) return findPreset(text) != nullptr;
  if (isAddress(text)) return true;
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    const auto port = decimal(text.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535) return false;
    text = text.substr(0, colon);
  }
  if (text == "*" || isAddress(text)) return true;
  if (text.starts_with("[") && text.ends_with("]")) return isAddress(text.substr(1, text.size() - 2));
  if (text.starts_with("*.")) return isDomain(text.substr(2));
  if (text.starts_with(".")) return isDomain(text.substr(1));
  return isDomain(text);
}

bool isCredentialHost(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const auto port = decimal(text.substr(colon + 1));
    if (!port || *port < 1 || *port > 65535 || text[colon + 1] == '0') return false;
    text = text.substr(0, colon);
  }
  const bool lower = std::ranges::none_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
  return lower && isDomain(text) && !text.ends_with('.') && text.find('_') == std::string_view::npos;
}

bool isPorts(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = decimal(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : decimal(text.substr(dash + 1));
  return first && last && *first >= 1 && *first <= *last && *last <= 65535;
}

bool isProxyUrl(std::string_view text) {
  if (!text.starts_with("http://")) return false;
  text.remove_prefix(7);
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const auto port = decimal(text.substr(colon + 1));
  const std::string_view host = text.substr(0, colon);
  return port && *port >= 1 && *port <= 65535 && (host.starts_with('[') || host.find(':') == std::string_view::npos) &&
         host != "*" && !host.starts_with("*.") && !host.starts_with(".") && isHostPattern(host);
}

bool isHostname(std::string_view text) {
  // The kernel stores 64 bytes. An underscore is not valid in a host name, though DNS allows it.
  return text.size() <= 64 && isDomain(text) && !text.ends_with('.') && text.find('_') == std::string_view::npos;
}

bool isVariable(std::string_view text) {
  return !text.empty() && text.find('=') == std::string_view::npos && text.find('\0') == std::string_view::npos &&
         !hasControl(text);
}

std::optional<Flaw> flawOfSyscall(std::string_view text) {
  if (isSyscallName(text)) return std::nullopt;
  return Flaw{"the name of a system call", "see syscalls(2) for the names"};
}

/// Splits "name:port", "[address]:port" or "address"; the port may be empty.
std::pair<std::string_view, std::string_view> splitPort(std::string_view text) {
  if (isAddress(text)) return {text, {}};
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  std::string_view host = text.substr(0, colon);
  if (host.starts_with("[") && host.ends_with("]")) host = host.substr(1, host.size() - 2);
  return {host, colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1)};
}

/// Whether the host is the machine itself: localhost and names below it, 127.0.0.0/8, ::1, and the unspecified address,
/// which connects to them.
bool isLoopback(std::string_view host) {
  const std::string text(host);
  in_addr four{};
  in6_addr six{};
  if (::inet_pton(AF_INET, text.c_str(), &four) == 1) return (ntohl(four.s_addr) >> 24) == 127 || four.s_addr == 0;
  if (::inet_pton(AF_INET6, text.c_str(), &six) == 1) {
    if (IN6_IS_ADDR_V4MAPPED(&six)) return six.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_UNSPECIFIED(&six);
  }
  std::string name;
  for (const char c : host) name += static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  if (name.ends_with('.')) name.pop_back();
  return name == "localhost" || name.ends_with(".localhost") || name == "localhost.localdomain";
}

/// An error for a host that isLoopback(): inside, it means the sandbox's own loopback, so an entry would have no
/// effect.
std::optional<Flaw> flawOfLoopback(std::string_view text) {
  const auto [host, port] = splitPort(text);
  if (!isLoopback(host)) return std::nullopt;
  const std::string number = port.empty() ? "PORT" : std::string(port);
  return Flaw{"a host other than this machine, which is \"" + std::string(host) + "\" inside the sandbox too",
              "to reach a service of this machine use --host-port " + number + ", or network.host_ports = [\"" +
                  number + "\"]"};
}

/// A reference to an image: [HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST].
bool isImageReference(std::string_view text) {
  constexpr std::size_t kMaxReference = 512, kDigestDigits = 64;
  if (text.empty() || text.size() > kMaxReference || hasControl(text)) return false;
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    const std::string_view digest = text.substr(at + 1);
    if (!digest.starts_with("sha256:") || digest.size() != 7 + kDigestDigits ||
        digest.find_first_not_of("0123456789abcdef", 7) != std::string_view::npos) {
      return false;
    }
    text = text.substr(0, at);
  }
  const auto plain = [](char c) { return isLetter(c) || (c >= '0' && c <= '9'); };
  const auto allowed = [&](char c) { return plain(c) || c == '.' || c == '_' || c == '-' || c == '/' || c == ':'; };
  return !text.empty() && std::ranges::all_of(text, allowed) && plain(text.front()) && plain(text.back()) &&
         text.find("..") == std::string_view::npos && text.find("//") == std::string_view::npos;
}

std::optional<Flaw> flawOfRoot(std::string_view text) {
  if (text == "host" || isImageReference(text)) return std::nullopt;
  if (text.starts_with('/')) return flawOfPath(text);
  return Flaw{"host, the absolute path of a directory, or an image such as debian:12 or name@sha256:DIGEST", ""};
}

std::optional<Flaw> unless(bool good, std::string_view expected, std::string_view hint = {}) {
  if (good) return std::nullopt;
  return Flaw{std::string(expected), std::string(hint)};
}

}  // namespace

bool isHostPath(Syntax syntax) {
  return syntax == Syntax::workspace_path || syntax == Syntax::root || syntax == Syntax::shown_path ||
         syntax == Syntax::executable || syntax == Syntax::file;
}

std::expected<std::string, Flaw> expandHome(std::string_view path) {
  if (!path.starts_with('~')) return std::string(path);
  if (path.size() > 1 && path[1] != '/') {
    return std::unexpected(Flaw{"an absolute path, or one that begins with ~/",
                                "only your own home directory has a short form; write out another user's"});
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') {
    return std::unexpected(Flaw{"an absolute path", "`~` cannot be expanded: HOME is not set to an absolute path"});
  }
  std::string expanded(home);
  while (expanded.size() > 1 && expanded.ends_with('/')) expanded.pop_back();
  return expanded == "/" && path.size() > 1 ? std::string(path.substr(1)) : expanded + std::string(path.substr(1));
}

/// 0, 1 and 2 are the standard streams.
static bool isPassedDescriptor(std::string_view text) {
  const int number = decimal(text).value_or(0);
  return number >= 3 && number <= kMaxPassedDescriptor;
}

std::optional<Flaw> findFlaw(Syntax syntax, std::string_view text) {
  switch (syntax) {
    case Syntax::any:
    case Syntax::positive:
    case Syntax::time_limit:
    case Syntax::memory:
    case Syntax::cpu_count:
    case Syntax::open_files:
    case Syntax::stack:
    case Syntax::cpu: return std::nullopt;
    case Syntax::name:
      return unless(!text.empty() && text.size() <= 128 && !hasControl(text), "one line of at most 128 bytes");
    case Syntax::hostname: return unless(isHostname(text), "a host name of letters, digits and hyphens");
    case Syntax::workspace_path: return text.empty() ? std::nullopt : flawOfPath(text);
    case Syntax::root: return flawOfRoot(text);
    case Syntax::shown_path: return flawOfShownPath(text);
    case Syntax::inside_path: return flawOfPath(text);
    case Syntax::directory: return flawOfDirectory(text);
    case Syntax::executable:
      if (text.find('/') != std::string_view::npos) return flawOfPath(text);
      return unless(!text.empty() && !hasControl(text), "the absolute path or the bare name of an executable");
    case Syntax::reachable_host:
      if (auto flaw = findFlaw(Syntax::host_pattern, text)) return flaw;
      return flawOfLoopback(text);
    case Syntax::host_pattern:
      return unless(isHostPattern(text),
                    "a host name, \"*.name\", \".name\", an address or \"*\", with or without \":port\"",
                    "write international names in their xn-- form; presets are npm, pip, cargo, go, rubygems, git, "
                    "debian, ubuntu and cdn");
    case Syntax::credential_host:
      return unless(isCredentialHost(text), "a host name in lower case, with or without \":port\"",
                    "a credential is for one host: no pattern, no address");
    case Syntax::single_host:
      if (auto flaw = unless(isAddress(text) || isDomain(text), "a host name or an address")) return flaw;
      return flawOfLoopback(text);
    case Syntax::port: return unless(isPorts(text), "a port (1 to 65535) or a range such as \"8000-8010\"");
    case Syntax::address: return unless(isAddress(text), "an IPv4 or IPv6 address");
    case Syntax::proxy_url: return unless(text.empty() || isProxyUrl(text), "a URL such as \"http://proxy:3128\"");
    case Syntax::file: return text.empty() ? std::nullopt : flawOfPath(text);
    case Syntax::descriptor: return unless(isPassedDescriptor(text), "the number of a descriptor, 3 to 63");
    case Syntax::syscall: return flawOfSyscall(text);
    case Syntax::allowed_syscall:
      if (auto flaw = flawOfSyscall(text)) return flaw;
      return unless(!isNeverAllowed(text), "a call that can be allowed", "this call is blocked whatever a policy says");
    case Syntax::reported_syscall:
      if (auto flaw = flawOfSyscall(text)) return flaw;
      // Every libc tries these two first and has a fallback: counting them would kill ordinary programs.
      return unless(text != "clone3" && text != "openat2", "a call whose refusal can be reported",
                    "this call is answered as if the kernel lacked it, without a report");
    case Syntax::variable: return unless(isVariable(text), "the name of a variable, without \"=\"");
    case Syntax::pattern:
      if (const auto problem = patternProblem(text)) return Flaw{"a regular expression that works", "it " + *problem};
      return std::nullopt;
    case Syntax::protected_pattern:
      if (const auto problem = protectedPatternProblem(text)) return Flaw{*problem, "for example deploy/*.sh or ops/"};
      return std::nullopt;
  }
  return std::nullopt;
}

std::string normalPath(std::string_view path) {
  std::string normal;
  for (std::size_t start = 0; start < path.size();) {
    const std::size_t end = std::min(path.find('/', start), path.size());
    const std::string_view part = path.substr(start, end - start);
    if (!part.empty() && part != ".") normal.append("/").append(part);
    start = end + 1;
  }
  return normal.empty() ? "/" : normal;
}

bool isWithin(std::string_view path, std::string_view top) {
  if (top == "/") return true;
  return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
}

}  // namespace caisson::policy
