// Other sandboxes, each called with the closest equivalent of a `full` launch for an ordinary user.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "rows.h"

namespace bench {

/// Measured where installed; `nsjail` only if its path is given.
std::span<const std::string_view> usualPeers();
bool isPeer(std::string_view name);

/// `path`: the program, or its name.
Row peerRow(const std::string& name, const std::string& path, const Scratch& scratch);

}  // namespace bench
