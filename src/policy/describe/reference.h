// The reference of policy keys, rendered from the same table that decodes them.
#pragma once

#include <string>

namespace caisson::policy {

/// Every key with its type, meaning, default (of profile `bash`) and ceiling (of level full): for a terminal, or as
/// Markdown.
std::string renderReference(bool markdown);

}  // namespace caisson::policy
