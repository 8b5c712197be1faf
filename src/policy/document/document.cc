#include "policy/document/document.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/error.h"
#include "policy/document/readers.h"

namespace caisson::policy {

namespace {

constexpr bool isContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

/// The length of the UTF-8 sequence at `text[at]`, or 0 if it is invalid (overlong, surrogate, too large, cut off).
std::size_t sequenceLength(std::string_view text, std::size_t at) {
  auto byte = [&](std::size_t offset) -> unsigned char {
    return at + offset < text.size() ? static_cast<unsigned char>(text[at + offset]) : 0;
  };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return isContinuation(byte(1)) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!isContinuation(byte(1)) || !isContinuation(byte(2))) return 0;
    if (first == 0xE0 && byte(1) < 0xA0) return 0;
    if (first == 0xED && byte(1) > 0x9F) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!isContinuation(byte(1)) || !isContinuation(byte(2)) || !isContinuation(byte(3))) return 0;
    if (first == 0xF0 && byte(1) < 0x90) return 0;
    if (first == 0xF4 && byte(1) > 0x8F) return 0;
    return 4;
  }
  return 0;
}

std::optional<SyntaxError> checkCharacters(std::string_view text) {
  int line = 1;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\0') return SyntaxError{line, "the text contains a NUL byte"};
    // YAML and JSON would read it as a line end, after which a terminal shows the next line over this one.
    if (text[at] == '\r' && !text.substr(at + 1).starts_with('\n'))
      return SyntaxError{line, "a carriage return without a line feed: lines end with LF or CR LF"};
    if (text[at] == '\n') ++line;
    const std::size_t length = sequenceLength(text, at);
    if (length == 0) return SyntaxError{line, "the text is not UTF-8"};
    at += length;
  }
  return std::nullopt;
}

/// Looks for a NUL in keys and strings, which an escape ("\u0000") can still produce. No path, name or pattern may hold
/// one: the kernel would see a shorter string than the check did.
std::optional<SyntaxError> checkNoNul(const Node& node) {
  if (node.text.find('\0') != std::string::npos) return SyntaxError{node.line, "a string contains a NUL character"};
  for (const Node& item : node.items) {
    if (auto error = checkNoNul(item)) return error;
  }
  for (const auto& [key, member] : node.members) {
    if (key.find('\0') != std::string::npos) return SyntaxError{member.line, "a key contains a NUL character"};
    if (auto error = checkNoNul(member)) return error;
  }
  return std::nullopt;
}

Error syntaxError(std::string_view file, const SyntaxError& error) {
  return plainError(Stage::policy, "parse", place(file, error.line, {}), error.reason);
}

/// Closes the descriptor on scope exit.
struct Descriptor {
  int number;
  explicit Descriptor(int descriptor) : number(descriptor) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number >= 0) ::close(number);
  }
};

}  // namespace

Node::Node() = default;
Node::Node(const Node&) = default;
Node::Node(Node&&) noexcept = default;
Node& Node::operator=(const Node&) = default;
Node& Node::operator=(Node&&) noexcept = default;
Node::~Node() = default;

Node Node::ofType(Type type, int line) {
  Node node;
  node.type = type;
  node.line = line;
  return node;
}

Node Node::ofBoolean(bool value, int line) {
  Node node = ofType(Type::boolean, line);
  node.boolean = value;
  return node;
}

Node Node::ofInteger(std::int64_t value, int line) {
  Node node = ofType(Type::integer, line);
  node.integer = value;
  return node;
}

Node Node::ofFloating(double value, int line) {
  Node node = ofType(Type::floating, line);
  node.floating = value;
  return node;
}

Node Node::ofText(std::string value, int line) {
  Node node = ofType(Type::text, line);
  node.text = std::move(value);
  return node;
}

const Node* Node::find(std::string_view key) const {
  for (const auto& [name, member] : members) {
    if (name == key) return &member;
  }
  return nullptr;
}

std::string_view name(Node::Type type) {
  switch (type) {
    case Node::Type::null: return "null";
    case Node::Type::boolean: return "a boolean";
    case Node::Type::integer: return "an integer";
    case Node::Type::floating: return "a floating-point number";
    case Node::Type::text: return "a string";
    case Node::Type::list: return "a list";
    case Node::Type::table: return "a table";
  }
  return "nothing";
}

std::string place(std::string_view file, int line, std::string_view key) {
  std::string text(file);
  if (line > 0) text += ":" + std::to_string(line);
  if (!key.empty()) {
    if (!text.empty()) text += ": ";
    text += key;
  }
  return text;
}

Result<Format> formatOf(std::string_view path) {
  if (path.ends_with(".toml")) return Format::toml;
  if (path.ends_with(".json")) return Format::json;
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return Format::yaml;
  return fail(plainError(Stage::policy, "load", path, "the file's extension does not say its format",
                         "name the file .toml, .json, .yaml or .yml"));
}

Result<Document> readText(std::string_view text, Format format, std::string name) {
  if (text.size() > kMaxDocumentBytes) return fail(syntaxError(name, {0, "the file is larger than 1 MiB"}));
  if (auto error = checkCharacters(text)) return fail(syntaxError(name, *error));
  Parsed<Node> root = format == Format::toml   ? readToml(text)
                      : format == Format::json ? readJson(text)
                                               : readYaml(text);
  if (!root) return fail(syntaxError(name, root.error()));
  if (root->type != Node::Type::table) {
    return fail(syntaxError(
        name, {root->line, "expected a table of keys at the top, got " + std::string(policy::name(root->type))}));
  }
  if (auto error = checkNoNul(*root)) return fail(syntaxError(name, *error));
  return Document{std::move(name), std::move(*root)};
}

Result<std::string> readRegularFile(const std::string& path) {
  // O_NONBLOCK: opening a FIFO without a writer would block forever. O_NOCTTY: a terminal must not become ours.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.number < 0) return fail(sysError(Stage::policy, "open", path, errno, "check the path of the policy file"));
  struct stat facts{};
  if (::fstat(file.number, &facts) != 0) return fail(sysError(Stage::policy, "fstat", path, errno));
  if (!S_ISREG(facts.st_mode)) {
    return fail(plainError(Stage::policy, "load", path,
                           S_ISDIR(facts.st_mode) ? "it is a directory, not a policy file" : "it is not a regular file",
                           "name a file in TOML, JSON or YAML"));
  }
  // In pieces: a buffer for the largest file would cause most of a launch's page faults.
  std::string text;
  char piece[16 * 1024];
  while (text.size() <= kMaxDocumentBytes) {
    const ssize_t count = ::read(file.number, piece, sizeof(piece));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(sysError(Stage::policy, "read", path, errno));
    if (count == 0) return text;
    text.append(piece, static_cast<std::size_t>(count));
  }
  return fail(plainError(Stage::policy, "load", path, "the file is larger than 1 MiB"));
}

}  // namespace caisson::policy
