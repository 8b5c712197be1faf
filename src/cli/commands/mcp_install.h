// `caisson mcp install HOST`.
#pragma once

#include <string>
#include <string_view>

namespace caisson::cli {

/// Shows the change to an agent host's configuration, asks unless `without_asking`, and writes it: the agent host then
/// starts `program`, the path of caisson. Returns the exit status.
int installInHost(std::string_view host, bool without_asking, const std::string& program);

}  // namespace caisson::cli
