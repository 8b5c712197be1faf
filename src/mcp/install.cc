#include "mcp/install.h"

#include <algorithm>

#include "mcp/kept_json.h"
#include "policy/document/document.h"

namespace caisson::mcp {
namespace {

constexpr std::string_view kTomlTable = "[mcp_servers.caisson]";

Error refusal(const AgentHost& host, std::string reason, const std::vector<std::string>& line) {
  return {.stage = Stage::usage,
          .call = "mcp install",
          .object = std::string(host.title),
          .reason = std::move(reason),
          .hint = "put this in by hand: " + entryFor(host, line)};
}

OrderedJson jsonEntry(const AgentHost& host, const std::vector<std::string>& line) {
  if (host.shape == EntryShape::line) return {{"type", "local"}, {"command", line}, {"enabled", true}};
  OrderedJson entry = OrderedJson::object();
  if (host.shape == EntryShape::typed) entry["type"] = "stdio";
  entry["command"] = line.front();
  entry["args"] = std::vector<std::string>(line.begin() + 1, line.end());
  return entry;
}

std::string write(const OrderedJson& value, int indent) {
  return value.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
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

bool isSame(const policy::Node& one, const policy::Node& other) {
  const auto same_member = [](const auto& member, const auto& counterpart) {
    return member.first == counterpart.first && isSame(member.second, counterpart.second);
  };
  return one.type == other.type && one.boolean == other.boolean && one.integer == other.integer &&
         one.floating == other.floating && one.text == other.text &&
         std::ranges::equal(one.items, other.items, isSame) &&
         std::ranges::equal(one.members, other.members, same_member);
}

/// The table of the server in a whole file; null if there is none.
const policy::Node* tomlServer(const policy::Document& document) {
  const policy::Node* servers = document.root.find("mcp_servers");
  return servers == nullptr ? nullptr : servers->find("caisson");
}

Result<std::string> withTomlEntry(const AgentHost& host, std::string_view before,
                                  const std::vector<std::string>& line) {
  const auto read = [](std::string_view text) { return policy::readText(text, policy::Format::toml, "config.toml"); };
  const std::string entry = tomlEntry(line);
  const auto wanted = read(entry);
  if (!wanted) return std::unexpected(refusal(host, "the entry cannot be written as TOML", line));
  const auto earlier = read(before);
  if (!earlier) return std::unexpected(refusal(host, "it cannot be read as TOML: " + earlier.error().message(), line));
  if (const policy::Node* there = tomlServer(*earlier)) {
    if (isSame(*there, *tomlServer(*wanted))) return std::string(before);
    return std::unexpected(refusal(host, "there is another [mcp_servers.caisson] in it already", line));
  }
  std::string text(before);
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  if (!text.empty()) text += '\n';
  text += entry;
  // A table that is written inline cannot be extended by another one.
  const auto after = read(text);
  const policy::Node* there = after ? tomlServer(*after) : nullptr;
  if (there == nullptr || !isSame(*there, *tomlServer(*wanted)))
    return std::unexpected(refusal(host, "its `mcp_servers` is written in a form that cannot be extended", line));
  return text;
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
  return write(OrderedJson{{host.key, OrderedJson{{"caisson", jsonEntry(host, line)}}}}, -1);
}

Result<std::string> withEntry(const AgentHost& host, std::string_view before, const std::vector<std::string>& line) {
  if (host.shape == EntryShape::toml) return withTomlEntry(host, before, line);
  auto read = readKept(before);
  if (!read) return std::unexpected(refusal(host, std::move(read.error()), line));
  OrderedJson& whole = *read;
  const std::string key(host.key);
  if (!whole.contains(key)) whole[key] = OrderedJson::object();
  if (!whole[key].is_object()) return std::unexpected(refusal(host, "its `" + key + "` is not an object", line));
  const OrderedJson entry = jsonEntry(host, line);
  if (whole[key].contains("caisson")) {
    if (whole[key]["caisson"] == entry) return std::string(before);
    return std::unexpected(refusal(host, "there is another server named caisson in it already", line));
  }
  whole[key]["caisson"] = entry;
  return write(whole, 2) + "\n";
}

}  // namespace caisson::mcp
