#include "policy/import/mount.h"

#include <algorithm>
#include <array>
#include <optional>

namespace caisson::policy {

namespace {

std::string lowerCase(std::string text) {
  for (char& letter : text) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  return text;
}

/// What Docker takes for false; everything else keeps a mount read-only.
bool isFalse(const std::string& value) {
  const std::string lower = lowerCase(value);
  return lower == "false" || lower == "f" || lower == "0";
}

bool isReadOnlyName(const std::string& name) { return name == "readonly" || name == "ro" || name == "read_only"; }

/// Names in lower case. Those of engines, of compose files and of Docker's own objects.
bool hasNoCounterpart(const std::string& name) {
  constexpr std::array kPrefixes = {"bind-", "volume-", "tmpfs-", "image-"};
  constexpr std::array kNames = {"consistency",   "external",    "z",      "u",     "chown", "relabel",
                                 "idmap",         "bind",        "volume", "tmpfs", "image", "bindoptions",
                                 "volumeoptions", "tmpfsoptions"};
  return std::ranges::find(kNames, name) != kNames.end() ||
         std::ranges::any_of(kPrefixes, [&](const char* prefix) { return name.starts_with(prefix); });
}

bool setOption(ContainerMount& mount, const std::string& key, const std::string& value) {
  const std::string name = lowerCase(key);
  if (name == "type") {
    mount.type = lowerCase(value);
  } else if (name == "source" || name == "src") {
    mount.source = value;
  } else if (name == "target" || name == "dst" || name == "destination") {
    mount.target = value;
  } else if (isReadOnlyName(name)) {
    mount.read_only = mount.read_only || !isFalse(value);
  } else if (name == "rw") {
    mount.read_only = mount.read_only || isFalse(value);
  } else if (hasNoCounterpart(name)) {
    mount.ignored.push_back(key);
  } else {
    return false;
  }
  return true;
}

std::unexpected<std::string> unknownOption(const std::string& option) {
  return std::unexpected("\"" + option + "\" is not an option of a mount");
}

/// Splits at commas outside of quotes: a field that begins with a quote ends with one, and `""` in it is a quote.
std::vector<std::string> splitFields(const std::string& text) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool quote = text[at] == '"';
    if (quoted && quote && at + 1 < text.size() && text[at + 1] == '"') {
      fields.back() += text[at++];
    } else if (quote && (quoted || fields.back().empty())) {
      quoted = !quoted;
    } else if (text[at] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += text[at];
    }
  }
  return fields;
}

/// The position of the next colon outside of a variable such as `${localEnv:HOME}`.
std::size_t findColon(const std::string& text, std::size_t from) {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (text[at] == ':') return at;
    if (text[at] == '$' && at + 1 < text.size() && text[at + 1] == '{') {
      at = text.find('}', at);
      if (at == std::string::npos) return at;
    }
  }
  return std::string::npos;
}

ParsedMount parseMountObject(const Node& table) {
  ContainerMount mount;
  for (const auto& [key, value] : table.members) {
    const std::string name = lowerCase(key);
    const bool is_text = value.type == Node::Type::text;
    std::string text = value.text;
    if (value.type == Node::Type::boolean) text = value.boolean ? "true" : "false";
    if (value.type == Node::Type::integer) text = std::to_string(value.integer);
    if (!is_text && !isReadOnlyName(name) && name != "rw" && !hasNoCounterpart(name))
      return std::unexpected("\"" + key + "\" of a mount: expected a known name with a string");
    if (!setOption(mount, key, text)) return unknownOption(key);
  }
  return mount;
}

}  // namespace

ParsedMount parseMountOptions(const std::string& text) {
  ContainerMount mount;
  for (const std::string& field : splitFields(text)) {
    const std::size_t equals = field.find('=');
    if (field.empty()) continue;
    if (!setOption(mount, field.substr(0, equals), equals == std::string::npos ? "" : field.substr(equals + 1)))
      return unknownOption(field);
  }
  return mount;
}

ParsedMount parseVolume(const std::string& text) {
  ContainerMount mount;
  const std::size_t first = findColon(text, 0);
  if (first == std::string::npos) return ContainerMount{.type = "volume", .source = text};
  mount.source = text.substr(0, first);
  mount.type = mount.source.find('/') == std::string::npos && !mount.source.starts_with("${") ? "volume" : "bind";
  const std::size_t second = findColon(text, first + 1);
  mount.target = text.substr(first + 1, second == std::string::npos ? second : second - first - 1);
  if (second == std::string::npos) return mount;
  constexpr std::array kIgnored = {"z",    "cached", "delegated", "consistent", "default",    "nocopy",
                                   "copy", "shared", "rshared",   "slave",      "rslave",     "private",
                                   "u",    "bind",   "rbind",     "rprivate",   "unbindable", "runbindable",
                                   "exec", "noexec", "dev",       "nodev",      "suid",       "nosuid"};
  for (const std::string& option : splitFields(text.substr(second + 1))) {
    const std::string name = lowerCase(option);
    if (isReadOnlyName(name)) {
      mount.read_only = true;
    } else if (name == "o") {  // podman: changes go to an overlay and not to the directory
      mount.read_only = true;
      mount.ignored.push_back(option);
    } else if (std::ranges::find(kIgnored, name) != kIgnored.end()) {
      mount.ignored.push_back(option);
    } else if (!name.empty() && name != "rw") {
      return unknownOption(option);
    }
  }
  return mount;
}

ParsedMount parseMountEntry(const Node& entry) {
  if (entry.type == Node::Type::table) return parseMountObject(entry);
  if (entry.type != Node::Type::text) return std::unexpected("expected a string or a table for each mount");
  const std::size_t sign = entry.text.find_first_of("=,:/");
  const bool options = sign != std::string::npos && (entry.text[sign] == '=' || entry.text[sign] == ',');
  return options ? parseMountOptions(entry.text) : parseVolume(entry.text);
}

}  // namespace caisson::policy
