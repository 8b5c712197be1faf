#include "mcp/sandbox/workspace.h"

#include <filesystem>
#include <system_error>

#include "base/deceptive_text.h"
#include "base/percent.h"
#include "base/shell_quote.h"
#include "sys/home_directory.h"

namespace caisson::mcp {
namespace {

Error refusal(const std::string& path, std::string reason, std::string hint) {
  return {.stage = Stage::usage,
          .call = "workspace_path",
          .object = path.substr(0, 300),
          .reason = std::move(reason),
          .hint = std::move(hint)};
}

std::string canonical(const std::string& path) {
  std::error_code problem;
  const auto result = std::filesystem::canonical(path, problem);
  return problem || !std::filesystem::is_directory(result, problem) ? "" : result.string();
}

bool isAllowed(const std::string& path, const std::vector<std::string>& directories) {
  for (const std::string& directory : directories)
    if (isWithin(path, directory)) return true;
  return false;
}

}  // namespace

std::vector<std::string> rootsOf(const Call& call) {
  std::vector<std::string> paths;
  const Json* answer = call.input("roots");
  const Json* roots = answer == nullptr ? nullptr : find(*answer, "roots");
  if (roots == nullptr || !roots->is_array()) return paths;
  for (const Json& root : *roots)
    if (std::string path = canonical(pathOfFileUri(textAt(root, "uri").value_or("")));
        !path.empty() && !sys::holdsHome(path))
      paths.push_back(std::move(path));
  return paths;
}

std::optional<NeedsInput> askForRoots(const Call& call) {
  if (!call.can("roots") || call.input("roots") != nullptr || call.state == "no-roots") return std::nullopt;
  return NeedsInput{{{"roots", {"roots/list", Json::object()}}}, "roots"};
}

std::string pathOfFileUri(std::string_view uri) {
  constexpr std::string_view kScheme = "file://";
  if (!uri.starts_with(kScheme)) return {};
  uri.remove_prefix(kScheme.size());
  if (uri.starts_with("localhost/")) uri.remove_prefix(9);
  if (!uri.starts_with('/')) return {};
  return decodePercent(uri).value_or("");
}

bool isWithin(std::string_view path, std::string_view directory) {
  if (directory.empty() || !path.starts_with(directory)) return false;
  return path.size() == directory.size() || directory == "/" || path[directory.size()] == '/';
}

WorkspaceChoice chooseWorkspace(const Call& call, const std::string& asked, const OperatorBounds& bounds,
                                std::vector<ApprovalRequest>& needed) {
  if (bounds.no_workspace) return std::string();
  if (asked.empty()) {
    if (!bounds.directories.empty()) return bounds.directories.front();
    if (bounds.workspaces) return std::string();
    if (auto question = askForRoots(call)) return *std::move(question);
    const auto roots = rootsOf(call);
    return roots.empty() ? std::string() : roots.front();
  }
  if (!asked.starts_with('/')) return refusal(asked, "an absolute path is expected", "");
  const std::string path = canonical(asked);
  if (path.empty()) return refusal(asked, "there is no such directory", "leave it out for an empty workspace");
  if (isAllowed(path, bounds.directories)) return path;
  if (bounds.workspaces) return refusal(path, "the operator of this server did not open it", "");
  if (isAllowed(path, rootsOf(call))) return path;
  if (!isReadable(path)) return refusal(path, "its name contains characters that hide what they are", "");
  const char* const home = sys::holdsHome(path) ? ", which holds your home directory," : "";
  needed.push_back(
      {.what = "path:" + path,
       .message = "Show the directory " + path + home +
                  " to a new sandbox? Commands in it can read all of it. What they change is kept apart from the real "
                  "files.",
       .remedy = "the server can be started with `caisson mcp --workspace " + shellQuoted(path) + "`"});
  return path;
}

}  // namespace caisson::mcp
