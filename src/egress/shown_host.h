// How a question shows a host that a payload chose: on one line, with the part first that says whose it is.
#pragma once

#include <string>
#include <string_view>

namespace caisson::egress {

/// The domain that was registered: the last two labels of a name, or three below endings such as "co.uk". An address is
/// returned as it is.
std::string_view registrableDomain(std::string_view host);

/// `text` with its middle replaced by "..." if it is longer than `most` bytes.
std::string shortened(std::string_view text, std::size_t most);

/// "host:NAME:PORT", and in front of a long name its registrable domain; at most 52 bytes. `target` is canonical.
std::string shownQuestion(std::string_view target);

}  // namespace caisson::egress
