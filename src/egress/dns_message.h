// DNS messages: the questions a sandbox asks, the answers it gets, and the answers of the servers we ask ourselves.
// Bytes in, values out; nothing here keeps state or trusts a length.
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
  std::string name;  ///< labels joined by dots as they came; a label that holds a dot or NUL is refused
  std::uint16_t type = 0;
  bool edns = false;                  ///< the asker understands extended errors
  std::uint16_t payload_bytes = 512;  ///< the largest UDP answer it takes
  std::vector<std::uint8_t> wire;     ///< the question section, to be repeated in the answer
};

/// A query with exactly one question of class IN. The error is the code to answer with; none: not worth an answer.
std::expected<Question, std::optional<Rcode>> parseQuery(Bytes message);

struct Answer {
  Rcode code = Rcode::ok;
  std::vector<Address> addresses;  ///< of the question's type
  std::string pointer;             ///< for PTR
  std::uint32_t ttl = 0;
  std::string_view why;  ///< for people, as an extended error (RFC 8914), where the asker understands it
};

std::vector<std::uint8_t> buildAnswer(const Question& question, const Answer& answer);

/// An answer without a question: only the id can be repeated.
std::vector<std::uint8_t> buildFailure(Bytes query, Rcode code);

/// A query of our own; `name` is canonical.
std::vector<std::uint8_t> buildQuery(std::uint16_t id, std::string_view name, std::uint16_t type);

struct Response {
  Rcode code = Rcode::ok;
  bool truncated = false;
  std::vector<Address> addresses;  ///< of the asked type, at the end of the chain of aliases
  std::uint32_t ttl = 0;           ///< the least along the chain
  std::size_t aliases = 0;
};

/// A server's answer to buildQuery(id, name, type); an error when it is not an answer to that or is malformed.
std::expected<Response, std::string_view> parseResponse(Bytes message, std::uint16_t id, std::string_view name,
                                                        std::uint16_t type);

}  // namespace caisson::egress::dns
