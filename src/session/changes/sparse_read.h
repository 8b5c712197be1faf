// Files that may have holes, or change while they are read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "session/changes/tar_stream.h"

namespace caisson::session {

/// The parts of a file of `size` bytes that hold data. Nothing when it should be read as a whole: it has no holes, or
/// too many.
std::optional<std::vector<Extent>> dataExtents(int file, std::uint64_t size);

/// Passes exactly the extent's bytes to `sink`; bytes that the file lost meanwhile, or that cannot be read, become
/// zeros, and `cut` is set then. False when the sink returned false.
bool readExtent(int file, const Extent& extent, bool& cut, const std::function<bool(std::string_view)>& sink);

/// Whether the first `size` bytes of two files are the same. Reads only what is data in one of them, since a program
/// can make holes of any size. False also if one cannot be read or is shorter.
bool sameContent(int a, int b, std::uint64_t size);

}  // namespace caisson::session
