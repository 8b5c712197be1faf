// Adds the hooks that run an agent's shell commands in a session to the agent's configuration, and removes them.
//
// Pure: the text of a configuration in, the new text out. Other content is kept; a file that can't be parsed is an
// error.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "mcp/hook_hosts.h"

namespace caisson::mcp {

/// By HookHost::name; null if it is unknown.
const HookHost* findHookHost(std::string_view name);

/// Returns the configuration with the hooks, in place of earlier ones of caisson. `call` is the command line that
/// answers the hook, for a shell. The text is unchanged if the same hooks exist already.
Result<std::string> withHooks(const HookHost& host, std::string_view before, const std::string& call);

/// Whether a configuration of this agent switches all hooks off.
bool disablesHooks(std::string_view text);

/// Returns the configuration without the hooks of caisson; unchanged if it has none.
Result<std::string> withoutHooks(const HookHost& host, std::string_view before);

}  // namespace caisson::mcp
