// Files that may have holes, or change while they are read.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "session/changes/tar_stream.h"

namespace caisson::session {

/// Where a file of `size` bytes holds data. Nothing when it has no holes worth keeping, or too many.
std::optional<std::vector<Extent>> dataExtents(int file, std::uint64_t size);

/// Passes exactly the extent's bytes to `sink`; what the file lost meanwhile becomes zeros. False when the sink does.
/// `cut` is set when bytes were missing.
bool readExtent(int file, const Extent& extent, bool& cut, const std::function<bool(std::string_view)>& sink);

}  // namespace caisson::session
