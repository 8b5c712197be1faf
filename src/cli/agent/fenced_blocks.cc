#include "cli/agent/fenced_blocks.h"

#include <algorithm>

#include "base/text.h"

namespace caisson::cli {
namespace {

constexpr std::size_t kShortestFence = 3;

/// The number of marks at the start of a line that is a fence; 0 if it is none.
std::size_t fenceLength(std::string_view line) {
  if (line.empty() || (line.front() != '`' && line.front() != '~')) return 0;
  const std::size_t length = std::min(line.find_first_not_of(line.front()), line.size());
  return length < kShortestFence ? 0 : length;
}

/// Where the text of a line begins, behind the marks of lists and quotations.
std::size_t textBegin(std::string_view line) {
  std::size_t at = line.find_first_not_of(" \t>*+-");
  if (at == std::string_view::npos) return line.size();
  const std::size_t number = line.find_first_not_of("0123456789", at);  // 1. of a list
  if (number != at && number != std::string_view::npos && (line[number] == '.' || line[number] == ')'))
    at = std::min(line.find_first_not_of(" \t", number + 1), line.size());
  return at;
}

/// The first word behind a fence: `yaml`, `{.yaml`, `yaml title="x"`.
std::string languageOf(std::string_view info) {
  info = trimmed(info, " \t{.");
  return lowered(info.substr(0, info.find_first_of(" \t,;:}{")));
}

/// A line of a block without what stands before its fence, and without the marks of a quotation.
std::string_view withoutIndent(std::string_view line, std::size_t indent) {
  const std::size_t text = std::min(line.find_first_not_of(" \t>"), line.size());
  return line.substr(std::min(indent, text));
}

}  // namespace

std::vector<FencedBlock> fencedBlocks(std::string_view text) {
  std::vector<FencedBlock> blocks;
  std::size_t fence = 0, indent = 0;  // of the open block
  char mark = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t begin = textBegin(line);
    const std::string_view content = line.substr(begin);
    const std::size_t length = fenceLength(content);
    if (fence == 0) {
      if (length == 0) continue;
      fence = length, indent = begin, mark = content.front();
      blocks.push_back({languageOf(content.substr(length)), {}});
    } else if (length >= fence && content.front() == mark && trimmed(content.substr(length)).empty()) {
      fence = 0;
    } else {
      blocks.back().text.append(withoutIndent(line, indent)).append("\n");
    }
  }
  return blocks;
}

}  // namespace caisson::cli
