// Heads of HTTP/1 messages, read strictly: whatever two servers could read differently (bare line feeds, folded lines,
// two lengths, a length beside chunks, blanks before the colon) is refused instead of interpreted, since such a
// message is how a second request is smuggled past a check.
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

struct Field {
  std::string_view name, value;  ///< into the parsed bytes
};

enum class Status : std::uint8_t { more, done, bad };

/// How the bytes after a head are delimited.
struct Framing {
  enum class Kind : std::uint8_t { none, length, chunked, until_close };

  Kind kind = Kind::none;
  std::uint64_t length = 0;
};

struct RequestHead {
  Status status = Status::more;
  std::string_view flaw;  ///< what is bad about it
  std::size_t used = 0;   ///< bytes of the head, the empty line included

  std::string_view method, target;
  int minor = 1;  ///< HTTP/1.minor
  std::vector<Field> fields;

  bool connect = false;
  bool absolute = false;  ///< the target is a whole URL
  HostPort authority;     ///< where the request wants to go: from the URL, the CONNECT target or the Host field
  bool has_authority = false;
  std::string_view path;  ///< what an origin server is asked for
  Framing body;
  bool websocket = false;  ///< asks to go on as a WebSocket
  bool keep_alive = true;
};

/// `default_port` is that of a Host field without one.
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
  std::string_view location;  ///< of a redirect
};

/// `to_head`: the answer to a HEAD request, which has no body whatever its fields say.
ResponseHead parseResponse(std::string_view bytes, bool to_head);

/// Whether the first bytes are those of an HTTP request, or could become one. Generous: servers skip blank lines.
enum class Looks : std::uint8_t { more, http, other };
Looks looksLikeRequest(std::string_view bytes);

struct OriginForm {
  std::string_view extra = {};                     ///< whole field lines to add
  std::span<const std::string_view> without = {};  ///< names of fields to leave out
  std::uint16_t default_port = 80;                 ///< that the Host field need not name
};

/// The request as an origin server gets it: path form, hop-by-hop fields removed, one Host field that says what was
/// judged.
std::string rewriteForOrigin(const RequestHead& head, const OriginForm& form);

/// Names are compared without case.
bool sameName(std::string_view a, std::string_view b);

}  // namespace caisson::egress::http
