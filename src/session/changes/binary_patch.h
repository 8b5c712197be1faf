// The content of a binary file as git's patches carry it.
#pragma once

#include <string>
#include <string_view>

namespace caisson::session {

/// One `literal SIZE` block: base 85 lines of a zlib stream, and the empty line that ends it. The stream is not
/// compressed: that would need a library for a format that compresses well afterwards.
std::string binaryLiteral(std::string_view content);

}  // namespace caisson::session
