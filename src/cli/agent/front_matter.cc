#include "cli/agent/front_matter.h"

#include <algorithm>

#include "base/text.h"
#include "cli/agent/secret_nodes.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kSpaces = " \t";
constexpr std::string_view kRule = "---";

std::string_view firstLine(std::string_view text) { return text.substr(0, text.find('\n')); }

std::string_view afterFirstLine(std::string_view text) {
  return text.substr(std::min(firstLine(text).size() + 1, text.size()));
}

std::size_t indentOf(std::string_view line) { return std::min(line.find_first_not_of(kSpaces), line.size()); }

/// Whether the next line with text is an item of a list or further to the right.
bool hasBlock(std::string_view rest, std::size_t indent) {
  for (; !rest.empty(); rest = afterFirstLine(rest)) {
    const std::string_view line = firstLine(rest);
    const std::string_view content = trimmed(line, kSpaces);
    if (content.empty() || content.starts_with('#')) continue;
    return indentOf(line) > indent || content.starts_with("- ");
  }
  return false;
}

/// Whether `line` names variables or headers at `at`, behind an opening quote, with something behind the colon. Reads
/// no further than to the next entry, unless there is such a name: a line may have many.
bool namesBlockAt(std::string_view line, std::size_t at, std::size_t indent, std::string_view rest) {
  const std::string_view entry = line.substr(std::min(line.find_first_not_of(" \t\"'", at), line.size()));
  const std::size_t colon = entry.find_first_of(":,{");
  if (colon == std::string_view::npos || entry[colon] != ':' ||
      !namesEnvironmentOrHeaders(trimmed(entry.substr(0, colon), " \t\"'")))
    return false;
  const std::string_view value = trimmed(entry.substr(colon + 1), kSpaces);
  if (value.empty() || value.front() == '#' || value.front() == '&') return hasBlock(rest, indent);
  return !value.starts_with("{}") && !value.starts_with("[]") && value != "true" && value != "false";
}

}  // namespace

std::string withPlainLineEnds(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    plain += text[i] == '\r' ? '\n' : text[i];
  }
  return plain;
}

std::string_view frontMatter(std::string_view text) {
  while (!text.empty() && trimmed(firstLine(text), kSpaces).empty()) text = afterFirstLine(text);
  if (!text.starts_with(kRule)) return {};
  text = afterFirstLine(text);
  if (text.starts_with(kRule)) return {};
  const std::size_t end = text.find("\n---");
  return end == std::string_view::npos ? text : text.substr(0, end + 1);
}

bool hasEnvironmentOrHeaderLine(std::string_view text) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = firstLine(rest);
    rest = afterFirstLine(rest);
    std::size_t start = indentOf(line);
    while (line.substr(start).starts_with("- ") || line.substr(start).starts_with("? "))
      start = std::min(line.find_first_not_of(kSpaces, start + 1), line.size());
    if (namesBlockAt(line, start, indentOf(line), rest)) return true;
    const std::size_t table = line.find('{');
    if (table == std::string_view::npos) continue;
    for (std::size_t at = table; at != std::string_view::npos; at = line.find_first_of("{,", at + 1))
      if (namesBlockAt(line, at + 1, indentOf(line), rest)) return true;
  }
  return false;
}

}  // namespace caisson::cli
