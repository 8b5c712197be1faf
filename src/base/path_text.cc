#include "base/path_text.h"

#include <algorithm>

#include "base/base64.h"
#include "base/deceptive_text.h"
#include "base/look_alikes.h"
#include "base/utf8.h"

namespace caisson {
namespace {

constexpr std::string_view kOpen = "$'";

void appendOctal(std::string& out, std::string_view bytes) {
  for (const char letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    out += '\\';
    for (const unsigned shift : {6U, 3U, 0U}) out += static_cast<char>('0' + ((byte >> shift) & 7U));
  }
}

}  // namespace

bool hasOddBlanks(std::string_view text) {
  return text.starts_with(' ') || text.ends_with(' ') || text.find("  ") != std::string_view::npos;
}

bool hasListMarks(std::string_view text) {
  constexpr std::string_view kMarks[] = {" (", " | ", " -> ", " => ", ", ", "/ "};
  return text.ends_with(')') ||
         std::ranges::any_of(kMarks, [&](std::string_view mark) { return text.find(mark) != std::string_view::npos; });
}

bool isPlainName(std::string_view path) {
  if (!isReadable(path)) return false;
  while (!path.empty()) {
    const std::string_view name = path.substr(0, path.find('/'));
    if (looksLikeAnotherName(name)) return false;
    path.remove_prefix(std::min(path.size(), name.size() + 1));
  }
  return true;
}

std::string displayedPath(std::string_view path) {
  if (isPlainName(path) && !hasOddBlanks(path) && !hasListMarks(path) && !path.starts_with(kOpen))
    return std::string(path);
  std::string out(kOpen);
  bool at_edge = true;  // at the beginning, or after a blank
  while (!path.empty()) {
    const Character next = firstCharacter(path);
    const std::string_view bytes = path.substr(0, next.length);
    const bool odd_blank = bytes == " " && (at_edge || path.size() == 1);
    at_edge = bytes == " ";
    if (odd_blank) {
      appendOctal(out, bytes);
    } else if (bytes == "\n") {
      out += "\\n";
    } else if (bytes == "\t") {
      out += "\\t";
    } else if (bytes == "'" || bytes == "\\") {
      out.append("\\").append(bytes);
    } else if (next.valid && !isDeceptive(next.code) && !isLookAlike(next.code)) {
      out += bytes;
    } else {
      appendOctal(out, bytes);
    }
    path.remove_prefix(next.length);
  }
  return out + "'";
}

std::optional<std::string> decodePath(std::string text, std::string_view encoding) {
  if (encoding != "base64") return text;
  auto path = decodeBase64(text);
  if (path && path->find('\0') != std::string::npos) return std::nullopt;
  return path;
}

}  // namespace caisson
