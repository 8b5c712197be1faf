// Linked into the profile compiler instead of the profiles that it generates.
#include "policy/profiles/profiles.h"

namespace caisson::policy {

std::optional<Policy> builtin(std::string_view /*name*/) { return std::nullopt; }
std::span<const std::string_view> builtinNames() { return {}; }

}  // namespace caisson::policy
