// Parses an archive: tar, also compressed with gzip or zstd.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace caisson::image {

/// Reads the archive from `input` and passes its entries to `sink` as frames (layer_stream.h); the last one is
/// `finished` or `failed`. `max_bytes`: of the uncompressed archive. Returns whether it was read completely.
bool decodeArchive(int input, bool with_data, std::uint64_t max_bytes,
                   const std::function<void(std::string_view)>& sink);

}  // namespace caisson::image
