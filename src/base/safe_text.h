// Makes text from untrusted sources (paths, host names, a payload's output) safe to display.
//
// A terminal interprets control characters, and bidirectional or zero-width characters change how a line reads
// ("approve rm" shown as "approve ls"). Both are shown as escapes: `\x1b`, `\u{202e}`. Visible characters of
// every script are unchanged. Look-alike letters of other scripts are not detected; for paths displayedPath() does.
#pragma once

#include <string>
#include <string_view>

namespace caisson {

/// One line: line ends are escaped too, so that untrusted text cannot inject a line.
std::string safeLine(std::string_view text);

/// Several lines of ours with untrusted parts: line ends and tabs are kept.
std::string safeLines(std::string_view text);

}  // namespace caisson
