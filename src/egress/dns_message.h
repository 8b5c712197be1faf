// DNS messages: queries and responses of the sandbox, and of the servers that we query. Pure functions without state;
// no length is trusted.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "egress/address.h"

namespace caisson::egress::dns {

inline constexpr std::uint16_t kTypeA = 1, kTypeCname = 5, kTypePtr = 12, kTypeAaaa = 28, kTypeOpt = 41;
inline constexpr std::uint16_t kClassIn = 1;

enum class Rcode : std::uint8_t {
  ok = 0,
  format_error = 1,
  server_failure = 2,
  no_such_name = 3,
  not_implemented = 4,
  refused = 5
};

using Bytes = std::span<const std::uint8_t>;

struct Question {
  std::uint16_t id = 0;
  bool recursion_desired = false;
  std::string name;  ///< labels joined by dots, in lower case; a label with a dot or NUL is an error
  std::uint16_t type = 0;
  bool edns = false;                  ///< the client understands extended errors
  std::uint16_t payload_bytes = 512;  ///< the largest UDP response it accepts
  std::vector<std::uint8_t> wire;     ///< the question section, to be repeated in the response
};

/// Parses a query with exactly one question of class IN. The error is the code to reply with; nullopt: send no reply.
std::expected<Question, std::optional<Rcode>> parseQuery(Bytes message);

struct Answer {
  Rcode code = Rcode::ok;
  std::vector<Address> addresses;  ///< of the question's type
  std::string pointer;             ///< for PTR
  std::uint32_t ttl = 0;
  std::string_view why;  ///< description, sent as an extended error (RFC 8914) if the client supports it
};

/// The response, for any transport; it is not cut to Question::payload_bytes.
std::vector<std::uint8_t> buildAnswer(const Question& question, const Answer& answer);

/// A response without a question: repeats only the id.
std::vector<std::uint8_t> buildFailure(Bytes query, Rcode code);

/// Builds a query of our own; `name` is canonical.
std::vector<std::uint8_t> buildQuery(std::uint16_t id, std::string_view name, std::uint16_t type);

struct Response {
  Rcode code = Rcode::ok;
  bool truncated = false;
  std::vector<Address> addresses;    ///< of the requested type, at the end of the alias chain; at most 64
  std::uint32_t ttl = 0;             ///< the minimum along the chain
  std::vector<std::string> aliases;  ///< the targets of the CNAME records that were followed
};

/// Parses a server's response to buildQuery(id, name, type); an error if it does not match or is malformed. The records
/// of a truncated response, or of one with another code than `ok`, are not read.
std::expected<Response, std::string_view> parseResponse(Bytes message, std::uint16_t id, std::string_view name,
                                                        std::uint16_t type);

}  // namespace caisson::egress::dns
