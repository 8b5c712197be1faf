#include "policy/import/reader.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/text.h"
#include "policy/units.h"

namespace caisson::policy {

const Node* ImportReader::find(std::string_view path) const {
  const Node* node = &document_.root;
  while (node != nullptr && !path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    node = node->type == Node::Type::table ? node->find(path.substr(0, dot)) : nullptr;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return node;
}

const Node* ImportReader::take(std::string_view path) {
  known_.emplace(path);
  return find(path);
}

void ImportReader::refuse(std::string_view path, const Node& node, std::string_view expected) {
  if (error_) return;
  error_ = plainError(Stage::policy, "import", place(document_.name, node.line, printable(path)),
                      "expected " + std::string(expected) + ", got " + std::string(name(node.type)));
}

std::optional<std::string> ImportReader::text(std::string_view path) {
  const Node* node = take(path);
  if (node == nullptr) return std::nullopt;
  if (node->type == Node::Type::text) return node->text;
  refuse(path, *node, "a string");
  return std::nullopt;
}

std::optional<std::int64_t> ImportReader::integer(std::string_view path) {
  const Node* node = take(path);
  if (node == nullptr) return std::nullopt;
  if (node->type == Node::Type::integer && node->integer >= 0) return node->integer;
  refuse(path, *node, "a whole number");
  return std::nullopt;
}

std::optional<double> ImportReader::number(std::string_view path) {
  const Node* node = take(path);
  if (node == nullptr) return std::nullopt;
  if (node->type == Node::Type::integer) return static_cast<double>(node->integer);
  if (node->type == Node::Type::floating) return node->floating;
  double value = 0;
  if (node->type == Node::Type::text) {
    const char* end = node->text.data() + node->text.size();
    if (const auto read = std::from_chars(node->text.data(), end, value); read.ec == std::errc() && read.ptr == end) {
      return value;
    }
  }
  refuse(path, *node, "a number");
  return std::nullopt;
}

std::optional<bool> ImportReader::boolean(std::string_view path) {
  const Node* node = take(path);
  if (node == nullptr) return std::nullopt;
  if (node->type == Node::Type::boolean) return node->boolean;
  refuse(path, *node, "true or false");
  return std::nullopt;
}

std::vector<std::string> ImportReader::texts(std::string_view path) {
  std::vector<std::string> result;
  const Node* node = take(path);
  if (node == nullptr) return result;
  if (node->type != Node::Type::list) {
    refuse(path, *node, "a list");
    return result;
  }
  for (const Node& item : node->items) {
    if (item.type == Node::Type::text) {
      result.push_back(item.text);
    } else if (item.type == Node::Type::integer) {
      result.push_back(std::to_string(item.integer));
    } else {
      refuse(path, item, "a string");
    }
  }
  return result;
}

std::optional<std::uint64_t> ImportReader::size(std::string_view path) {
  const Node* node = take(path);
  if (node == nullptr) return std::nullopt;
  if (node->type == Node::Type::integer && node->integer >= 0) return static_cast<std::uint64_t>(node->integer);
  if (node->type == Node::Type::text) {
    std::string text = node->text;
    // "512MB", "512MiB" and "1g" of these documents are binary multiples, as docker's are.
    const auto letterBefore = [&](std::size_t count) {
      return text.size() > count && text[text.size() - count - 1] > '9';
    };
    if ((text.ends_with('B') || text.ends_with('b')) && letterBefore(1)) text.pop_back();
    if (text.ends_with('i') && letterBefore(1)) text.pop_back();
    for (char& letter : text)
      letter = letter >= 'a' && letter <= 'z' && letter != 'k' ? static_cast<char>(letter - 32) : letter;
    if (const auto bytes = parseSize(text)) return *bytes;
  }
  refuse(path, *node, "a size");
  return std::nullopt;
}

std::optional<double> ImportReader::seconds(std::string_view path) {
  const Node* node = take(path);
  if (node == nullptr) return std::nullopt;
  if (node->type == Node::Type::integer && node->integer >= 0) return static_cast<double>(node->integer);
  if (node->type == Node::Type::text) {
    if (const auto value = parseSeconds(node->text)) return *value;
  }
  refuse(path, *node, "a time");
  return std::nullopt;
}

void ImportReader::refuseUnknown(const Node& table, const std::string& prefix) {
  for (const auto& [key, node] : table.members) {
    if (error_) return;
    const std::string path = prefix.empty() ? key : prefix + "." + key;
    // A key with a dot would look like the path of another key that was read.
    const bool plain = key.find('.') == std::string::npos;
    if (plain && known_.contains(path)) continue;
    const auto below = known_.lower_bound(path + ".");
    if (plain && node.type == Node::Type::table && below != known_.end() && below->starts_with(path + ".")) {
      refuseUnknown(node, path);
      continue;
    }
    error_ = plainError(Stage::policy, "import", place(document_.name, node.line, printable(path)),
                        "this shape has no such key", "remove it; nothing is dropped in silence");
  }
}

Result<void> ImportReader::finish() {
  if (!error_) refuseUnknown(document_.root, "");
  if (error_) return fail(*error_);
  return {};
}

}  // namespace caisson::policy
