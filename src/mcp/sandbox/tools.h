// All tools, by what they are for. Each is a Tool in the file of its kind.
#pragma once

#include <span>

#include "caisson/session.h"
#include "mcp/sandbox/tool.h"

namespace caisson::mcp {

extern const Tool kCreateTool, kListTool, kInfoTool, kDestroyTool;      // tools_sandbox.cc
extern const Tool kExecuteTool, kProcessTool;                           // tools_execute.cc
extern const Tool kReadTool, kWriteTool, kEditTool;                     // tools_files.cc
extern const Tool kCheckpointTool, kRestoreTool, kForkTool, kDiffTool;  // tools_history.cc
extern const Tool kCommitTool;                                          // tools_commit.cc
extern const Tool kNetworkTool;                                         // tools_network.cc

/// In the order in which they are listed.
std::span<const Tool* const> allTools();

/// What was refused, and what this model can do about it.
Json describeDenial(const Denial& denial);

/// A failure of the library as a tool's result: what was tried, why it failed, what to do.
Json failure(const Call& call, const Error& error);

inline constexpr Parameter kStop{.name = "stop_processes",
                                 .type = ParameterType::boolean,
                                 .description =
                                     "End running processes of the sandbox first; else it is refused while there "
                                     "are any."};
WhenBusy whenBusy(const Arguments& arguments);

/// The parameter that nearly every tool begins with.
inline constexpr Parameter kSandboxId{
    .name = "sandbox_id", .required = true, .description = "The id that sandbox_create returned."};

}  // namespace caisson::mcp
