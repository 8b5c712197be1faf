// Named lists of hosts that a tool needs: `--allow-host preset:npm`. Each has a version that changes with its patterns,
// so that a record of a run identifies the list.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

struct Preset {
  std::string_view name;
  int version = 1;
  std::string_view description;
  std::span<const std::string_view> patterns;  ///< each covers a name and its subdomains
};

inline constexpr std::string_view kPresetPrefix = "preset:";

std::span<const Preset> presets();

/// The preset of an entry such as "preset:npm", or nullptr.
const Preset* findPreset(std::string_view entry);

/// `entries` with every preset replaced by its patterns. Other entries stay, also those of unknown presets.
std::vector<std::string> expandPresets(const std::vector<std::string>& entries);

}  // namespace caisson::policy
