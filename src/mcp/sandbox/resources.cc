#include "mcp/sandbox/resources.h"

#include <charconv>

#include "base/percent.h"
#include "base/text.h"
#include "mcp/protocol/results.h"

namespace caisson::mcp {
namespace {

constexpr std::string_view kScheme = "caisson://";
constexpr std::string_view kAll = "caisson://sandboxes";
constexpr std::string_view kFiles = "/fs/", kRoot = "/root/";

/// Parses `offset=N&limit=N`, in any order; false for anything else.
bool parseRange(std::string_view query, FileAddress& address) {
  for (const std::string_view part : split(query, '&')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view text = part.substr(equals + 1);
    std::uint64_t number = 0;
    const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem != std::errc() || stop != text.data() + text.size() || number > INT64_MAX) return false;
    if (part.starts_with("offset=")) {
      address.offset = number;
    } else if (part.starts_with("limit=")) {
      address.limit = number;
    } else {
      return false;
    }
  }
  return true;
}

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
  if (path == kWorkspace.substr(0, kWorkspace.size() - 1)) path = "";
  while (path.starts_with("./")) path.remove_prefix(2);
  if (!path.starts_with('/'))
    return std::string(kScheme) + sandbox.id() + std::string(kFiles) + encodePercent(path, "/");
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return std::string(kScheme) + sandbox.id() + std::string(kRoot) + encodePercent(path, "/");
}

std::optional<FileAddress> parseFileUri(std::string_view uri) {
  if (!uri.starts_with(kScheme)) return std::nullopt;
  uri.remove_prefix(kScheme.size());
  const std::size_t slash = std::min(uri.find('/'), uri.size());
  FileAddress address{.sandbox_id = std::string(uri.substr(0, slash))};
  uri.remove_prefix(slash);
  const bool from_root = uri.starts_with(kRoot);
  if (!from_root && !uri.starts_with(kFiles)) return std::nullopt;
  uri.remove_prefix(from_root ? kRoot.size() : kFiles.size());
  const std::size_t question = uri.find('?');
  if (question != std::string_view::npos && !parseRange(uri.substr(question + 1), address)) return std::nullopt;
  auto path = decodePercent(uri.substr(0, question));
  if (!path || path->starts_with('/')) return std::nullopt;  // one path has one address
  while (path->ends_with('/')) path->pop_back();
  address.path = from_root ? "/" + *path : path->empty() ? "." : *std::move(path);
  return address;
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
    add(fileUri(*sandbox, "/"), id + "/root", "Root directory of " + id,
        "What is in the sandbox's root directory, with addresses: /tmp, the home and the others.");
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
             "A file of the sandbox's /workspace, or what is in a directory of it. Add ?offset=N&limit=N for a part of "
             "a file that is larger than 1 MiB.",
             ""),
       entry("caisson://{sandbox_id}/root/{+path}", "file from the root",
             "The same for any other path that commands in the sandbox see, such as tmp/report.html.", ""),
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
  if (const auto address = parseFileUri(uri)) return readFileContent(sandboxes, call, **sandbox, uri, *address);
  if (part == "audit") return readAuditContent(call, **sandbox, uri);
  return resourceNotFound(call, uri);
}

}  // namespace caisson::mcp
