// YAML by libyaml's event parser: a C library without start-up cost. Its document tree is not used: with events,
// aliases are expanded under a bound, plain scalars differ from quoted ones, and no cycle is built.
#include <yaml.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "policy/document/readers.h"

namespace caisson::policy {

namespace {

/// libyaml compares every %TAG directive with all before it; this many are still cheap.
constexpr std::size_t kMaxTagDirectives = 1000;

constexpr const char* kTagReason = "tags have no meaning in a policy";

std::unexpected<SyntaxError> refuse(int line, std::string reason) {
  return std::unexpected(SyntaxError{line, std::move(reason)});
}

bool isDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Empty: not a number of this kind.
using MaybeNumber = Parsed<std::optional<Node>>;

MaybeNumber readInteger(std::string_view text, int line) {
  int base = 10;
  std::string_view digits = text;
  if (digits.starts_with("0x")) {
    base = 16;
    digits.remove_prefix(2);
  } else if (digits.starts_with("0o")) {
    base = 8;
    digits.remove_prefix(2);
  } else if (digits.starts_with("+")) {
    digits.remove_prefix(1);
    if (!isDigits(digits)) return std::nullopt;
  }
  if (base != 10 && digits.starts_with("-")) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return refuse(line, "a number is too large");
  if (error != std::errc{}) return std::nullopt;
  return Node::ofInteger(value, line);
}

MaybeNumber readFloating(std::string_view text, int line) {
  std::string_view body = text;
  if (body.starts_with("+") || body.starts_with("-")) body.remove_prefix(1);
  if (body == ".inf" || body == ".Inf" || body == ".INF") {
    return Node::ofFloating(text.starts_with("-") ? -__builtin_inf() : __builtin_inf(), line);
  }
  if (text == ".nan" || text == ".NaN" || text == ".NAN") return Node::ofFloating(__builtin_nan(""), line);
  if (body.empty() || body.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
  if (body[0] != '.' && !isDigits(body.substr(0, 1))) return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  if (end != body.data() + body.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) return refuse(line, "a number is too large");
  if (error != std::errc{}) return std::nullopt;
  return Node::ofFloating(text.starts_with("-") ? -value : value, line);
}

bool isNull(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

/// The value of a plain scalar by the YAML 1.2 core schema: `yes` and `on` are strings, `0777` is decimal.
Parsed<Node> readPlain(std::string text, int line) {
  if (isNull(text)) return Node::ofType(Node::Type::null, line);
  if (text == "true" || text == "True" || text == "TRUE") return Node::ofBoolean(true, line);
  if (text == "false" || text == "False" || text == "FALSE") return Node::ofBoolean(false, line);
  for (const auto read : {readInteger, readFloating}) {
    MaybeNumber number = read(text, line);
    if (!number) return std::unexpected(std::move(number.error()));
    if (*number) return std::move(**number);
  }
  return Node::ofText(std::move(text), line);
}

/// How large a copy of a node is.
struct CopySize {
  std::size_t nodes = 0;
  std::size_t bytes = 0;  ///< of strings and keys
};

void addSize(const Node& node, CopySize& size) {
  ++size.nodes;
  size.bytes += node.text.size();
  for (const Node& item : node.items) addSize(item, size);
  for (const auto& [key, member] : node.members) {
    size.bytes += key.size();
    addSize(member, size);
  }
}

int depthOf(const Node& node) {
  int deepest = 0;
  for (const Node& item : node.items) deepest = std::max(deepest, depthOf(item));
  for (const auto& [key, member] : node.members) deepest = std::max(deepest, depthOf(member));
  return deepest + 1;
}

int lineAt(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  return static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1;
}

/// Maps libyaml's marks, which count characters, to byte offsets. Marks must be requested in ascending order.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  std::string_view from(std::size_t character) {
    while (character_ < character && byte_ < text_.size()) {
      do ++byte_;
      while (byte_ < text_.size() && (static_cast<unsigned char>(text_[byte_]) & 0xC0) == 0x80);
      ++character_;
    }
    return text_.substr(byte_);
  }

 private:
  std::string_view text_;
  std::size_t byte_ = 0;
  std::size_t character_ = 0;
};

/// An error for syntax that libyaml silently ignores before a plain scalar: the tag `!`, and an anchor whose name
/// continues with a character that libyaml does not accept (`&name:x` is one name, not an anchor and ":x").
std::optional<SyntaxError> checkProperties(std::string_view source, std::string_view anchor, int line) {
  constexpr std::string_view kSpace = " \t\r\n";
  if (source.starts_with("&")) {
    source.remove_prefix(std::min(1 + anchor.size(), source.size()));
    if (source.find_first_of(kSpace) != 0)
      return SyntaxError{line, "not YAML: an anchor's name is of letters, digits, - and _"};
  }
  for (;;) {
    source.remove_prefix(std::min(source.find_first_not_of(kSpace), source.size()));
    if (source.starts_with("!")) return SyntaxError{line, kTagReason};
    if (!source.starts_with("#")) return std::nullopt;
    source.remove_prefix(std::min(source.find_first_of("\r\n"), source.size()));
  }
}

struct Event {
  yaml_event_t raw{};
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&raw); }

  [[nodiscard]] int line() const { return static_cast<int>(raw.start_mark.line) + 1; }
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    ready_ = yaml_parser_initialize(&raw_) != 0;
    if (!ready_) return;
    yaml_parser_set_encoding(&raw_, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&raw_, reinterpret_cast<const unsigned char*>(text.data()), text.size());
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() {
    if (ready_) yaml_parser_delete(&raw_);
  }

  Parsed<void> next(Event& event) {
    if (ready_ && yaml_parser_parse(&raw_, &event.raw) != 0) return {};
    if (!ready_ || raw_.error == YAML_MEMORY_ERROR) return refuse(0, "not readable as YAML: out of memory");
    std::string reason = "not YAML: ";
    reason += raw_.problem != nullptr ? raw_.problem : "it cannot be parsed";
    if (raw_.context != nullptr) reason.append(" (").append(raw_.context).append(")");
    return refuse(problemLine(), std::move(reason));
  }

 private:
  [[nodiscard]] int problemLine() const {
    if (raw_.error != YAML_READER_ERROR) return static_cast<int>(raw_.problem_mark.line) + 1;
    // The reader is ahead of the marks and reports only a byte offset.
    return lineAt(text_, raw_.problem_offset);
  }

  std::string_view text_;
  yaml_parser_t raw_{};
  bool ready_ = false;
};

class Builder {
 public:
  explicit Builder(std::string_view text) : cursor_(text) {}

  /// Processes one event of a document.
  Parsed<void> take(const Event& event) {
    const auto& data = event.raw.data;
    switch (event.raw.type) {
      case YAML_ALIAS_EVENT: return alias(text(data.alias.anchor), event.line());
      case YAML_SCALAR_EVENT: return scalar(event);
      case YAML_SEQUENCE_START_EVENT:
        return open(Node::Type::list, event.line(), data.sequence_start.anchor, data.sequence_start.tag);
      case YAML_MAPPING_START_EVENT:
        return open(Node::Type::table, event.line(), data.mapping_start.anchor, data.mapping_start.tag);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT: return close();
      default: return {};
    }
  }

  Node takeRoot() { return std::move(root_); }

 private:
  static constexpr std::size_t kNoAnchor = static_cast<std::size_t>(-1);

  struct Open {
    Node node;
    std::size_t anchor = kNoAnchor;
    std::optional<std::string> key;
    int key_line = 0;
  };

  static std::string text(const yaml_char_t* name) { return reinterpret_cast<const char*>(name); }

  static std::unexpected<SyntaxError> refuseTag(int line) { return refuse(line, kTagReason); }
  static std::unexpected<SyntaxError> refuseKey(int line) { return refuse(line, "a key must be a plain name"); }
  static std::unexpected<SyntaxError> refuseCount(int line) { return refuse(line, "the file holds too many values"); }
  static std::unexpected<SyntaxError> refuseDepth(int line) { return refuse(line, "values are nested too deep"); }

  [[nodiscard]] bool expectsKey() const {
    return !open_.empty() && open_.back().node.type == Node::Type::table && !open_.back().key;
  }

  /// Binds the anchor `name` to the node that begins here, and returns its index. It has no value until the node is
  /// complete.
  std::size_t declare(const yaml_char_t* name) {
    if (name == nullptr) return kNoAnchor;
    anchors_.emplace_back();
    anchor_names_[text(name)] = anchors_.size() - 1;
    return anchors_.size() - 1;
  }

  /// Counts a copy before it is made. Bytes are counted as well: 19,000 aliases of one long string would be 15 GB.
  Parsed<void> countCopy(const Node& node, int line) {
    CopySize size;
    addSize(node, size);
    nodes_ += size.nodes;
    copied_bytes_ += size.bytes;
    if (nodes_ > kMaxDocumentNodes) return refuseCount(line);
    if (copied_bytes_ > kMaxCopiedBytes) return refuse(line, "anchors and aliases copy too much text");
    return {};
  }

  Parsed<void> alias(const std::string& name, int line) {
    const auto known = anchor_names_.find(name);
    if (known == anchor_names_.end()) return refuse(line, "not YAML: the anchor \"" + name + "\" is not defined");
    const std::optional<Node>& target = anchors_[known->second];
    if (!target) return refuse(line, "an alias refers to a value that contains it");
    if (auto counted = countCopy(*target, line); !counted) return counted;
    if (static_cast<int>(open_.size()) + depthOf(*target) > kMaxDocumentDepth) return refuseDepth(line);
    Node copy = *target;
    copy.line = line;
    return add(std::move(copy), kNoAnchor);
  }

  Parsed<void> scalar(const Event& event) {
    const auto& source = event.raw.data.scalar;
    const int line = event.line();
    const std::size_t anchor = declare(source.anchor);
    std::string value(reinterpret_cast<const char*>(source.value), source.length);
    if (source.tag != nullptr) return refuseTag(line);
    if (source.style != YAML_PLAIN_SCALAR_STYLE) return add(Node::ofText(std::move(value), line), anchor);
    if (!value.empty()) {
      const std::string name = source.anchor != nullptr ? text(source.anchor) : std::string();
      auto error = checkProperties(cursor_.from(event.raw.start_mark.index), name, line);
      if (error) return std::unexpected(std::move(*error));
    }
    if (expectsKey()) {
      if (value == "<<") return refuse(line, "merge keys (<<) are refused; use `extends`");
      if (isNull(value)) return refuseKey(line);
      return add(Node::ofText(std::move(value), line), anchor);
    }
    Parsed<Node> node = readPlain(std::move(value), line);
    if (!node) return std::unexpected(std::move(node.error()));
    return add(std::move(*node), anchor);
  }

  Parsed<void> open(Node::Type type, int line, const yaml_char_t* anchor, const yaml_char_t* tag) {
    if (tag != nullptr) return refuseTag(line);
    if (expectsKey()) return refuseKey(line);
    if (open_.size() >= static_cast<std::size_t>(kMaxDocumentDepth)) return refuseDepth(line);
    open_.push_back({Node::ofType(type, line), declare(anchor), {}, 0});
    return {};
  }

  Parsed<void> close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    return add(std::move(done.node), done.anchor);
  }

  Parsed<void> add(Node node, std::size_t anchor) {
    if (++nodes_ > kMaxDocumentNodes) return refuseCount(node.line);
    if (anchor != kNoAnchor) {
      // The copy is bounded too: nested anchors would otherwise keep a quadratic number of copies.
      if (auto counted = countCopy(node, node.line); !counted) return counted;
      anchors_[anchor] = node;
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return {};
    }
    Open& parent = open_.back();
    if (parent.node.type == Node::Type::list) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      if (node.type != Node::Type::text) return refuseKey(node.line);
      if (parent.node.members.size() >= kMaxTableKeys) return refuse(node.line, "a table holds too many keys");
      if (parent.node.find(node.text) != nullptr) {
        return refuse(node.line, "the key \"" + node.text + "\" is given twice");
      }
      parent.key = std::move(node.text);
      parent.key_line = node.line;
    } else {
      node.line = parent.key_line;
      parent.node.members.emplace_back(std::move(*parent.key), std::move(node));
      parent.key.reset();
    }
    return {};
  }

  Cursor cursor_;
  std::vector<Open> open_;
  std::map<std::string, std::size_t> anchor_names_;  ///< a redefined name refers to the latest anchor
  std::vector<std::optional<Node>> anchors_;
  Node root_;
  std::size_t nodes_ = 0;
  std::size_t copied_bytes_ = 0;
};

std::optional<SyntaxError> checkText(std::string_view text) {
  constexpr std::string_view kDirective = "%TAG";
  std::size_t directives = 0;
  for (auto at = text.find(kDirective); at != std::string_view::npos; at = text.find(kDirective, at + 1)) {
    if (++directives > kMaxTagDirectives) return SyntaxError{0, "the file holds too many %TAG directives"};
  }
  // YAML 1.1, which libyaml implements, treats these as line ends and folds them into a space; YAML 1.2 does not.
  for (const std::string_view old_break : {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
    if (const auto at = text.find(old_break); at != std::string_view::npos) {
      return SyntaxError{lineAt(text, at), "U+0085, U+2028 and U+2029 must be written as \\N, \\L and \\P"};
    }
  }
  return std::nullopt;
}

}  // namespace

Parsed<Node> readYaml(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (auto error = checkText(text)) return std::unexpected(std::move(*error));
  Parser parser(text);
  Builder builder(text);
  for (int documents = 0;;) {
    Event event;
    if (auto parsed = parser.next(event); !parsed) return std::unexpected(std::move(parsed.error()));
    if (event.raw.type == YAML_STREAM_END_EVENT) {
      if (documents == 0) return Node::ofType(Node::Type::table, 1);
      break;
    }
    if (event.raw.type == YAML_DOCUMENT_START_EVENT && ++documents > 1) {
      return refuse(0, "the file holds more than one YAML document");
    }
    if (auto taken = builder.take(event); !taken) return std::unexpected(std::move(taken.error()));
  }
  Node root = builder.takeRoot();
  if (root.type == Node::Type::null) root.type = Node::Type::table;
  return root;
}

}  // namespace caisson::policy
