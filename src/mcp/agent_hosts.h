// The agent hosts whose configuration `caisson mcp install` can edit.
#pragma once

#include <cstdint>
#include <string_view>

namespace caisson::mcp {

/// How a host writes the entry of a server.
enum class EntryShape : std::uint8_t {
  command,  ///< JSON: "command" and "args"
  typed,    ///< the same with "type": "stdio"
  line,     ///< JSON: "command" is the whole command line, "type": "local"
  toml,     ///< a TOML table with command and args
};

/// A configuration file, relative to the project or to the home directory. Without a name: the host has none there.
struct HostFile {
  std::string_view directory;  ///< empty: the base itself
  std::string_view file;
};

struct AgentHost {
  std::string_view name;   ///< as typed: "cursor"
  std::string_view title;  ///< "Cursor"
  EntryShape shape = EntryShape::command;
  std::string_view key;  ///< of the servers in JSON
  HostFile project, user;
  bool project_first = false;  ///< without --scope: the project's file
  /// What the host replaces by the project's directory. Empty: it starts servers in that directory.
  std::string_view folder;
};

inline constexpr AgentHost kAgentHosts[] = {
    {.name = "claude-code",
     .title = "Claude Code",
     .shape = EntryShape::typed,
     .key = "mcpServers",
     .project = {"", ".mcp.json"},
     .user = {"", ".claude.json"},
     .project_first = true},
    {.name = "claude-desktop",
     .title = "Claude Desktop",
     .key = "mcpServers",
     .user = {".config/Claude", "claude_desktop_config.json"}},
    {.name = "codex",
     .title = "Codex",
     .shape = EntryShape::toml,
     .project = {".codex", "config.toml"},
     .user = {".codex", "config.toml"}},
    {.name = "cursor",
     .title = "Cursor",
     .key = "mcpServers",
     .project = {".cursor", "mcp.json"},
     .user = {".cursor", "mcp.json"},
     .folder = "${workspaceFolder}"},
    {.name = "gemini",
     .title = "Gemini CLI",
     .key = "mcpServers",
     .project = {".gemini", "settings.json"},
     .user = {".gemini", "settings.json"}},
    {.name = "jetbrains",
     .title = "JetBrains Junie",
     .key = "mcpServers",
     .project = {".junie/mcp", "mcp.json"},
     .user = {".junie/mcp", "mcp.json"}},
    {.name = "opencode",
     .title = "opencode",
     .shape = EntryShape::line,
     .key = "mcp",
     .project = {"", "opencode.json"},
     .user = {".config/opencode", "opencode.json"}},
    {.name = "vscode",
     .title = "VS Code",
     .shape = EntryShape::typed,
     .key = "servers",
     .project = {".vscode", "mcp.json"},
     .user = {".config/Code/User", "mcp.json"},
     .project_first = true,
     .folder = "${workspaceFolder}"},
    {.name = "windsurf", .title = "Windsurf", .key = "mcpServers", .user = {".codeium/windsurf", "mcp_config.json"}},
    {.name = "zed",
     .title = "Zed",
     .key = "context_servers",
     .project = {".zed", "settings.json"},
     .user = {".config/zed", "settings.json"}},
};

}  // namespace caisson::mcp
