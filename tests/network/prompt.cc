#include "network/prompt.h"

#include <chrono>
#include <cstring>

namespace caisson::test {

int countPrompts(const Terminal& terminal) { return occurrences(terminal.screen(), kPrompt); }

int occurrences(const std::string& text, const std::string& part) {
  int count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

std::string withPromptCode(const Terminal& terminal, std::string keys) {
  const std::string code = terminal.screen().substr(terminal.screen().rfind(kPrompt) + std::strlen(kPrompt), 4);
  EXPECT_EQ(code.find_first_not_of("0123456789"), std::string::npos) << terminal.screen();
  for (std::size_t at = 0; (at = keys.find('#', at)) != std::string::npos;) keys.replace(at, 1, code);
  return keys;
}

void answerPrompt(Terminal& terminal, const std::string& what, const std::string& keys, int count) {
  EXPECT_TRUE(eventually([&] {
    terminal.shows("nothing that is there", std::chrono::milliseconds(0));  // reads pending output
    return countPrompts(terminal) >= count;
  })) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "approval needed: host:" + what + "\r\n")) << terminal.screen();
  terminal.type(withPromptCode(terminal, keys));
}

}  // namespace caisson::test
