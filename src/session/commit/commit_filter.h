// Links that a commit holds back unless they are named.
#pragma once

#include <string_view>

namespace caisson::session {

/// Whether a link with this target, at this path, leads out of the workspace.
bool leadsOut(std::string_view path, std::string_view target);

}  // namespace caisson::session
