#include "policy/decode/decode.h"

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/base64.h"
#include "base/error.h"
#include "base/text.h"
#include "policy/decode/convert.h"
#include "policy/decode/syntax.h"
#include "policy/decode/validate.h"
#include "policy/decode/widening.h"
#include "policy/fields.h"
#include "policy/profiles/profiles.h"

namespace caisson::policy {

namespace {

constexpr std::int64_t kFormatVersion = 1;
constexpr std::size_t kMaxExtends = 8;
constexpr std::size_t kMaxErrors = 50;  // a file that is not a policy at all

constexpr std::string_view kExtends = "extends";
constexpr std::string_view kVersion = "format_version";

Error decodeError(std::string object, std::string reason, std::string_view hint = {}) {
  return plainError(Stage::policy, "decode", object, reason, hint);
}

/// An error about an unknown key, with the nearest known one. `object` must be printable already: the key comes from
/// the file.
Error unknownKey(std::string object, std::string_view key) {
  const std::string_view near = nearestKey(key);
  return decodeError(
      std::move(object), "expected a known key, got an unknown one",
      near.empty() ? "caisson policy schema lists every key" : "did you mean " + std::string(near) + "?");
}

Error mismatchError(std::string object, const Mismatch& mismatch) {
  const std::string reason =
      mismatch.reason.empty() ? "expected " + mismatch.expected + ", got " + mismatch.got : mismatch.reason;
  return decodeError(std::move(object), reason, mismatch.hint);
}

/// Walks a document and sets the fields of a policy.
class Decoder {
 public:
  explicit Decoder(const Document& document) : document_(document) {}

  Result<Policy> run(const Origin& origin) {
    Result<Policy> base = startingPoint(origin);
    if (!base) return base;
    Policy policy = *base;
    apply(document_.root, "", policy);
    if (origin.base == nullptr) {
      if (document_.root.find("name") == nullptr) policy.name = nameOfFile();
      recordWidenings(*base, policy);
    }
    const Ceilings ceilings = origin.ceilings != nullptr ? *origin.ceilings : ceilingsOf(policy);
    for (const Problem& problem : findProblems(policy, ceilings)) {
      const std::string key = keyAsWritten(problem.key, policy);
      errors_.push_back(decodeError(place(document_.name, lineOf(key), printable(key)), problem.reason, problem.hint));
    }
    if (errors_.empty()) return policy;
    errors_.resize(std::min(errors_.size(), kMaxErrors));
    return fail(together(std::move(errors_)));
  }

 private:
  Result<Policy> startingPoint(const Origin& origin) {
    const Node* version = document_.root.find(kVersion);
    if (version != nullptr && (version->type != Node::Type::integer || version->integer != kFormatVersion)) {
      return fail(decodeError(place(document_.name, version->line, kVersion), "expected the integer 1",
                              "this caisson reads version 1 of the format"));
    }
    const Node* extends = document_.root.find(kExtends);
    if (origin.base != nullptr) {
      if (extends == nullptr) return *origin.base;
      return fail(decodeError(place(document_.name, extends->line, kExtends), "a built-in profile stands by itself"));
    }
    if (extends == nullptr) return builtin("bash").value_or(Policy{});
    const std::string object = place(document_.name, extends->line, kExtends);
    if (extends->type != Node::Type::text) {
      return fail(decodeError(
          object, "expected the name of a profile or the path of a file, got " + std::string(name(extends->type))));
    }
    if (auto profile = builtin(extends->text)) return *profile;
    return extendFile(extends->text, object, origin);
  }

  static Result<Policy> extendFile(const std::string& text, const std::string& object, const Origin& origin) {
    if (text.find('/') == std::string::npos && !formatOf(text)) {
      const std::string_view near = nearest(text, builtinNames());
      return fail(decodeError(
          object, "expected the name of a built-in profile or the path of a file, got \"" + printable(text) + "\"",
          near.empty() ? "caisson policy schema and docs list the profiles"
                       : "did you mean \"" + std::string(near) + "\"?"));
    }
    if (origin.directory.empty()) {
      return fail(decodeError(object, "a policy that is not a file can only extend a built-in profile"));
    }
    const auto expanded = expandHome(text);
    if (!expanded) {
      return fail(decodeError(object, "expected " + expanded.error().expected + ", got \"" + printable(text) + "\"",
                              expanded.error().hint));
    }
    const std::string path = (std::filesystem::path(origin.directory) / *expanded).lexically_normal().string();
    if (std::ranges::find(origin.chain, path) != origin.chain.end()) {
      return fail(decodeError(object, "the file extends itself through \"" + printable(text) + "\""));
    }
    if (origin.chain.size() >= kMaxExtends) {
      return fail(decodeError(object, "more than 8 files extend one another"));
    }
    auto base = loadFile(path, origin.ceilings, origin.chain);
    // For "no such file", name the file that extends it.
    if (!base && base.error().sys_errno != 0) {
      return fail(
          decodeError(object, "\"" + printable(text) + "\" can't be read: " + errnoName(base.error().sys_errno)));
    }
    return base;
  }

 public:
  static Result<Policy> loadFile(const std::string& path, const Ceilings* ceilings, std::vector<std::string> chain) {
    Result<Format> format = formatOf(path);
    if (!format) return fail(format.error());
    Result<std::string> text = readRegularFile(path);
    if (!text) return fail(text.error());
    Result<Document> document = readText(*text, *format, path);
    if (!document) return fail(document.error());
    Origin origin;
    origin.directory = std::filesystem::path(path).parent_path().string();
    if (origin.directory.empty()) origin.directory = ".";
    origin.ceilings = ceilings;
    origin.chain = std::move(chain);
    origin.chain.push_back(std::filesystem::path(path).lexically_normal().string());
    return decode(*document, origin);
  }

 private:
  /// Sets what is valid and collects every mistake.
  void apply(const Node& table, const std::string& prefix, Policy& policy) {
    for (const auto& [key, node] : table.members) {
      if (prefix.empty() && (key == kExtends || key == kVersion)) continue;
      const std::string path = prefix.empty() ? key : prefix + "." + key;
      // A quoted key with a dot ("resources.memory") is one key in the file's language, and not a key of ours.
      const Field* field = key.find('.') == std::string::npos ? findField(path) : nullptr;
      const Node* encoding = table.find(key + std::string(kEncodingSuffix));
      if (field != nullptr && encoding != nullptr && mayBeEncoded(*field)) {
        putEncoded(*field, node, *encoding, policy);
      } else if (field != nullptr) {
        put(*field, node, policy);
      } else if (isEncodingOf(table, key, path)) {
        continue;
      } else if (key.find('.') == std::string::npos && isSection(path)) {
        if (node.type == Node::Type::table) {
          apply(node, path, policy);
        } else {
          errors_.push_back(decodeError(place(document_.name, node.line, path),
                                        "expected a table, got " + std::string(name(node.type))));
        }
      } else {
        errors_.push_back(unknownKey(place(document_.name, node.line, printable(path)), path));
      }
    }
  }

  /// Whether the key says how another one beside it is encoded.
  static bool isEncodingOf(const Node& table, std::string_view key, std::string_view path) {
    if (!key.ends_with(kEncodingSuffix)) return false;
    const Field* field = findField(path.substr(0, path.size() - kEncodingSuffix.size()));
    return field != nullptr && mayBeEncoded(*field) &&
           table.find(key.substr(0, key.size() - kEncodingSuffix.size())) != nullptr;
  }

  void putEncoded(const Field& field, Node node, const Node& encoding, Policy& policy) {
    const auto refuse = [&](int line, std::string_view suffix, std::string_view expected) {
      errors_.push_back(decodeError(place(document_.name, line, std::string(field.key) + std::string(suffix)),
                                    "expected " + std::string(expected)));
    };
    if (encoding.type != Node::Type::text || encoding.text != kBase64) {
      return refuse(encoding.line, kEncodingSuffix, "\"base64\"");
    }
    std::vector<Node*> texts{&node};
    if (node.type == Node::Type::list) texts.clear();
    for (Node& item : node.items) texts.push_back(&item);
    for (Node* one : texts) {
      auto decoded = one->type == Node::Type::text ? decodeBase64(one->text) : std::nullopt;
      if (!decoded || decoded->find('\0') != std::string::npos) return refuse(node.line, "", "base64 without NUL");
      one->text = *std::move(decoded);
    }
    put(field, node, policy);
  }

  void put(const Field& field, const Node& node, Policy& policy) {
    const bool by_key = node.type == Node::Type::table && hasKeyedEntries(field);
    Converted<Value> value = by_key ? fromEntries(field, node, field.get(policy)) : fromNode(field, node);
    if (!value) {
      const int line = value.error().line > 0 ? value.error().line : node.line;
      const std::string key = std::string(field.key) + printable(value.error().below);
      errors_.push_back(mismatchError(place(document_.name, line, key), value.error()));
      return;
    }
    field.put(policy, std::move(*value));
  }

  /// The key as the document has it: `filesystem.tmpfs."/tmp".size` for "filesystem.tmpfs[0].size" if the document
  /// changes that entry by its key.
  [[nodiscard]] std::string keyAsWritten(const std::string& key, const Policy& policy) const {
    const std::size_t open = key.find('[');
    if (open == std::string::npos) return key;
    const Field* field = findField(key.substr(0, open));
    const Node* list = find(key.substr(0, open));
    if (field == nullptr || list == nullptr || list->type != Node::Type::table) return key;
    const std::size_t close = key.find(']');
    const std::string entry = entryKey(field->get(policy), std::stoul(key.substr(open + 1, close - open - 1)));
    for (const auto& [written, node] : list->members) {
      if (normalPath(written) == normalPath(entry)) {
        return key.substr(0, open) + entrySuffix(written) + key.substr(close + 1);
      }
    }
    return key.substr(0, open) + entrySuffix(entry) + key.substr(close + 1);
  }

  /// The node of "filesystem.tmpfs", or nullptr.
  [[nodiscard]] const Node* find(std::string_view key) const {
    const Node* node = &document_.root;
    while (node != nullptr && !key.empty()) {
      const std::size_t end = std::min(key.find('.'), key.size());
      node = node->find(key.substr(0, end));
      key.remove_prefix(std::min(end + 1, key.size()));
    }
    return node;
  }

  /// The line of "filesystem.tmpfs[1].size" in this document, or of the nearest table that holds it.
  [[nodiscard]] int lineOf(std::string_view key) const {
    const Node* node = &document_.root;
    int line = 0;
    while (!key.empty()) {
      if (key.starts_with('[')) {
        const std::size_t close = key.find(']');
        const std::size_t index = std::stoul(std::string(key.substr(1, close - 1)));
        if (index >= node->items.size()) break;
        node = &node->items[index];
        key.remove_prefix(close + 1);
      } else {
        if (key.starts_with('.')) key.remove_prefix(1);
        const bool quoted = key.starts_with('"');
        if (quoted) key.remove_prefix(1);
        const std::size_t end = std::min(quoted ? key.find('"') : key.find_first_of(".["), key.size());
        node = node->find(key.substr(0, end));
        if (node == nullptr) break;
        key.remove_prefix(std::min(end + (quoted ? 1 : 0), key.size()));
      }
      if (node->line > 0) line = node->line;
    }
    return line;
  }

  [[nodiscard]] std::string nameOfFile() const {
    const std::string stem = std::filesystem::path(document_.name).stem().string();
    const Field* field = findField("name");
    return checkValue(*field, stem) ? "policy" : stem;
  }

  const Document& document_;
  std::vector<Error> errors_;
};

/// Returns the field of `key`, or an error for an unknown key.
Result<const Field*> fieldOf(std::string_view key) {
  const Field* field = findField(key);
  if (field == nullptr) return fail(unknownKey(printable(key), key));
  return field;
}

/// The checked value of the field from text.
Result<Value> valueOf(const Field& field, std::string_view text) {
  Converted<Value> value = fromText(field, text);
  if (!value) return fail(mismatchError(std::string(field.key) + printable(value.error().below), value.error()));
  if (auto problem = checkValue(field, *value)) {
    return fail(decodeError(printable(problem->key), problem->reason, problem->hint));
  }
  return std::move(*value);
}

Result<const Field*> listOf(std::string_view key) {
  Result<const Field*> field = fieldOf(key);
  if (field && !isList(**field)) {
    return fail(decodeError(std::string(key), "expected a key that holds a list, got one that holds a single value",
                            "set it instead"));
  }
  return field;
}

/// Makes a change and records what it widens.
Result<void> recorded(Policy& policy, const std::function<Result<void>()>& change) {
  const Policy before = policy;
  if (auto done = change(); !done) return done;
  recordWidenings(before, policy);
  return {};
}

}  // namespace

Result<Policy> decode(const Document& document, const Origin& origin) { return Decoder(document).run(origin); }

Result<Policy> load(const std::string& path) { return Decoder::loadFile(path, nullptr, {}); }

Result<Policy> load(const std::string& path, const Ceilings& ceilings) {
  return Decoder::loadFile(path, &ceilings, {});
}

Result<Policy> parse(std::string_view text, Format format, std::string name) {
  Result<Document> document = readText(text, format, std::move(name));
  if (!document) return fail(document.error());
  return decode(*document, Origin{});
}

Result<void> setUnrecorded(Policy& policy, std::string_view key, std::string_view text) {
  Result<const Field*> field = fieldOf(key);
  if (!field) return fail(field.error());
  Result<Value> value = valueOf(**field, text);
  if (!value) return fail(value.error());
  (*field)->put(policy, std::move(*value));
  return {};
}

Result<void> checkEntry(std::string_view key, std::string_view text) {
  const Result<const Field*> field = listOf(key);
  if (!field) return fail(field.error());
  const Result<Value> value = valueOf(**field, text);
  return value ? Result<void>() : fail(value.error());
}

Result<void> appendUnrecorded(Policy& policy, std::string_view key, std::span<const std::string> texts) {
  const Result<const Field*> field = listOf(key);
  if (!field) return fail(field.error());
  Value all = (*field)->get(policy);
  for (const std::string& text : texts) {
    Result<Value> value = valueOf(**field, text);
    if (!value) return fail(value.error());
    all = concatenated(std::move(all), std::move(*value));
  }
  // Elements that are valid by themselves need not fit together.
  if (auto problem = checkValue(**field, all)) {
    return fail(decodeError(printable(problem->key), problem->reason, problem->hint));
  }
  (*field)->put(policy, std::move(all));
  return {};
}

Result<void> setKey(Policy& policy, std::string_view key, std::string_view text) {
  return recorded(policy, [&] { return setUnrecorded(policy, key, text); });
}

Result<void> appendKey(Policy& policy, std::string_view key, std::string_view text) {
  const std::string one(text);
  return recorded(policy, [&] { return appendUnrecorded(policy, key, {&one, 1}); });
}

}  // namespace caisson::policy
