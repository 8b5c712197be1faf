#include "mcp/install.h"

#include <nlohmann/json.hpp>

namespace caisson::mcp {
namespace {

using Ordered = nlohmann::ordered_json;  // keeps the order of the user's file

constexpr std::string_view kTomlTable = "[mcp_servers.caisson]";

Error refusal(const AgentHost& host, std::string reason, const std::vector<std::string>& line) {
  return {.stage = Stage::usage,
          .call = "mcp install",
          .object = std::string(host.title),
          .reason = std::move(reason),
          .hint = "put this in by hand: " + entryFor(host, line)};
}

Ordered jsonEntry(const AgentHost& host, const std::vector<std::string>& line) {
  if (host.shape == EntryShape::line) return {{"type", "local"}, {"command", line}, {"enabled", true}};
  Ordered entry = Ordered::object();
  if (host.shape == EntryShape::typed) entry["type"] = "stdio";
  entry["command"] = line.front();
  entry["args"] = std::vector<std::string>(line.begin() + 1, line.end());
  return entry;
}

std::string write(const Ordered& value, int indent) {
  return value.dump(indent, ' ', false, Ordered::error_handler_t::replace);
}

/// A basic TOML string.
std::string tomlText(const std::string& text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string quoted = "\"";
  for (const char letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20 || code == 0x7F) {
      quoted += "\\u00";
      quoted += {kDigits[code >> 4U], kDigits[code & 15U]};
      continue;
    }
    if (letter == '"' || letter == '\\') quoted += '\\';
    quoted += letter;
  }
  return quoted + "\"";
}

std::string tomlEntry(const std::vector<std::string>& line) {
  std::string args;
  for (std::size_t at = 1; at < line.size(); ++at) args += (at == 1 ? "" : ", ") + tomlText(line[at]);
  return std::string(kTomlTable) + "\ncommand = " + tomlText(line.front()) + "\nargs = [" + args +
         "]\nstartup_timeout_sec = 30\ntool_timeout_sec = 600\n";
}

/// The lines of the existing table, up to the next one.
std::string_view tomlTableIn(std::string_view text) {
  const std::size_t begin = text.find(kTomlTable);
  if (begin == std::string_view::npos) return {};
  const std::size_t next = text.find("\n[", begin);
  return text.substr(begin, next == std::string_view::npos ? next : next + 1 - begin);
}

Result<std::string> withTomlEntry(const AgentHost& host, std::string_view before,
                                  const std::vector<std::string>& line) {
  const std::string entry = tomlEntry(line);
  const std::string_view there = tomlTableIn(before);
  if (!there.empty()) {
    if (there.starts_with(entry)) return std::string(before);
    return std::unexpected(refusal(host, "there is another [mcp_servers.caisson] in it already", line));
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

std::string entryFor(const AgentHost& host, const std::vector<std::string>& line) {
  if (host.shape == EntryShape::toml) return tomlEntry(line);
  return write(Ordered{{host.key, Ordered{{"caisson", jsonEntry(host, line)}}}}, -1);
}

Result<std::string> withEntry(const AgentHost& host, std::string_view before, const std::vector<std::string>& line) {
  if (host.shape == EntryShape::toml) return withTomlEntry(host, before, line);
  Ordered whole = Ordered::object();
  if (before.find_first_not_of(" \t\r\n") != std::string_view::npos) {
    whole = Ordered::parse(before.begin(), before.end(), nullptr, false);
    if (!whole.is_object()) return std::unexpected(refusal(host, "it is not plain JSON (comments?)", line));
  }
  const std::string key(host.key);
  if (!whole.contains(key)) whole[key] = Ordered::object();
  if (!whole[key].is_object()) return std::unexpected(refusal(host, "its `" + key + "` is not an object", line));
  const Ordered entry = jsonEntry(host, line);
  if (whole[key].contains("caisson")) {
    if (whole[key]["caisson"] == entry) return std::string(before);
    return std::unexpected(refusal(host, "there is another server named caisson in it already", line));
  }
  whole[key]["caisson"] = entry;
  return write(whole, 2) + "\n";
}

}  // namespace caisson::mcp
