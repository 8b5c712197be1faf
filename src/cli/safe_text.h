// Text from untrusted sources (paths, host names, a payload's words), made safe to show to a person.
//
// A terminal obeys control characters, and bidirectional or zero-width characters make a line read
// as something it is not ("approve rm" shown as "approve ls", SPEC A2). Both are shown as escapes:
// `\x1b`, `\u{202e}`. Everything visible stays as it is, letters of every script included.
// Not guaranteed: look-alike letters of other scripts are not detected.
#pragma once

#include <string>
#include <string_view>

namespace caisson::cli {

/// One line: line ends are escaped too, so that untrusted text cannot start a line of its own.
std::string safeLine(std::string_view text);

/// Several lines of ours with untrusted parts in them: line ends and tabs stay.
std::string safeLines(std::string_view text);

}  // namespace caisson::cli
