// Names that usually hold secrets, and are hidden from payloads unless a person asks otherwise.
#pragma once

#include <span>
#include <string_view>

namespace caisson::plan {

/// Whether a name at the top of a workspace is one that usually holds a secret (F6).
bool looksSecret(std::string_view name);

/// Paths below a home directory that are never shown, even when the home itself is (F7).
std::span<const std::string_view> homeSecrets();

}  // namespace caisson::plan
