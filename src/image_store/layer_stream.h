// What the confined decoder (caisson-unpack) sends to the process that writes the files: a stream of frames.
//
// The decoder parses a stranger's archive inside a sandbox and may have been taken over by it, so the reader trusts
// nothing: it bounds every length, and all rules about names, links and modes are the writer's (layer_writer.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::image {

enum class FrameType : std::uint32_t { entry = 1, data, end_of_entry, finished, failed };

/// Precedes every frame. Both ends are on one machine, so the layout is the compiler's.
struct FrameHead {
  std::uint32_t type = 0;
  std::uint32_t length = 0;  ///< of the bytes that follow
  std::uint64_t value = 0;   ///< data: the offset in the file; finished: bytes of the uncompressed archive
};

inline constexpr std::size_t kMaxData = 256U << 10;
inline constexpr std::size_t kMaxEntryFrame = 64U << 10;

enum class EntryKind : std::uint8_t { file, directory, link, hard_link, character, block, fifo, socket, other };

struct ArchiveEntry {
  EntryKind kind = EntryKind::other;
  std::uint32_t mode = 0;  ///< permissions with setuid, setgid and sticky
  std::uint64_t uid = 0, gid = 0;
  std::int64_t mtime = 0;
  std::uint64_t size = 0;    ///< of a file
  std::string name, target;  ///< of a link or hard link
  std::string attributes;    ///< names of extended attributes and ACLs, comma-separated

  [[nodiscard]] std::string encoded() const;
  static Result<ArchiveEntry> decode(std::string_view bytes);
};

/// Reads frames from a pipe.
class FrameReader {
 public:
  explicit FrameReader(int pipe) : pipe_(pipe), buffer_(4 * kMaxData) {}

  struct Frame {
    FrameType type = FrameType::failed;
    std::uint64_t value = 0;
    std::string_view body;  ///< valid until the next call
  };
  /// The next frame; an error for a malformed one and for the end of the stream, which `finished` must precede.
  Result<Frame> next();

 private:
  /// Makes at least `count` bytes available at begin_.
  Result<void> need(std::size_t count);

  int pipe_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace caisson::image
