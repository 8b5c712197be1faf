// Prompts about a host on the simulated user's terminal.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

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

// What the answers mean, the same for `run` and for commands of a session.
using StartTerminal = std::function<std::unique_ptr<Terminal>(const std::string& script)>;
using RunCaisson = std::function<RunOutput(const std::vector<std::string>& words)>;

inline constexpr const char* kOneAndTwo = "curl -sS http://evil.test/one; curl -sS http://evil.test/two; echo over";
/// Answers the prompts of kOneAndTwo with "once" and "no".
void expectOneConnectionAllowed(Terminal& terminal);

inline constexpr const char* kTwoPorts =
    "for i in 1 2; do curl -sS http://evil.test/$i; done; curl -sS http://evil.test:8080/; echo over";
/// Answers the first prompt of kTwoPorts with `keys`, which allow the port for later connections, too.
void expectOnePortAllowed(Terminal& terminal, const std::string& keys);

/// Approves a host permanently with `keys`. What `later` starts may reach it, until the approval is revoked.
void expectStoredUntilRevoked(const std::string& keys, const StartTerminal& start, const StartTerminal& later,
                              const RunCaisson& caisson);

}  // namespace caisson::test
