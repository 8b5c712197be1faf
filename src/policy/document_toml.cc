// TOML by toml++, header-only, in this translation unit alone.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
#define TOML_MAX_NESTED_VALUES 64
// TOML 1.0 only. The draft's bare keys beyond ASCII reach an `unreachable` in toml++ 3.3 on U+FEFE and its neighbours
// (found by policy_toml_fuzz).
#define TOML_UNRELEASED_FEATURES 0
#define TOML_ENABLE_UNRELEASED_FEATURES 0

#include <optional>

#include <toml++/toml.h>

#include "policy/document_readers.h"

namespace caisson::policy {

namespace {

/// toml++ bounds nested brackets but not dotted keys: a megabyte of `a.a.a.a` would become a tree so deep that
/// freeing it overruns the stack. Dots outside strings and comments are counted per line, since a key cannot span lines.
std::optional<SyntaxError> checkDottedKeys(std::string_view text) {
  int line = 1;
  int dots = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (letter == '\n') {
      ++line;
      dots = 0;
    } else if (letter == '#') {
      while (at + 1 < text.size() && text[at + 1] != '\n') ++at;
    } else if (letter == '"' || letter == '\'') {
      const std::string_view rest = text.substr(at);
      const bool tripled = rest.size() >= 3 && rest[1] == letter && rest[2] == letter;
      std::size_t end = tripled ? 3 : 1;
      for (; end < rest.size(); ++end) {
        if (rest[end] == '\n') {
          if (!tripled) break;
          ++line;
        }
        if (rest[end] == '\\' && letter == '"') {
          if (end + 1 < rest.size() && rest[end + 1] == '\n') ++line;
          ++end;
        } else if (rest[end] == letter) {
          if (!tripled) break;
          if (rest.substr(end).starts_with(std::string(3, letter))) {
            end += 2;
            break;
          }
        }
      }
      if (end < rest.size() && rest[end] == '\n') --end;
      at += end;
    } else if (letter == '.' && ++dots > kMaxDocumentDepth) {
      return SyntaxError{line, "a dotted key is too deep"};
    }
  }
  return std::nullopt;
}

struct Reader {
  std::size_t nodes = 0;

  Parsed<Node> read(const toml::node& source, int depth) {
    const int line = static_cast<int>(source.source().begin.line);
    if (depth > kMaxDocumentDepth) return std::unexpected(SyntaxError{line, "values are nested too deep"});
    if (++nodes > kMaxDocumentNodes) return std::unexpected(SyntaxError{line, "the file holds too many values"});
    switch (source.type()) {
      case toml::node_type::boolean: return Node::ofBoolean(source.as_boolean()->get(), line);
      case toml::node_type::integer: return Node::ofInteger(source.as_integer()->get(), line);
      case toml::node_type::floating_point: return Node::ofFloating(source.as_floating_point()->get(), line);
      case toml::node_type::string: return Node::ofText(source.as_string()->get(), line);
      case toml::node_type::array: return readList(*source.as_array(), line, depth);
      case toml::node_type::table: return readTable(*source.as_table(), line, depth);
      default: return std::unexpected(SyntaxError{line, "dates and times have no meaning in a policy"});
    }
  }

  Parsed<Node> readList(const toml::array& source, int line, int depth) {
    Node list = Node::ofType(Node::Type::list, line);
    for (const toml::node& element : source) {
      Parsed<Node> item = read(element, depth + 1);
      if (!item) return item;
      list.items.push_back(std::move(*item));
    }
    return list;
  }

  Parsed<Node> readTable(const toml::table& source, int line, int depth) {
    Node table = Node::ofType(Node::Type::table, line);
    for (auto&& [key, value] : source) {
      Parsed<Node> member = read(value, depth + 1);
      if (!member) return member;
      // A table's own region begins at its first line; the key says where a person wrote it.
      if (const int key_line = static_cast<int>(key.source().begin.line); key_line > 0) member->line = key_line;
      table.members.emplace_back(std::string(key.str()), std::move(*member));
    }
    return table;
  }
};

}  // namespace

Parsed<Node> readToml(std::string_view text) {
  if (auto error = checkDottedKeys(text)) return std::unexpected(*error);
  try {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
      return std::unexpected(SyntaxError{static_cast<int>(parsed.error().source().begin.line),
                                         "not TOML: " + std::string(parsed.error().description())});
    }
    return Reader{}.read(parsed.table(), 0);
  } catch (const std::exception& error) {
    return std::unexpected(SyntaxError{0, std::string("not readable as TOML: ") + error.what()});
  }
}

}  // namespace caisson::policy
