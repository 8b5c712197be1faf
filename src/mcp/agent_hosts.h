// The agent hosts whose configuration `caisson mcp install` can edit.
#pragma once

#include <string_view>

namespace caisson::mcp {

struct AgentHost {
  std::string_view name;       ///< as typed: "cursor"
  std::string_view title;      ///< "Cursor"
  bool below_home = true;      ///< otherwise below the current directory: the project's configuration
  std::string_view directory;  ///< of the file, relative; empty: the base itself
  std::string_view file;
  std::string_view key;  ///< of the servers in JSON; empty: the file is TOML
};

inline constexpr AgentHost kAgentHosts[] = {
    {"claude-code", "Claude Code (this project)", false, "", ".mcp.json", "mcpServers"},
    {"claude-desktop", "Claude Desktop", true, ".config/Claude", "claude_desktop_config.json", "mcpServers"},
    {"cursor", "Cursor", true, ".cursor", "mcp.json", "mcpServers"},
    {"vscode", "VS Code (this project)", false, ".vscode", "mcp.json", "servers"},
    {"codex", "Codex", true, ".codex", "config.toml", ""},
    {"gemini", "Gemini CLI", true, ".gemini", "settings.json", "mcpServers"},
};

}  // namespace caisson::mcp
