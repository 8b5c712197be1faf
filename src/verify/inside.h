// The part of `caisson verify` that runs inside the sandbox: tries one thing and says what came of it.
//
// Prints `done...` if the thing worked, `refused: ...` if it did not, `unavailable: ...` if this machine can't tell.
#pragma once

#include <span>
#include <string_view>

namespace caisson::verify {

/// Exit status 0, 1 and 3 in that order; 2 for words it does not know.
int tryInside(std::span<const std::string_view> words);

}  // namespace caisson::verify
