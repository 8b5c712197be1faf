#include "mcp/sandbox/resources.h"

#include "mcp/protocol/results.h"
#include "mcp/protocol/uri.h"

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

}  // namespace

std::string fileUri(const Sandbox& sandbox, std::string_view path) {
  constexpr std::string_view kWorkspace = "/workspace/";
  if (path.starts_with(kWorkspace)) path.remove_prefix(kWorkspace.size());
  while (path.starts_with("./")) path.remove_prefix(2);
  return std::string(kScheme) + sandbox.id() + "/fs/" + encodePercent(path);
}

std::string outputUri(const Sandbox& sandbox, std::string_view exec_id, std::string_view stream) {
  return std::string(kScheme) + sandbox.id() + "/exec/" + std::string(exec_id) + "/" + std::string(stream);
}

std::string auditUri(const Sandbox& sandbox) { return std::string(kScheme) + sandbox.id() + "/audit"; }

Json listResources(Sandboxes& sandboxes) {
  Json list = Json::array();
  const auto add = [&](std::string uri, std::string name, std::string title, std::string_view description) {
    list.push_back({{"uri", std::move(uri)},
                    {"name", std::move(name)},
                    {"title", std::move(title)},
                    {"description", description},
                    {"mimeType", "application/json"}});
  };
  add(std::string(kAll), "sandboxes", "All sandboxes", "The sandboxes of this server and their commands.");
  for (const SandboxPointer& sandbox : sandboxes.all()) {
    const std::string& id = sandbox->id();
    add(std::string(kScheme) + id + "/info", id, "Sandbox " + id,
        "One sandbox: its workspace, its commands, how long it will live.");
    add(fileUri(*sandbox, ""), id + "/fs", "Files of " + id, "What is in the sandbox's /workspace, with addresses.");
    add(auditUri(*sandbox), id + "/audit", "Record of " + id,
        "What is on record about the sandbox: commands, how they ended, what was refused.");
  }
  return list;
}

Json listTemplates() {
  const auto entry = [](std::string_view uri, std::string_view name, std::string_view description,
                        std::string_view type) {
    Json value{{"uriTemplate", uri}, {"name", name}, {"description", description}};
    if (!type.empty()) value["mimeType"] = type;
    return value;
  };
  return Json::array(
      {entry("caisson://{sandbox_id}/info", "sandbox", "One sandbox.", "application/json"),
       entry("caisson://{sandbox_id}/fs/{+path}", "file",
             "A file of the sandbox's /workspace, or what is in a directory of it.", ""),
       entry("caisson://{sandbox_id}/exec/{exec_id}/stdout", "stdout",
             "Everything that is kept of a command's standard output.", "text/plain"),
       entry("caisson://{sandbox_id}/exec/{exec_id}/stderr", "stderr",
             "Everything that is kept of a command's standard error.", "text/plain"),
       entry("caisson://{sandbox_id}/audit", "audit",
             "What is on record about a sandbox: commands, how they ended, what was refused. The last 500 events.",
             "application/json")});
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
  if (part.starts_with(kExec)) return readOutputContent(sandboxes, call, **sandbox, uri, part.substr(kExec.size()));
  constexpr std::string_view kFiles = "fs/";
  if (part.starts_with(kFiles)) return readFileContent(sandboxes, call, **sandbox, uri, part.substr(kFiles.size()));
  if (part == "audit") return readAuditContent(call, **sandbox, uri);
  return resourceNotFound(call, uri);
}

}  // namespace caisson::mcp
