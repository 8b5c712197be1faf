// Headers and variables in the arguments of a command: keys as a rule, whatever their names are.
#pragma once

#include <span>
#include <string_view>

#include "cli/agent/command_secrets.h"

namespace caisson::cli {

/// `-H "X-Team: WORD"`, `--header=X-Team: WORD`, `-H x-api-key WORD`: `rest` are the next arguments. Not a host with a
/// port, and no header that describes the content.
bool isHeaderArgument(std::string_view flag, std::string_view rest);

/// `NAME=WORD`, where the name is not one of usual configuration (PATH, NODE_ENV, LOG_LEVEL) and the word no switch,
/// short number or path.
bool isVariableWithSecret(std::string_view assignment);

/// A variable that is given to a program: `docker run -e NAME=WORD`, `env NAME=WORD`, `NAME=WORD` before a command, and
/// wherever the name is in capitals.
bool givesVariable(std::span<const CommandWord> words);

}  // namespace caisson::cli
