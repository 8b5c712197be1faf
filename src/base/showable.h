// Whether text from untrusted sources can be shown to a person as it is.
#pragma once

#include <string_view>

#include "base/utf8.h"

namespace caisson {

/// Control, bidirectional, invisible and zero-width characters: they hide or reorder what is read.
constexpr bool deceivesReader(char32_t code) {
  if (code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0xAD || code == 0x61C || code == 0x180E) return true;
  return (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF || (code >= 0xE0000 && code <= 0xE007F);
}

/// Valid UTF-8 without such characters.
constexpr bool isShowable(std::string_view text) {
  while (!text.empty()) {
    const Character next = firstCharacter(text);
    if (!next.valid || deceivesReader(next.code)) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

}  // namespace caisson
