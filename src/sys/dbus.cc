#include "sys/dbus.h"

#include <cstring>

namespace caisson::sys {
namespace {

constexpr std::size_t kFixedHeader = 16;  // including the length of the field array
constexpr std::size_t kMaxBytes = 64 * 1024;

enum Field : std::uint8_t {
  kPath = 1,
  kInterface,
  kMember,
  kErrorName,
  kReplySerial,
  kDestination,
  kSender,
  kSignature
};

std::size_t aligned(std::size_t at, std::size_t to) { return (at + to - 1) / to * to; }

/// Bounds-checked reader. Do not use it after a failure: its position may be beyond the end.
class Reader {
 public:
  Reader(std::string_view bytes, std::size_t at) : bytes_(bytes), at_(at) {}

  bool align(std::size_t to) {
    at_ = aligned(at_, to);
    return at_ <= bytes_.size();
  }
  bool byte(std::uint8_t& value) {
    if (at_ >= bytes_.size()) return false;
    value = static_cast<std::uint8_t>(bytes_[at_++]);
    return true;
  }
  bool uint32(std::uint32_t& value) {
    if (!align(4) || bytes_.size() - at_ < 4) return false;
    std::memcpy(&value, bytes_.data() + at_, 4);
    at_ += 4;
    return true;
  }
  bool text(std::size_t length, std::string_view& value) {
    if (bytes_.size() - at_ < length || bytes_.size() - at_ - length < 1) return false;
    value = bytes_.substr(at_, length);
    at_ += length + 1;
    return true;
  }
  bool string(std::string_view& value) {
    std::uint32_t length = 0;
    return uint32(length) && text(length, value);
  }
  bool signature(std::string_view& value) {
    std::uint8_t length = 0;
    return byte(length) && text(length, value);
  }
  [[nodiscard]] std::size_t at() const { return at_; }

 private:
  std::string_view bytes_;
  std::size_t at_;
};

/// Reads one header field; false if it is malformed. The bus sends only strings, signatures and numbers there.
bool readField(Reader& reader, DbusMessage& message, bool& text_body) {
  std::uint8_t code = 0;
  std::string_view type, value;
  std::uint32_t number = 0;
  if (!reader.align(8) || !reader.byte(code) || !reader.signature(type)) return false;
  if (type == "s" || type == "o") {
    if (!reader.string(value)) return false;
  } else if (type == "g") {
    if (!reader.signature(value)) return false;
  } else if (type == "u") {
    if (!reader.uint32(number)) return false;
  } else {
    return false;
  }
  if (code == kReplySerial) message.answers = number;
  if (code == kErrorName) message.error = value;
  if (code == kSignature) text_body = value.starts_with('s');
  return true;
}

void field(DbusWriter& to, Field code, std::string_view type, std::string_view value) {
  if (value.empty()) return;
  to.align(8);
  to.byte(code);
  to.signature(type);
  type == "g" ? to.signature(value) : to.string(value);
}

}  // namespace

void DbusWriter::uint32(std::uint32_t value) {
  align(4);
  for (int shift = 0; shift < 32; shift += 8) byte(static_cast<std::uint8_t>(value >> shift));
}

void DbusWriter::string(std::string_view value) {
  uint32(static_cast<std::uint32_t>(value.size()));
  text_.append(value).push_back('\0');
}

void DbusWriter::signature(std::string_view value) {
  byte(static_cast<std::uint8_t>(value.size()));
  text_.append(value).push_back('\0');
}

std::size_t DbusWriter::beginArray(std::size_t element_alignment) {
  uint32(0);
  const std::size_t length_at = text_.size() - 4;
  align(element_alignment);
  // The length starts at the first element, after any padding.
  return (length_at << 8) | (text_.size() - length_at - 4);
}

void DbusWriter::endArray(std::size_t begun) {
  const std::size_t length_at = begun >> 8;
  const std::size_t padding = begun & 0xFF;
  const auto length = static_cast<std::uint32_t>(text_.size() - length_at - 4 - padding);
  for (std::size_t i = 0; i < 4; ++i) text_[length_at + i] = static_cast<char>(length >> (8 * i));
}

std::string encodeCall(const DbusCall& call) {
  DbusWriter to;
  to.byte('l');
  to.byte(static_cast<std::uint8_t>(DbusMessage::Type::call));
  to.byte(0);
  to.byte(1);  // protocol version
  to.uint32(static_cast<std::uint32_t>(call.body.size()));
  to.uint32(call.serial);
  const std::size_t fields = to.beginArray(8);
  field(to, kPath, "o", call.path);
  field(to, kInterface, "s", call.interface);
  field(to, kMember, "s", call.member);
  field(to, kDestination, "s", call.destination);
  field(to, kSignature, "g", call.signature);
  to.endArray(fields);
  to.align(8);
  return to.text() + std::string(call.body);
}

std::optional<DbusMessage> decodeMessage(std::string_view bytes, bool& broken) {
  broken = false;
  if (bytes.size() < kFixedHeader) return std::nullopt;
  Reader reader(bytes, 0);
  std::uint8_t order = 0, type = 0, flags = 0, version = 0;
  std::uint32_t body = 0, serial = 0, fields = 0;
  reader.byte(order);
  reader.byte(type);
  reader.byte(flags);
  reader.byte(version);
  reader.uint32(body);
  reader.uint32(serial);
  reader.uint32(fields);
  broken = order != 'l' || version != 1 || type < 1 || type > 4 || fields > kMaxBytes || body > kMaxBytes;
  if (broken) return std::nullopt;
  const std::size_t body_at = aligned(kFixedHeader + fields, 8);
  if (bytes.size() < body_at + body) return std::nullopt;
  DbusMessage message;
  message.type = static_cast<DbusMessage::Type>(type);
  message.size = body_at + body;
  bool text_body = false;
  Reader header(bytes.substr(0, kFixedHeader + fields), kFixedHeader);
  while (header.at() < kFixedHeader + fields) {
    if (!readField(header, message, text_body)) {
      broken = true;
      return std::nullopt;
    }
  }
  std::string_view text;
  if (Reader content(bytes.substr(0, message.size), body_at); text_body && content.string(text)) message.text = text;
  return message;
}

std::string scopeRequest(std::string_view unit, std::uint32_t pid) {
  DbusWriter to;
  to.string(unit);
  to.string("fail");  // fail if the unit exists: never reuse another's
  const std::size_t properties = to.beginArray(8);
  const auto property = [&](std::string_view name, std::string_view type) {
    to.align(8);
    to.string(name);
    to.signature(type);
  };
  property("Description", "s");
  to.string("caisson sandbox");
  property("Delegate", "b");
  to.uint32(1);
  property("CollectMode", "s");
  to.string("inactive-or-failed");
  property("PIDs", "au");
  const std::size_t pids = to.beginArray(4);
  to.uint32(pid);
  to.endArray(pids);
  to.endArray(properties);
  to.endArray(to.beginArray(8));  // no auxiliary units
  return to.text();
}

}  // namespace caisson::sys
