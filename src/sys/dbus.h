// The subset of D-Bus that one call to a service manager needs: marshalling, and parsing of replies.
//
// Not a library: there is one call, at most once per process, and a library would cost initialization time in every
// program that links it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::sys {

/// Builds a message body (or header) in the wire format, little endian.
class DbusWriter {
 public:
  void align(std::size_t to) { text_.resize((text_.size() + to - 1) / to * to, '\0'); }
  void byte(std::uint8_t value) { text_.push_back(static_cast<char>(value)); }
  /// Aligned to 4 bytes, as is the length of a string; strings and signatures end with a NUL.
  void uint32(std::uint32_t value);
  void string(std::string_view value);
  void signature(std::string_view value);
  /// Begins an array of elements with this alignment. Pass the result to endArray(), which writes the length.
  [[nodiscard]] std::size_t beginArray(std::size_t element_alignment);
  void endArray(std::size_t begun);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct DbusCall {
  std::string_view destination, path, interface, member;
  std::string_view signature;  ///< of `body`; empty: none
  std::string_view body;
  std::uint32_t serial = 1;
};
/// The whole message: header and body.
std::string encodeCall(const DbusCall& call);

struct DbusMessage {
  enum class Type : std::uint8_t { call = 1, answer = 2, error = 3, signal = 4 };
  Type type = Type::signal;
  std::uint32_t answers = 0;  ///< serial of the call that this replies to
  std::string error;          ///< the error's name
  std::string text;           ///< the first value of the body if it is a string, such as an error's message
  std::size_t size = 0;       ///< of the whole message
};

/// Decodes the message at the beginning of `bytes`. Returns nullopt if more bytes are needed. Sets `broken` if more
/// bytes cannot help: not D-Bus, a malformed header, too long, or big endian.
std::optional<DbusMessage> decodeMessage(std::string_view bytes, bool& broken);

/// The body of StartTransientUnit for a delegated scope that contains process `pid`.
std::string scopeRequest(std::string_view unit, std::uint32_t pid);
inline constexpr std::string_view kScopeRequestSignature = "ssa(sv)a(sa(sv))";

}  // namespace caisson::sys
