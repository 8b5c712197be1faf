// Task ids: SANDBOX.bN.MAC, or SANDBOX.iN.MAC if the command takes input.
#include "mcp/protocol/secret.h"
#include "mcp/sandbox/background.h"
#include "mcp/sandbox/tasks.h"

namespace caisson::mcp {
namespace {

constexpr std::size_t kMacDigits = 32;  ///< 128 bits
constexpr std::size_t kMaxId = 160;

Result<std::string> macOf(std::string_view text) {
  const auto key = userSecret("task-key");
  if (!key) return std::unexpected(key.error());
  return hmacSha256(*key, "task " + std::string(text)).substr(0, kMacDigits);
}

}  // namespace

Result<std::string> sealTaskId(const TaskReference& task) {
  const std::string text = task.sandbox + (task.takes_input ? ".i" : ".b") + std::to_string(task.number);
  const auto mac = macOf(text);
  if (!mac) return std::unexpected(mac.error());
  return text + "." + *mac;
}

std::optional<TaskReference> openTaskId(const std::string& id) {
  const std::size_t last = id.rfind('.');
  if (id.size() > kMaxId || last == std::string::npos) return std::nullopt;
  const std::string text = id.substr(0, last);
  const auto mac = macOf(text);
  if (!mac || !sameSecret(*mac, id.substr(last + 1))) return std::nullopt;
  const std::size_t dot = text.rfind('.');
  if (dot == std::string::npos || dot + 2 >= text.size()) return std::nullopt;
  const auto number = backgroundNumber("b" + text.substr(dot + 2));
  if (!number) return std::nullopt;
  return TaskReference{text.substr(0, dot), *number, text[dot + 1] == 'i'};
}

}  // namespace caisson::mcp
