#include "policy/decode/convert.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "policy/decode/syntax.h"
#include "policy/limits.h"
#include "policy/rules/credential.h"
#include "policy/units.h"

namespace caisson::policy {

namespace {

constexpr std::string_view kUnset = "unset";

/// A value for an error message: short, and without control characters that could affect a terminal.
std::string described(const Node& node) {
  switch (node.type) {
    case Node::Type::boolean: return node.boolean ? "the boolean true" : "the boolean false";
    case Node::Type::integer: return "the integer " + std::to_string(node.integer);
    case Node::Type::floating: return "the number " + formatNumber(node.floating);
    case Node::Type::text: return "the string " + inQuotes(node.text);
    default: return std::string(name(node.type));
  }
}

std::string listed(std::span<const std::string_view> choices) {
  std::string text;
  for (const std::string_view choice : choices) {
    if (!text.empty()) text += ", ";
    text += "\"" + std::string(choice) + "\"";
  }
  return text;
}

std::unexpected<Mismatch> mismatch(std::string expected, std::string got, const Node& node, std::string below = {}) {
  return std::unexpected(Mismatch{std::move(expected), std::move(got), {}, std::move(below), node.line});
}

/// A text that a parser of policy/units.h rejected.
std::unexpected<Mismatch> invalid(std::string reason, const Node& node) {
  return std::unexpected(
      Mismatch{.expected = {}, .got = {}, .hint = {}, .below = {}, .line = node.line, .reason = std::move(reason)});
}

Converted<std::uint64_t> countOf(const Node& node, std::string_view expected) {
  if (node.type != Node::Type::integer || node.integer < 0)
    return mismatch(std::string(expected), described(node), node);
  return static_cast<std::uint64_t>(node.integer);
}

constexpr std::string_view kSizeExpected = "a size: bytes, or a string like \"512M\", \"512MiB\" or \"1.5G\"";

Converted<std::uint64_t> sizeOf(const Node& node) {
  if (node.type != Node::Type::text) return countOf(node, kSizeExpected);
  auto size = parseSize(node.text);
  if (!size) return invalid(size.error(), node);
  return *size;
}

/// A size, or a share of the host's memory.
Converted<std::uint64_t> memoryOf(const Node& node) {
  if (node.type != Node::Type::text || !node.text.ends_with('%')) return sizeOf(node);
  auto share = parseShare(node.text);
  if (!share) return invalid(share.error(), node);
  return *share;
}

Converted<double> numberOf(const Node& node, std::string_view expected) {
  double number = -1;
  if (node.type == Node::Type::integer) number = static_cast<double>(node.integer);
  if (node.type == Node::Type::floating) number = node.floating;
  if (!std::isfinite(number) || number < 0) return mismatch(std::string(expected), described(node), node);
  return number == 0 ? 0.0 : number;  // -0.0 would print differently from 0
}

constexpr std::string_view kSecondsExpected =
    "a duration: seconds, or a string like \"90s\", \"2m\", \"1h\" or \"500ms\"";

Converted<double> secondsOf(const Node& node) {
  if (node.type != Node::Type::text) return numberOf(node, kSecondsExpected);
  auto seconds = parseSeconds(node.text);
  if (!seconds) return invalid(seconds.error(), node);
  return *seconds;
}

Converted<std::string> choiceOf(const Field& field, const Node& node) {
  if (node.type == Node::Type::text) {
    for (const std::string_view choice : field.choices) {
      if (choice == node.text) return node.text;
    }
  }
  auto error = mismatch("one of " + listed(field.choices), described(node), node);
  if (const std::string_view near = nearest(node.text, field.choices); !near.empty()) {
    error.error().hint = "write \"" + std::string(near) + "\"";
  }
  return error;
}

/// The text of `node`, a host path, with `~` replaced.
Converted<std::string> homeExpanded(const Node& node) {
  auto path = expandHome(node.text);
  if (path) return std::move(*path);
  auto error = mismatch(path.error().expected, described(node), node);
  error.error().hint = path.error().hint;
  return error;
}

/// Names of layers are also accepted with dashes: "proc-bound".
Converted<std::string> layerOf(const Field& field, Node node) {
  std::ranges::replace(node.text, '-', '_');
  return choiceOf(field, node);
}

Converted<std::string> elementText(const Field& field, const Node& node) {
  if (field.kind == Kind::choices) return layerOf(field, node);
  // Accept a number: most users write ports and descriptors that way.
  const bool numeric = field.syntax == Syntax::port || field.syntax == Syntax::descriptor;
  if (numeric && node.type == Node::Type::integer) return std::to_string(node.integer);
  if (node.type != Node::Type::text) return mismatch("a string", described(node), node);
  return isHostPath(field.syntax) ? homeExpanded(node) : node.text;
}

std::unexpected<Mismatch> unknownMember(std::span<const std::string_view> known, const std::string& key,
                                        const Node& member) {
  auto error = mismatch("one of " + listed(known), "the unknown key " + inQuotes(key), member, "." + key);
  if (const std::string_view near = nearest(key, known); !near.empty()) {
    error.error().hint = "did you mean \"" + std::string(near) + "\"?";
  }
  return error;
}

constexpr std::string_view kTmpfsKeys[] = {"path", "size", "inodes", "exec", "access", "store", "cache"};

Converted<void> setMember(Tmpfs& mount, const std::string& key, const Node& member) {
  const std::string below = "." + key;
  if (key == "path") {
    if (member.type != Node::Type::text) return mismatch("a path", described(member), member, below);
    mount.path = member.text;
  } else if (key == "size") {
    auto size = sizeOf(member);
    if (!size) {
      size.error().below = below;
      return std::unexpected(std::move(size.error()));
    }
    mount.size = *size;
  } else if (key == "inodes") {
    auto inodes = countOf(member, "a count of inodes");
    if (!inodes) return mismatch(inodes.error().expected, inodes.error().got, member, below);
    mount.inodes = *inodes;
  } else if (key == "exec") {
    if (member.type != Node::Type::boolean) return mismatch("true or false", described(member), member, below);
    mount.exec = member.boolean;
  } else if (key == "access") {
    const auto access = member.type == Node::Type::text ? tmpfsAccessNamed(member.text) : std::nullopt;
    if (!access) return mismatch("rw, wo or ro", described(member), member, below);
    mount.access = *access;
  } else if (key == "store") {
    const auto store = member.type == Node::Type::text ? directoryStoreNamed(member.text) : std::nullopt;
    if (!store) return mismatch("memory, disk or prefer_disk", described(member), member, below);
    mount.store = *store;
  } else if (key == "cache") {
    if (member.type != Node::Type::text) return mismatch("workspace, or a name", described(member), member, below);
    mount.cache = member.text;
  } else {
    return unknownMember(kTmpfsKeys, key, member);
  }
  return {};
}

Converted<void> setMember(Credential& credential, const std::string& key, const Node& member) {
  const std::string below = "." + key;
  const auto keys = credentialKeys();
  const auto known = std::ranges::find(keys, key, &CredentialKey::name);
  if (known == keys.end()) {
    auto error = mismatch("a known key of a credential", "the unknown key " + inQuotes(key), member, below);
    error.error().hint =
        "host, header, value, secret_env, secret_file, name, env, ca_file; the secret itself does "
        "not belong in a policy";
    return error;
  }
  // Do not print the value: it may be a secret in the wrong place.
  if (member.type != Node::Type::text) return mismatch("a string", std::string(name(member.type)), member, below);
  std::string text = member.text;
  if (key == "secret_file" || key == "ca_file") {
    Converted<std::string> path = homeExpanded(member);
    if (!path) {
      path.error().below = below;
      return std::unexpected(std::move(path.error()));
    }
    text = std::move(*path);
  }
  credential.*(known->member) = std::move(text);
  return {};
}

constexpr std::string_view kTmpfsExpected = "a table with path, size, inodes, exec, access, store and cache";
constexpr std::string_view kCredentialExpected = "a table with host, value and secret_env or secret_file";

/// Sets the members of `entry` that `node` gives. Does not print the node itself: it may be a misplaced secret.
template <class Entry>
Converted<void> setMembers(Entry& entry, const Node& node, std::string_view expected) {
  if (node.type != Node::Type::table) return mismatch(std::string(expected), std::string(name(node.type)), node);
  for (const auto& [key, member] : node.members) {
    if (Converted<void> set = setMember(entry, key, member); !set) return set;
  }
  return {};
}

Converted<Tmpfs> tmpfsOf(const Node& node) {
  Tmpfs mount;
  if (Converted<void> set = setMembers(mount, node, kTmpfsExpected); !set) return std::unexpected(set.error());
  if (mount.path.empty()) return mismatch("a table with a path", "a table without one", node);
  return mount;
}

Converted<Credential> credentialOf(const Node& node) {
  Credential credential;
  if (Converted<void> set = setMembers(credential, node, kCredentialExpected); !set)
    return std::unexpected(set.error());
  if (credential.host.empty()) return mismatch("a table with a host", "a table without one", node);
  return credential;
}

/// How entries of a list are found by their key.
template <class Entry>
struct KeyedBy;

template <>
struct KeyedBy<Tmpfs> {
  static constexpr std::string_view kKey = "path", kRequired = "size", kExpected = kTmpfsExpected;
  static constexpr std::string_view kEntry = "directory";
  static std::string keyOf(const Tmpfs& mount) { return normalPath(mount.path); }
  static bool matches(const Tmpfs& mount, std::string_view key) { return normalPath(mount.path) == normalPath(key); }
  static Tmpfs create(const std::string& key) {
    Tmpfs mount;
    mount.path = key;
    return mount;
  }
  static void keepKey(Tmpfs&) {}
};

template <>
struct KeyedBy<Credential> {
  static constexpr std::string_view kKey = "name", kRequired = "host", kExpected = kCredentialExpected;
  static constexpr std::string_view kEntry = "credential";
  static std::string keyOf(const Credential& credential) { return nameOf(credential); }
  static bool matches(const Credential& credential, std::string_view key) { return nameOf(credential) == key; }
  static Credential create(const std::string& key) {
    Credential credential;
    credential.name = key;
    return credential;
  }
  /// Sets the name: without one, the credential is called after its host, which may change now.
  static void keepKey(Credential& credential) { credential.name = nameOf(credential); }
};

/// Changes or adds one entry. A new entry must have the required member, so that a mistyped key does not add one.
template <class Entry>
Converted<void> changeEntry(std::vector<Entry>& entries, const std::string& key, const Node& node) {
  using By = KeyedBy<Entry>;
  if (node.type == Node::Type::table && node.find(By::kKey) != nullptr) {
    return mismatch("an entry without " + std::string(By::kKey), "one with it", *node.find(By::kKey),
                    "." + std::string(By::kKey));
  }
  const auto known = std::ranges::find_if(entries, [&](const Entry& entry) { return By::matches(entry, key); });
  if (known != entries.end()) {
    By::keepKey(*known);
    return setMembers(*known, node, By::kExpected);
  }
  if (node.type == Node::Type::table && node.find(By::kRequired) == nullptr) {
    auto error = mismatch(
        "the key of an inherited " + std::string(By::kEntry) + ", or " + std::string(By::kRequired) + " for a new one",
        inQuotes(key) + " without " + std::string(By::kRequired), node);
    std::string keys;
    for (const Entry& entry : entries) keys += (keys.empty() ? "" : ", ") + inQuotes(By::keyOf(entry));
    error.error().hint = keys.empty() ? "nothing is inherited" : "inherited: " + keys;
    return error;
  }
  Entry entry = By::create(key);
  if (Converted<void> set = setMembers(entry, node, By::kExpected); !set) return set;
  entries.push_back(std::move(entry));
  return {};
}

template <class Entry>
Converted<Value> changeEntries(const Node& node, const Value& inherited) {
  const auto* before = std::get_if<std::vector<Entry>>(&inherited);
  std::vector<Entry> entries = before != nullptr ? *before : std::vector<Entry>{};
  for (const auto& [key, member] : node.members) {
    if (Converted<void> changed = changeEntry(entries, key, member); !changed) {
      Mismatch error = std::move(changed.error());
      error.below = entrySuffix(key) + error.below;
      if (error.line == 0) error.line = member.line;
      return std::unexpected(std::move(error));
    }
  }
  return entries;
}

/// Converts every item with `convert`; an error names the item.
template <class Element, class Convert>
Converted<Value> listOf(const Field& field, const Node& node, Convert convert) {
  if (node.type != Node::Type::list) return mismatch(expectation(field), described(node), node);
  std::vector<Element> elements;
  for (std::size_t index = 0; index < node.items.size(); ++index) {
    Converted<Element> element = convert(node.items[index]);
    if (!element) {
      Mismatch error = std::move(element.error());
      error.below = "[" + std::to_string(index) + "]" + error.below;
      return std::unexpected(std::move(error));
    }
    elements.push_back(std::move(*element));
  }
  return elements;
}

Converted<Value> assignmentsOf(const Field& field, const Node& node) {
  if (node.type != Node::Type::table) return mismatch(expectation(field), described(node), node);
  std::map<std::string, std::string> assignments;
  for (const auto& [key, member] : node.members) {
    if (member.type != Node::Type::text) return mismatch("a string", described(member), member, "." + key);
    assignments[key] = member.text;
  }
  return assignments;
}

/// Parses a command-line text into a node.
Node nodeOfText(const Field& field, std::string_view text) {
  Node node = Node::ofText(std::string(text));
  if (field.kind == Kind::boolean && (text == "true" || text == "false")) return Node::ofBoolean(text == "true");
  if (field.kind == Kind::count || field.kind == Kind::numbers) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && end == text.data() + text.size()) return Node::ofInteger(number);
  }
  if (field.kind == Kind::number) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc{} && end == text.data() + text.size()) return Node::ofFloating(number);
  }
  if (field.kind == Kind::assignments) {
    const std::size_t sign = text.find('=');
    if (sign == std::string_view::npos) return node;
    Node table = Node::ofType(Node::Type::table);
    table.members.emplace_back(std::string(text.substr(0, sign)), Node::ofText(std::string(text.substr(sign + 1))));
    return table;
  }
  if (field.kind == Kind::tmpfs) {
    Node table = Node::ofType(Node::Type::table);
    const std::size_t first = text.find(':');
    table.members.emplace_back("path", Node::ofText(std::string(text.substr(0, first))));
    if (first == std::string_view::npos) return table;
    const std::string_view rest = text.substr(first + 1);
    const std::size_t second = rest.find(':');
    table.members.emplace_back("size", Node::ofText(std::string(rest.substr(0, second))));
    if (second == std::string_view::npos) return table;
    const bool exec = rest.substr(second + 1) == "exec";
    table.members.emplace_back("exec",
                               exec ? Node::ofBoolean(true) : Node::ofText(std::string(rest.substr(second + 1))));
    return table;
  }
  return node;
}

template <class T>
Converted<Value> asValue(Converted<T> converted) {
  if (!converted) return std::unexpected(std::move(converted.error()));
  return Value(std::move(*converted));
}

}  // namespace

bool isList(const Field& field) {
  return field.kind == Kind::texts || field.kind == Kind::choices || field.kind == Kind::numbers ||
         field.kind == Kind::assignments || field.kind == Kind::tmpfs || field.kind == Kind::credentials;
}

bool hasKeyedEntries(const Field& field) { return field.kind == Kind::tmpfs || field.kind == Kind::credentials; }

std::string entrySuffix(std::string_view key) { return ".\"" + std::string(key) + "\""; }

std::string entryKey(const Value& value, std::size_t index) {
  if (const auto* mounts = std::get_if<std::vector<Tmpfs>>(&value); mounts != nullptr && index < mounts->size()) {
    return KeyedBy<Tmpfs>::keyOf((*mounts)[index]);
  }
  if (const auto* list = std::get_if<std::vector<Credential>>(&value); list != nullptr && index < list->size()) {
    return KeyedBy<Credential>::keyOf((*list)[index]);
  }
  return {};
}

Converted<Value> fromEntries(const Field& field, const Node& node, const Value& inherited) {
  return field.kind == Kind::tmpfs ? changeEntries<Tmpfs>(node, inherited) : changeEntries<Credential>(node, inherited);
}

std::string expectation(const Field& field) {
  switch (field.kind) {
    case Kind::boolean: return "true or false";
    case Kind::count: return "a whole number, not negative";
    case Kind::size:
      return std::string(kSizeExpected) + (field.syntax == Syntax::memory ? "; or a share like \"50%\"" : "");
    case Kind::number:
      return field.syntax == Syntax::cpu_count ? "a number above 0, or \"all\"" : "a number, not negative";
    case Kind::seconds:
      return std::string(kSecondsExpected) + (field.syntax == Syntax::time_limit ? "; or \"none\"" : "");
    case Kind::text: return "a string";
    case Kind::choice: return "one of " + listed(field.choices);
    case Kind::texts: return "a list of strings";
    case Kind::choices: return "a list of " + listed(field.choices);
    case Kind::numbers: return "a list of whole numbers";
    case Kind::assignments: return "a table of names with strings";
    case Kind::credentials:
      return "a list of tables with host, value and secret_env or secret_file, or a table of changed entries by name";
    case Kind::tmpfs:
      return "a list of tables with path, size, inodes, exec, access, store and cache, or a table of changed entries "
             "by path";
  }
  return "a value";
}

Converted<Value> fromNode(const Field& field, const Node& node) {
  if (field.optional && (node.type == Node::Type::null || (node.type == Node::Type::text && node.text == kUnset))) {
    return Value{};
  }
  switch (field.kind) {
    case Kind::boolean:
      if (node.type != Node::Type::boolean) return mismatch(expectation(field), described(node), node);
      return Value(node.boolean);
    case Kind::count: return asValue(countOf(node, expectation(field)));
    case Kind::size: return asValue(field.syntax == Syntax::memory ? memoryOf(node) : sizeOf(node));
    case Kind::number:
      if (field.syntax == Syntax::cpu_count && node.type == Node::Type::text && node.text == "all") {
        return Value(kAllCpus);
      }
      return asValue(numberOf(node, expectation(field)));
    case Kind::seconds:
      if (field.syntax == Syntax::time_limit && node.type == Node::Type::text && node.text == "none") {
        return Value(kNoTimeLimit);
      }
      return asValue(secondsOf(node));
    case Kind::text:
      if (node.type != Node::Type::text) return mismatch(expectation(field), described(node), node);
      return isHostPath(field.syntax) ? asValue(homeExpanded(node)) : Value(node.text);
    case Kind::choice: return asValue(choiceOf(field, node));
    case Kind::texts:
    case Kind::choices:
      return listOf<std::string>(field, node, [&](const Node& item) { return elementText(field, item); });
    case Kind::numbers:
      return listOf<std::uint64_t>(field, node, [](const Node& item) { return countOf(item, "a whole number"); });
    case Kind::assignments: return assignmentsOf(field, node);
    case Kind::tmpfs: return listOf<Tmpfs>(field, node, tmpfsOf);
    case Kind::credentials: return listOf<Credential>(field, node, credentialOf);
  }
  return mismatch(expectation(field), described(node), node);
}

Converted<Value> fromText(const Field& field, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return mismatch(expectation(field), "a text with a NUL character", Node{});
  }
  if (field.optional && text == kUnset) return Value{};
  if (!isList(field)) return fromNode(field, nodeOfText(field, text));
  if (field.kind == Kind::assignments) {
    return fromNode(field, text == "[]" ? Node::ofType(Node::Type::table) : nodeOfText(field, text));
  }
  Node list = Node::ofType(Node::Type::list);
  if (text != "[]") list.items.push_back(nodeOfText(field, text));
  Converted<Value> value = fromNode(field, list);
  if (!value && value.error().below.starts_with("[0]")) value.error().below.erase(0, 3);
  return value;
}

Value concatenated(Value value, Value addition) {
  if (std::holds_alternative<std::monostate>(value)) return addition;
  std::visit(
      [&]<class T>(T& own) {
        T* more = std::get_if<T>(&addition);
        if (more == nullptr) return;
        if constexpr (requires { own.insert(own.end(), more->begin(), more->end()); }) {
          own.insert(own.end(), more->begin(), more->end());
        } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
          for (auto& [name, text] : *more) own[name] = std::move(text);
        }
      },
      value);
  return value;
}

}  // namespace caisson::policy
