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

void expectOneConnectionAllowed(Terminal& terminal) {
  answerPrompt(terminal, "evil.test:80", "o #\r");
  EXPECT_TRUE(terminal.shows("evil.test /one from 80")) << terminal.screen();
  answerPrompt(terminal, "evil.test:80", "n\r", 2);
  EXPECT_TRUE(terminal.wait()) << terminal.screen();
  EXPECT_FALSE(contains(terminal.screen(), "/two from 80")) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "over")) << terminal.screen();
}

void expectOnePortAllowed(Terminal& terminal, const std::string& keys) {
  answerPrompt(terminal, "evil.test:80", keys);
  answerPrompt(terminal, "evil.test:8080", "\r", 2);
  EXPECT_EQ(terminal.wait(), 0) << terminal.screen();
  EXPECT_TRUE(contains(terminal.screen(), "/2 from 80")) << terminal.screen();
  EXPECT_FALSE(contains(terminal.screen(), "from 8080")) << terminal.screen();
}

void expectStoredUntilRevoked(const std::string& keys, const StartTerminal& start, const StartTerminal& later,
                              const RunCaisson& caisson) {
  const auto first = start("curl -sS http://evil.test/1");
  answerPrompt(*first, "evil.test:80", keys);
  EXPECT_EQ(first->wait(), 0) << first->screen();
  EXPECT_TRUE(contains(first->screen(), "/1 from 80")) << first->screen();
  const auto kept = caisson({"approvals", "list", "--json"}).json();
  ASSERT_EQ(kept.size(), 1U) << kept;
  EXPECT_EQ(kept[0]["what"], "host:evil.test:80");
  EXPECT_EQ(kept[0]["by"], "terminal");
  const auto second = later("curl -sS http://evil.test/2");
  EXPECT_EQ(second->wait(), 0) << second->screen();
  EXPECT_EQ(countPrompts(*second), 0) << second->screen();
  EXPECT_TRUE(contains(second->screen(), "/2 from 80")) << second->screen();
  ASSERT_EQ(caisson({"approvals", "revoke", kept[0]["id"]}).exit_status, 0);
  const auto third = start("curl -sS http://evil.test/3");
  answerPrompt(*third, "evil.test:80", "no\r");
  EXPECT_TRUE(third->wait());
  EXPECT_FALSE(contains(third->screen(), "from 80")) << third->screen();
}

}  // namespace caisson::test
