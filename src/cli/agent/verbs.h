// The verbs of `caisson agent`, by file, and shared options.
#pragma once

#include "cli/verb.h"

namespace caisson::cli {

extern const Verb kAgentRun;                       // run.cc
extern const Verb kAgentExec;                      // exec.cc
extern const Verb kAgentHook;                      // hook.cc
extern const Verb kAgentInstall, kAgentUninstall;  // agent.cc
extern const Verb kAgentDiff, kAgentCommit;        // changes.cc

inline constexpr Option kAgentYes{.name = "yes", .help = "Write the file without asking."};
inline constexpr Option kAgentAutoAllow{
    .name = "auto-allow",
    .help = "Let the agent run commands without its own prompt: they are in the sandbox. Its deny rules still hold."};

}  // namespace caisson::cli
