// What the egress process and its supervisor tell each other: packets of counted texts.
//
// The egress process reads hostile bytes for a living, so the supervisor takes nothing it says on trust: a packet
// either unpacks completely within its bounds or is dropped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::egress {

inline constexpr std::size_t kPacketBytes = 64 * 1024;

/// What a supervisor sends to have the totals reported, after all that happened before.
inline constexpr std::string_view kWantsTotals = "totals";

/// What a supervisor sends when the first `connections` reports with the operation kOpened are on record. Until then
/// none of these connections carries a byte: a supervisor that is killed must not leave requests without a record.
std::string encodeRecorded(std::uint64_t connections);
std::optional<std::uint64_t> decodeRecorded(std::string_view packet);

std::string pack(const std::vector<std::string>& texts);
/// At most `most` texts; nothing when the packet is malformed.
std::optional<std::vector<std::string>> unpack(std::string_view packet, std::size_t most);
/// A number as std::to_string() writes it, up to `most`; nothing for any other text.
std::optional<std::uint64_t> numberIn(std::string_view text, std::uint64_t most = ~std::uint64_t{0});
/// "1" or "0", nothing else.
std::optional<bool> flagIn(std::string_view text);

/// Where a refused request was headed.
enum class Category : std::uint8_t {
  host,  ///< a name or public address; also every allowed request
  metadata,
  loopback,  ///< and the host's own addresses
  private_network,
  local_name,
  reserved,  ///< other ranges that are always blocked
  unknown,   ///< packets that were refused faster than the kernel could show them
};
inline constexpr std::size_t kCategories = 7;
std::string_view name(Category category);

/// The operation of a request that reports a connection when it is made; "connect" reports it at its end. The
/// connection waits until its supervisor has recorded it (encodeRecorded).
inline constexpr const char* kOpened = "open";

/// One thing that the sandbox asked the network for, and what became of it.
struct Request {
  std::string operation;  ///< "connect", "resolve", "redirect", "udp", "icmp", ...
  std::string host;       ///< name or address as it was judged
  std::uint16_t port = 0;
  std::string address;  ///< connected to, or empty
  bool allowed = false;
  std::string rule, remedy;
  std::uint64_t sent = 0, received = 0;
  double milliseconds = 0;
  std::uint64_t count = 1;  ///< how many the same so far
  Category category = Category::host;

  [[nodiscard]] std::string object() const;
  bool operator==(const Request&) const = default;
};

struct Totals {
  std::uint64_t connections = 0, denied = 0, queries = 0, sent = 0, received = 0;

  bool operator==(const Totals&) const = default;
};

/// Requests that got no record of their own (egress/request_log.h). Times are milliseconds since the epoch.
struct Overflow {
  bool allowed = false;
  Category category = Category::host;
  std::uint64_t count = 0, first_ms = 0, last_ms = 0;
  std::uint64_t sent = 0, received = 0;

  bool operator==(const Overflow&) const = default;
};

/// A connection that waits, for the one command among several whose process holds it: both ends as that process has
/// them, "address:port" each.
struct Claim {
  std::uint64_t ticket = 0;
  std::string from, to;

  bool operator==(const Claim&) const = default;
};

/// A report of the egress process: ready, failed (with the reason), one request, requests that were only counted, a
/// host to ask a person about (only host and port of the request are set), a connection that some command may have
/// made, or the final totals.
struct Report {
  enum class Kind : std::uint8_t { ready, failed, request, overflow, question, whose, totals };

  Kind kind = Kind::ready;
  std::string text;
  Request request;
  Totals totals;
  Claim claim = {};
  Overflow overflow = {};

  bool operator==(const Report&) const = default;
};

std::string encode(const Report& report);
/// Only what encode() writes: nothing else is understood, however near it comes.
std::optional<Report> decodeReport(std::string_view packet);

}  // namespace caisson::egress
