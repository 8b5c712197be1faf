// Prompts about a host on the simulated user's terminal.
#pragma once

#include <string>

#include "functional/terminal.h"
#include "network/network.h"

namespace caisson::test {

inline constexpr const char* kPrompt = "Allow it? [o ";  // then the code

/// Prompts that appeared on the screen so far.
int countPrompts(const Terminal& terminal);
int occurrences(const std::string& text, const std::string& part);
/// `keys` with the code of the last prompt for each "#".
std::string withPromptCode(const Terminal& terminal, std::string keys);
/// Waits for prompt number `count` about `what` and answers it; "#" in `keys` is the code.
void answerPrompt(Terminal& terminal, const std::string& what, const std::string& keys, int count = 1);

}  // namespace caisson::test
