#include "mcp/conformance/fixture.h"

#include <array>
#include <chrono>

#include "mcp/conformance/fixture_lists.h"
#include "mcp/conformance/fixture_tasks.h"
#include "mcp/protocol/results.h"

namespace caisson::mcp {
namespace {

using std::chrono::milliseconds;

Json fixed(std::string_view text) { return parseJson(text).value_or(Json::array()); }

Json embedded(std::string_view uri, std::string_view type, std::string_view text) {
  return {{"type", "resource"}, {"resource", {{"uri", uri}, {"mimeType", type}, {"text", text}}}};
}

InputRequest form(std::string_view message, std::string_view field, std::string_view type) {
  return {"elicitation/create",
          {{"message", message},
           {"requestedSchema",
            {{"type", "object"}, {"properties", {{field, {{"type", type}}}}}, {"required", Json::array({field})}}}}};
}

InputRequest sampling(std::string_view prompt) {
  return {"sampling/createMessage",
          {{"messages", Json::array({{{"role", "user"}, {"content", {{"type", "text"}, {"text", prompt}}}}})},
           {"maxTokens", 100}}};
}

InputRequest roots() { return {"roots/list", Json::object()}; }

/// One field of an accepted form.
std::string answerOf(const Json& answer, std::string_view field) {
  const Json* content = findObject(answer, "content");
  return content == nullptr ? "" : textAt(*content, field).value_or("");
}

Json sampled(const Json& answer) {
  const Json* content = findObject(answer, "content");
  return textResult("LLM response: " + (content == nullptr ? "" : textAt(*content, "text").value_or("")));
}

Json elicited(const Json& answer) {
  const Json* content = find(answer, "content");
  return textResult("Elicitation completed: action=" + textAt(answer, "action").value_or("?") +
                    ", content=" + (content == nullptr ? "{}" : writeJson(*content)));
}

/// Asks once, then returns the result that `finish` computes from the answer.
Outcome askOnce(Call& call, const std::string& key, InputRequest request, Json (*finish)(const Json&),
                std::string state = {}) {
  const Json* answer = call.input(key);
  if (answer == nullptr) return NeedsInput{{{key, std::move(request)}}, std::move(state)};
  return finish(*answer);
}

Outcome withProgress(Call& call) {
  for (const int done : {0, 50, 100}) {
    call.progress(done, 100, "");
    if (done < 100 && !call.pause(milliseconds(50))) break;
  }
  return textResult("Progress was reported.");
}

Outcome withLog(Call& call) {
  for (const char* words : {"Tool execution started", "Tool processing data", "Tool execution completed"}) {
    call.log("info", "fixture", words);
    if (!call.pause(milliseconds(50))) break;
  }
  return textResult("Messages were logged.");
}

/// The answer is sent after the stream was closed: the client must fetch it.
Outcome reconnection(Call& call) {
  call.channel->disconnect();
  call.pause(milliseconds(200));
  return textResult("The stream was closed and taken up again.");
}

Outcome multipleInputs(Call& call) {
  for (const char* key : {"user_name", "greeting", "client_roots"})
    if (call.input(key) == nullptr)
      return NeedsInput{{{"user_name", form("What is your name?", "name", "string")},
                         {"greeting", sampling("Generate a greeting")},
                         {"client_roots", roots()}},
                        "all"};
  return textResult("All three answers are here.");
}

Outcome multiRound(Call& call) {
  if (call.state == "second" && call.input("step2") != nullptr)
    return textResult("Your colour is " + answerOf(*call.input("step2"), "color") + ".");
  if (call.state == "first" && call.input("step1") != nullptr)
    return NeedsInput{{{"step2", form("Step 2: What is your favorite color?", "color", "string")}}, "second"};
  return NeedsInput{{{"step1", form("Step 1: What is your name?", "name", "string")}}, "first"};
}

Outcome stateful(Call& call) {
  if (call.state == "confirm" && call.input("confirm") != nullptr) return textResult("state-ok");
  return NeedsInput{{{"confirm", form("Please confirm", "ok", "boolean")}}, "confirm"};
}

/// Asks only for what the client supports.
Outcome capable(Call& call) {
  NeedsInput needs{.state = "capable"};
  if (call.can("elicitation")) needs.requests.emplace("name", form("What is your name?", "name", "string"));
  if (call.can("sampling")) needs.requests.emplace("greeting", sampling("Generate a greeting"));
  if (call.state == "capable" || needs.requests.empty()) return textResult("Done.");
  return needs;
}

Outcome elicitation(Call& call) {
  const Json* arguments = findObject(call.params, "arguments");
  const std::string message = arguments == nullptr ? "" : textAt(*arguments, "message").value_or("");
  return askOnce(call, "form",
                 {"elicitation/create",
                  {{"message", message},
                   {"requestedSchema",
                    {{"type", "object"},
                     {"properties", {{"username", {{"type", "string"}}}, {"email", {{"type", "string"}}}}},
                     {"required", Json::array({"username", "email"})}}}}},
                 elicited);
}

Outcome samplingTool(Call& call) {
  const Json* arguments = findObject(call.params, "arguments");
  return askOnce(call, "completion", sampling(arguments == nullptr ? "" : textAt(*arguments, "prompt").value_or("")),
                 sampled);
}

Outcome greet(Call& call) {
  return askOnce(call, "user_name", form("What is your name?", "name", "string"),
                 [](const Json& answer) { return textResult("Hello, " + answerOf(answer, "name") + "!"); });
}

Outcome mixed(Call& /*call*/) {
  return Json{{"content", Json::array({textContent("Multiple content types test:"),
                                       Json{{"type", "image"}, {"data", kPng}, {"mimeType", "image/png"}},
                                       embedded("test://mixed-content-resource", "application/json",
                                                R"({"test":"data","value":123})")})}};
}

struct Entry {
  std::string_view name;
  Outcome (*perform)(Call& call);
};

constexpr Entry kTools[] = {
    {"test_simple_text", [](Call&) -> Outcome { return textResult("This is a simple text response for testing."); }},
    {"test_image_content",
     [](Call&) -> Outcome {
       return Json{{"content", Json::array({{{"type", "image"}, {"data", kPng}, {"mimeType", "image/png"}}})}};
     }},
    {"test_audio_content",
     [](Call&) -> Outcome {
       return Json{{"content", Json::array({{{"type", "audio"}, {"data", kWav}, {"mimeType", "audio/wav"}}})}};
     }},
    {"test_embedded_resource",
     [](Call&) -> Outcome {
       return Json{{"content", Json::array({embedded("test://embedded-resource", "text/plain",
                                                     "This is an embedded resource content.")})}};
     }},
    {"test_multiple_content_types", mixed},
    {"test_tool_with_logging", withLog},
    {"test_logging_tool", withLog},
    {"test_error_handling",
     [](Call&) -> Outcome { return errorResult("This tool intentionally returns an error for testing"); }},
    {"test_tool_with_progress", withProgress},
    {"test_reconnection", reconnection},
    {"test_sampling", samplingTool},
    {"test_missing_capability",
     [](Call& call) -> Outcome { return askOnce(call, "completion", sampling("Say something"), sampled); }},
    {"test_elicitation", elicitation},
    {"test_streaming_elicitation", greet},
    {"test_elicitation_sep1034_defaults",
     [](Call& call) -> Outcome {
       return askOnce(call, "form", {"elicitation/create", fixed(kDefaultsForm)}, elicited);
     }},
    {"test_elicitation_sep1330_enums",
     [](Call& call) -> Outcome { return askOnce(call, "form", {"elicitation/create", fixed(kEnumsForm)}, elicited); }},
    {"test_input_required_result_elicitation", greet},
    {"test_input_required_result_sampling",
     [](Call& call) -> Outcome {
       return askOnce(call, "capital_question", sampling("What is the capital of France?"), sampled);
     }},
    {"test_input_required_result_list_roots",
     [](Call& call) -> Outcome {
       return askOnce(call, "client_roots", roots(), [](const Json& answer) {
         const Json* list = find(answer, "roots");
         return textResult("Roots: " + (list == nullptr ? "none" : writeJson(*list)));
       });
     }},
    {"test_input_required_result_request_state", stateful},
    {"test_input_required_result_tampered_state", stateful},
    {"test_input_required_result_multiple_inputs", multipleInputs},
    {"test_input_required_result_multi_round", multiRound},
    {"test_input_required_result_capabilities", capable},
    {"test_mirrored_parameter", [](Call&) -> Outcome { return textResult("Both agree."); }},
    {"json_schema_2020_12_tool", [](Call&) -> Outcome { return textResult("The schema is what matters."); }},
};

class Fixture final : public Features {
 public:
  void connect(Announcer& announcer) override { announcer_ = &announcer; }

  [[nodiscard]] Json serverInfo() const override { return {{"name", "caisson-conformance"}, {"version", "1"}}; }
  [[nodiscard]] Json capabilities(ProtocolRevision revision) const override {
    Json all{{"tools", {{"listChanged", true}}},
             {"prompts", {{"listChanged", true}}},
             {"resources", {{"listChanged", true}, {"subscribe", true}}},
             {"completions", Json::object()}};
    if (revision == ProtocolRevision::legacy) all["logging"] = Json::object();
    if (revision == ProtocolRevision::modern) all["extensions"] = {{kTasksExtension, Json::object()}};
    return all;
  }

  [[nodiscard]] Json tools() override {
    Json list = Json::array();
    for (const std::string_view name : kPlainTools)
      list.push_back({{"name", name},
                      {"description", "A fixture of the conformance suite."},
                      {"inputSchema", {{"type", "object"}, {"properties", Json::object()}}}});
    for (Json& tool : fixed(kToolsWithArguments)) list.push_back(std::move(tool));
    return list;
  }
  [[nodiscard]] Json prompts() override { return fixed(kPrompts); }
  [[nodiscard]] Json resources() override { return fixed(kResources); }
  [[nodiscard]] Json resourceTemplates() override { return fixed(kTemplates); }

  Outcome callTool(Call& call) override {
    const std::string name = textAt(call.params, "name").value_or("");
    if (name == "test_trigger_tool_change" || name == "test_trigger_prompt_change") {
      announcer_->changed(name == "test_trigger_tool_change" ? Announcer::Change::tools : Announcer::Change::prompts);
      return textResult("Announced.");
    }
    for (const Entry& entry : kTools)
      if (entry.name == name) return entry.perform(call);
    if (auto outcome = tasks_.call(call, name)) return *std::move(outcome);
    return RpcError{code::kInvalidParams, "unknown tool: " + name, {}};
  }
  std::expected<Task, RpcError> readTask(const Call& /*call*/, const std::string& id) override {
    return tasks_.read(id);
  }
  std::optional<RpcError> updateTask(const Call& /*call*/, const std::string& id, const Json& answers) override {
    return tasks_.update(id, answers);
  }
  std::optional<RpcError> cancelTask(const Call& /*call*/, const std::string& id) override { return tasks_.cancel(id); }

  Outcome getPrompt(Call& call) override;
  Outcome readResource(Call& call) override;
  Outcome complete(Call& /*call*/) override {
    return Json{{"completion", {{"values", Json::array({"hello", "world"})}, {"total", 2}, {"hasMore", false}}}};
  }

 private:
  Announcer* announcer_ = nullptr;
  FixtureTasks tasks_;
};

Json prompt(std::initializer_list<Json> contents) {
  Json messages = Json::array();
  for (const Json& content : contents) messages.push_back({{"role", "user"}, {"content", content}});
  return {{"messages", std::move(messages)}};
}

Outcome Fixture::getPrompt(Call& call) {
  const std::string name = textAt(call.params, "name").value_or("");
  const Json* given = findObject(call.params, "arguments");
  const auto argument = [given](std::string_view key) {
    return given == nullptr ? std::string() : textAt(*given, key).value_or("");
  };
  if (name == "test_simple_prompt") return prompt({textContent("This is a simple prompt for testing.")});
  if (name == "test_prompt_with_arguments")
    return prompt(
        {textContent("Prompt with arguments: arg1='" + argument("arg1") + "', arg2='" + argument("arg2") + "'")});
  if (name == "test_prompt_with_embedded_resource")
    return prompt({embedded(argument("resourceUri"), "text/plain", "Embedded resource content for testing."),
                   textContent("Please process the embedded resource above.")});
  if (name == "test_prompt_with_image")
    return prompt({Json{{"type", "image"}, {"data", kPng}, {"mimeType", "image/png"}},
                   textContent("Please analyze the image above.")});
  if (name == "test_input_required_result_prompt") {
    const Json* answer = call.input("user_context");
    if (answer == nullptr)
      return NeedsInput{{{"user_context", form("What context should the prompt use?", "context", "string")}}, ""};
    return prompt({textContent("Use this context: " + answerOf(*answer, "context"))});
  }
  return RpcError{code::kInvalidParams, "unknown prompt: " + name, {}};
}

Outcome Fixture::readResource(Call& call) {
  const std::string uri = textAt(call.params, "uri").value_or("");
  if (uri == "test://static-text")
    return resourceResult(
        call, {{"uri", uri}, {"mimeType", "text/plain"}, {"text", "This is the content of the static text resource."}});
  if (uri == "test://static-binary")
    return resourceResult(call, {{"uri", uri}, {"mimeType", "image/png"}, {"blob", kPng}});
  if (uri == "test://watched-resource")
    return resourceResult(call, {{"uri", uri}, {"mimeType", "text/plain"}, {"text", "Watched."}});
  constexpr std::string_view kBegin = "test://template/";
  constexpr std::string_view kEnd = "/data";
  if (uri.size() > kBegin.size() + kEnd.size() && uri.starts_with(kBegin) && uri.ends_with(kEnd)) {
    const std::string id = uri.substr(kBegin.size(), uri.size() - kBegin.size() - kEnd.size());
    const Json data{{"id", id}, {"templateTest", true}, {"data", "Data for ID: " + id}};
    return resourceResult(call, {{"uri", uri}, {"mimeType", "application/json"}, {"text", writeJson(data)}});
  }
  return resourceNotFound(call, uri);
}

}  // namespace

std::unique_ptr<Features> makeFixture() { return std::make_unique<Fixture>(); }

}  // namespace caisson::mcp
