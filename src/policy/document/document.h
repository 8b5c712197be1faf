// A policy file as a tree of plain values with line numbers, independent of its format.
//
// The three readers (TOML, JSON, YAML) produce this tree, so there is one decoder and one set of rules. A document is
// untrusted input: everything is bounded (1 MiB, 64 levels, 100 000 values after YAML aliases are expanded, 4 MiB of
// text that they copy; TOML and JSON copy nothing), text is UTF-8 without NUL and with ends of lines that every program
// sees, a duplicate key is an error, and no exception of a parsing library leaves this layer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "caisson/error.h"

namespace caisson::policy {

enum class Format : std::uint8_t { toml, json, yaml };

inline constexpr std::size_t kMaxDocumentBytes = std::size_t{1024} * 1024;
inline constexpr int kMaxDocumentDepth = 64;
inline constexpr std::size_t kMaxDocumentNodes = 100'000;
inline constexpr std::size_t kMaxCopiedBytes = std::size_t{4} * 1024 * 1024;  ///< by YAML's anchors and aliases
inline constexpr std::size_t kMaxTableKeys = 4096;  ///< lookup is linear, so JSON and YAML have this bound

struct Node {
  enum class Type : std::uint8_t { null, boolean, integer, floating, text, list, table };

  Type type = Type::null;
  int line = 0;  ///< 1-based; 0 if the reader does not know it
  bool boolean = false;
  std::int64_t integer = 0;
  double floating = 0;
  std::string text;
  std::vector<Node> items;                            ///< of a list
  std::vector<std::pair<std::string, Node>> members;  ///< of a table, in the order of the file; of TOML, sorted

  // Out of line: Node is incomplete here, and a member's pair holds one.
  Node();
  Node(const Node&);
  Node(Node&&) noexcept;
  Node& operator=(const Node&);
  Node& operator=(Node&&) noexcept;
  ~Node();

  static Node ofBoolean(bool value, int line = 0);
  static Node ofInteger(std::int64_t value, int line = 0);
  static Node ofFloating(double value, int line = 0);
  static Node ofText(std::string value, int line = 0);
  /// A node of this type with an empty value.
  static Node ofType(Type type, int line = 0);

  /// The member `key` of a table, or nullptr.
  [[nodiscard]] const Node* find(std::string_view key) const;
};

/// The name of a type in messages: "a string", "a list".
std::string_view name(Node::Type type);

struct Document {
  std::string name;  ///< the file's name as errors show it
  Node root;         ///< a table
};

/// The format by a file name's extension; an error for an unknown one.
Result<Format> formatOf(std::string_view path);

/// Parses `text`, which must be a table at the top; errors use `name`.
Result<Document> readText(std::string_view text, Format format, std::string name);

/// Reads a regular file of at most kMaxDocumentBytes. A FIFO, device or directory is an error and never blocks.
Result<std::string> readRegularFile(const std::string& path);

/// "file:12: key", without unknown parts.
std::string place(std::string_view file, int line, std::string_view key);

}  // namespace caisson::policy
