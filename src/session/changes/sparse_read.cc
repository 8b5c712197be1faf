#include "session/changes/sparse_read.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace caisson::session {
namespace {

constexpr std::size_t kMaxExtents = 100'000;
constexpr std::size_t kChunk = 256 * 1024;

}  // namespace

std::optional<std::vector<Extent>> dataExtents(int file, std::uint64_t size) {
  std::vector<Extent> extents;
  std::uint64_t covered = 0;
  for (std::uint64_t at = 0; at < size;) {
    const off_t data = ::lseek(file, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;  // nothing but a hole follows
    if (data < 0) return std::nullopt;
    const off_t hole = ::lseek(file, data, SEEK_HOLE);
    if (hole <= data || extents.size() == kMaxExtents) return std::nullopt;
    const auto begin = static_cast<std::uint64_t>(data);
    if (begin >= size) break;
    const std::uint64_t end = std::min(static_cast<std::uint64_t>(hole), size);
    extents.push_back({begin, end - begin});
    covered += end - begin;
    at = end;
  }
  if (covered == size) return std::nullopt;
  return extents;
}

bool readExtent(int file, const Extent& extent, bool& cut, const std::function<bool(std::string_view)>& sink) {
  std::vector<char> chunk(std::min<std::uint64_t>(extent.length, kChunk));
  for (std::uint64_t done = 0; done < extent.length;) {
    const std::size_t wanted = std::min<std::uint64_t>(extent.length - done, chunk.size());
    const ssize_t got = ::pread(file, chunk.data(), wanted, static_cast<off_t>(extent.offset + done));
    if (got < 0 && errno == EINTR) continue;
    std::size_t have = got > 0 ? static_cast<std::size_t>(got) : 0;
    if (have == 0) {
      cut = true;
      std::memset(chunk.data(), 0, wanted);
      have = wanted;
    }
    if (!sink({chunk.data(), have})) return false;
    done += have;
  }
  return true;
}

}  // namespace caisson::session
