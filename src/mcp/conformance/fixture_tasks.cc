#include "mcp/conformance/fixture_tasks.h"

#include <cstdlib>

#include "mcp/protocol/results.h"
#include "mcp/protocol/secret.h"
#include "mcp/protocol/task_json.h"

namespace caisson::mcp {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShort{500};

InputRequest question(std::string_view message, std::string_view field, std::string_view type) {
  return {"elicitation/create",
          {{"message", message},
           {"requestedSchema",
            {{"type", "object"}, {"properties", {{field, {{"type", type}}}}}, {"required", Json::array({field})}}}}};
}

std::string argumentOf(const Call& call, std::string_view name) {
  const Json* arguments = findObject(call.params, "arguments");
  return arguments == nullptr ? "" : textAt(*arguments, name).value_or("");
}

milliseconds secondsOf(const Call& call) {
  const Json* arguments = findObject(call.params, "arguments");
  const Json* seconds = arguments == nullptr ? nullptr : find(*arguments, "seconds");
  if (seconds == nullptr || !seconds->is_number()) return milliseconds(0);
  return milliseconds(static_cast<std::int64_t>(std::min(3600.0, std::max(0.0, seconds->get<double>())) * 1000));
}

}  // namespace

std::optional<Outcome> FixtureTasks::call(Call& call, const std::string& tool) {
  const bool takes_task = call.revision == ProtocolRevision::modern && call.takesTask();
  if (tool == "greet") return textResult("Hello, " + argumentOf(call, "name") + "!");
  Entry entry;
  if (tool == "slow_compute") {
    entry.duration = secondsOf(call);
    entry.task.result = textResult("Computed: " + argumentOf(call, "label"));
    if (takes_task && entry.duration > milliseconds(0)) return add(std::move(entry));
    call.pause(entry.duration);
    return entry.task.result;
  }
  if (tool == "failing_job") {
    entry.duration = milliseconds(1000);
    entry.task.result = errorResult("This job always fails.");
  } else if (tool == "protocol_error_job") {
    entry.duration = kShort;
    entry.end = Task::Status::failed;
    entry.task.error = {code::kInternal, "the job ended in a protocol error", {}};
  } else if (tool == "confirm_delete") {
    entry.task.requests.emplace("confirm",
                                question("Delete " + argumentOf(call, "filename") + "?", "confirm", "boolean"));
    entry.task.result = textResult("Deleted: " + argumentOf(call, "filename"));
  } else if (tool == "multi_input") {
    entry.task.requests.emplace("first", question("The first name?", "name", "string"));
    entry.task.requests.emplace("second", question("The second name?", "name", "string"));
    entry.task.result = textResult("Both names are known.");
  } else if (tool == "test_tool_with_task") {
    const Json* answer = call.input("user_name");
    if (takes_task && answer == nullptr)
      return NeedsInput{{{"user_name", question("What is your name?", "name", "string")}}, "name"};
    const Json* content = answer == nullptr ? nullptr : findObject(*answer, "content");
    entry.duration = kShort;
    entry.task.result = textResult("Hello, " + (content == nullptr ? "" : textAt(*content, "name").value_or("")) + "!");
  } else {
    return std::nullopt;
  }
  if (!takes_task) return missingTasks();
  return add(std::move(entry));
}

Outcome FixtureTasks::add(Entry entry) {
  entry.task.id = randomDigits(32);
  entry.task.created = entry.task.updated = Task::Clock::now();
  entry.task.ttl_ms = 600'000;
  entry.task.poll_ms = 200;
  if (!entry.task.requests.empty()) entry.task.status = Task::Status::input_required;
  const std::lock_guard lock(mutex_);
  entries_.push_back(std::move(entry));
  if (entries_.size() > kKept) entries_.pop_front();
  return entries_.back().task;
}

FixtureTasks::Entry* FixtureTasks::find(const std::string& id) {
  for (Entry& entry : entries_)
    if (entry.task.id == id) return &entry;
  return nullptr;
}

void FixtureTasks::advance(Entry& entry) {
  Task& task = entry.task;
  if (task.status != Task::Status::working || Task::Clock::now() < task.created + entry.duration) return;
  task.status = entry.end;
  task.updated = Task::Clock::now();
}

std::expected<Task, RpcError> FixtureTasks::read(const std::string& id) {
  const std::lock_guard lock(mutex_);
  Entry* entry = find(id);
  if (entry == nullptr) return std::unexpected(unknownTask());
  advance(*entry);
  return entry->task;
}

std::optional<RpcError> FixtureTasks::update(const std::string& id, const Json& answers) {
  const std::lock_guard lock(mutex_);
  Entry* entry = find(id);
  if (entry == nullptr) return unknownTask();
  Task& task = entry->task;
  for (const auto& [key, answer] : answers.items()) task.requests.erase(key);
  if (task.status == Task::Status::input_required && task.requests.empty()) task.status = Task::Status::working;
  return std::nullopt;
}

std::optional<RpcError> FixtureTasks::cancel(const std::string& id) {
  const std::lock_guard lock(mutex_);
  Entry* entry = find(id);
  if (entry == nullptr) return unknownTask();
  advance(*entry);
  if (entry->task.ended()) return std::nullopt;
  entry->task.status = Task::Status::cancelled;
  entry->task.updated = Task::Clock::now();
  return std::nullopt;
}

}  // namespace caisson::mcp
