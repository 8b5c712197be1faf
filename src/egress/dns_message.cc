#include "egress/dns_message.h"

#include <algorithm>

#include "base/text.h"

namespace caisson::egress::dns {
namespace {

constexpr std::size_t kHeader = 12;
constexpr std::size_t kNameBytes = 255;
constexpr std::size_t kMaxAddresses = 64;  // more than a host needs; none is dropped unjudged
constexpr std::size_t kMaxAliases = 8;
constexpr std::uint16_t kExtendedError = 15, kFiltered = 17;

std::uint16_t word(Bytes bytes, std::size_t at) { return static_cast<std::uint16_t>((bytes[at] << 8) | bytes[at + 1]); }

void put16(std::vector<std::uint8_t>& out, std::size_t value) {
  out.push_back(static_cast<std::uint8_t>(value >> 8));
  out.push_back(static_cast<std::uint8_t>(value));
}

void put32(std::vector<std::uint8_t>& out, std::uint32_t value) {
  put16(out, value >> 16);
  put16(out, value & 0xffff);
}

/// Reads the name at `at` and advances past it. A pointer must lead to an earlier position, so the loop terminates.
bool readName(Bytes bytes, std::size_t& at, bool pointers, std::string& name) {
  name.clear();
  std::size_t position = at;
  std::size_t piece = at;
  bool jumped = false;
  std::size_t length = 1;
  for (;;) {
    if (position >= bytes.size()) return false;
    const std::uint8_t size = bytes[position];
    if (size == 0) {
      if (!jumped) at = position + 1;
      return true;
    }
    if ((size & 0xc0) == 0xc0) {
      if (!pointers || position + 1 >= bytes.size()) return false;
      const std::size_t target = static_cast<std::size_t>(size & 0x3f) << 8 | bytes[position + 1];
      if (target >= piece || target < kHeader) return false;
      if (!jumped) at = position + 2;
      jumped = true;
      piece = position = target;
      continue;
    }
    if ((size & 0xc0) != 0) return false;
    length += size + 1U;
    if (length > kNameBytes || position + 1 + size > bytes.size()) return false;
    if (!name.empty()) name += '.';
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint8_t byte = bytes[position + 1 + i];
      if (byte == '.' || byte == 0) return false;  // would change the name once the labels are joined
      name += lower(static_cast<char>(byte));
    }
    position += 1 + size;
  }
}

bool putName(std::vector<std::uint8_t>& out, std::string_view name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (end == begin || end - begin > 63) return false;
    out.push_back(static_cast<std::uint8_t>(end - begin));
    for (std::size_t i = begin; i < end; ++i) out.push_back(static_cast<std::uint8_t>(name[i]));
    begin = end + 1;
  }
  out.push_back(0);
  return true;
}

struct Record {
  std::string owner;
  std::uint16_t type = 0, record_class = 0;
  std::uint32_t ttl = 0;
  std::size_t data = 0, size = 0;
};

bool readRecord(Bytes bytes, std::size_t& at, Record& record) {
  if (!readName(bytes, at, true, record.owner) || at + 10 > bytes.size()) return false;
  record.type = word(bytes, at);
  record.record_class = word(bytes, at + 2);
  record.ttl = static_cast<std::uint32_t>(word(bytes, at + 4)) << 16 | word(bytes, at + 6);
  record.size = word(bytes, at + 8);
  record.data = at + 10;
  at = record.data + record.size;
  return at <= bytes.size();
}

std::optional<Address> addressOf(Bytes bytes, const Record& record) {
  if (record.type == kTypeA && record.size == 4) {
    return Address::v4(static_cast<std::uint32_t>(word(bytes, record.data)) << 16 | word(bytes, record.data + 2));
  }
  if (record.type == kTypeAaaa && record.size == 16) {
    return Address::v6(bytes.subspan(record.data).first<16>());
  }
  return std::nullopt;
}

}  // namespace

std::expected<Question, std::optional<Rcode>> parseQuery(Bytes message) {
  if (message.size() < kHeader || (message[2] & 0x80) != 0) return std::unexpected(std::nullopt);
  if (message.size() > 1024) return std::unexpected(Rcode::format_error);
  Question question;
  question.id = word(message, 0);
  question.recursion_desired = (message[2] & 1) != 0;
  if ((message[2] & 0x78) != 0) return std::unexpected(Rcode::not_implemented);
  const std::uint16_t questions = word(message, 4), answers = word(message, 6), authority = word(message, 8),
                      additional = word(message, 10);
  if (questions != 1 || answers != 0 || authority != 0 || additional > 2) return std::unexpected(Rcode::format_error);
  std::size_t at = kHeader;
  if (!readName(message, at, false, question.name) || at + 4 > message.size()) {
    return std::unexpected(Rcode::format_error);
  }
  question.type = word(message, at);
  if (word(message, at + 2) != kClassIn) return std::unexpected(Rcode::refused);
  at += 4;
  question.wire.assign(message.begin() + kHeader, message.begin() + static_cast<std::ptrdiff_t>(at));
  for (int i = 0; i < additional; ++i) {
    Record record;
    if (!readRecord(message, at, record)) return std::unexpected(Rcode::format_error);
    if (record.type != kTypeOpt) continue;
    question.edns = true;
    question.payload_bytes = std::max<std::uint16_t>(512, record.record_class);
  }
  return question;
}

std::vector<std::uint8_t> buildAnswer(const Question& question, const Answer& answer) {
  std::vector<std::uint8_t> out;
  put16(out, question.id);
  out.push_back(static_cast<std::uint8_t>(0x80 | (question.recursion_desired ? 1 : 0)));
  out.push_back(static_cast<std::uint8_t>(0x80 | static_cast<std::uint8_t>(answer.code)));
  const bool has_pointer = !answer.pointer.empty();
  put16(out, 1);
  put16(out, answer.addresses.size() + (has_pointer ? 1 : 0));
  put16(out, 0);
  put16(out, question.edns ? 1 : 0);
  out.insert(out.end(), question.wire.begin(), question.wire.end());
  for (const Address& address : answer.addresses) {
    put16(out, 0xc000 | kHeader);
    put16(out, question.type);
    put16(out, kClassIn);
    put32(out, answer.ttl);
    const bool four = question.type == kTypeA;
    put16(out, four ? 4 : 16);
    out.insert(out.end(), address.bytes().begin() + (four ? 12 : 0), address.bytes().end());
  }
  if (has_pointer) {
    put16(out, 0xc000 | kHeader);
    put16(out, kTypePtr);
    put16(out, kClassIn);
    put32(out, answer.ttl);
    std::vector<std::uint8_t> name;
    putName(name, answer.pointer);
    put16(out, name.size());
    out.insert(out.end(), name.begin(), name.end());
  }
  if (question.edns) {
    out.push_back(0);
    put16(out, kTypeOpt);
    put16(out, 1232);
    put32(out, 0);
    const std::size_t text = std::min<std::size_t>(answer.why.size(), 200);
    put16(out, text == 0 ? 0 : text + 6);
    if (text > 0) {
      put16(out, kExtendedError);
      put16(out, text + 2);
      put16(out, kFiltered);
      out.insert(out.end(), answer.why.begin(), answer.why.begin() + static_cast<std::ptrdiff_t>(text));
    }
  }
  return out;
}

std::vector<std::uint8_t> buildFailure(Bytes query, Rcode code) {
  std::vector<std::uint8_t> out(kHeader, 0);
  if (query.size() >= 2) {
    out[0] = query[0];
    out[1] = query[1];
  }
  out[2] = 0x80;
  out[3] = static_cast<std::uint8_t>(0x80 | static_cast<std::uint8_t>(code));
  return out;
}

std::vector<std::uint8_t> buildQuery(std::uint16_t id, std::string_view name, std::uint16_t type) {
  std::vector<std::uint8_t> out;
  put16(out, id);
  put16(out, 0x0100);  // recursion desired
  put16(out, 1);
  put16(out, 0);
  put16(out, 0);
  put16(out, 0);
  putName(out, name);
  put16(out, type);
  put16(out, kClassIn);
  return out;
}

std::expected<Response, std::string_view> parseResponse(Bytes message, std::uint16_t id, std::string_view name,
                                                        std::uint16_t type) {
  if (message.size() < kHeader || word(message, 0) != id || (message[2] & 0x80) == 0 || word(message, 4) != 1) {
    return std::unexpected("it is not an answer to the question");
  }
  std::size_t at = kHeader;
  std::string asked;
  if (!readName(message, at, false, asked) || at + 4 > message.size() || asked != name || word(message, at) != type ||
      word(message, at + 2) != kClassIn) {
    return std::unexpected("it answers another question");
  }
  at += 4;
  Response response;
  response.truncated = (message[2] & 2) != 0;
  response.code = static_cast<Rcode>(message[3] & 0x0f);
  if (response.truncated || response.code != Rcode::ok) return response;
  const std::size_t count = word(message, 6);
  std::string wanted(name);
  response.ttl = 86400;
  for (std::size_t i = 0; i < count; ++i) {
    Record record;
    if (!readRecord(message, at, record)) return std::unexpected("a record is malformed");
    if (record.record_class != kClassIn || record.owner != wanted) continue;
    response.ttl = std::min(response.ttl, record.ttl);
    if (record.type == kTypeCname) {
      if (response.aliases.size() == kMaxAliases) return std::unexpected("the chain of aliases is too long");
      std::size_t target = record.data;
      if (!readName(message, target, true, wanted)) return std::unexpected("an alias is malformed");
      response.aliases.push_back(wanted);
    } else if (record.type == type) {
      if (response.addresses.size() == kMaxAddresses) return std::unexpected("too many addresses");
      const auto address = addressOf(message, record);
      if (!address) return std::unexpected("an address has the wrong size");
      response.addresses.push_back(*address);
    }
  }
  return response;
}

}  // namespace caisson::egress::dns
