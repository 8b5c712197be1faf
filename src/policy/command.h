// Command rules (SPEC X9): how long a command may be, and which patterns it must and must not match.
//
//   if (auto refusal = refuseCommand(policy.commands, argv)) ... refusal->rule, refusal->reason
//
// These rules are advice and convenience: they tell a person or an agent early and clearly that a command is not
// meant to run here. A determined payload words its command otherwise; what holds is enforced by the kernel.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "policy/model.h"

namespace caisson::policy {

struct CommandRefusal {
  std::string rule;    ///< "commands.blocked_patterns[0]"
  std::string reason;  ///< what the rule says, and what in the command it met
  std::string hint;
};

/// An argv as the text that rules see: words joined by blanks, each quoted as a shell would need it, so that one word
/// with a blank in it cannot pass for two.
std::string commandLine(std::span<const std::string> argv);

/// The rule that refuses `command`, or nothing. Length first, then what is blocked, then what is allowed.
std::optional<CommandRefusal> refuseCommand(const CommandRules& rules, std::string_view command);
/// The same for an argv, whose length is that of its words and the blanks between them.
std::optional<CommandRefusal> refuseCommand(const CommandRules& rules, std::span<const std::string> argv);

/// The word or words by which a command looks as if it used the network (seed patterns of 000: curl, pip install,
/// git clone, URLs ...). A hint for whom to ask early; never a protection.
std::optional<std::string> networkUse(std::string_view command);

}  // namespace caisson::policy
