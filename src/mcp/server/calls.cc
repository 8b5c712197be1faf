// The part of the server that runs handlers and gets them the requested input.
#include <chrono>
#include <exception>
#include <utility>

#include "mcp/log.h"
#include "mcp/protocol/task_json.h"
#include "mcp/server/server.h"

namespace caisson::mcp {
namespace {

/// How long to wait for a user on an open request (before 2026-07-28). Then an elicitation counts as cancelled, and any
/// other request is an error.
constexpr std::chrono::seconds kTimeout{300};
/// Limit for a handler that never stops asking.
constexpr int kMaxRounds = 128;  // as many as the pages of a long list

constexpr std::pair<std::string_view, std::string_view> kCapabilityOf[] = {
    {"elicitation/create", "elicitation"}, {"sampling/createMessage", "sampling"}, {"roots/list", "roots"}};

/// The capabilities that the questions need but the client did not declare.
Json missingCapabilities(const Call& call, const NeedsInput& needs) {
  Json missing = Json::object();
  for (const auto& [key, request] : needs.requests)
    for (const auto& [method, capability] : kCapabilityOf)
      if (request.method == method && !call.can(capability)) missing[capability] = Json::object();
  return missing;
}

/// Reads the inputs of a 2026-07-28 round; returns an error if they are invalid.
std::optional<RpcError> readInputs(Call& call, const RequestState& states) {
  if (const Json* token = find(call.params, "requestState")) {
    if (token->is_string()) call.state = states.open(token->get_ref<const std::string&>(), call.method, call.params);
    if (!call.state)
      return RpcError{code::kInvalidParams,
                      "params.requestState is not one that this server gave for this request, or it is too old; "
                      "send the request again without it",
                      {}};
  }
  const Json* inputs = find(call.params, "inputResponses");
  if (inputs == nullptr) return std::nullopt;
  const RpcError unusable{code::kInvalidParams, "params.inputResponses must be an object of objects", {}};
  if (!inputs->is_object()) return unusable;
  for (const Json& input : *inputs)
    if (!input.is_object()) return unusable;
  call.inputs = *inputs;
  return std::nullopt;
}

}  // namespace

void Server::dispatch(const std::shared_ptr<Call>& call, Outcome (Features::*handler)(Call&)) {
  const char* required = call->method == "resources/read" ? "uri" : call->method == "completion/complete" ? "" : "name";
  if (*required != 0 && !textAt(call->params, required))
    return fail(*call, {code::kInvalidParams, "params." + std::string(required) + " must be a string", {}});
  if (call->revision == ProtocolRevision::modern) {
    if (const auto error = readInputs(*call, states_)) return fail(*call, *error);
  }
  runInWorker(call, [this, handler](Call& served) { return callHandler(served, handler); });
}

void Server::runInWorker(const std::shared_ptr<Call>& call, std::function<Outcome(Call&)> handler) {
  workers_.runOrCall([this, call, handler = std::move(handler)] {
    if (call->cancelled()) return;
    try {
      answerOutcome(*call, handler(*call));
    } catch (const std::exception& problem) {
      fail(*call, {code::kInternal, std::string("internal error: ") + problem.what(), {}});
    }
    call->client->forget(*call);
  });
}

Outcome Server::callHandler(Call& call, Outcome (Features::*handler)(Call&)) {
  // The name of the tool, prompt or resource only: arguments hold files, commands and secrets.
  const Json* name = find(call.params, "name");
  const Json about{{"method", call.method}, {"name", name != nullptr && name->is_string() ? *name : Json()}};
  writeLog(LogLevel::debug, "request", about);
  const auto began = std::chrono::steady_clock::now();
  try {
    Outcome outcome = settleInputs(call, handler, (features_.*handler)(call));
    Json answered = about;
    const auto* result = std::get_if<Json>(&outcome);
    answered["outcome"] = std::holds_alternative<NeedsInput>(outcome) ? "needs input"
                          : std::holds_alternative<Task>(outcome)     ? "task"
                          : result == nullptr                         ? "protocol error"
                          : booleanAt(*result, "isError") == true     ? "error"
                                                                      : "result";
    answered["milliseconds"] =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began).count();
    writeLog(LogLevel::debug, "answer", answered);
    return outcome;
  } catch (const std::exception& problem) {
    return RpcError{code::kInternal, std::string("internal error: ") + problem.what(), {}};
  }
}

Outcome Server::settleInputs(Call& call, Outcome (Features::*handler)(Call&), Outcome outcome) {
  for (int round = 0; round < kMaxRounds; ++round) {
    const auto* needs = std::get_if<NeedsInput>(&outcome);
    if (needs == nullptr || call.revision == ProtocolRevision::modern) return outcome;
    if (const Json missing = missingCapabilities(call, *needs); !missing.empty())
      return RpcError{
          code::kInvalidRequest, "the client lacks a capability that this needs: " + writeJson(missing), {}};
    Json inputs = Json::object();
    for (const auto& [key, request] : needs->requests) {
      auto response = call.client->ask(call, request.method, request.params, kTimeout);
      if (call.cancelled()) return RpcError{code::kInternal, "cancelled", {}};
      if (response && response->error.is_null() && response->result.is_object()) {
        inputs[key] = std::move(response->result);
      } else if (request.method == "elicitation/create") {
        inputs[key] = Json{{"action", "cancel"}};  // no answer is a denial
      } else {
        return RpcError{code::kInternal, "the client did not answer " + request.method, {}};
      }
    }
    call.state = needs->state;
    call.inputs = std::move(inputs);
    outcome = (features_.*handler)(call);
  }
  return RpcError{code::kInternal, "asked too often", {}};
}

void Server::answerOutcome(Call& call, Outcome outcome) {
  if (const auto* error = std::get_if<RpcError>(&outcome)) return fail(call, *error);
  if (const auto* task = std::get_if<Task>(&outcome)) {
    succeed(call, createdTask(*task, call.revision));
    // The answer of a cancelled call is not sent: no client knows the id, so none could end the task later.
    if (call.cancelled()) (void)features_.cancelTask(call, task->id);
    return;
  }
  if (auto* result = std::get_if<Json>(&outcome)) return succeed(call, std::move(*result));
  const auto& needs = std::get<NeedsInput>(outcome);
  if (Json missing = missingCapabilities(call, needs); !missing.empty())
    return fail(call, {code::kMissingCapability,
                       "the client lacks a capability that this needs",
                       {{"requiredCapabilities", std::move(missing)}}});
  Json requests = Json::object();
  for (const auto& [key, request] : needs.requests)
    requests[key] = Json{{"method", request.method}, {"params", request.params}};
  Json result{{"resultType", "input_required"}};
  if (!requests.empty()) result["inputRequests"] = std::move(requests);
  if (!needs.state.empty() || needs.requests.empty())
    result["requestState"] = states_.seal(needs.state, call.method, call.params);
  succeed(call, std::move(result));
}

}  // namespace caisson::mcp
