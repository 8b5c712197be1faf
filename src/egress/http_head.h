// Strict parser for heads of HTTP/1 messages: rejects everything that two servers could interpret differently (bare
// line feeds, folded lines, two lengths, a length beside chunks, blanks before the colon), since that is how requests
// are smuggled past a check.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "egress/host_name.h"

namespace caisson::egress::http {

inline constexpr std::size_t kHeadBytes = 32 * 1024;
inline constexpr std::size_t kMaxFields = 128;

/// Counts the interim (1xx) responses to one request. Without a limit a host could send them without end, each of which
/// costs more to parse than to send.
class InterimCount {
 public:
  /// Counts a head of `bytes`; false if there are too many.
  bool add(std::size_t bytes) {
    bytes_ += bytes;
    return ++count_ <= kMaxInterim && bytes_ <= kMaxInterimBytes;
  }

 private:
  static constexpr std::size_t kMaxInterim = 32, kMaxInterimBytes = 64 * 1024;
  std::size_t count_ = 0, bytes_ = 0;
};

struct Field {
  std::string_view name, value;  ///< views into the parsed bytes
};

enum class Status : std::uint8_t { more, done, bad };  ///< more: incomplete

/// How the bytes after a head are delimited.
struct Framing {
  enum class Kind : std::uint8_t { none, length, chunked, until_close };

  Kind kind = Kind::none;
  std::uint64_t length = 0;
};

struct RequestHead {
  Status status = Status::more;
  std::string_view flaw;  ///< why it is bad
  std::size_t used = 0;   ///< bytes of the head, including the empty line

  std::string_view method, target;
  int minor = 1;  ///< HTTP/1.minor
  std::vector<Field> fields;

  bool connect = false;        ///< the method is CONNECT
  bool absolute = false;       ///< the target is an absolute URL
  HostPort authority;          ///< the destination: from the URL, the CONNECT target or the Host field
  bool has_authority = false;  ///< `authority` is set
  std::string_view path;       ///< the path for the origin server
  Framing body;
  bool websocket = false;  ///< requests an upgrade to WebSocket
  bool keep_alive = true;
};

/// `default_port` is used for a Host field without a port if the target is only a path. The result refers to `bytes`.
RequestHead parseRequest(std::string_view bytes, std::uint16_t default_port);

struct ResponseHead {
  Status status = Status::more;
  std::string_view flaw;
  std::size_t used = 0;
  int code = 0;
  int minor = 1;
  std::vector<Field> fields;
  Framing body;
  bool keep_alive = true;
  std::string_view location;  ///< target of a redirect
};

/// `to_head`: the response to a HEAD request, which never has a body. The result refers to `bytes`.
ResponseHead parseResponse(std::string_view bytes, bool to_head);

/// Whether the first bytes are, or could become, an HTTP request. Lenient, as servers are: they skip blank lines and
/// blanks, and some separate the words by any blank, or know a method whatever follows it. What is taken for a request
/// must then be a correct one.
enum class Looks : std::uint8_t { more, http, other };
/// `more`: too few bytes to tell.
Looks looksLikeRequest(std::string_view bytes);

struct OriginForm {
  std::string_view extra = {};                     ///< complete field lines to add
  std::span<const std::string_view> without = {};  ///< names of fields to remove
  std::uint16_t default_port = 80;                 ///< omitted from the Host field
};

/// The request's head for the origin server: path form, hop-by-hop fields removed, one Host field with the checked
/// host.
std::string rewriteForOrigin(const RequestHead& head, const OriginForm& form);

/// Case-insensitive comparison.
bool sameName(std::string_view a, std::string_view b);

}  // namespace caisson::egress::http
