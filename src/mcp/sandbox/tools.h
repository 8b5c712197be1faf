// All tools, by subject. Each is a Tool in the file of its subject.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "caisson/session.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tool.h"

namespace caisson::mcp {

extern const Tool kCreateTool, kListTool, kInfoTool, kDestroyTool;      // tools_sandbox.cc
extern const Tool kExecuteTool, kProcessTool;                           // tools_execute.cc
extern const Tool kReadTool, kWriteTool, kEditTool;                     // tools_files.cc
extern const Tool kUploadTool, kDownloadTool;                           // tools_transfer.cc
extern const Tool kCheckpointTool, kRestoreTool, kForkTool, kDiffTool;  // tools_history.cc
extern const Tool kCommitTool;                                          // tools_commit.cc
extern const Tool kNetworkTool;                                         // tools_network.cc

/// In listing order.
std::span<const Tool* const> allTools();

/// A denial as JSON: what was denied, and what the model can do about it.
Json describeDenial(const OperatorBounds& bounds, const Denial& denial);

/// A library error as a tool result: what failed, why, what to do.
Json failure(const Call& call, const Error& error);

inline constexpr Parameter kStop{.name = "stop_processes",
                                 .type = ParameterType::boolean,
                                 .description =
                                     "End running processes of the sandbox first; else it is refused while there "
                                     "are any."};
/// The time to live that a new sandbox gets: the model's, else an hour, and not more than the operator allows.
double ttlOf(const Sandboxes& sandboxes, const Arguments& arguments);
/// An error for a name that a model must not give: `caisson agent` finds the session of a project by its name, and
/// would run commands in, or commit from, the model's sandbox.
Result<void> checkModelsName(std::string_view tool, const std::string& name);
/// The value of kStop.
WhenBusy whenBusy(const Arguments& arguments);

/// Before a network client runs in a sandbox without network: opens its hosts, with stored approvals or after asking
/// the user, if this client can ask. A denial is remembered, and the command runs without. Sets `note` to what the
/// model should know. Nothing: the command may run now.
std::optional<NeedsInput> offerNetwork(Sandboxes& sandboxes, const Call& call, const SandboxPointer& sandbox,
                                       const std::vector<std::string>& command, std::string& note);

/// The first parameter of nearly every tool.
inline constexpr Parameter kSandboxId{.name = "sandbox_id",
                                      .required = true,
                                      .description = "Required: the id that sandbox_create returned.",
                                      .alias = "session_id"};

}  // namespace caisson::mcp
