// A pattern (before the first line end) held against a command (after it).
#include <cstdint>
#include <string_view>

#include "policy/rules/command.h"
#include "policy/rules/pattern.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\n'), size);
  const std::string_view pattern = text.substr(0, end);
  const std::string_view command = end < size ? text.substr(end + 1) : std::string_view();
  if (caisson::policy::patternProblem(pattern)) return 0;
  caisson::policy::CommandRules rules;
  rules.blocked_patterns = {std::string(pattern)};
  caisson::policy::refuseCommand(rules, command);
  caisson::policy::networkUse(command);
  return 0;
}
