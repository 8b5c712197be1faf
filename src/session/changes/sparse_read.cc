#include "session/changes/sparse_read.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace caisson::session {
namespace {

constexpr std::size_t kMaxExtents = 100'000;
constexpr std::size_t kChunk = 256 * 1024;

/// The next data or the next hole at or after `at`: `size` if there is none, `otherwise` where the file system has no
/// answer.
std::uint64_t seek(int file, std::uint64_t at, std::uint64_t size, int what, std::uint64_t otherwise) {
  const off_t found = ::lseek(file, static_cast<off_t>(at), what);
  if (found < 0) return errno == ENXIO ? size : otherwise;
  return std::min(static_cast<std::uint64_t>(found), size);
}

bool sameExtent(int a, int b, std::uint64_t begin, std::uint64_t end) {
  thread_local std::vector<char> left(kChunk), right(kChunk);
  while (begin < end) {
    const std::size_t wanted = std::min<std::uint64_t>(end - begin, kChunk);
    const ssize_t got = ::pread(a, left.data(), wanted, static_cast<off_t>(begin));
    const ssize_t other = ::pread(b, right.data(), wanted, static_cast<off_t>(begin));
    if (got <= 0 || got != other) return false;
    if (std::memcmp(left.data(), right.data(), static_cast<std::size_t>(got)) != 0) return false;
    begin += static_cast<std::uint64_t>(got);
  }
  return true;
}

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

bool sameContent(int a, int b, std::uint64_t size) {
  for (std::uint64_t at = 0; at < size;) {
    const std::uint64_t begin = std::min(seek(a, at, size, SEEK_DATA, at), seek(b, at, size, SEEK_DATA, at));
    if (begin >= size) break;
    const std::uint64_t end = std::max(seek(a, begin, size, SEEK_HOLE, size), seek(b, begin, size, SEEK_HOLE, size));
    if (end <= begin || !sameExtent(a, b, begin, end)) return false;
    at = end;
  }
  // A file that lost its end meanwhile has no data there.
  char last = 0;
  return size == 0 || (::pread(a, &last, 1, static_cast<off_t>(size - 1)) == 1 &&
                       ::pread(b, &last, 1, static_cast<off_t>(size - 1)) == 1);
}

}  // namespace caisson::session
