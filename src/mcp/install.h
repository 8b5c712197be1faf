// Adds the entry that makes an agent host start `caisson mcp` to that host's configuration.
//
// Pure: the text of a configuration in, the new text out. All other content is kept; a file that can't be parsed
// (comments in JSON, a broken file), or whose content would not survive, is an error.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "mcp/agent_hosts.h"

namespace caisson::mcp {

std::span<const AgentHost> agentHosts();
/// By AgentHost::name; null if it is unknown.
const AgentHost* findAgentHost(std::string_view name);

/// Returns the host's configuration with the entry. `before` is empty if there is no file yet; `line` is the command
/// line of the server. If the same entry exists already, the text is unchanged; a different entry for caisson is an
/// error.
Result<std::string> withEntry(const AgentHost& host, std::string_view before, const std::vector<std::string>& line);

/// The entry alone, for manual installation.
std::string entryFor(const AgentHost& host, const std::vector<std::string>& line);

}  // namespace caisson::mcp
