// Writes the tree of a settings file.
#pragma once

#include <string>

#include "cli/agent/settings.h"
#include "policy/document/document.h"

namespace caisson::cli {

/// `table` as JSON (also for YAML, which contains it) or TOML.
std::string writeSettings(const policy::Node& table, SettingsFormat format);

}  // namespace caisson::cli
