// Request targets: a path of decoded segments and a query. Parsed strictly, since two readings of one path are how
// access checks are bypassed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caisson::http {

struct Target {
  std::string text;                                        ///< as it was sent
  std::vector<std::string> segments;                       ///< decoded, so they may contain '/'; never "." or ".."
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded, in order
  /// The first parameter of that name, or null.
  [[nodiscard]] const std::string* parameter(std::string_view name) const;
  /// The path as it was sent, without the query.
  [[nodiscard]] std::string_view path() const;
};

/// Parses "/a/b?c=d". Nothing if it isn't an absolute path, has empty, "." or ".." segments, an invalid escape, a NUL
/// or a byte outside printable ASCII.
std::optional<Target> parseTarget(std::string_view text);

/// The host of a Host header, or of an Origin (scheme://host:port), in lower case and without brackets, and its port
/// (empty: none). Nothing if it is malformed.
struct Authority {
  std::string host, port;
};
std::optional<Authority> parseAuthority(std::string_view text);
struct Origin {
  std::string scheme;
  Authority authority;
};
std::optional<Origin> parseOrigin(std::string_view text);
/// localhost, 127.0.0.0/8 or ::1.
bool isLoopback(const Authority& authority);

/// A byte range of a file of `size` bytes. `unsatisfiable` means status 416.
struct Range {
  std::uint64_t offset = 0, length = 0;
  bool partial = false, unsatisfiable = false;
};
/// Reads a Range header. A malformed one, or several ranges, select the whole file, as the standard allows.
Range parseRange(std::string_view header, std::uint64_t size);

/// Checks a whole request head, up to and including the empty line, for what parsers read differently: bare CR or LF,
/// NUL, folded lines, blanks before a colon. Returns what is wrong, or empty.
std::string_view findHeadFlaw(std::string_view head);

}  // namespace caisson::http
