// A tar archive written piece by piece (POSIX.1-2001 pax; sparse files in GNU's format 1.0).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::session {

struct TarEntry {
  enum class Type : std::uint8_t { file, directory, link };
  Type type = Type::file;
  std::string path;    ///< relative, without `..`
  std::string target;  ///< of a link
  std::uint32_t mode = 0644;
  std::int64_t modified = 0;  ///< seconds since 1970
  std::uint64_t size = 0;     ///< of a file
};

/// A part of a file that holds data.
struct Extent {
  std::uint64_t offset = 0, length = 0;
};

class TarStream {
 public:
  /// Takes the archive's next bytes; false: the reader wants no more.
  using Sink = std::function<bool(std::string_view)>;
  explicit TarStream(Sink sink) : sink_(std::move(sink)) {}

  // All functions return false when the sink did.
  /// Writes the header of an entry. The content of a file follows by data(), exactly `size` bytes of it, then end().
  bool begin(const TarEntry& entry);
  /// The same for a file with holes: only the bytes of the extents follow by data(), in order.
  bool beginSparse(const TarEntry& entry, const std::vector<Extent>& extents);
  /// Writes the next bytes of the entry's content.
  bool data(std::string_view bytes);
  /// Ends the entry's content: fills up its last block.
  bool end();
  /// Ends the archive.
  bool finish();

 private:
  bool write(std::string_view bytes);
  bool header(const TarEntry& entry, std::uint64_t stored, std::string pax);

  Sink sink_;
  std::uint64_t written_ = 0;  // of the current entry's content
};

}  // namespace caisson::session
