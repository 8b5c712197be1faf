// Blocks of code in Markdown: files within a file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace caisson::cli {

struct FencedBlock {
  std::string language;  ///< in small letters; "" if there is none
  std::string text;
};

/// The blocks between fences of a text with plain ends of lines, also in lists and quotations. The last one may have no
/// end.
std::vector<FencedBlock> fencedBlocks(std::string_view text);

}  // namespace caisson::cli
