// The part of `caisson verify` that runs inside the sandbox: makes one attempt and prints the result.
//
// Prints `done...` if it worked, `refused: ...` if it was denied, `unavailable: ...` if this machine cannot test it.
// The attempt `http` prints the response's status instead of `done`.
#pragma once

#include <span>
#include <string_view>

namespace caisson::verify {

/// Exit status 0, 1 and 3 in that order; 2 for unknown arguments.
int tryInside(std::span<const std::string_view> words);

}  // namespace caisson::verify
