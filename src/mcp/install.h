// The entry that makes an agent host start `caisson mcp`, put into that host's own configuration.
//
// Pure: the text of a configuration in, the new text out. Everything else in it stays; what can't be read (comments in
// JSON, a broken file) is refused rather than rewritten.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace caisson::mcp {

struct AgentHost {
  std::string_view name;       ///< as typed: "cursor"
  std::string_view title;      ///< "Cursor"
  bool below_home = true;      ///< else below the current directory: the project's own configuration
  std::string_view directory;  ///< of the file, relative; empty: the base itself
  std::string_view file;
  std::string_view key;  ///< of the servers in JSON; empty: the file is TOML
};

std::span<const AgentHost> agentHosts();
const AgentHost* findAgentHost(std::string_view name);

/// The host's configuration with the entry in it. `before` is empty when there is no file yet; `program` is the
/// absolute path of caisson. An entry that is there already and says the same gives the same text back.
Result<std::string> withEntry(const AgentHost& host, std::string_view before, const std::string& program);

/// The entry alone, for people who put it in by hand.
std::string entryFor(const AgentHost& host, const std::string& program);

}  // namespace caisson::mcp
