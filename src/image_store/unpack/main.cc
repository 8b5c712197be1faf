// caisson-unpack MODE MAX_BYTES: reads an archive (tar, also compressed with gzip or zstd) on standard input and writes
// its entries as frames (layer_stream.h) to standard output. MODE is `names` (no data) or `data`.
//
// It runs inside a sandbox without network, workspace and writable files: the archive is a stranger's, and this program
// is the only one that parses it.
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <clocale>
#include <cstdio>
#include <string_view>

#include "image_store/unpack/decode.h"

namespace caisson::image {
namespace {

void writeFrames(std::string_view rest) {
  while (!rest.empty()) {
    const ssize_t wrote = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) ::_exit(1);  // the reader is gone
    rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

}  // namespace
}  // namespace caisson::image

int main(int count, char** words) {
  std::setlocale(LC_CTYPE, "C.UTF-8");  // libarchive converts names of pax headers, which are UTF-8, to the locale
  std::uint64_t max_bytes = 0;
  const std::string_view mode = count > 1 ? words[1] : "";
  const std::string_view bytes = count > 2 ? words[2] : "";
  const auto parsed = std::from_chars(bytes.begin(), bytes.end(), max_bytes);
  if (count != 3 || (mode != "data" && mode != "names") || parsed.ptr != bytes.end()) {
    std::fputs("caisson-unpack: started by caisson image only\n", stderr);
    return 125;
  }
  return caisson::image::decodeArchive(STDIN_FILENO, mode == "data", max_bytes, caisson::image::writeFrames) ? 0 : 1;
}
