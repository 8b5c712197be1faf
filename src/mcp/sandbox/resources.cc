#include "mcp/sandbox/resources.h"

#include "base/utf8.h"
#include "mcp/base64.h"
#include "mcp/results.h"

namespace caisson::mcp {
namespace {

constexpr std::string_view kScheme = "caisson://";
constexpr std::string_view kAll = "caisson://sandboxes";

Json sandboxJson(Sandboxes& sandboxes, const SandboxPointer& sandbox) {
  Json value{{"sandbox_id", sandbox->id()}};
  if (const auto info = sandboxes.with(*sandbox, [](Session& session) { return session.info(); })) {
    value["name"] = info->name;
    value["workspace"] = info->workspace;
    value["expires_in_seconds"] = static_cast<std::int64_t>(info->expires_in);
  }
  Json commands = Json::array();
  for (const auto& execution : sandbox->executions())
    commands.push_back(
        {{"exec_id", execution->id()}, {"command", execution->command()}, {"running", execution->running()}});
  value["commands"] = std::move(commands);
  return value;
}

Json jsonContent(const std::string& uri, const Json& value) {
  return {{"uri", uri}, {"mimeType", "application/json"}, {"text", writeJson(value)}};
}

Json bytesContent(const std::string& uri, const std::string& bytes) {
  if (isUtf8(bytes)) return {{"uri", uri}, {"mimeType", "text/plain"}, {"text", bytes}};
  return {{"uri", uri}, {"mimeType", "application/octet-stream"}, {"blob", encodeBase64(bytes)}};
}

Outcome readOutput(const Call& call, const Sandbox& sandbox, const std::string& uri, std::string_view rest) {
  const std::size_t slash = rest.find('/');
  const auto execution = sandbox.execution(std::string(rest.substr(0, slash)));
  const std::string_view stream = slash == std::string_view::npos ? "" : rest.substr(slash + 1);
  if (execution == nullptr || (stream != "stdout" && stream != "stderr"))
    return resourceNotFound(call, uri, "there is no such output");
  const auto view = execution->view();
  return resourceResult(call, bytesContent(uri, stream == "stdout" ? view.out : view.err));
}

Json completion(std::vector<std::string> values, const std::string& begin) {
  constexpr std::size_t kMost = 100;
  std::erase_if(values, [&](const std::string& value) { return !value.starts_with(begin); });
  const std::size_t total = values.size();
  if (values.size() > kMost) values.resize(kMost);
  return {{"completion", {{"values", values}, {"total", total}, {"hasMore", total > values.size()}}}};
}

}  // namespace

Json listResources(Sandboxes& sandboxes) {
  Json list = Json::array();
  list.push_back({{"uri", kAll},
                  {"name", "sandboxes"},
                  {"title", "All sandboxes"},
                  {"description", "The sandboxes of this server and their commands."},
                  {"mimeType", "application/json"}});
  for (const SandboxPointer& sandbox : sandboxes.all())
    list.push_back({{"uri", std::string(kScheme) + sandbox->id() + "/info"},
                    {"name", sandbox->id()},
                    {"title", "Sandbox " + sandbox->id()},
                    {"description", "One sandbox: its workspace, its commands, how long it will live."},
                    {"mimeType", "application/json"}});
  return list;
}

Json listTemplates() {
  return Json::array({{{"uriTemplate", "caisson://{sandbox_id}/info"},
                       {"name", "sandbox"},
                       {"description", "One sandbox."},
                       {"mimeType", "application/json"}},
                      {{"uriTemplate", "caisson://{sandbox_id}/exec/{exec_id}/stdout"},
                       {"name", "stdout"},
                       {"description", "Everything that is kept of a command's standard output."},
                       {"mimeType", "text/plain"}},
                      {{"uriTemplate", "caisson://{sandbox_id}/exec/{exec_id}/stderr"},
                       {"name", "stderr"},
                       {"description", "Everything that is kept of a command's standard error."},
                       {"mimeType", "text/plain"}}});
}

Outcome readResource(Sandboxes& sandboxes, const Call& call) {
  const std::string uri = textAt(call.params, "uri").value_or("");
  if (uri == kAll) {
    Json list = Json::array();
    for (const SandboxPointer& sandbox : sandboxes.all()) list.push_back(sandboxJson(sandboxes, sandbox));
    return resourceResult(call, jsonContent(uri, {{"sandboxes", std::move(list)}}));
  }
  if (!uri.starts_with(kScheme)) return resourceNotFound(call, uri);
  const std::string_view rest = std::string_view(uri).substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return resourceNotFound(call, uri);
  const auto sandbox = sandboxes.find(std::string(rest.substr(0, slash)));
  if (!sandbox) return resourceNotFound(call, uri, sandbox.error().message());
  const std::string_view part = rest.substr(slash + 1);
  if (part == "info") return resourceResult(call, jsonContent(uri, sandboxJson(sandboxes, *sandbox)));
  constexpr std::string_view kExec = "exec/";
  if (part.starts_with(kExec)) return readOutput(call, **sandbox, uri, part.substr(kExec.size()));
  return resourceNotFound(call, uri);
}

Outcome completeArgument(Sandboxes& sandboxes, const Call& call) {
  const Json* argument = findObject(call.params, "argument");
  const Json* reference = findObject(call.params, "ref");
  if (argument == nullptr || reference == nullptr || !textAt(*argument, "name"))
    return RpcError{code::kInvalidParams, "params.ref and params.argument.name are needed", {}};
  const std::string name = *textAt(*argument, "name");
  const std::string begin = textAt(*argument, "value").value_or("");
  std::vector<std::string> values;
  if (name == "sandbox_id") {
    for (const SandboxPointer& sandbox : sandboxes.all()) values.push_back(sandbox->id());
  } else if (name == "exec_id") {
    const Json* context = findObject(call.params, "context");
    const Json* given = context == nullptr ? nullptr : findObject(*context, "arguments");
    const auto sandbox = sandboxes.find(given == nullptr ? "" : textAt(*given, "sandbox_id").value_or(""));
    if (sandbox)
      for (const auto& execution : (*sandbox)->executions()) values.push_back(execution->id());
  }
  return completion(std::move(values), begin);
}

}  // namespace caisson::mcp
