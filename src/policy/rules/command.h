// Command rules: how long a command may be, and which patterns it must and must not match.
//
//   if (auto refusal = refuseCommand(policy.commands, argv)) ... refusal->rule, refusal->reason
//
// These rules are a convenience: they report early and clearly that a command is not meant to run here. A hostile
// payload can rephrase its command; the kernel enforces the real limits.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "policy/model.h"

namespace caisson::policy {

struct CommandRefusal {
  std::string rule;    ///< "commands.blocked_patterns[0]"
  std::string reason;  ///< the rule, and the part of the command that matched
  std::string hint;
};

/// Formats argv as the text that rules match: arguments joined by blanks, quoted as for a shell where needed, so that
/// one argument with a blank cannot pass for two.
std::string commandLine(std::span<const std::string> argv);

/// Returns the rule that denies `command`, or nothing. Checks length, then blocked patterns, then that an allowed one
/// matches: an unset list allows every command, an empty one none.
std::optional<CommandRefusal> refuseCommand(const CommandRules& rules, std::string_view command);
/// The same for an argv, whose length is that of its arguments and the blanks between them.
std::optional<CommandRefusal> refuseCommand(const CommandRules& rules, std::span<const std::string> argv);

/// Returns the part of a command that suggests network use: curl, pip install, git clone, URLs and the like. A hint for
/// an early prompt, not a protection.
std::optional<std::string> networkUse(std::string_view command);

}  // namespace caisson::policy
