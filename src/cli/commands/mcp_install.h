// `caisson mcp install HOST`.
#pragma once

#include <string_view>

namespace caisson::cli {

/// Shows the change to the host's configuration, asks for confirmation, and writes it. Returns the exit status.
int installInHost(std::string_view host, bool without_asking);

}  // namespace caisson::cli
