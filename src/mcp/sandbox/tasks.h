// Commands as tasks. A task is a background command of its session, which keeps the command's state and output: any
// server of the user can serve it, also after the one that started it was killed. The id names sandbox and command and
// is authenticated with a key of the user, so it can't be guessed from a sandbox's id.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "mcp/sandbox/sandboxes.h"
#include "mcp/server/features.h"

namespace caisson::mcp {

/// What a task id names.
struct TaskReference {
  std::string sandbox;
  std::uint32_t number = 0;  ///< of the background command
  bool takes_input = false;  ///< its standard input is left open
};

/// The id of a task. An error if the key can be neither read nor created.
Result<std::string> sealTaskId(const TaskReference& task);
/// Nothing for an id that no server of this user made.
std::optional<TaskReference> openTaskId(const std::string& id);

struct TaskOptions {
  std::chrono::milliseconds wait{0};  ///< a command that ends within this time is answered with its result
  std::string note;                   ///< for the model
};

/// Starts the command. Nothing if the sandbox has no background commands (landlock tier).
std::optional<Outcome> startTask(Sandboxes& sandboxes, Call& call, const SandboxPointer& sandbox,
                                 const ExecRequest& request, const TaskOptions& options);

// The methods of Features.
std::expected<Task, RpcError> readTask(Sandboxes& sandboxes, const Call& call, const std::string& id);
std::optional<RpcError> updateTask(Sandboxes& sandboxes, const std::string& id, const Json& answers);
std::optional<RpcError> cancelTask(Sandboxes& sandboxes, const std::string& id);

}  // namespace caisson::mcp
