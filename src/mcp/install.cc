#include "mcp/install.h"

#include <nlohmann/json.hpp>

namespace caisson::mcp {
namespace {

using Ordered = nlohmann::ordered_json;  // keeps the order of the user's file

constexpr std::string_view kTomlTable = "[mcp_servers.caisson]";

Error refusal(const AgentHost& host, std::string reason, const std::string& program) {
  return {.stage = Stage::usage,
          .call = "mcp install",
          .object = std::string(host.file),
          .reason = std::move(reason),
          .hint = "put this in by hand: " + entryFor(host, program)};
}

Ordered jsonEntry(const AgentHost& host, const std::string& program) {
  Ordered entry = Ordered::object();
  if (host.name == "claude-code" || host.name == "vscode") entry["type"] = "stdio";
  entry["command"] = program;
  entry["args"] = Ordered::array({"mcp"});
  // VS Code starts servers in any directory; the others in the project or with its path in the environment.
  if (host.name == "vscode") entry["args"] = Ordered::array({"mcp", "--workspace", "${workspaceFolder}"});
  return entry;
}

std::string write(const Ordered& value, int indent) {
  return value.dump(indent, ' ', false, Ordered::error_handler_t::replace);
}

/// A basic TOML string. Does not escape control characters: program paths have none.
std::string tomlText(const std::string& text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + "\"";
}

std::string tomlEntry(const std::string& program) {
  return std::string(kTomlTable) + "\ncommand = " + tomlText(program) +
         "\nargs = [\"mcp\"]\nstartup_timeout_sec = 30\ntool_timeout_sec = 600\n";
}

/// The lines of the existing table, up to the next one.
std::string_view tomlTableIn(std::string_view text) {
  const std::size_t begin = text.find(kTomlTable);
  if (begin == std::string_view::npos) return {};
  const std::size_t next = text.find("\n[", begin);
  return text.substr(begin, next == std::string_view::npos ? next : next + 1 - begin);
}

Result<std::string> withTomlEntry(const AgentHost& host, std::string_view before, const std::string& program) {
  const std::string entry = tomlEntry(program);
  const std::string_view there = tomlTableIn(before);
  if (!there.empty()) {
    if (there.starts_with(entry)) return std::string(before);
    return std::unexpected(refusal(host, "there is another [mcp_servers.caisson] in it already", program));
  }
  std::string text(before);
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  if (!text.empty()) text += '\n';
  return text + entry;
}

}  // namespace

std::span<const AgentHost> agentHosts() { return kAgentHosts; }

const AgentHost* findAgentHost(std::string_view name) {
  for (const AgentHost& host : kAgentHosts)
    if (host.name == name) return &host;
  return nullptr;
}

std::string entryFor(const AgentHost& host, const std::string& program) {
  if (host.key.empty()) return tomlEntry(program);
  return write(Ordered{{host.key, Ordered{{"caisson", jsonEntry(host, program)}}}}, -1);
}

Result<std::string> withEntry(const AgentHost& host, std::string_view before, const std::string& program) {
  if (host.key.empty()) return withTomlEntry(host, before, program);
  Ordered whole = Ordered::object();
  if (before.find_first_not_of(" \t\r\n") != std::string_view::npos) {
    whole = Ordered::parse(before.begin(), before.end(), nullptr, false);
    if (!whole.is_object()) return std::unexpected(refusal(host, "it is not plain JSON (comments?)", program));
  }
  const std::string key(host.key);
  if (!whole.contains(key)) whole[key] = Ordered::object();
  if (!whole[key].is_object()) return std::unexpected(refusal(host, "its `" + key + "` is not an object", program));
  const Ordered entry = jsonEntry(host, program);
  if (whole[key].contains("caisson")) {
    if (whole[key]["caisson"] == entry) return std::string(before);
    return std::unexpected(refusal(host, "there is another server named caisson in it already", program));
  }
  whole[key]["caisson"] = entry;
  return write(whole, 2) + "\n";
}

}  // namespace caisson::mcp
