// The reference of policy keys, rendered from the same table that decodes them.
#pragma once

#include <string>

namespace caisson::policy {

/// Every key with its type, default, ceiling and meaning: for a terminal, or as Markdown.
std::string renderReference(bool markdown);

}  // namespace caisson::policy
