// `caisson mcp install HOST`.
#pragma once

#include <string_view>

namespace caisson::cli {

/// Shows what would change in the host's configuration, asks, and writes it. The exit status.
int installInHost(std::string_view host, bool without_asking);

}  // namespace caisson::cli
