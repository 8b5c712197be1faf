#include "mcp/sandbox/features.h"

#include <mutex>
#include <utility>

#include "api/trial.h"
#include "mcp/sandbox/explain.h"
#include "mcp/sandbox/prompts.h"
#include "mcp/sandbox/resources.h"
#include "mcp/sandbox/tasks.h"
#include "mcp/sandbox/tools.h"
#include "mcp/sandbox/workspace.h"
#include "plan/landlock_tier.h"
#include "policy/model.h"

namespace caisson::mcp {
namespace {

constexpr const Tool* kTools[] = {&kCreateTool, &kExecuteTool, &kProcessTool,  &kReadTool,       &kWriteTool,
                                  &kEditTool,   &kUploadTool,  &kDownloadTool, &kCheckpointTool, &kRestoreTool,
                                  &kForkTool,   &kDiffTool,    &kCommitTool,   &kNetworkTool,    &kListTool,
                                  &kInfoTool,   &kDestroyTool};

constexpr std::string_view kInstructions =
    "caisson gives you sandboxes: isolated Linux computers in which every command is safe to run. Begin with "
    "sandbox_create (once per task), run commands with sandbox_execute. The user's project is at /workspace as a "
    "copy-on-write view: nothing you do there changes the user's files until it is committed. There is no network; "
    "sandbox_network asks the user for a host. Commands that take long return an exec_id; go on with sandbox_process. "
    "When "
    "something is denied, sandbox_info tells why and what would allow it.";

/// In the landlock tier there is no mount at /workspace.
std::string instructionsForTier() {
  return "caisson gives you sandboxes in which commands run confined. Begin with sandbox_create (once per task), run "
         "commands with sandbox_execute. The project is a copy: its directory is in the answer of sandbox_create, is "
         "where commands start, and stands for /workspace in the tools; nothing you do there changes the user's files "
         "until it is committed. This host has no namespaces: there are no checkpoints, restore, fork, background "
         "commands or servers, and a command's processes end with it. There is no network; sandbox_network asks the "
         "user for a host. When something is denied, sandbox_info tells why. What the sandboxes do not protect here: " +
         std::string(plan::kLandlockTierLosses);
}

/// The instructions for the model on this host: they say if no sandbox can be started, or only a weaker one.
std::string instructionsFor(const SandboxSettings& settings) {
  auto policy = settings.bounds.policy("");
  const std::string decided = settings.bounds.describe();
  const std::string usual =
      std::string(kInstructions) + (decided.empty() ? "" : " The operator of this server decided: " + decided + ".");
  if (!policy) return usual;
  policy->model().filesystem.workspace.mode = policy::WorkspaceMode::none;
  const Trial trial = tryLaunch(*policy);
  const auto level = trial.layers.find("level");
  if (trial.started && level != trial.layers.end() && level->second == "landlock tier") return instructionsForTier();
  if ((trial.started && trial.rungs.empty()) || !trial.error) return usual;
  Error error = *trial.error;
  std::string hint = std::exchange(error.hint, "");
  if (error.code == ErrorCode::no_user_namespace)
    hint = "start the server as `caisson mcp --allow-weaker landlock`, which protects less; or: " + hint;
  if (!trial.rungs.empty())
    hint = "start the server as `caisson mcp --allow-weaker " + trial.rungs.front() + "`; or: " + hint;
  return "caisson cannot start a sandbox on this host, so every tool that needs one will fail: " + error.message() +
         ". Tell the user" + (hint.empty() ? "." : ", with the remedy: " + hint) +
         " `caisson doctor` explains more. Do not run the commands outside of a sandbox instead without asking.";
}

class SandboxFeatures final : public Features {
 public:
  SandboxFeatures(Sandboxes& sandboxes, std::string version)
      : sandboxes_(sandboxes), version_(std::move(version)), tools_(Json::array()) {
    const OperatorBounds& bounds = sandboxes.settings().bounds;
    for (const Tool* tool : allTools())
      if (bounds.offers(*tool)) tools_.push_back(describeTool(*tool, bounds));
  }

  void connect(Announcer& announcer) override { sandboxes_.connect(announcer); }

  [[nodiscard]] Json serverInfo() const override {
    return {{"name", "caisson"}, {"title", "caisson sandboxes"}, {"version", version_}};
  }
  [[nodiscard]] Json capabilities(ProtocolRevision revision) const override {
    Json all{{"tools", Json::object()},
             {"prompts", Json::object()},
             {"resources", {{"listChanged", true}, {"subscribe", false}}},
             {"completions", Json::object()}};
    if (revision == ProtocolRevision::legacy) {
      all["logging"] = Json::object();
      if (hasTasks())
        all["tasks"] = {{"cancel", Json::object()}, {"requests", {{"tools", {{"call", Json::object()}}}}}};
    } else if (hasTasks()) {
      all["extensions"] = {{kTasksExtension, Json::object()}};
    }
    return all;
  }
  [[nodiscard]] std::string instructions() const override {
    std::call_once(tried_, [this] { instructions_ = instructionsFor(sandboxes_.settings()); });
    return instructions_;
  }

  [[nodiscard]] Json tools() override { return tools_; }
  [[nodiscard]] Json prompts() override { return listPrompts(bounds()); }
  [[nodiscard]] Json resources() override { return offeredOf(listResources(sandboxes_), "uri"); }
  [[nodiscard]] Json resourceTemplates() override { return offeredOf(listTemplates(), "uriTemplate"); }

  Outcome callTool(Call& call) override {
    const std::string name = textAt(call.params, "name").value_or("");
    for (const Tool* tool : allTools()) {
      if (tool->name != name) continue;
      static const Json kNone = Json::object();
      const Json* values = find(call.params, "arguments");
      if (values == nullptr || values->is_null()) values = &kNone;
      if (!values->is_object()) return RpcError{code::kInvalidParams, "params.arguments must be an object", {}};
      if (!bounds().offers(*tool)) return refuse(call, tool->name, notOffered(*tool), *values);
      if (const std::string problem = checkArguments(*tool, *values); !problem.empty()) return errorResult(problem);
      const Json arguments = withoutAliases(*tool, *values);
      if (const auto excess = findExcess(bounds(), *tool, arguments))
        return refuse(call, tool->name, *excess, arguments);
      if (auto question = rootsNeeded(call, arguments)) return *std::move(question);
      const Json within = withoutFixed(bounds(), *tool, arguments);
      if (call.revision == ProtocolRevision::legacy && call.takesTask()) return performAsTask(*tool, call, within);
      return tool->perform(sandboxes_, call, Arguments(within));
    }
    return RpcError{code::kInvalidParams, "unknown tool: " + name, {}};
  }
  std::expected<Task, RpcError> readTask(const Call& call, const std::string& id) override {
    return mcp::readTask(sandboxes_, call, id);
  }
  std::optional<RpcError> updateTask(const Call& /*call*/, const std::string& id, const Json& answers) override {
    return mcp::updateTask(sandboxes_, id, answers);
  }
  std::optional<RpcError> cancelTask(const Call& /*call*/, const std::string& id) override {
    return mcp::cancelTask(sandboxes_, id);
  }
  Outcome getPrompt(Call& call) override { return mcp::getPrompt(bounds(), call); }
  Outcome readResource(Call& call) override {
    const Json uri{{"uri", textAt(call.params, "uri").value_or("")}};
    if (const auto excess = findResourceExcess(bounds(), *textAt(uri, "uri"))) {
      recordExcess(call.method, *excess, uri);
      return RpcError{code::kInvalidParams, excess->reason + "; " + excess->remedy, uri};
    }
    return mcp::readResource(sandboxes_, call);
  }
  Outcome complete(Call& call) override {
    const Json* argument = findObject(call.params, "argument");
    const Json path{{"path", argument == nullptr ? "" : textAt(*argument, "value").value_or("")}};
    if (argument != nullptr && textAt(*argument, "name") == "path") {
      auto excess = findExcess(bounds(), kReadTool, path);
      if (!bounds().offers(kReadTool)) excess = notOffered(kReadTool);
      if (excess) recordExcess(call.method, *excess, path);
      if (excess) return RpcError{code::kInvalidParams, excess->reason + "; " + excess->remedy, {}};
    }
    return completeArgument(sandboxes_, call);
  }

 private:
  [[nodiscard]] const OperatorBounds& bounds() const { return sandboxes_.settings().bounds; }
  /// The question for the client's roots, if the call names a session of another process that may be in one, or one
  /// that does not exist. The roots that a response lists are open from then on.
  std::optional<NeedsInput> rootsNeeded(const Call& call, const Json& arguments) {
    if (!bounds().workspaces) sandboxes_.openRoots(rootsOf(call));
    const auto id = textAt(arguments, "sandbox_id");
    auto question = id && !call.state ? askForRoots(call) : std::nullopt;
    return question && sandboxes_.mayBeInRoot(*id) ? std::move(question) : std::nullopt;
  }
  /// A task is a command, so it goes with the tool for commands.
  [[nodiscard]] bool hasTasks() const { return bounds().offers(kExecuteTool); }
  /// The entries whose address the operator offers.
  [[nodiscard]] Json offeredOf(const Json& entries, std::string_view key) const {
    Json offered = Json::array();
    for (const Json& entry : entries)
      if (!findResourceExcess(bounds(), textAt(entry, key).value_or(""))) offered.push_back(entry);
    return offered;
  }
  /// A client of 2025-11-25 that requested a task understands no other result, so a failure is a protocol error.
  Outcome performAsTask(const Tool& tool, Call& call, const Json& arguments) {
    if (!tool.behaviour.task) return RpcError{code::kMethodNotFound, "this tool does not run as a task", {}};
    Outcome outcome = tool.perform(sandboxes_, call, Arguments(arguments));
    const auto* result = std::get_if<Json>(&outcome);
    if (result == nullptr) return outcome;
    const Json* content = find(*result, "content");
    const bool has_text = content != nullptr && content->is_array() && !content->empty();
    return RpcError{code::kInvalidParams, has_text ? textAt(content->front(), "text").value_or("") : "", {}};
  }

  mutable std::once_flag tried_;
  mutable std::string instructions_;
  Sandboxes& sandboxes_;
  std::string version_;
  Json tools_;
};

}  // namespace

std::span<const Tool* const> allTools() { return kTools; }

Json describeDenial(const OperatorBounds& bounds, const Denial& denial) {
  Json value{{"rule", denial.rule}, {"object", denial.object}, {"operation", denial.operation}};
  value["remedy"] = denial.operation.starts_with("network:") ? networkRemedy(bounds, denial) : denial.remedy;
  if (denial.count > 1) value["count"] = denial.count;
  return value;
}

Json failure(const Call& call, const Error& error) {
  Json value{{"error", error.message()}};
  if (!error.hint.empty()) value["hint"] = error.hint;
  return structuredResult(call, std::move(value), true);
}

double ttlOf(const Sandboxes& sandboxes, const Arguments& arguments) {
  constexpr std::int64_t kUsual = 3600;
  const std::int64_t most = sandboxes.settings().bounds.max_ttl_seconds;
  return static_cast<double>(arguments.integer("timeout_seconds").value_or(std::min(kUsual, most)));
}

Result<void> checkModelsName(std::string_view tool, const std::string& name) {
  if (!name.starts_with("agent-")) return {};
  return fail(plainError(Stage::usage, tool, name,
                         "names that begin with \"agent-\" are reserved for the sessions of `caisson agent`",
                         "choose another name, or leave it out"));
}

WhenBusy whenBusy(const Arguments& arguments) {
  return arguments.flag("stop_processes") ? WhenBusy::stop : WhenBusy::refuse;
}

std::unique_ptr<Features> makeSandboxFeatures(Sandboxes& sandboxes, std::string version) {
  return std::make_unique<SandboxFeatures>(sandboxes, std::move(version));
}

}  // namespace caisson::mcp
