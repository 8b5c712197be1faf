// Tasks on the wire: the extension of 2026-07-28, and the form that 2025-11-25 had in its core.
#pragma once

#include "mcp/server/features.h"

namespace caisson::mcp {

/// The answer to the call that created the task.
Json createdTask(const Task& task, ProtocolRevision revision);
/// The answer to tasks/get, and the parameters of notifications/tasks: with result, error or input requests.
Json describeTask(const Task& task, ProtocolRevision revision);

/// The error for a client that did not declare the extension.
RpcError missingTasks();

/// The parameters of a notification for the subscription `id`.
Json tagged(Json params, const Json& id);

}  // namespace caisson::mcp
