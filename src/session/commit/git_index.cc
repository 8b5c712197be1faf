#include "session/commit/git_index.h"

#include "base/hex.h"

namespace caisson::session {
namespace {

constexpr std::uint64_t kMaxPathBytes = 1U << 20;

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

}  // namespace

std::vector<IndexEntry> readIndex(std::string_view bytes) {
  constexpr std::size_t kHeader = 12, kStat = 40, kId = 20;
  constexpr unsigned kAssumeValid = 0x8000, kExtended = 0x4000, kStage = 0x3000;
  constexpr unsigned kSkipWorktree = 0x4000, kIntentToAdd = 0x2000;
  constexpr std::uint32_t kRegular = 0100000;
  std::vector<IndexEntry> entries;
  if (bytes.size() < kHeader || !bytes.starts_with("DIRC")) return entries;
  const std::uint32_t version = number(bytes, 4), count = number(bytes, 8);
  if (version < 2 || version > 4) return entries;
  std::string_view rest = bytes.substr(kHeader);
  std::string path;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t before = rest.size();
    if (before < kStat + kId + 2) return entries;
    IndexEntry entry{.id = hexText(rest.substr(kStat, kId)), .size = number(rest, 36), .inode = number(rest, 20)};
    entry.changed_s = number(rest, 0);
    entry.changed_ns = number(rest, 4);
    entry.modified_s = number(rest, 8);
    entry.modified_ns = number(rest, 12);
    const bool regular = (number(rest, 24) & 0170000U) == kRegular;
    const auto two = [&] {
      const unsigned value = static_cast<unsigned char>(rest[0]) << 8U | static_cast<unsigned char>(rest[1]);
      rest.remove_prefix(2);
      return value;
    };
    rest.remove_prefix(kStat + kId);
    const unsigned flags = two();
    unsigned more = 0;
    if ((flags & kExtended) != 0) {
      if (version == 2 || rest.size() < 2) return entries;
      more = two();
    }
    if (version == 4) {
      if (!takeCompressed(rest, path)) return entries;
    } else {
      const std::size_t end = rest.find('\0');
      if (end == std::string_view::npos) return entries;
      path = rest.substr(0, end);
      // One to eight NUL bytes make the length of an entry a multiple of eight.
      const std::size_t length = (before - rest.size() + end + 8) / 8 * 8;
      if (length > before) return entries;
      rest.remove_prefix(length - (before - rest.size()));
    }
    if (!regular || path.empty() || (flags & (kAssumeValid | kStage)) != 0) continue;
    if ((more & (kSkipWorktree | kIntentToAdd)) != 0) continue;
    entry.path = path;
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace caisson::session
