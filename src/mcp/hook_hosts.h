// The agents whose hooks `caisson agent install` can set.
#pragma once

#include <string_view>

namespace caisson::mcp {

struct HookHost {
  std::string_view name;       ///< as typed: "codex"
  std::string_view title;      ///< "Codex"
  std::string_view hook;       ///< the name that `caisson agent hook` gets: how calls and answers look
  bool below_home = true;      ///< otherwise below the project, whose file others use too
  std::string_view directory;  ///< of the file, relative
  std::string_view file;       ///< JSON
  std::string_view before;     ///< the event before a tool runs
  std::string_view matcher;    ///< of the tools that run commands
  std::string_view start;      ///< the event at the start of the agent
  std::string_view end;        ///< the event at the end of a turn
  int timeout = 60;            ///< in the unit of the agent
  std::string_view remark;     ///< what the user has to do as well
};

inline constexpr HookHost kHookHosts[] = {
    {"claude-code", "Claude Code (this project)", "claude-code", false, ".claude", "settings.json", "PreToolUse",
     "Bash|PowerShell|Monitor", "SessionStart", "Stop", 60, ""},
    {"claude-code-user", "Claude Code (all projects)", "claude-code", true, ".claude", "settings.json", "PreToolUse",
     "Bash|PowerShell|Monitor", "SessionStart", "Stop", 60, ""},
    {"codex", "Codex (all projects)", "codex", true, ".codex", "hooks.json", "PreToolUse", "^Bash$", "SessionStart",
     "Stop", 60,
     "Codex runs no hook before you trust it: start it, enter /hooks and trust the hooks of caisson. Its own sandbox "
     "must let caisson start: sandbox_mode = \"danger-full-access\" in ~/.codex/config.toml. That lifts it for its "
     "other tools as well; `caisson agent -- codex` confines all of it"},
    {"gemini", "Gemini CLI (this project)", "gemini", false, ".gemini", "settings.json", "BeforeTool",
     "run_shell_command", "SessionStart", "AfterAgent", 60000, ""},
};

}  // namespace caisson::mcp
