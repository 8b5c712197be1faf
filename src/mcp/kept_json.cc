#include "mcp/kept_json.h"

#include <set>
#include <string>
#include <vector>

namespace caisson::mcp {
namespace {

/// A decimal number as its digits without zeros at both ends, and the power of ten of the last one.
struct Decimal {
  std::string digits;
  long long exponent = 0;
  friend bool operator==(const Decimal&, const Decimal&) = default;
};

Decimal decimalOf(std::string_view text) {
  Decimal number;
  const std::size_t mark = text.find_first_of("eE");
  if (mark != std::string_view::npos) {
    // The parser accepts it as a double, so the exponent is short unless the digits are all 0.
    std::string_view exponent = text.substr(mark + 1);
    const bool negative = exponent.starts_with('-');
    for (const char letter : exponent.substr(0, 12))
      if (letter >= '0' && letter <= '9') number.exponent = number.exponent * 10 + (letter - '0');
    if (negative) number.exponent = -number.exponent;
  }
  bool fraction = false;
  for (const char letter : text.substr(0, mark)) {
    if (letter == '.') fraction = true;
    if (letter < '0' || letter > '9') continue;
    number.digits += letter;
    if (fraction) --number.exponent;
  }
  while (number.digits.ends_with('0')) {
    number.digits.pop_back();
    ++number.exponent;
  }
  number.digits.erase(0, number.digits.find_first_not_of('0'));
  if (number.digits.empty()) number.exponent = 0;
  return number;
}

/// Finds what a parsed document would lose.
class LossFinder : public nlohmann::json_sax<OrderedJson> {
 public:
  std::string loss;  ///< empty: nothing

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t value, const string_t& text) override {
    if (decimalOf(OrderedJson(value).dump()) == decimalOf(text)) return true;
    loss = "the number " + text.substr(0, 60) + " in it would be rounded";
    return false;
  }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override {
    keys_.emplace_back();
    return true;
  }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    loss = "the key \"" + name.substr(0, 60) + "\" occurs twice in one object of it";
    return false;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool start_array(std::size_t /*size*/) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t /*at*/, const std::string& /*last*/, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  std::vector<std::set<std::string>> keys_;  ///< of the objects around
};

}  // namespace

std::expected<OrderedJson, std::string> readKept(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return OrderedJson::object();
  LossFinder finder;
  if (!OrderedJson::sax_parse(text.begin(), text.end(), &finder) && !finder.loss.empty())
    return std::unexpected(finder.loss);
  OrderedJson whole = OrderedJson::parse(text.begin(), text.end(), nullptr, false);
  if (!whole.is_object()) return std::unexpected("it is not plain JSON (comments?)");
  return whole;
}

}  // namespace caisson::mcp
