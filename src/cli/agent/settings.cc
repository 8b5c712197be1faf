#include "cli/agent/settings.h"

#include <algorithm>
#include <optional>

#include "base/safe_text.h"
#include "base/text.h"
#include "cli/agent/secret_text.h"
#include "cli/agent/settings_writer.h"
#include "policy/document/document.h"
#include "policy/import/import.h"

namespace caisson::cli {
namespace {

using policy::Node;
using KeyPath = std::vector<std::string>;
using Patterns = std::span<const std::string_view>;

/// What a server may have. Not `env`, `headers` and the like, whose values are keys as a rule.
constexpr std::string_view kServerKeys[] = {"alwaysAllow",
                                            "alwaysLoad",
                                            "args",
                                            "autoApprove",
                                            "available_tools",
                                            "bundled",
                                            "cmd",
                                            "command",
                                            "cwd",
                                            "description",
                                            "disabled",
                                            "disabled_tools",
                                            "display_name",
                                            "enabled",
                                            "enabled_tools",
                                            "excludeTools",
                                            "httpUrl",
                                            "includeTools",
                                            "name",
                                            "required",
                                            "startup_timeout_ms",
                                            "startup_timeout_sec",
                                            "timeout",
                                            "tool_timeout_sec",
                                            "tools",
                                            "transport",
                                            "trust",
                                            "type",
                                            "uri",
                                            "url"};

/// Whether `*` in the pattern can stand for parts of the key so that both are equal.
bool matchesKey(std::string_view pattern, std::string_view key) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == key;
  const std::string_view end = pattern.substr(star + 1);
  return key.size() + 1 >= pattern.size() && key.starts_with(pattern.substr(0, star)) && key.ends_with(end);
}

enum class KeyMatch { none, above, value, plain_word, below, whole };

/// How the path relates to one pattern.
KeyMatch matchPattern(std::string_view pattern, const KeyPath& path) {
  const bool plain = pattern.starts_with('=');
  if (plain) pattern.remove_prefix(1);
  const std::vector<std::string_view> parts = split(pattern, '/');
  const bool open = parts.back() == "**" || parts.back() == "!";
  const std::size_t named = parts.size() - (open ? 1 : 0);
  for (std::size_t i = 0; i < std::min(named, path.size()); ++i)
    if (!matchesKey(parts[i], path[i])) return KeyMatch::none;
  if (path.size() < named) return KeyMatch::above;
  if (open) return parts.back() == "!" ? KeyMatch::whole : KeyMatch::below;
  return path.size() > named ? KeyMatch::none : plain ? KeyMatch::plain_word : KeyMatch::value;
}

KeyMatch matchPath(Patterns patterns, const KeyPath& path) {
  KeyMatch best = KeyMatch::none;
  for (const std::string_view pattern : patterns) best = std::max(best, matchPattern(pattern, path));
  return best;
}

bool isScalar(const Node& node) { return node.type != Node::Type::table && node.type != Node::Type::list; }

bool hasTable(const Node& node) {
  return node.type == Node::Type::table ||
         std::ranges::any_of(node.items, [](const Node& item) { return hasTable(item); });
}

/// A choice among words of the agent, or the name of a variable.
bool isPlainWord(const Node& node) {
  if (node.type != Node::Type::text || node.text.size() > 64) return false;
  const bool lower_case = node.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_") == std::string::npos;
  return lower_case || node.text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
}

/// Whether the value of `name` may be copied, by the name.
bool isSecretValue(std::string_view name, const Node& node) {
  if (!isSecretName(name)) return false;
  switch (node.type) {
    case Node::Type::null:
    case Node::Type::boolean: return false;
    case Node::Type::integer:
    case Node::Type::floating: return lowered(name).find("token") == std::string::npos;  // a number of tokens
    case Node::Type::text: return !node.text.empty();
    case Node::Type::list: return !node.items.empty();
    case Node::Type::table: return !node.members.empty();
  }
  return true;
}

/// {"name": "X_API_KEY", "value": "..."}
bool namesSecretInside(const Node& table) {
  return std::ranges::any_of(table.members, [](const auto& member) {
    return member.second.type == Node::Type::text &&
           (member.first == "name" || member.first == "key" || member.first == "header" ||
            member.first == "variable") &&
           isSecretName(member.second.text);
  });
}

/// An argument after which a secret follows: `--api-key`, or the bare name of one.
bool announcesSecret(const Node& item) {
  if (item.type != Node::Type::text) return false;
  if (item.text.starts_with('-')) return item.text.find('=') == std::string::npos && isSecretName(item.text);
  constexpr std::string_view kBare[] = {"apikey", "api_key", "api-key",      "token", "password",
                                        "secret", "bearer",  "access_token", "auth",  "authorization"};
  return std::ranges::find(kBare, lowered(trimmed(item.text, ":= "))) != std::end(kBare);
}

std::string shownPath(const KeyPath& path) {
  std::string text;
  for (const std::string& key : path) {
    const bool secret = key.size() > 100 || holdsSecret(key, TextKind::settings);
    text.append(text.empty() ? "" : ".").append(secret ? "..." : safeLine(key));
  }
  return text;
}

class SettingsCleaner {
 public:
  explicit SettingsCleaner(const SettingsFile& file) : file_(file) {}

  Node clean(const Node& table, const KeyPath& path) {
    Node result = Node::ofType(Node::Type::table, 0);
    for (const auto& [key, value] : table.members) {
      KeyPath below = path;
      below.push_back(key);
      if (auto kept = cleanMember(key, value, below)) result.members.emplace_back(key, std::move(*kept));
    }
    return result;
  }

  std::vector<std::string> left_out;

 private:
  std::optional<Node> cleanMember(const std::string& key, const Node& value, const KeyPath& path) {
    if (holdsSecret(key, TextKind::settings)) return leaveOut(path);
    const KeyMatch server = matchPath(file_.servers, path);
    if (server == KeyMatch::value) return cleanServers(value, path);
    const KeyMatch match = matchPath(file_.keys, path);
    switch (match) {
      case KeyMatch::plain_word: return isPlainWord(value) ? std::optional(value) : leaveOut(path);
      case KeyMatch::value: return hasTable(value) ? cleanBelow(value, path) : cleanValue(key, value, path);
      case KeyMatch::below: return cleanValue(key, value, path);
      case KeyMatch::whole: return cleanWhole(key, value, path);
      case KeyMatch::above: return cleanBelow(value, path);
      case KeyMatch::none: break;
    }
    return server == KeyMatch::above ? cleanBelow(value, path) : leaveOut(path);
  }

  /// A table, or a list of tables, some of whose keys are allowed.
  std::optional<Node> cleanBelow(const Node& value, const KeyPath& path) {
    if (value.type == Node::Type::table) return clean(value, path);
    if (value.type != Node::Type::list) return leaveOut(path);
    Node result = Node::ofType(Node::Type::list, 0);
    for (const Node& item : value.items) {
      if (item.type == Node::Type::table) {
        result.items.push_back(clean(item, path));
      } else {
        leaveOut(path);
      }
    }
    return result;
  }

  std::optional<Node> cleanWhole(const std::string& key, const Node& value, const KeyPath& path) {
    SettingsCleaner inner(file_);
    auto kept = inner.cleanValue(key, value, path);
    return kept && inner.left_out.empty() ? std::move(kept) : leaveOut(path);
  }

  std::optional<Node> cleanServers(const Node& value, const KeyPath& path) {
    if (value.type == Node::Type::table) return isCleanServer(value, path) ? std::optional(value) : leaveOut(path);
    if (value.type != Node::Type::list) return leaveOut(path);
    Node result = Node::ofType(Node::Type::list, 0);
    for (const Node& item : value.items) {
      if (item.type == Node::Type::table && isCleanServer(item, path)) {
        result.items.push_back(item);
      } else {
        leaveOut(path);
      }
    }
    return result;
  }

  bool isCleanServer(const Node& server, const KeyPath& path) {
    for (const auto& [key, value] : server.members) {
      const bool empty =
          value.type == Node::Type::null || (!isScalar(value) && value.items.empty() && value.members.empty());
      if (empty) continue;
      if (std::ranges::find(kServerKeys, key) == std::end(kServerKeys)) return false;
      KeyPath below = path;
      below.push_back(key);
      if (!cleanWhole(key, value, below)) {
        left_out.pop_back();  // the server is named
        return false;
      }
    }
    return true;
  }

  /// Everything below is allowed, except secrets.
  std::optional<Node> cleanValue(std::string_view name, const Node& value, const KeyPath& path) {
    if (isSecretValue(name, value)) return leaveOut(path);
    if (value.type == Node::Type::text && holdsSecret(value.text, TextKind::settings)) return leaveOut(path);
    if (value.type == Node::Type::list) return cleanList(value, path);
    if (value.type == Node::Type::table) return cleanTable(value, path);
    return value;
  }

  std::optional<Node> cleanTable(const Node& table, const KeyPath& path) {
    if (namesSecretInside(table)) return leaveOut(path);
    Node result = Node::ofType(Node::Type::table, 0);
    for (const auto& [key, value] : table.members) {
      KeyPath below = path;
      below.push_back(key);
      if (holdsSecret(key, TextKind::settings)) {
        leaveOut(below);
      } else if (auto kept = cleanValue(key, value, below)) {
        result.members.emplace_back(key, std::move(*kept));
      }
    }
    return result;
  }

  /// A table in a list, such as a hook, is kept as a whole or not at all.
  std::optional<Node> cleanList(const Node& list, const KeyPath& path) {
    Node result = Node::ofType(Node::Type::list, 0);
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const Node& item = list.items[i];
      if (announcesSecret(item)) {
        leaveOut(path);
        ++i;
        continue;
      }
      if (item.type == Node::Type::text && isUserFlag(item.text) && i + 1 < list.items.size() &&
          list.items[i + 1].text.find(':') != std::string::npos) {
        leaveOut(path);
        ++i;
        continue;
      }
      auto kept = isScalar(item) ? cleanValue("", item, path) : cleanWhole("", item, path);
      if (kept) result.items.push_back(std::move(*kept));
    }
    return result;
  }

  /// `-u name:password` of curl and similar programs.
  static bool isUserFlag(std::string_view text) { return text == "-u" || text == "--user"; }

  std::nullopt_t leaveOut(const KeyPath& path) {
    std::string text = shownPath(path);
    if (std::ranges::find(left_out, text) == left_out.end()) left_out.push_back(std::move(text));
    return std::nullopt;
  }

  const SettingsFile& file_;
};

}  // namespace

std::expected<CleanSettings, std::string> cleanSettings(const SettingsFile& file, std::string_view text) {
  const bool json = file.format == SettingsFormat::json;
  const policy::Format format = json                                  ? policy::Format::json
                                : file.format == SettingsFormat::toml ? policy::Format::toml
                                                                      : policy::Format::yaml;
  if (trimmed(text, " \t\r\n").empty()) return CleanSettings{};
  const auto document = policy::readText(json ? policy::withoutComments(text) : std::string(text), format, "");
  // The reader's error may quote the text.
  if (!document)
    return std::unexpected(std::string("it cannot be read as ") + (json                             ? "JSON"
                                                                   : format == policy::Format::toml ? "TOML"
                                                                                                    : "YAML"));
  SettingsCleaner cleaner(file);
  const Node kept = cleaner.clean(document->root, {});
  CleanSettings result{.text = writeSettings(kept, file.format), .left_out = std::move(cleaner.left_out)};
  return result;
}

}  // namespace caisson::cli
