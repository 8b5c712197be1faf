// Completion of sandbox ids, exec ids and paths.
#include <algorithm>

#include "mcp/protocol/results.h"
#include "mcp/sandbox/background.h"
#include "mcp/sandbox/resources.h"

namespace caisson::mcp {
namespace {

Json completion(std::vector<std::string> values, const std::string& begin) {
  constexpr std::size_t kMaxValues = 100;
  std::erase_if(values, [&](const std::string& value) { return !value.starts_with(begin); });
  const std::size_t total = values.size();
  if (values.size() > kMaxValues) values.resize(kMaxValues);
  return {{"completion", {{"values", values}, {"total", total}, {"hasMore", total > values.size()}}}};
}

std::vector<std::string> commandsOf(Sandboxes& sandboxes, Sandbox& sandbox) {
  std::vector<std::string> values;
  for (const auto& execution : sandbox.executions()) values.push_back(execution->id());
  if (const auto started = sandboxes.with(sandbox, [](Session& session) { return session.processes(); }))
    for (const ExecInfo& info : *started) values.push_back(backgroundId(info.exec));
  return values;
}

/// Entries of the directory typed so far; a directory ends with a slash, so that the user can continue.
std::vector<std::string> pathsIn(Sandboxes& sandboxes, Sandbox& sandbox, const std::string& begin) {
  const std::size_t slash = begin.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : begin.substr(0, slash + 1);
  const auto entries = sandboxes.with(sandbox, [&](Session& session) {
    return session.listFiles(directory.empty() ? "." : directory, nullptr, FileReach::sandbox);
  });
  std::vector<std::string> values;
  if (!entries) return values;
  for (const FileEntry& entry : *entries)
    values.push_back(directory + entry.name + (entry.type == "directory" ? "/" : ""));
  return values;
}

}  // namespace

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
    return completion(std::move(values), begin);
  }
  const Json* context = findObject(call.params, "context");
  const Json* given = context == nullptr ? nullptr : findObject(*context, "arguments");
  const auto sandbox = sandboxes.find(given == nullptr ? "" : textAt(*given, "sandbox_id").value_or(""));
  if (sandbox && name == "exec_id") values = commandsOf(sandboxes, **sandbox);
  if (sandbox && name == "path" && begin.find('\0') == std::string::npos) values = pathsIn(sandboxes, **sandbox, begin);
  return completion(std::move(values), begin);
}

}  // namespace caisson::mcp
