// Names that read like another name: letters of other scripts that look like ASCII letters, and letters that are
// written as a base and a mark where one character exists.
#pragma once

#include <string_view>

namespace caisson {

/// Whether a character may look like an ASCII character, or only changes the one before it.
bool isLookAlike(char32_t code);

/// Whether one component of a path, valid UTF-8, could be taken for one with other characters:
/// - a word mixes Latin letters with letters of other scripts that look like them, or
/// - letters of another script all look like Latin ones, and no other letter of that script shows which it is, or
/// - it has a combining mark, or a sign that looks like a slash, a dot or a hyphen.
/// Words of one script and accented letters of one character are none.
bool looksLikeAnotherName(std::string_view name);

}  // namespace caisson
