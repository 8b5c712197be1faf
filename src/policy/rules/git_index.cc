#include "policy/rules/git_index.h"

#include <algorithm>
#include <optional>

#include "base/hex.h"

namespace caisson::policy {
namespace {

constexpr std::uint64_t kMaxPathBytes = 1U << 20;
constexpr std::size_t kHeader = 12, kStat = 40, kSha1 = 20, kSha256 = 32;
constexpr unsigned kAssumeValid = 0x8000, kExtended = 0x4000, kStage = 0x3000, kNameLength = 0x0FFF;
constexpr unsigned kSkipWorktree = 0x4000, kIntentToAdd = 0x2000;
constexpr std::uint32_t kTypeMask = 0170000, kRegular = 0100000, kDirectory = 0040000;

std::uint32_t number(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// Takes a path of format 4: how much of the path before it to drop, then the rest of this one.
bool takeCompressed(std::string_view& rest, std::string& path) {
  std::uint64_t drop = 0;
  for (bool more = true, first = true; more; first = false) {
    if (rest.empty() || drop > kMaxPathBytes) return false;
    const auto byte = static_cast<unsigned char>(rest.front());
    rest.remove_prefix(1);
    drop = ((first ? 0 : drop + 1) << 7) | (byte & 0x7FU);
    more = (byte & 0x80U) != 0;
  }
  const std::size_t end = rest.find('\0');
  if (drop > path.size() || end == std::string_view::npos) return false;
  path.resize(path.size() - drop);
  path += rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return true;
}

/// One entry as it stands in the file.
struct RawEntry {
  std::string_view stat, id, path = {};
  unsigned flags = 0, more = 0;
  [[nodiscard]] std::uint32_t type() const { return number(stat, 24) & kTypeMask; }
};

/// Calls `take` with each entry. What follows the entries, or nothing if one cannot be read.
template <class Take>
std::optional<std::string_view> forEachEntry(std::string_view bytes, std::size_t id_bytes, const Take& take) {
  if (bytes.size() < kHeader || !bytes.starts_with("DIRC")) return std::nullopt;
  const std::uint32_t version = number(bytes, 4), count = number(bytes, 8);
  if (version < 2 || version > 4) return std::nullopt;
  std::string_view rest = bytes.substr(kHeader);
  std::string compressed;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t before = rest.size();
    if (before < kStat + id_bytes + 2) return std::nullopt;
    RawEntry entry{.stat = rest.substr(0, kStat), .id = rest.substr(kStat, id_bytes)};
    const auto two = [&] {
      const unsigned value = static_cast<unsigned char>(rest[0]) << 8U | static_cast<unsigned char>(rest[1]);
      rest.remove_prefix(2);
      return value;
    };
    rest.remove_prefix(kStat + id_bytes);
    entry.flags = two();
    if ((entry.flags & kExtended) != 0) {
      if (version == 2 || rest.size() < 2) return std::nullopt;
      entry.more = two();
    }
    if (version == 4) {
      if (!takeCompressed(rest, compressed)) return std::nullopt;
      entry.path = compressed;
    } else {
      // As git reads it: an entry is as long as its flags say, and only long paths end with the first NUL.
      const std::size_t known = entry.flags & kNameLength;
      const std::size_t end = known < kNameLength ? known : rest.find('\0');
      if (end > rest.size()) return std::nullopt;
      entry.path = rest.substr(0, std::min(end, rest.find('\0')));
      // One to eight NUL bytes make the length of an entry a multiple of eight.
      const std::size_t length = (before - rest.size() + end + 8) / 8 * 8;
      if (length > before) return std::nullopt;
      rest.remove_prefix(length - (before - rest.size()));
    }
    take(entry);
  }
  return rest;
}

/// The name of the shared index, from the extension `link`; empty: the index is not split.
std::string sharedName(std::string_view rest, std::size_t id_bytes) {
  constexpr std::size_t kExtensionHeader = 8;
  while (rest.size() > kExtensionHeader + id_bytes) {
    const std::uint32_t length = number(rest, 4);
    if (length > rest.size() - kExtensionHeader) break;
    if (rest.starts_with("link") && length >= id_bytes) {
      const std::string_view id = rest.substr(kExtensionHeader, id_bytes);
      return id == std::string(id_bytes, '\0') ? "" : hexText(id);
    }
    rest.remove_prefix(kExtensionHeader + length);
  }
  return {};
}

std::optional<IndexFlags> readFlags(std::string_view bytes, std::size_t id_bytes) {
  IndexFlags found;
  const auto rest = forEachEntry(bytes, id_bytes, [&](const RawEntry& entry) {
    if ((entry.flags & kAssumeValid) == 0 && (entry.more & kSkipWorktree) == 0) return;
    if (entry.path.empty()) {
      found.unnamed = true;
    } else {
      const bool slash = entry.type() == kDirectory && !entry.path.ends_with('/');
      found.unwatched.insert(std::string(entry.path) + (slash ? "/" : ""));
    }
  });
  // After the entries come extensions, then the checksum.
  if (!rest || rest->size() < id_bytes) return std::nullopt;
  found.shared = sharedName(*rest, id_bytes);
  return found;
}

}  // namespace

std::vector<IndexEntry> readIndex(std::string_view bytes) {
  std::vector<IndexEntry> entries;
  forEachEntry(bytes, kSha1, [&](const RawEntry& raw) {
    if (raw.type() != kRegular || raw.path.empty() || (raw.flags & (kAssumeValid | kStage)) != 0) return;
    if ((raw.more & (kSkipWorktree | kIntentToAdd)) != 0) return;
    IndexEntry entry{.path = std::string(raw.path), .id = hexText(raw.id), .size = number(raw.stat, 36)};
    entry.inode = number(raw.stat, 20);
    entry.changed_s = number(raw.stat, 0);
    entry.changed_ns = number(raw.stat, 4);
    entry.modified_s = number(raw.stat, 8);
    entry.modified_ns = number(raw.stat, 12);
    entries.push_back(std::move(entry));
  });
  return entries;
}

IndexFlags readIndexFlags(std::string_view bytes) {
  // Which of the two git reads, only its configuration tells.
  auto found = readFlags(bytes, kSha1);
  auto other = readFlags(bytes, kSha256);
  if (!found) return other.value_or(IndexFlags{.complete = false});
  if (other) found->unwatched.merge(other->unwatched);
  return *std::move(found);
}

}  // namespace caisson::policy
