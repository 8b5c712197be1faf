// The front matter of Markdown: settings of a skill, an agent or a command before its text.
#pragma once

#include <string>
#include <string_view>

namespace caisson::cli {

/// The text without a byte order mark, with ends of lines as "\n".
std::string withPlainLineEnds(std::string_view text);

/// The front matter of a text with plain ends of lines; without a closing line, the whole text. Empty if there is none.
std::string_view frontMatter(std::string_view text);

/// Whether a line names variables or headers and has a value or a block behind the name: for front matter that cannot
/// be read as YAML, such as `description: Use this: when asked`, which agents accept.
bool hasEnvironmentOrHeaderLine(std::string_view text);

}  // namespace caisson::cli
