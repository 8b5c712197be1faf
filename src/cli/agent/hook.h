// What a hook of an agent answers: pure, the agent's JSON in, the answer out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::cli {

struct HookOptions {
  std::string program;             ///< the caisson program
  std::string host;                ///< "claude-code", "codex", "gemini"
  std::vector<std::string> flags;  ///< of `agent exec`: the policy
  bool auto_allow = false;
};

struct HookCall {
  std::string event;    ///< "PreToolUse"
  std::string project;  ///< the directory the agent works in
};

/// What the agent calls the hook for. An error if `input` is not a call of a hook.
Result<HookCall> readHookCall(std::string_view input);

/// The answer to a call before a shell tool runs: the same call, with the command line of `agent exec` for `project`
/// around its command. An error if there is no command, or if the tool is not known to use a POSIX shell: the agent
/// must not run what was not wrapped.
Result<std::string> wrapShellCall(std::string_view input, const std::string& project, const HookOptions& options);

/// The answer at the start of an agent: tells the model where its shell runs.
std::string startAnswer(std::string_view event);
/// The answer at the end of a turn: tells the user what waits for a review. `changes` is above 0.
std::string endAnswer(std::size_t changes);

}  // namespace caisson::cli
