#include "server/route.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.h"

namespace caisson::server {
namespace {

bool isParameter(std::string_view part) { return part.starts_with('{'); }

bool isNumber(std::string_view text, double& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && problem == std::errc() && end == text.data() + text.size();
}

bool inRange(const Field& field, double number) { return number >= field.least && number <= field.most; }

bool isChoice(const Field& field, std::string_view text) {
  if (field.choices.empty()) return true;
  const auto parts = split(field.choices, ',');
  return std::find(parts.begin(), parts.end(), text) != parts.end();
}

std::string rangeText(const Field& field) {
  return " from " + std::to_string(static_cast<std::int64_t>(field.least)) + " to " +
         std::to_string(static_cast<std::int64_t>(field.most));
}

bool areTexts(const Json& value) {
  return std::all_of(value.begin(), value.end(), [](const Json& item) { return item.is_string(); });
}

bool hasNul(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>().find('\0') != std::string::npos;
  return value.is_structured() && std::any_of(value.begin(), value.end(), hasNul);
}

/// What a value should have been; empty if it fits.
std::string expectation(const Field& field, const Json& value) {
  switch (field.type) {
    case FieldType::text:
      if (!value.is_string()) return "a string";
      return isChoice(field, value.get_ref<const std::string&>()) ? "" : "one of " + std::string(field.choices);
    case FieldType::integer:
      if (value.is_number_integer() && inRange(field, value.get<double>())) return "";
      return "an integer" + rangeText(field);
    case FieldType::number:
      return value.is_number() && inRange(field, value.get<double>()) ? "" : "a number" + rangeText(field);
    case FieldType::boolean: return value.is_boolean() ? "" : "true or false";
    case FieldType::texts: return value.is_array() && areTexts(value) ? "" : "a list of strings";
    case FieldType::variables: return value.is_object() && areTexts(value) ? "" : "an object of strings";
    case FieldType::object: return value.is_object() ? "" : "an object";
  }
  return "";
}

}  // namespace

std::vector<const Route*> allRoutes() {
  std::vector<const Route*> routes;
  for (const auto list :
       {sandboxRoutes(), commandRoutes(), fileRoutes(), historyRoutes(), networkRoutes(), serverRoutes()})
    for (const Route& route : list) routes.push_back(&route);
  return routes;
}

Match matchRoute(std::string_view method, const std::vector<std::string>& segments) {
  static const std::vector<const Route*> routes = allRoutes();
  Match match;
  for (const Route* route : routes) {
    const auto parts = split(route->pattern, '/');
    if (parts.size() != segments.size()) continue;
    std::vector<std::string> values;
    bool same = true;
    for (std::size_t i = 0; i < parts.size() && same; ++i) {
      if (isParameter(parts[i])) values.push_back(segments[i]);
      same = isParameter(parts[i]) || parts[i] == segments[i];
    }
    if (!same) continue;
    const bool head = method == "HEAD" && route->method == "GET" && route->content_type != "text/event-stream";
    if (route->method == method || head) return {route, std::move(values), ""};
    match.allowed += (match.allowed.empty() ? "" : ", ") + std::string(route->method);
  }
  return match;
}

std::string findBodyFlaw(const Route& route, const Json& body) {
  if (!body.is_object()) return "the body must be a JSON object";
  for (const auto& [name, value] : body.items()) {
    const auto field =
        std::find_if(route.fields.begin(), route.fields.end(), [&](const Field& one) { return one.name == name; });
    if (field == route.fields.end()) return "unknown field " + inQuotes(name);
    const std::string expected = expectation(*field, value);
    if (!expected.empty()) return "field " + inQuotes(name) + ": expected " + expected;
    if (name != "data" && name != "stdin" && hasNul(value)) return "field " + inQuotes(name) + ": contains NUL";
  }
  for (const Field& field : route.fields)
    if (field.required && !body.contains(field.name)) return "missing field " + inQuotes(field.name);
  return "";
}

std::string findQueryFlaw(const Route& route, const http::Target& target) {
  std::vector<std::string_view> seen;
  for (const auto& [name, value] : target.query) {
    const auto field =
        std::find_if(route.query.begin(), route.query.end(), [&](const Field& one) { return one.name == name; });
    if (field == route.query.end()) return "unknown query parameter " + inQuotes(name);
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) return "repeated query parameter " + inQuotes(name);
    seen.push_back(name);
    double number = 0;
    const bool numeric = field->type == FieldType::integer || field->type == FieldType::number;
    if (numeric && (!isNumber(value, number) || !inRange(*field, number) ||
                    (field->type == FieldType::integer && value.find('.') != std::string::npos)))
      return "query parameter " + inQuotes(name) + ": expected a number" + rangeText(*field);
    if (field->type == FieldType::boolean && value != "true" && value != "false")
      return "query parameter " + inQuotes(name) + ": expected true or false";
    if (field->type == FieldType::text && !isChoice(*field, value))
      return "query parameter " + inQuotes(name) + ": expected one of " + std::string(field->choices);
  }
  for (const Field& field : route.query)
    if (field.required && target.parameter(field.name) == nullptr)
      return "missing query parameter " + inQuotes(field.name);
  return "";
}

double Call::number(std::string_view name, double otherwise) const {
  const Json* value = find(body, name);
  return value != nullptr && value->is_number() ? value->get<double>() : otherwise;
}

std::vector<std::string> Call::texts(std::string_view name) const {
  const Json* value = find(body, name);
  return value != nullptr && value->is_array() ? value->get<std::vector<std::string>>() : std::vector<std::string>{};
}

std::string Call::query(std::string_view name) const {
  const std::string* value = request.head.target.parameter(name);
  return value == nullptr ? "" : *value;
}

std::uint64_t Call::queryNumber(std::string_view name, std::uint64_t otherwise) const {
  double number = 0;
  return isNumber(query(name), number) ? static_cast<std::uint64_t>(number) : otherwise;
}

bool Call::queryFlag(std::string_view name, bool otherwise) const {
  const std::string value = query(name);
  return value.empty() ? otherwise : value == "true";
}

namespace {

http::Response jsonText(int status, std::string text) {
  http::Response response{.status = status, .body = std::move(text)};
  response.headers.emplace_back("Content-Type", "application/json");
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

}  // namespace

http::Response jsonResponse(int status, const Json& value) { return jsonText(status, writeJson(value) + "\n"); }

bool JsonList::addText(std::string_view json) {
  if (text_.size() + json.size() > kMaxBytes) return false;
  if (!std::exchange(first_, false)) text_ += ',';
  text_ += json;
  return true;
}

http::Response JsonList::finish(std::string_view others) {
  text_ += ']';
  if (!others.empty()) text_.append(",").append(others);
  return jsonText(200, std::move(text_) + "}\n");
}

}  // namespace caisson::server
