#include "cli/agent/settings.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>

#include "base/safe_text.h"
#include "base/text.h"
#include "base/utf8.h"
#include "cli/agent/argument_secrets.h"
#include "cli/agent/fenced_blocks.h"
#include "cli/agent/front_matter.h"
#include "cli/agent/secret_nodes.h"
#include "cli/agent/secret_shapes.h"
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

bool hasTable(const Node& node) {
  return node.type == Node::Type::table ||
         std::ranges::any_of(node.items, [](const Node& item) { return hasTable(item); });
}

/// A choice among words of the agent, or the name of a variable.
bool isPlainWord(const Node& node) {
  if (node.type != Node::Type::text || node.text.size() > 64 || holdsSecret(node.text, TextKind::settings))
    return false;
  const bool lower_case = node.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz-_") == std::string::npos;
  return lower_case || node.text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos;
}

/// A table of choices, such as which tools need consent.
bool hasOnlyPlainWords(const Node& node) {
  if (node.type == Node::Type::table)
    return std::ranges::all_of(node.members, [](const auto& member) { return hasOnlyPlainWords(member.second); });
  return node.type == Node::Type::boolean || isPlainWord(node);
}

/// A value that may be a command, unless its name says that it is a text for readers or models.
bool isSecretText(std::string_view name, std::string_view text) {
  constexpr std::string_view kProse[] = {"prompt", "description", "instructions", "rule", "content", "title"};
  return holdsSecret(text, TextKind::settings) || (!isOneOf(name, kProse) && givesVariable(commandWords(text)));
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
  explicit SettingsCleaner(SettingsFile file) : file_(file) {}

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
    if (value.type == Node::Type::table) return cleanPart(value, path);
    if (value.type != Node::Type::list) return leaveOut(path);
    Node result = Node::ofType(Node::Type::list, 0);
    for (const Node& item : value.items) {
      auto kept = item.type == Node::Type::table ? cleanPart(item, path) : leaveOut(path);
      if (!kept) continue;
      if (kept->members.empty() && !item.members.empty()) {  // {} would be an error, or mean something else
        leaveOut(path);
      } else {
        result.items.push_back(std::move(*kept));
      }
    }
    return result;
  }

  /// A program that is started without its variables or arguments does something else.
  std::optional<Node> cleanPart(const Node& table, const KeyPath& path) {
    const bool started = table.find("command") != nullptr || table.find("cmd") != nullptr;
    const auto isBlock = [](const auto& member) { return isEnvironmentOrHeaders(member.first, member.second); };
    if (hasSecretInCommand(table) || (started && std::ranges::any_of(table.members, isBlock))) return leaveOut(path);
    return clean(table, path);
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
      if (value.type == Node::Type::table && !(key == "tools" && hasOnlyPlainWords(value))) return false;
      KeyPath below = path;
      below.push_back(key);
      if (!cleanWhole(key, value, below)) {
        forgetLast();  // the server is named
        return false;
      }
    }
    return !hasSecretInCommand(server);
  }

  /// Everything below is allowed, except secrets.
  std::optional<Node> cleanValue(std::string_view name, const Node& value, const KeyPath& path) {
    if (isSecretValue(name, value) || isEnvironmentOrHeaders(name, value)) return leaveOut(path);
    if (value.type == Node::Type::text && isSecretText(name, value.text)) return leaveOut(path);
    if (value.type == Node::Type::list) return cleanList(name, value, path);
    if (value.type == Node::Type::table) return cleanTable(value, path);
    return value;
  }

  std::optional<Node> cleanTable(const Node& table, const KeyPath& path) {
    if (namesSecretInside(table) || hasSecretInCommand(table)) return leaveOut(path);
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

  /// A command line is kept as a whole or not at all, as is a table in a list, such as a hook.
  std::optional<Node> cleanList(std::string_view name, const Node& list, const KeyPath& path) {
    if (isCommandLine(name, list)) return hasSecretInLine(name, list) ? leaveOut(path) : std::optional(list);
    Node result = Node::ofType(Node::Type::list, 0);
    for (const Node& item : list.items) {
      auto kept = isScalar(item) ? cleanValue("", item, path) : cleanWhole("", item, path);
      if (kept) result.items.push_back(std::move(*kept));
    }
    if (isListOfWords(result) && hasSecretInLine(name, result)) return leaveOut(path);
    return result;
  }

  std::nullopt_t leaveOut(const KeyPath& path) {
    std::string text = shownPath(path);
    if (named_.insert(text).second) left_out.push_back(std::move(text));
    return std::nullopt;
  }

  /// Takes back the name of a part of something that is named as a whole.
  void forgetLast() {
    named_.erase(left_out.back());
    left_out.pop_back();
  }

  const SettingsFile file_;
  std::set<std::string> named_;  ///< what is in left_out
};

Result<policy::Document> readDocument(SettingsFormat format, std::string_view text) {
  const bool json = format == SettingsFormat::json;
  return policy::readText(json ? policy::withoutComments(text) : std::string(text),
                          json                             ? policy::Format::json
                          : format == SettingsFormat::toml ? policy::Format::toml
                                                           : policy::Format::yaml,
                          "");
}

/// The same of a text with a list or a scalar at the top, as a member of a table.
Result<policy::Document> readDocumentOfAnyKind(SettingsFormat format, std::string_view text) {
  auto document = readDocument(format, text);
  if (document || format == SettingsFormat::toml) return document;
  const bool json = format == SettingsFormat::json;
  if (!json && text.starts_with("---\n")) text.remove_prefix(4);
  return readDocument(format, (json ? "{\"items\": " : "items:\n") + std::string(text) + (json ? "\n}" : ""));
}

/// What a reading of text as a document finds: lists below a name, blocks and escaped letters have no form that a
/// reader of words knows.
enum class DocumentFinding { harmless, secret, unreadable };

/// What is not judged in a document that is part of another text.
struct DocumentSkips {
  bool texts = false;   ///< on the first level: sentences
  bool places = false;  ///< `<token>` in an example
};

bool isPlaceNode(const Node& node) { return node.type == Node::Type::text && isPlace(node.text); }

void removePlaces(Node& node) {
  std::erase_if(node.members, [](const auto& member) { return isPlaceNode(member.second); });
  for (auto& member : node.members) removePlaces(member.second);
  for (Node& item : node.items) removePlaces(item);
}

DocumentFinding judgeDocument(SettingsFormat format, std::string_view text, DocumentSkips skips) {
  if (trimmed(text, " \t\n").empty()) return DocumentFinding::harmless;
  auto document = readDocumentOfAnyKind(format, text);
  if (!document) return DocumentFinding::unreadable;
  if (skips.texts) std::erase_if(document->root.members, [](const auto& member) { return isScalar(member.second); });
  if (skips.places) removePlaces(document->root);
  constexpr std::string_view kEverything[] = {"*/**"};
  SettingsCleaner cleaner({.path = "", .format = format, .keys = kEverything, .servers = {}});
  cleaner.clean(document->root, {});
  return cleaner.left_out.empty() ? DocumentFinding::harmless : DocumentFinding::secret;
}

/// A document that cannot be read may hold anything.
bool mayHoldSecretInDocument(SettingsFormat format, std::string_view text) {
  return judgeDocument(format, text, {}) != DocumentFinding::harmless;
}

/// Front matter that is not YAML is common, so its lines are judged instead.
bool mayHoldSecretInFrontMatter(std::string_view text, bool prose) {
  const std::string_view front = frontMatter(text);
  const DocumentFinding finding = judgeDocument(SettingsFormat::yaml, front, {.texts = prose});
  return finding == DocumentFinding::unreadable ? hasEnvironmentOrHeaderLine(front)
                                                : finding == DocumentFinding::secret;
}

/// The documents of a text of YAML, between lines of three dashes.
std::vector<std::string_view> yamlDocuments(std::string_view text) {
  constexpr std::string_view kSeparator = "\n---";
  std::vector<std::string_view> documents;
  while (true) {
    const std::size_t rule = text.find(kSeparator);
    documents.push_back(text.substr(0, rule));
    if (rule == std::string_view::npos) return documents;
    text.remove_prefix(std::min(text.find('\n', rule + kSeparator.size()), text.size()));
  }
}

/// A block of a kind that is not read as a document has been read as words, with the text around it.
bool mayHoldSecretInBlock(const FencedBlock& block) {
  constexpr std::string_view kJson[] = {"json", "jsonc", "json5"};
  constexpr std::string_view kYaml[] = {"", "yaml", "yml"};
  constexpr std::string_view kSettings[] = {"ini",        "properties", "env",   "dotenv", "conf",
                                            "cfg",        "xml",        "hcl",   "tf",     "terraform",
                                            "dockerfile", "docker",     "nginx", "apache", "csv"};
  constexpr std::string_view kMarks = " \t\n";
  const std::size_t start = block.text.find_first_not_of(kMarks);
  if (start == std::string::npos) return false;
  const auto isSecret = [&](SettingsFormat format, std::string_view text) {
    const DocumentSkips skips{.texts = block.language.empty(), .places = true};
    return judgeDocument(format, text, skips) == DocumentFinding::secret;
  };
  if (block.language == "toml") return isSecret(SettingsFormat::toml, block.text);
  const bool json = block.text[start] == '{' || block.text[start] == '[';
  if (isOneOf(block.language, kJson) || (block.language.empty() && json))
    return isSecret(SettingsFormat::json, block.text);
  if (isOneOf(block.language, kYaml))
    return std::ranges::any_of(yamlDocuments(block.text),
                               [&](std::string_view text) { return isSecret(SettingsFormat::yaml, text); });
  return isOneOf(block.language, kSettings) && holdsSecret(block.text, TextKind::settings);
}

}  // namespace

std::expected<CleanSettings, std::string> cleanSettings(const SettingsFile& file, std::string_view text) {
  if (trimmed(text, " \t\r\n").empty()) return CleanSettings{};
  const auto document = readDocument(file.format, text);
  // The reader's error may quote the text.
  if (!document)
    return std::unexpected(std::string("it cannot be read as ") + (file.format == SettingsFormat::json   ? "JSON"
                                                                   : file.format == SettingsFormat::toml ? "TOML"
                                                                                                         : "YAML"));
  SettingsCleaner cleaner(file);
  const Node kept = cleaner.clean(document->root, {});
  CleanSettings result{.text = writeSettings(kept, file.format), .left_out = std::move(cleaner.left_out)};
  return result;
}

bool mayHoldSecret(std::string_view path, std::string_view text) {
  const std::string small = lowered(path);
  const auto endsWith = [&](std::initializer_list<std::string_view> endings) {
    return std::ranges::any_of(endings, [&](std::string_view ending) { return small.ends_with(ending); });
  };
  const bool prose = endsWith({".md", ".mdc", ".txt"});
  if (!isUtf8(text)) return true;  // compressed, or in an encoding whose words are unknown here
  if (holdsSecret(text, prose ? TextKind::prose : TextKind::settings)) return true;
  const std::string plain = withPlainLineEnds(text);
  if (endsWith({".json", ".jsonc", ".json5"})) return mayHoldSecretInDocument(SettingsFormat::json, plain);
  if (endsWith({".toml"})) return mayHoldSecretInDocument(SettingsFormat::toml, plain);
  if (endsWith({".yaml", ".yml"})) return mayHoldSecretInDocument(SettingsFormat::yaml, plain);
  if (prose && std::ranges::any_of(fencedBlocks(plain), mayHoldSecretInBlock)) return true;
  if (!endsWith({".jsonl", ".ndjson"})) return mayHoldSecretInFrontMatter(plain, prose);
  return std::ranges::any_of(split(plain, '\n'),
                             [](std::string_view line) { return mayHoldSecretInDocument(SettingsFormat::json, line); });
}

}  // namespace caisson::cli
