#include "cli/agent/settings_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "base/json_writer.h"

namespace caisson::cli {
namespace {

using policy::Node;

/// The shortest text that reads back as the same number, with a mark that tells it from an integer.
std::string floatingText(double value) {
  std::array<char, 64> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
  std::string text(digits.begin(), end);
  if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

void writeJsonValue(JsonWriter& json, const Node& node) {
  switch (node.type) {
    case Node::Type::null: json.null(); return;
    case Node::Type::boolean: json.boolean(node.boolean); return;
    case Node::Type::integer: json.number(node.integer); return;
    case Node::Type::floating: json.raw(std::isfinite(node.floating) ? floatingText(node.floating) : "null"); return;
    case Node::Type::text: json.string(node.text); return;
    case Node::Type::list:
      json.beginArray();
      for (const Node& item : node.items) writeJsonValue(json, item);
      json.end();
      return;
    case Node::Type::table:
      json.beginObject();
      for (const auto& [key, value] : node.members) {
        json.key(key);
        writeJsonValue(json, value);
      }
      json.end();
  }
}

std::string settingsString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append("\\").append(1, c);
    } else if (byte < 0x20 || byte == 0x7F) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      out.append("\\u00").append(1, kDigits[byte >> 4U]).append(1, kDigits[byte & 0xFU]);
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string settingsValue(const Node& node) {
  std::string out;
  switch (node.type) {
    case Node::Type::null: return "\"\"";
    case Node::Type::boolean: return node.boolean ? "true" : "false";
    case Node::Type::integer: return std::to_string(node.integer);
    case Node::Type::floating: return floatingText(node.floating);
    case Node::Type::text: return settingsString(node.text);
    case Node::Type::list:
      for (const Node& item : node.items) out.append(out.empty() ? "[" : ", ").append(settingsValue(item));
      return out.empty() ? "[]" : out + "]";
    case Node::Type::table: break;
  }
  for (const auto& [key, value] : node.members)
    out.append(out.empty() ? "{ " : ", ").append(settingsString(key)).append(" = ").append(settingsValue(value));
  return out.empty() ? "{}" : out + " }";
}

/// Tables with a header each, as agents that change a single value later expect.
void writeTomlTables(std::string& out, const Node& table, const std::string& header) {
  for (const auto& [key, value] : table.members)
    if (value.type != Node::Type::table) out += settingsString(key) + " = " + settingsValue(value) + "\n";
  for (const auto& [key, value] : table.members) {
    if (value.type != Node::Type::table) continue;
    const std::string name = header + (header.empty() ? "" : ".") + settingsString(key);
    out += "\n[" + name + "]\n";
    writeTomlTables(out, value, name);
  }
}

}  // namespace

std::string writeSettings(const Node& table, SettingsFormat format) {
  if (format == SettingsFormat::toml) {
    std::string out;
    writeTomlTables(out, table, "");
    return out;
  }
  JsonWriter json(JsonWriter::Layout::indented);
  writeJsonValue(json, table);
  return json.text() + "\n";
}

}  // namespace caisson::cli
