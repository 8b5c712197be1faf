#include "policy/describe/json.h"

#include <algorithm>
#include <cmath>

#include "base/base64.h"
#include "base/json_writer.h"
#include "base/utf8.h"
#include "policy/describe/json_tree.h"
#include "policy/fields.h"
#include "policy/limits.h"
#include "policy/rules/credential.h"
#include "policy/units.h"

namespace caisson::policy {

namespace {

template <class Range, class Print>
std::string jsonList(const Range& range, Print print) {
  std::string text = "[";
  for (const auto& element : range) {
    if (text.size() > 1) text += ", ";
    text += print(element);
  }
  return text + "]";
}

struct ToJson {
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::uint64_t value) const {
    return isShare(value) ? "\"" + std::to_string(percentOf(value)) + "%\"" : std::to_string(value);
  }
  std::string operator()(double value) const { return value == kNoTimeLimit ? "\"none\"" : formatNumber(value); }
  std::string operator()(const std::string& value) const { return jsonString(value); }
  std::string operator()(const std::vector<std::string>& value) const { return jsonList(value, jsonString); }
  std::string operator()(const std::vector<std::uint64_t>& value) const {
    return jsonList(value, [](std::uint64_t number) { return std::to_string(number); });
  }
  std::string operator()(const std::map<std::string, std::string>& value) const {
    std::string text = "{";
    for (const auto& [name, member] : value) {
      if (text.size() > 1) text += ", ";
      text += jsonString(name) + ": " + jsonString(member);
    }
    return text + "}";
  }
  std::string operator()(const std::vector<Credential>& value) const {
    return jsonList(value, [](const Credential& credential) {
      std::string text = "{";
      for (const CredentialKey& key : credentialKeys()) {
        if ((credential.*key.member).empty()) continue;
        text += (text.size() > 1 ? ", " : "") + jsonString(key.name) + ": " + jsonString(credential.*key.member);
      }
      return text + "}";
    });
  }
  std::string operator()(const std::vector<Tmpfs>& value) const {
    return jsonList(value, [](const Tmpfs& mount) {
      return "{\"path\": " + jsonString(mount.path) + ", \"size\": " + std::to_string(mount.size) +
             ", \"inodes\": " + std::to_string(mount.inodes) + ", \"exec\": " + (mount.exec ? "true" : "false") +
             ", \"access\": " + jsonString(name(mount.access)) + ", \"store\": " + jsonString(name(mount.store)) +
             ", \"cache\": " + jsonString(mount.cache) + "}";
    });
  }
};

constexpr std::string_view kSizeSchema =
    R"({"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? ?(B|[kKmMgGtT]|[KMGT]iB)?$"})";
constexpr std::string_view kSecondsSchema =
    R"({"type": "number", "minimum": 0}, {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+)? ?(ms|s|m|min|h|d)?$"})";

std::string choicesSchema(const Field& field) { return "{\"enum\": " + jsonList(field.choices, jsonString) + "}"; }

std::string listSchema(std::string_view items) {
  return "{\"type\": \"array\", \"items\": " + std::string(items) + "}";
}

/// The schemas of a list of entries, and of a table that changes or adds single entries by their key.
std::string entriesSchema(std::string_view key, std::string_view key_schema, std::string_view required,
                          std::string_view others) {
  const std::string object = R"({"type": "object", "additionalProperties": false, )";
  return listSchema(object + R"("required": [)" + jsonString(required) + R"(], "properties": {)" + jsonString(key) +
                    ": " + std::string(key_schema) + ", " + std::string(others) + "}}") +
         R"(, {"type": "object", "propertyNames": )" + std::string(key_schema) + R"(, "additionalProperties": )" +
         object + R"("properties": {)" + std::string(others) + "}}}";
}

std::string credentialsSchema() {
  std::string properties, name;
  for (const CredentialKey& key : credentialKeys()) {
    const std::string schema = R"({"type": "string", "description": )" + jsonString(key.description) + "}";
    if (key.name == "name") {
      name = schema;
      continue;
    }
    properties += (properties.empty() ? "" : ", ") + jsonString(key.name) + ": " + schema;
  }
  return entriesSchema("name", name, "host", properties);
}

/// The allowed types of a field's value, separated by commas.
std::string alternatives(const Field& field) {
  const bool numeric = field.syntax == Syntax::port || field.syntax == Syntax::descriptor;
  switch (field.kind) {
    case Kind::boolean: return R"({"type": "boolean"})";
    case Kind::count: return R"({"type": "integer", "minimum": 0})";
    case Kind::size:
      return std::string(kSizeSchema) +
             (field.syntax == Syntax::memory ? R"(, {"type": "string", "pattern": "^(100|[1-9][0-9]?)%$"})" : "");
    case Kind::number:
      return std::string(R"({"type": "number", "minimum": 0})") +
             (field.syntax == Syntax::cpu_count ? R"(, {"const": "all"})" : "");
    case Kind::seconds:
      return std::string(kSecondsSchema) + (field.syntax == Syntax::time_limit ? R"(, {"const": "none"})" : "");
    case Kind::text: return R"({"type": "string"})";
    case Kind::choice: return choicesSchema(field);
    case Kind::texts: return listSchema(numeric ? R"({"type": ["string", "integer"]})" : R"({"type": "string"})");
    case Kind::choices: return listSchema(choicesSchema(field));
    case Kind::numbers: return listSchema(R"({"type": "integer", "minimum": 0})");
    case Kind::assignments: return R"({"type": "object", "additionalProperties": {"type": "string"}})";
    case Kind::credentials: return credentialsSchema();
    case Kind::tmpfs:
      return entriesSchema(
          "path", R"({"type": "string", "pattern": "^/"})", "path",
          R"("size": {"anyOf": [)" + std::string(kSizeSchema) +
              R"(]}, "inodes": {"type": "integer", "minimum": 1}, "exec": {"type": "boolean"}, "access": {"enum": ["rw", "wo", "ro"]}, )"
              R"("store": {"enum": ["memory", "disk", "prefer_disk"]}, "cache": {"type": "string"})");
  }
  return "{}";
}

/// Encodes text that is not UTF-8, as a path may be. Returns whether there was some: then all texts are encoded.
bool encodeBytes(Value& value) {
  const auto is_utf8 = [](const std::string& text) { return isUtf8(text); };
  if (auto* text = std::get_if<std::string>(&value)) {
    if (isUtf8(*text)) return false;
    *text = encodeBase64(*text);
    return true;
  }
  auto* texts = std::get_if<std::vector<std::string>>(&value);
  if (texts == nullptr || std::ranges::all_of(*texts, is_utf8)) return false;
  for (std::string& text : *texts) text = encodeBase64(text);
  return true;
}

std::string fieldSchema(const Field& field, const Policy& defaults) {
  std::string any_of = alternatives(field);
  if (field.optional) any_of += R"(, {"type": "null"}, {"const": "unset"})";
  return "{\"description\": " + jsonString(field.description) +
         ", \"default\": " + std::visit(ToJson{}, field.get(defaults)) + ", \"anyOf\": [" + any_of + "]}";
}

}  // namespace

void JsonTree::startMember(std::string_view name) {
  text_ += empty_ ? "\n" : ",\n";
  text_.append(2 * (open_.size() + 1), ' ');
  text_ += jsonString(name) + ": ";
  empty_ = false;
}

void JsonTree::enter(std::string_view name) {
  startMember(name);
  text_ += "{" + frame_.before;
  open_.emplace_back(name);
  empty_ = true;
}

void JsonTree::leave() {
  text_ += "\n";
  text_.append(2 * open_.size(), ' ');
  text_ += frame_.after + "}";
  open_.pop_back();
  empty_ = false;
}

void JsonTree::add(std::string_view key, std::string_view value) {
  std::vector<std::string_view> parts;
  for (std::size_t start = 0; start <= key.size();) {
    const std::size_t end = std::min(key.find('.', start), key.size());
    parts.push_back(key.substr(start, end - start));
    start = end + 1;
  }
  std::size_t shared = 0;
  while (shared < open_.size() && shared + 1 < parts.size() && open_[shared] == parts[shared]) ++shared;
  while (open_.size() > shared) leave();
  while (open_.size() + 1 < parts.size()) enter(parts[open_.size()]);
  startMember(parts.back());
  text_ += value;
}

std::string JsonTree::finish() {
  while (!open_.empty()) leave();
  text_ += "\n" + frame_.after + "}\n";
  return std::move(text_);
}

std::string toJson(const Policy& policy) {
  JsonTree tree;
  for (const Field& field : fields()) {
    Value value = field.get(policy);
    const bool encoded = mayBeEncoded(field) && encodeBytes(value);
    tree.add(field.key, std::visit(ToJson{}, value));
    if (encoded) tree.add(std::string(field.key) + std::string(kEncodingSuffix), jsonString(kBase64));
  }
  return tree.finish();
}

std::string schema() {
  const Policy defaults;
  JsonTree tree({R"("type": "object", "additionalProperties": false, "properties": {)", "}"});
  tree.add("format_version", R"({"description": "The version of this format.", "const": 1})");
  tree.add(
      "extends",
      R"({"description": "The built-in profile or the file that this policy starts from; bash when left out.", "type": "string"})");
  for (const Field& field : fields()) {
    tree.add(field.key, fieldSchema(field, defaults));
    if (!mayBeEncoded(field)) continue;
    tree.add(std::string(field.key) + std::string(kEncodingSuffix),
             R"({"description": "How the text is encoded that is not UTF-8.", "const": "base64"})");
  }
  std::string text = tree.finish();
  text.insert(1, R"("$schema": "https://json-schema.org/draft/2020-12/schema", "title": "caisson policy", )");
  return text;
}

}  // namespace caisson::policy
