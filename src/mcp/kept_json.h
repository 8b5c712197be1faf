// Reads a JSON file of the user that is going to be written again with a change.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"

namespace caisson::mcp {

using OrderedJson = nlohmann::ordered_json;  ///< keeps the order of the user's file

/// The object in `text`, empty if there is only white space; otherwise the error is the reason alone. Content that
/// would not survive is an error: comments, a key that occurs twice, a number with more digits than a double has.
std::expected<OrderedJson, std::string> readKept(std::string_view text);

}  // namespace caisson::mcp
