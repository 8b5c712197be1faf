#include "audit/head.h"

#include <cstring>

namespace caisson::audit {
namespace {

constexpr std::uint8_t kMagic[8] = {'c', 'a', 'i', 's', 'a', 'u', 'd', kHeadFormat};
constexpr std::size_t kChecked = kSlotBytes - sizeof(Digest);
constexpr std::string_view kSuffix = ".jsonl";
constexpr std::size_t kDigits = 8;

struct Cursor {
  std::uint8_t* at;
  void put(const void* data, std::size_t size) {
    std::memcpy(at, data, size);
    at += size;
  }
  void number(std::uint64_t value) {
    for (unsigned shift = 0; shift < 64; shift += 8) *at++ = static_cast<std::uint8_t>(value >> shift);
  }
};

struct Source {
  const std::uint8_t* at;
  void take(void* to, std::size_t size) {
    std::memcpy(to, at, size);
    at += size;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 8) value |= static_cast<std::uint64_t>(*at++) << shift;
    return value;
  }
};

bool decodeSlot(const std::uint8_t* slot, Head& head) {
  if (std::memcmp(slot, kMagic, sizeof(kMagic)) != 0) return false;
  const Digest sum = Sha256().add(slot, kChecked).finish();
  if (std::memcmp(slot + kChecked, sum.data(), sum.size()) != 0) return false;
  Source source{slot + sizeof(kMagic)};
  head.writes = source.number();
  head.link.seq = source.number();
  head.chain = static_cast<std::uint32_t>(source.number());
  head.file = static_cast<std::uint32_t>(source.number());
  head.oldest = static_cast<std::uint32_t>(source.number());
  head.end = source.number();
  head.last_time_ns = static_cast<std::int64_t>(source.number());
  source.take(head.link.hash.data(), head.link.hash.size());
  source.take(head.link.key.data(), head.link.key.size());
  return head.file != 0 && head.chain != 0 && head.oldest != 0;
}

constexpr std::string_view kKeyPrefix = "key-";

/// Returns 0 unless all characters are digits.
std::uint32_t fileNumberIn(std::string_view digits) {
  std::uint32_t number = 0;
  for (const char letter : digits) {
    if (letter < '0' || letter > '9') return 0;
    number = number * 10 + static_cast<std::uint32_t>(letter - '0');
  }
  return number;
}

}  // namespace

std::array<std::uint8_t, kSlotBytes> encode(const Head& head) {
  std::array<std::uint8_t, kSlotBytes> slot{};
  Cursor cursor{slot.data()};
  cursor.put(kMagic, sizeof(kMagic));
  cursor.number(head.writes);
  cursor.number(head.link.seq);
  cursor.number(head.chain);
  cursor.number(head.file);
  cursor.number(head.oldest);
  cursor.number(head.end);
  cursor.number(static_cast<std::uint64_t>(head.last_time_ns));
  cursor.put(head.link.hash.data(), head.link.hash.size());
  cursor.put(head.link.key.data(), head.link.key.size());
  const Digest sum = Sha256().add(slot.data(), kChecked).finish();
  std::memcpy(slot.data() + kChecked, sum.data(), sum.size());
  return slot;
}

std::optional<Head> decode(const HeadBytes& bytes) {
  Head first, second;
  const bool has_first = decodeSlot(bytes.data(), first);
  const bool has_second = decodeSlot(bytes.data() + kSlotBytes, second);
  if (!has_first && !has_second) return std::nullopt;
  if (!has_second) return first;
  if (!has_first) return second;
  return first.writes > second.writes ? first : second;
}

int otherFormat(const HeadBytes& bytes) {
  constexpr std::size_t kName = sizeof(kMagic) - 1;
  for (const std::size_t slot : {std::size_t{0}, kSlotBytes}) {
    const std::uint8_t format = bytes[slot + kName];
    if (std::memcmp(bytes.data() + slot, kMagic, kName) == 0 && format != kHeadFormat) return format;
  }
  return 0;
}

void writeLogName(std::uint32_t number, char* to) {
  for (std::size_t at = kDigits; at-- > 0; number /= 10) to[at] = static_cast<char>('0' + number % 10);
  std::memcpy(to + kDigits, kSuffix.data(), kSuffix.size());
  to[kDigits + kSuffix.size()] = '\0';
}

std::string logName(std::uint32_t number) {
  char name[kNameBytes];
  writeLogName(number, name);
  return name;
}

std::string keyName(std::uint32_t chain) { return std::string(kKeyPrefix) + logName(chain).substr(0, kDigits); }

std::uint32_t numberOfLog(std::string_view name) {
  if (name.size() != kDigits + kSuffix.size() || !name.ends_with(kSuffix)) return 0;
  return fileNumberIn(name.substr(0, kDigits));
}

std::uint32_t numberOfKey(std::string_view name) {
  if (name.size() != kKeyPrefix.size() + kDigits || !name.starts_with(kKeyPrefix)) return 0;
  return fileNumberIn(name.substr(kKeyPrefix.size()));
}

}  // namespace caisson::audit
