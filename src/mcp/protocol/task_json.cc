#include "mcp/protocol/task_json.h"

#include <array>
#include <ctime>

#include "base/time_text.h"

namespace caisson::mcp {
namespace {

std::string_view nameOf(Task::Status status) {
  switch (status) {
    case Task::Status::working: return "working";
    case Task::Status::input_required: return "input_required";
    case Task::Status::completed: return "completed";
    case Task::Status::failed: return "failed";
    case Task::Status::cancelled: return "cancelled";
  }
  return "failed";
}

/// The members that every form has.
Json membersOf(const Task& task, ProtocolRevision revision) {
  const bool modern = revision == ProtocolRevision::modern;
  Json value{{"taskId", task.id},
             {"status", nameOf(task.status)},
             {"createdAt", utcText(task.created)},
             {"lastUpdatedAt", utcText(task.updated)},
             {modern ? "ttlMs" : "ttl", task.ttl_ms},
             {modern ? "pollIntervalMs" : "pollInterval", task.poll_ms}};
  if (!task.message.empty()) value["statusMessage"] = task.message;
  return value;
}

}  // namespace

Json createdTask(const Task& task, ProtocolRevision revision) {
  if (revision == ProtocolRevision::legacy) return {{"task", membersOf(task, revision)}};
  Json value = membersOf(task, revision);
  value["resultType"] = "task";
  return value;
}

Json describeTask(const Task& task, ProtocolRevision revision) {
  Json value = membersOf(task, revision);
  if (!task.details.is_null()) value["_meta"] = task.details;
  if (revision == ProtocolRevision::legacy) return value;
  if (task.status == Task::Status::completed) {
    value["result"] = task.result;
    value["result"]["resultType"] = "complete";
  }
  if (task.status == Task::Status::failed) {
    value["error"] = {{"code", task.error.code}, {"message", task.error.message}};
    if (!task.error.data.is_null()) value["error"]["data"] = task.error.data;
  }
  if (task.status == Task::Status::input_required) {
    Json& requests = value["inputRequests"] = Json::object();
    for (const auto& [key, request] : task.requests)
      requests[key] = Json{{"method", request.method}, {"params", request.params}};
  }
  return value;
}

RpcError missingTasks() {
  return {code::kMissingCapability,
          "the client did not declare the extension " + std::string(kTasksExtension),
          {{"requiredCapabilities", {{"extensions", {{kTasksExtension, Json::object()}}}}}}};
}

Json tagged(Json params, const Json& id) {
  if (params.is_null()) params = Json::object();
  params["_meta"][meta::kSubscriptionId] = id;
  return params;
}

RpcError unknownTask() { return {code::kInvalidParams, "there is no task with this id, or its time is over", {}}; }

std::expected<Task, RpcError> Features::readTask(const Call& /*call*/, const std::string& /*id*/) {
  return std::unexpected(unknownTask());
}

std::optional<RpcError> Features::updateTask(const Call& /*call*/, const std::string& /*id*/, const Json& /*answers*/) {
  return unknownTask();
}

std::optional<RpcError> Features::cancelTask(const Call& /*call*/, const std::string& /*id*/) { return unknownTask(); }

}  // namespace caisson::mcp
