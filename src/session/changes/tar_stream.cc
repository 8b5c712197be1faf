#include "session/changes/tar_stream.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace caisson::session {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kMaxUstarSize = 077777777777;  // eleven octal digits
constexpr std::size_t kMaxUstarName = 100;

using Header = std::array<char, kBlock>;

void put(Header& header, std::size_t at, std::size_t length, std::string_view text) {
  std::memcpy(header.data() + at, text.data(), std::min(length, text.size()));
}

/// Octal, with leading zeros, one byte less than the field.
void putNumber(Header& header, std::size_t at, std::size_t length, std::uint64_t value) {
  for (std::size_t i = length - 1; i-- > 0; value >>= 3) header[at + i] = static_cast<char>('0' + (value & 7));
}

/// `LENGTH KEY=VALUE\n`, where LENGTH counts its own digits.
void addRecord(std::string& records, std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  records += std::to_string(length) + " ";
  records += key;
  records += "=";
  records += value;
  records += "\n";
}

std::string padding(std::uint64_t size) { return std::string((kBlock - size % kBlock) % kBlock, '\0'); }

/// ustar fields hold ASCII only; a reader that knows pax takes the name from there.
bool needsRecord(std::string_view text) {
  if (text.size() > kMaxUstarName) return true;
  for (const char letter : text) {
    if (static_cast<unsigned char>(letter) >= 0x80) return true;
  }
  return false;
}

std::string block(std::string_view name, std::string_view target, std::uint32_t mode, std::uint64_t size,
                  std::int64_t modified, char type) {
  Header header{};
  put(header, 0, kMaxUstarName, name);
  putNumber(header, 100, 8, mode);
  putNumber(header, 108, 8, 0);  // owner and group: those of the user who unpacks it
  putNumber(header, 116, 8, 0);
  putNumber(header, 124, 12, size);
  putNumber(header, 136, 12, static_cast<std::uint64_t>(std::clamp<std::int64_t>(modified, 0, kMaxUstarSize)));
  header[156] = type;
  put(header, 157, kMaxUstarName, target);
  put(header, 257, 8,
      std::string_view("ustar\0"
                       "00",
                       8));
  putNumber(header, 329, 8, 0);
  putNumber(header, 337, 8, 0);
  std::memset(header.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  putNumber(header, 148, 7, sum);
  return std::string(header.data(), header.size());
}

}  // namespace

bool TarStream::write(std::string_view bytes) { return bytes.empty() || sink_(bytes); }

bool TarStream::header(const TarEntry& entry, std::uint64_t stored, std::string pax) {
  const bool directory = entry.type == TarEntry::Type::directory;
  const std::string path = directory ? entry.path + "/" : entry.path;
  if (needsRecord(path) && pax.empty()) addRecord(pax, "path", path);
  if (needsRecord(entry.target)) addRecord(pax, "linkpath", entry.target);
  if (stored > kMaxUstarSize) addRecord(pax, "size", std::to_string(stored));
  if (!pax.empty()) {
    const std::string extended = block("pax_header", "", 0644, pax.size(), 0, 'x') + pax + padding(pax.size());
    if (!write(extended)) return false;
  }
  const char type = directory ? '5' : entry.type == TarEntry::Type::link ? '2' : '0';
  written_ = 0;
  return write(
      block(path, entry.target, entry.mode & 0777U, stored > kMaxUstarSize ? 0 : stored, entry.modified, type));
}

bool TarStream::begin(const TarEntry& entry) {
  return header(entry, entry.type == TarEntry::Type::file ? entry.size : 0, {});
}

bool TarStream::beginSparse(const TarEntry& entry, const std::vector<Extent>& extents) {
  std::string map = std::to_string(extents.size() + 1) + "\n";
  std::uint64_t stored = 0;
  for (const Extent& extent : extents) {
    map += std::to_string(extent.offset) + "\n" + std::to_string(extent.length) + "\n";
    stored += extent.length;
  }
  map += std::to_string(entry.size) + "\n0\n";  // so that a hole at the end is kept
  map += padding(map.size());
  std::string pax;
  addRecord(pax, "GNU.sparse.major", "1");
  addRecord(pax, "GNU.sparse.minor", "0");
  addRecord(pax, "GNU.sparse.name", entry.path);
  addRecord(pax, "GNU.sparse.realsize", std::to_string(entry.size));
  if (needsRecord(entry.path)) addRecord(pax, "path", entry.path);
  return header(entry, map.size() + stored, std::move(pax)) && data(map);
}

bool TarStream::data(std::string_view bytes) {
  written_ += bytes.size();
  return write(bytes);
}

bool TarStream::end() { return write(padding(written_)); }

bool TarStream::finish() { return write(std::string(2 * kBlock, '\0')); }

}  // namespace caisson::session
