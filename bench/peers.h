// Other sandboxes, each called for the nearest thing to a `full` launch that it offers an ordinary user.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "rows.h"

namespace bench {

/// Those that are measured wherever they are installed; `nsjail` only where somebody says that it is.
std::span<const std::string_view> usualPeers();
bool isPeer(std::string_view name);

/// `path`: the program, or its name.
Row peerRow(const std::string& name, const std::string& path, const Scratch& scratch);

}  // namespace bench
