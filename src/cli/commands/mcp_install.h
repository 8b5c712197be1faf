// `caisson mcp install HOST`.
#pragma once

#include <string>
#include <string_view>

namespace caisson::cli {

/// Shows the change to the host's configuration, asks for confirmation, and writes it: the host then starts `program`,
/// the path of caisson. Returns the exit status.
int installInHost(std::string_view host, bool without_asking, const std::string& program);

}  // namespace caisson::cli
