// JSON by nlohmann's event parser: it builds no tree, so duplicate keys and depth are checked while parsing.
#include <iterator>
#include <nlohmann/json.hpp>

#include "policy/document/readers.h"

namespace caisson::policy {

namespace {

/// The line of the token just read. A newline counts only once the character after it is read: the lexer reads one
/// character past a number and puts it back.
struct LineCounter {
  int line = 1;
  bool pending = false;

  void take(char letter) {
    if (pending) ++line;
    pending = letter == '\n';
  }
};

struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  LineCounter* counter = nullptr;

  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    counter->take(*at);
    ++at;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const CountingIterator& a, const CountingIterator& b) { return a.at == b.at; }
};

class Handler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Handler(const LineCounter& counter) : counter_(counter) {}

  bool null() override { return add(Node::ofType(Node::Type::null, counter_.line)); }
  bool boolean(bool value) override { return add(Node::ofBoolean(value, counter_.line)); }
  bool number_integer(number_integer_t value) override { return add(Node::ofInteger(value, counter_.line)); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) return stop("a number is too large");
    return add(Node::ofInteger(static_cast<std::int64_t>(value), counter_.line));
  }
  bool number_float(number_float_t value, const string_t& text) override {
    // An integer that does not fit arrives here, already rounded.
    if (text.find_first_of(".eE") == string_t::npos) return stop("a number is too large");
    return add(Node::ofFloating(value, counter_.line));
  }
  bool string(string_t& value) override { return add(Node::ofText(std::move(value), counter_.line)); }
  bool binary(binary_t& /*value*/) override { return stop("binary data has no meaning in a policy"); }
  bool start_object(std::size_t /*size*/) override { return open(Node::Type::table); }
  bool start_array(std::size_t /*size*/) override { return open(Node::Type::list); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    if (open_.back().node.members.size() >= kMaxTableKeys) return stop("a table holds too many keys");
    if (open_.back().node.find(value) != nullptr) return stop("the key \"" + value + "\" is given twice");
    open_.back().key = std::move(value);
    open_.back().key_line = counter_.line;
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& token,
                   const nlohmann::json::exception& error) override {
    if (error.id == 406) return stop("a number is too large");
    return stop("not JSON near \"" + token.substr(0, 40) + "\"");
  }

  Parsed<Node> finish() {
    if (!error_.reason.empty()) return std::unexpected(std::move(error_));
    return std::move(root_);
  }

 private:
  struct Open {
    Node node;
    std::string key;
    int key_line = 0;
  };

  bool stop(std::string reason) {
    if (error_.reason.empty()) error_ = {counter_.line, std::move(reason)};
    return false;
  }

  bool open(Node::Type type) {
    if (open_.size() >= static_cast<std::size_t>(kMaxDocumentDepth)) return stop("values are nested too deep");
    open_.push_back({Node::ofType(type, counter_.line), {}, 0});
    return true;
  }

  bool close() {
    Node done = std::move(open_.back().node);
    open_.pop_back();
    return add(std::move(done));
  }

  bool add(Node node) {
    if (++nodes_ > kMaxDocumentNodes) return stop("the file holds too many values");
    if (open_.empty()) {
      root_ = std::move(node);
      return true;
    }
    Open& parent = open_.back();
    if (parent.node.type == Node::Type::list) {
      parent.node.items.push_back(std::move(node));
    } else {
      node.line = parent.key_line;
      parent.node.members.emplace_back(std::move(parent.key), std::move(node));
    }
    return true;
  }

  const LineCounter& counter_;
  std::vector<Open> open_;
  Node root_;
  SyntaxError error_;
  std::size_t nodes_ = 0;
};

}  // namespace

Parsed<Node> readJson(std::string_view text) {
  try {
    LineCounter counter;
    Handler handler(counter);
    const CountingIterator first{text.data(), &counter};
    const CountingIterator last{text.data() + text.size(), &counter};
    nlohmann::json::sax_parse(first, last, &handler);
    return handler.finish();
  } catch (const std::exception& error) {
    return std::unexpected(SyntaxError{0, std::string("not readable as JSON: ") + error.what()});
  }
}

}  // namespace caisson::policy
