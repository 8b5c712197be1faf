// Escapes for JSON that is printed.
#pragma once

#include <string>

namespace caisson {

/// Appends the character as an escape in a JSON string: \n, \r, \t or \uXXXX.
void appendJsonEscape(std::string& out, char32_t code);

/// The same JSON with deceptive characters (deceptive_text.h) as escapes. Beyond ASCII a document has characters only
/// in strings, so the result means the same.
std::string withEscapes(std::string json);

}  // namespace caisson
