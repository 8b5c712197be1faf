// Checks a JSON value against a JSON Schema.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

namespace caisson::test {

/// The keywords of JSON Schema that our schema uses. Strict: a field that the schema does not describe is an error too,
/// so that no field is added without it.
class JsonSchemaCheck {
 public:
  std::vector<std::string> errors;

  void check(const nlohmann::json& schema, const nlohmann::json& value, const std::string& path) {
    for (const auto& [keyword, argument] : schema.items()) apply(keyword, argument, schema, value, path);
    if (value.is_object() && schema.contains("properties")) {
      for (const auto& [name, member] : value.items()) {
        const bool known = schema["properties"].contains(name);
        if (!known) errors.push_back(path + "." + name + " is not described");
        if (known) check(schema["properties"][name], member, path + "." + name);
      }
    }
  }

 private:
  static bool isType(const std::string& type, const nlohmann::json& value) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_boolean();
    return type == "null" && value.is_null();
  }

  void apply(const std::string& keyword, const nlohmann::json& argument, const nlohmann::json& schema,
             const nlohmann::json& value, const std::string& path) {
    bool good = true;
    if (keyword == "type") {
      const nlohmann::json types = argument.is_array() ? argument : nlohmann::json::array({argument});
      good = std::any_of(types.begin(), types.end(), [&](const nlohmann::json& type) { return isType(type, value); });
    } else if (keyword == "enum") {
      good = std::find(argument.begin(), argument.end(), value) != argument.end();
    } else if (keyword == "const") {
      good = value == argument;
    } else if (keyword == "minimum") {
      good = !value.is_number() || value >= argument;
    } else if (keyword == "maximum") {
      good = !value.is_number() || value <= argument;
    } else if (keyword == "pattern") {
      good = !value.is_string() || std::regex_search(value.get<std::string>(), std::regex(argument.get<std::string>()));
    } else if (keyword == "required") {
      for (const auto& name : argument) good = good && value.contains(name);
    } else if (keyword == "items") {
      for (std::size_t at = 0; value.is_array() && at < value.size(); ++at)
        check(argument, value[at], path + "[" + std::to_string(at) + "]");
    } else if (keyword == "additionalProperties") {
      for (const auto& [name, member] : value.items())
        if (!schema.contains("properties") || !schema["properties"].contains(name))
          check(argument, member, path + "." + name);
    } else if (keyword != "properties" && keyword != "$schema" && keyword != "title" && keyword != "description") {
      good = false;  // a keyword that this validator does not know
    }
    if (!good) errors.push_back(path + ": " + keyword + " " + argument.dump() + ", got " + value.dump().substr(0, 200));
  }
};

}  // namespace caisson::test
