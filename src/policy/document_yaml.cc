// YAML by yaml-cpp's event parser. Its node tree is not used: events let aliases be expanded under a bound, tell
// plain scalars from quoted ones, and never build a cycle.
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <charconv>
#include <map>
#include <optional>
#include <sstream>

#include "policy/document_readers.h"

namespace caisson::policy {

namespace {

/// Carries our own refusal out through yaml-cpp, which knows no other way to stop; caught in readYaml.
struct Refusal {
  SyntaxError error;
};

bool isDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::optional<Node> readInteger(std::string_view text, int line) {
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
  if (error == std::errc::result_out_of_range) throw Refusal{{line, "a number is too large"}};
  if (error != std::errc{}) return std::nullopt;
  return Node::ofInteger(value, line);
}

std::optional<Node> readFloating(std::string_view text, int line) {
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
  if (error == std::errc::result_out_of_range) throw Refusal{{line, "a number is too large"}};
  if (error != std::errc{}) return std::nullopt;
  return Node::ofFloating(text.starts_with("-") ? -value : value, line);
}

/// The YAML 1.2 core schema. `yes`, `on` and `0777` are what they look like: two strings and a decimal.
Node readPlain(const std::string& text, int line) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
    return Node::ofType(Node::Type::null, line);
  }
  if (text == "true" || text == "True" || text == "TRUE") return Node::ofBoolean(true, line);
  if (text == "false" || text == "False" || text == "FALSE") return Node::ofBoolean(false, line);
  if (auto integer = readInteger(text, line)) return *integer;
  if (auto floating = readFloating(text, line)) return *floating;
  return Node::ofText(text, line);
}

std::size_t countNodes(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items) count += countNodes(item);
  for (const auto& [key, member] : node.members) count += countNodes(member);
  return count;
}

int depthOf(const Node& node) {
  int deepest = 0;
  for (const Node& item : node.items) deepest = std::max(deepest, depthOf(item));
  for (const auto& [key, member] : node.members) deepest = std::max(deepest, depthOf(member));
  return deepest + 1;
}

class Handler final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(Node::ofType(Node::Type::null, lineOf(mark)), anchor, true);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    // An anchor is recorded when its node is complete, so an alias inside its own node is not found here.
    if (known == anchors_.end()) throw Refusal{{lineOf(mark), "an alias refers to a value that contains it"}};
    nodes_ += countNodes(known->second);
    if (nodes_ > kMaxDocumentNodes) throw Refusal{{lineOf(mark), "the file holds too many values"}};
    if (static_cast<int>(open_.size()) + depthOf(known->second) > kMaxDocumentDepth) {
      throw Refusal{{lineOf(mark), "values are nested too deep"}};
    }
    Node copy = known->second;
    copy.line = lineOf(mark);
    add(std::move(copy), 0, false);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    const int line = lineOf(mark);
    // yaml-cpp gives "?" for a plain scalar without a tag and "!" for a quoted or block one.
    if (tag == "!") return add(Node::ofText(value, line), anchor, false);
    refuseTag(tag, line);
    if (expectsKey() && value == "<<") throw Refusal{{line, "merge keys (<<) are refused; use `extends`"}};
    if (expectsKey()) return add(Node::ofText(value, line), anchor, true);
    add(readPlain(value, line), anchor, true);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    refuseTag(tag, lineOf(mark));
    open(Node::Type::list, lineOf(mark), anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    refuseTag(tag, lineOf(mark));
    open(Node::Type::table, lineOf(mark), anchor);
  }
  void OnMapEnd() override { close(); }

  Node takeRoot() { return std::move(root_); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor = 0;
    std::optional<std::string> key;
    int key_line = 0;
  };

  static int lineOf(const YAML::Mark& mark) { return mark.line + 1; }

  static void refuseTag(const std::string& tag, int line) {
    if (!tag.empty() && tag != "?") throw Refusal{{line, "tags have no meaning in a policy"}};
  }

  [[nodiscard]] bool expectsKey() const {
    return !open_.empty() && open_.back().node.type == Node::Type::table && !open_.back().key;
  }

  void open(Node::Type type, int line, YAML::anchor_t anchor) {
    if (expectsKey()) throw Refusal{{line, "a key must be a plain name"}};
    if (open_.size() >= static_cast<std::size_t>(kMaxDocumentDepth)) {
      throw Refusal{{line, "values are nested too deep"}};
    }
    open_.push_back({Node::ofType(type, line), anchor, {}, 0});
  }

  void close() {
    Open done = std::move(open_.back());
    open_.pop_back();
    add(std::move(done.node), done.anchor, false);
  }

  void add(Node node, YAML::anchor_t anchor, bool plain) {
    if (++nodes_ > kMaxDocumentNodes) throw Refusal{{node.line, "the file holds too many values"}};
    if (anchor != 0) remember(anchor, node);
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.type == Node::Type::list) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      if (node.type != Node::Type::text) throw Refusal{{node.line, "a key must be a plain name"}};
      if (plain && node.text == "<<") throw Refusal{{node.line, "merge keys (<<) are refused; use `extends`"}};
      if (parent.node.members.size() >= kMaxTableKeys) throw Refusal{{node.line, "a table holds too many keys"}};
      if (parent.node.find(node.text) != nullptr) {
        throw Refusal{{node.line, "the key \"" + node.text + "\" is given twice"}};
      }
      parent.key = std::move(node.text);
      parent.key_line = node.line;
    } else {
      node.line = parent.key_line;
      parent.node.members.emplace_back(std::move(*parent.key), std::move(node));
      parent.key.reset();
    }
  }

  void remember(YAML::anchor_t anchor, const Node& node) {
    // The copy is bounded too: nested anchors would otherwise keep a quadratic number of copies.
    nodes_ += countNodes(node);
    if (nodes_ > kMaxDocumentNodes) throw Refusal{{node.line, "the file holds too many values"}};
    anchors_[anchor] = node;
  }

  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  Node root_;
  std::size_t nodes_ = 0;
};

}  // namespace

Parsed<Node> readYaml(std::string_view text) {
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    Handler handler;
    if (!parser.HandleNextDocument(handler)) return Node::ofType(Node::Type::table, 1);
    Node root = handler.takeRoot();
    if (root.type == Node::Type::null) root.type = Node::Type::table;
    Handler second;
    if (parser.HandleNextDocument(second)) {
      return std::unexpected(SyntaxError{0, "the file holds more than one YAML document"});
    }
    return root;
  } catch (const Refusal& refusal) {
    return std::unexpected(refusal.error);
  } catch (const YAML::Exception& error) {
    return std::unexpected(SyntaxError{error.mark.is_null() ? 0 : error.mark.line + 1, "not YAML: " + error.msg});
  } catch (const std::exception& error) {
    return std::unexpected(SyntaxError{0, std::string("not readable as YAML: ") + error.what()});
  }
}

}  // namespace caisson::policy
