// Keys and their values in JSON, TOML and YAML alike. The text need not be a valid document: what the host's program
// would refuse does no harm here, and what it would accept must not be missed because another reader is stricter. Pure.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

/// A text, or a list of texts.
struct KeyedValue {
  std::vector<std::string> texts = {};
  bool list = false;
  bool may_hold_keys = false;  ///< the text must be read once more for them
};

/// Calls `take(key, value)` in the order of the text, for keys that `matters(key)` accepts. Keys are in lower case.
/// Takes time that grows with the text, not with its square.
void forEachSetting(std::string_view text, const std::function<bool(std::string_view key)>& matters,
                    const std::function<void(std::string_view key, const KeyedValue& value)>& take);

/// ASCII letters in lower case.
std::string inLowerCase(std::string_view text);

}  // namespace caisson::policy
