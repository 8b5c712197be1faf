// The part of the server that serves tasks: reading, answering, cancelling, and notifications of their changes.
#include <algorithm>
#include <utility>
#include <vector>

#include "mcp/protocol/task_json.h"
#include "mcp/server/server.h"

namespace caisson::mcp {
namespace {

using std::chrono::milliseconds;

/// How often watched tasks are read.
constexpr milliseconds kWatchEvery{500};
/// tasks/result of 2025-11-25 waits for the end of a task, but not longer than this.
constexpr std::chrono::minutes kMaxWait{10};
constexpr milliseconds kReadEvery{100};
/// How long it waits for a user's answer; then the input of the task ends.
constexpr std::chrono::seconds kAnswerWithin{300};

/// Tasks whose notification would be equal have equal texts.
std::string stateOf(const Task& task) {
  std::string state = std::to_string(static_cast<int>(task.status)) + " " + task.message;
  for (const auto& [key, request] : task.requests) state += " " + key;
  return state;
}

std::string idOf(const Call& call) { return textAt(call.params, "taskId").value_or(""); }

Outcome acknowledge(std::optional<RpcError> problem) {
  if (problem) return *std::move(problem);
  return Json::object();
}

}  // namespace

bool Server::hasTasks(ProtocolRevision revision) const {
  const Json capabilities = features_.capabilities(revision);
  if (revision == ProtocolRevision::legacy) return findObject(capabilities, "tasks") != nullptr;
  const Json* extensions = findObject(capabilities, "extensions");
  return extensions != nullptr && findObject(*extensions, kTasksExtension) != nullptr;
}

bool Server::serveTasks(const std::shared_ptr<Call>& call) {
  Outcome (Server::*handler)(Call&) = nullptr;
  const bool modern = call->revision == ProtocolRevision::modern;
  if (call->method == "tasks/get") handler = &Server::getTask;
  if (call->method == "tasks/cancel") handler = &Server::cancelTask;
  if (call->method == "tasks/update" && modern) handler = &Server::updateTask;
  if (call->method == "tasks/result" && !modern) handler = &Server::awaitTask;
  if (handler == nullptr || !hasTasks(call->revision)) return false;
  if (modern && !call->takesTask()) {
    fail(*call, missingTasks());
  } else if (!textAt(call->params, "taskId")) {
    fail(*call, {code::kInvalidParams, "params.taskId must be a string", {}});
  } else {
    runInWorker(call, [this, handler](Call& served) { return (this->*handler)(served); });
  }
  return true;
}

Outcome Server::getTask(Call& call) {
  const auto task = features_.readTask(call, idOf(call));
  if (!task) return task.error();
  return describeTask(*task, call.revision);
}

Outcome Server::updateTask(Call& call) {
  const Json* answers = findObject(call.params, "inputResponses");
  if (answers == nullptr) return RpcError{code::kInvalidParams, "params.inputResponses must be an object", {}};
  for (const Json& answer : *answers)
    if (!answer.is_object())
      return RpcError{code::kInvalidParams, "params.inputResponses must be an object of objects", {}};
  return acknowledge(features_.updateTask(call, idOf(call), *answers));
}

Outcome Server::cancelTask(Call& call) {
  if (call.revision == ProtocolRevision::modern) return acknowledge(features_.cancelTask(call, idOf(call)));
  // 2025-11-25 rejects the cancellation of a task that ended, and answers with the task.
  const auto task = features_.readTask(call, idOf(call));
  if (!task) return task.error();
  if (task->ended()) return RpcError{code::kInvalidParams, "the task has ended already", {}};
  if (auto problem = features_.cancelTask(call, idOf(call))) return *std::move(problem);
  return getTask(call);
}

std::optional<RpcError> Server::askForTask(Call& call, const Task& task) {
  Json answers = Json::object();
  for (const auto& [key, request] : task.requests) {
    Json params = request.params;
    params["_meta"]["io.modelcontextprotocol/related-task"] = {{"taskId", task.id}};
    auto response = call.client->ask(call, request.method, std::move(params), kAnswerWithin);
    if (call.cancelled()) return RpcError{code::kInternal, "cancelled", {}};
    const bool answered = response && response->error.is_null() && response->result.is_object();
    answers[key] = answered ? std::move(response->result) : Json{{"action", "cancel"}};
  }
  return features_.updateTask(call, task.id, answers);
}

Outcome Server::awaitTask(Call& call) {
  const std::string id = idOf(call);
  const auto deadline = std::chrono::steady_clock::now() + kMaxWait;
  for (;;) {
    auto task = features_.readTask(call, id);
    if (!task) return task.error();
    if (task->status == Task::Status::completed) {
      task->result["_meta"]["io.modelcontextprotocol/related-task"] = {{"taskId", id}};
      return std::move(task->result);
    }
    if (task->status == Task::Status::failed) return task->error;
    if (task->ended()) return RpcError{code::kInternal, "the task was cancelled", {}};
    if (task->status == Task::Status::input_required) {
      if (auto problem = askForTask(call, *task)) return *std::move(problem);
      continue;
    }
    if (std::chrono::steady_clock::now() >= deadline)
      return RpcError{code::kInternal, "the task is still running; request its result again", {}};
    if (!call.pause(kReadEvery)) return RpcError{code::kInternal, "cancelled", {}};
  }
}

void Server::watchTasks() {
  std::unique_lock lock(mutex_);
  while (!ending_) {
    lock.unlock();
    const bool watched = reportTasks();
    lock.lock();
    if (ending_) return;
    if (watched) {
      watch_.wait_for(lock, kWatchEvery);
    } else {
      watch_.wait(lock, [this] {
        return ending_ || std::any_of(listeners_.begin(), listeners_.end(),
                                      [](const Listener& one) { return one.filter.contains("taskIds"); });
      });
    }
  }
}

bool Server::reportTasks() {
  struct Watch {
    std::shared_ptr<Call> call;
    std::string id;
    std::string reported;
  };
  std::vector<Watch> watches;
  {
    const std::lock_guard lock(mutex_);
    listeners_.remove_if([](const Listener& listener) { return listener.call->cancelled(); });
    for (const Listener& listener : listeners_) {
      const Json* ids = find(listener.filter, "taskIds");
      if (ids == nullptr) continue;
      for (const Json& id : *ids) {
        const auto place = listener.reported.find(id.get_ref<const std::string&>());
        watches.push_back(
            {listener.call, id.get<std::string>(), place == listener.reported.end() ? "" : place->second});
      }
    }
  }
  for (const Watch& watch : watches) {
    const auto task = features_.readTask(*watch.call, watch.id);
    if (task && stateOf(*task) != watch.reported)
      watch.call->notify("notifications/tasks", tagged(describeTask(*task, ProtocolRevision::modern), watch.call->id));
    const std::lock_guard lock(mutex_);
    if (ending_) return false;
    for (Listener& listener : listeners_) {
      if (listener.call != watch.call) continue;
      if (task) listener.reported[watch.id] = stateOf(*task);
      // Ended or unknown: nothing more will be reported.
      if (!task || task->ended()) {
        Json& ids = listener.filter["taskIds"];
        std::erase(ids.get_ref<Json::array_t&>(), Json(watch.id));
        if (ids.empty()) listener.filter.erase("taskIds");
      }
    }
  }
  return !watches.empty();
}

}  // namespace caisson::mcp
