// Messages between the egress process and its supervisor: packets of length-prefixed strings.
//
// The egress process parses hostile bytes, so the supervisor does not trust it: a packet that does not decode
// completely within its bounds is dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::egress {

inline constexpr std::size_t kPacketBytes = 64 * 1024;

/// Sent by a supervisor to request the totals, which follow all earlier reports.
inline constexpr std::string_view kWantsTotals = "totals";

/// Sent by a supervisor when the first `connections` reports with the operation kOpened are recorded. Before that, none
/// of these connections carries a byte: if the supervisor is killed, no request may be unrecorded.
std::string encodeRecorded(std::uint64_t connections);
/// nullopt if it is another packet.
std::optional<std::uint64_t> decodeRecorded(std::string_view packet);

/// A packet of length-prefixed texts; unpack() is the inverse.
std::string pack(const std::vector<std::string>& texts);
/// nullopt if the packet is malformed or has more than `most` texts.
std::optional<std::vector<std::string>> unpack(std::string_view packet, std::size_t most);
/// Parses a number in the format of std::to_string(), up to `most`; nullopt for any other text.
std::optional<std::uint64_t> numberIn(std::string_view text, std::uint64_t most = ~std::uint64_t{0});
/// Accepts only "1" or "0".
std::optional<bool> flagIn(std::string_view text);

/// The kind of destination of a denied request.
enum class Category : std::uint8_t {
  host,  ///< a name or public address; also every allowed request
  metadata,
  loopback,  ///< including the host's own addresses
  private_network,
  local_name,
  reserved,  ///< other ranges that are always blocked
  unknown,   ///< packets blocked faster than the kernel could report them
};
inline constexpr std::size_t kCategories = 7;
std::string_view name(Category category);

/// The operation of a report about a new connection; "connect" reports it when it closes. The connection waits until
/// its supervisor has recorded it (encodeRecorded).
inline constexpr const char* kOpened = "open";

/// The operation of a report about an allowed host that could not be reached; the rule says why.
inline constexpr std::string_view kUnreachable = "unreachable";

/// The operation of a query to the policy's name server.
inline constexpr std::string_view kResolve = "resolve";

/// One network request of the sandbox, and its result.
struct Request {
  std::string operation;  ///< "connect", "resolve", "redirect", "udp", "icmp", ...
  std::string host;       ///< name or address that was checked
  std::uint16_t port = 0;
  std::string address;  ///< connected to, or empty
  bool allowed = false;
  std::string rule, remedy;              ///< which rule decided, and what would allow a denied request
  std::uint64_t sent = 0, received = 0;  ///< bytes, as the sandbox sees it
  double milliseconds = 0;               ///< how long the connection was open
  std::uint64_t count = 1;               ///< number of equal requests so far
  Category category = Category::host;

  /// The target for messages: "host:port", "[address]:port" for IPv6, or the host alone without a port.
  [[nodiscard]] std::string object() const;
  bool operator==(const Request&) const = default;
};

struct Totals {
  std::uint64_t connections = 0, denied = 0, queries = 0, sent = 0, received = 0;  ///< since the start; bytes

  bool operator==(const Totals&) const = default;
};

/// Requests without an individual record (egress/request_log.h). Times are milliseconds since the epoch.
struct Overflow {
  bool allowed = false;
  Category category = Category::host;
  std::uint64_t count = 0, first_ms = 0, last_ms = 0;
  std::uint64_t sent = 0, received = 0;

  bool operator==(const Overflow&) const = default;
};

/// A pending connection, sent to all clients so that the one whose command holds it can claim it. Both endpoints as the
/// process sees them, "address:port" each.
struct Claim {
  std::uint64_t ticket = 0;
  std::string from, to;

  bool operator==(const Claim&) const = default;
};

/// A report of the egress process: ready, failed (with the reason), one request, requests that were only counted, a
/// host to prompt the user for (only host and port are set), a connection to be claimed by a client, or the totals so
/// far (on request, and at the end).
struct Report {
  enum class Kind : std::uint8_t { ready, failed, request, overflow, question, whose, totals };

  Kind kind = Kind::ready;
  std::string text;  ///< ready: which ports are captured, as in Process::capture(); failed: the reason
  Request request;
  Totals totals;
  Claim claim = {};
  Overflow overflow = {};

  bool operator==(const Report&) const = default;
};

std::string encode(const Report& report);
/// Accepts exactly the output of encode().
std::optional<Report> decodeReport(std::string_view packet);

}  // namespace caisson::egress
