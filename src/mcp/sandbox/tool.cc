#include "mcp/sandbox/tool.h"

#include "base/path_text.h"
#include "mcp/sandbox/operator_bounds.h"

namespace caisson::mcp {
namespace {

Json schemaOf(const Parameter& parameter) {
  Json schema{{"description", parameter.description}};
  switch (parameter.type) {
    case ParameterType::text:
      schema["type"] = "string";
      if (!parameter.choices.empty()) {
        Json choices = Json::array();
        for (std::string_view rest = parameter.choices; !rest.empty();) {
          const std::size_t bar = std::min(rest.find('|'), rest.size());
          choices.push_back(rest.substr(0, bar));
          rest.remove_prefix(std::min(bar + 1, rest.size()));
        }
        schema["enum"] = std::move(choices);
      }
      break;
    case ParameterType::integer:
      schema["type"] = "integer";
      if (parameter.least != 0 || parameter.most != 0) {
        schema["minimum"] = parameter.least;
        schema["maximum"] = parameter.most;
      }
      break;
    case ParameterType::boolean: schema["type"] = "boolean"; break;
    case ParameterType::texts:
      schema["type"] = "array";
      schema["items"] = {{"type", "string"}};
      break;
    case ParameterType::variables:
      schema["type"] = "object";
      schema["additionalProperties"] = {{"type", "string"}};
      break;
  }
  return schema;
}

/// The kernel cuts paths, arguments and names at a NUL; the rest would be checked but not used.
bool hasNul(const Json& text) { return text.get_ref<const std::string&>().find('\0') != std::string::npos; }

bool allTexts(const Json& values) {
  for (const Json& value : values)
    if (!value.is_string() || hasNul(value)) return false;
  return true;
}

bool isChoice(std::string_view value, std::string_view choices) {
  for (std::string_view rest = choices; !rest.empty();) {
    const std::size_t bar = std::min(rest.find('|'), rest.size());
    if (rest.substr(0, bar) == value) return true;
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return false;
}

std::string checkValue(const Parameter& parameter, const Json& value) {
  const std::string name = "`" + std::string(parameter.name) + "` ";
  switch (parameter.type) {
    case ParameterType::text:
      if (!value.is_string()) return name + "must be a string";
      if (!parameter.any_bytes && hasNul(value)) return name + "must not contain NUL";
      if (!parameter.choices.empty() && !isChoice(value.get_ref<const std::string&>(), parameter.choices))
        return name + "must be one of " + std::string(parameter.choices);
      return {};
    case ParameterType::integer: {
      const auto number = integerAt(Json{{"x", value}}, "x");
      if (!number) return name + "must be an integer";
      if ((parameter.least != 0 || parameter.most != 0) && (*number < parameter.least || *number > parameter.most))
        return name + "must be between " + std::to_string(parameter.least) + " and " + std::to_string(parameter.most);
      return {};
    }
    case ParameterType::boolean: return value.is_boolean() ? "" : name + "must be true or false";
    case ParameterType::texts:
      return value.is_array() && allTexts(value) ? "" : name + "must be a list of strings without NUL";
    case ParameterType::variables:
      return value.is_object() && allTexts(value) ? ""
                                                  : name + "must be an object whose values are strings without NUL";
  }
  return {};
}

}  // namespace

std::vector<std::string> Arguments::texts(std::string_view name) const {
  std::vector<std::string> list;
  if (const Json* values = find(values_, name))
    for (const Json& value : *values) list.push_back(value.get<std::string>());
  return list;
}

std::optional<std::string> Arguments::path(std::string_view name) const {
  return decodePath(text(name), text(std::string(name) + "_encoding"));
}

std::optional<std::vector<std::string>> Arguments::paths(std::string_view name) const {
  std::vector<std::string> decoded;
  const std::string encoding = text(std::string(name) + "_encoding");
  for (std::string& one : texts(name)) {
    auto path = decodePath(std::move(one), encoding);
    if (!path) return std::nullopt;
    decoded.push_back(std::move(*path));
  }
  return decoded;
}

std::map<std::string, std::string> Arguments::variables(std::string_view name) const {
  std::map<std::string, std::string> map;
  if (const Json* values = find(values_, name))
    for (const auto& [key, value] : values->items()) map[key] = value.get<std::string>();
  return map;
}

Json describeTool(const Tool& tool, const OperatorBounds& bounds) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const Parameter& parameter : tool.parameters) {
    if (!bounds.offers(parameter)) continue;
    properties[parameter.name] = schemaOf(parameter);
    if (!parameter.alias.empty()) {
      // A client that checks the schema must be able to send either name, so neither is in `required`.
      properties[parameter.alias] = schemaOf(parameter);
      properties[parameter.alias]["description"] = "Another name for " + std::string(parameter.name) + ".";
    } else if (parameter.required) {
      required.push_back(parameter.name);
    }
  }
  Json input{{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) input["required"] = std::move(required);
  Json output{{"type", "object"}, {"properties", Json::parse("{" + std::string(tool.output) + "}")}};
  Json described{{"name", tool.name},
                 {"title", tool.title},
                 {"description", tool.description},
                 {"inputSchema", std::move(input)},
                 {"outputSchema", std::move(output)},
                 {"annotations",
                  {{"title", tool.title},
                   {"readOnlyHint", tool.behaviour.read_only},
                   {"destructiveHint", tool.behaviour.destructive},
                   {"idempotentHint", tool.behaviour.idempotent},
                   {"openWorldHint", tool.behaviour.open_world}}}};
  if (tool.behaviour.task) described["execution"] = {{"taskSupport", "optional"}};  // of 2025-11-25
  return described;
}

std::string checkArguments(const Tool& tool, const Json& values) {
  for (const auto& [name, value] : values.items()) {
    bool known = false;
    for (const Parameter& parameter : tool.parameters) {
      if (parameter.name != name && (parameter.alias.empty() || parameter.alias != name)) continue;
      known = true;
      if (std::string problem = checkValue(parameter, value); !problem.empty()) return problem;
    }
    if (!known) return "`" + name + "` is not a parameter of " + std::string(tool.name);
  }
  for (const Parameter& parameter : tool.parameters) {
    const Json* value = find(values, parameter.name);
    const Json* other = parameter.alias.empty() ? nullptr : find(values, parameter.alias);
    if (value != nullptr && other != nullptr && *value != *other)
      return "`" + std::string(parameter.name) + "` and `" + std::string(parameter.alias) +
             "` are the same parameter and have different values";
    if (parameter.required && value == nullptr && other == nullptr)
      return "`" + std::string(parameter.name) + "` is missing";
  }
  return {};
}

Json withoutAliases(const Tool& tool, Json values) {
  for (const Parameter& parameter : tool.parameters) {
    const Json* other = parameter.alias.empty() ? nullptr : find(values, parameter.alias);
    if (other == nullptr) continue;
    values[std::string(parameter.name)] = Json(*other);
    values.erase(std::string(parameter.alias));
  }
  return values;
}

Json structuredResult(const Call& call, Json value, bool failed) {
  Json result = textResult(writeJson(value));
  if (failed) result["isError"] = true;
  if (hasStructuredContent(call.version)) result["structuredContent"] = std::move(value);
  return result;
}

void addLink(const Call& call, Json& result, const std::string& uri, std::string_view name, std::string_view type,
             std::optional<std::uint64_t> size) {
  if (!hasStructuredContent(call.version)) return;  // both came with 2025-06-18
  Json link{{"type", "resource_link"}, {"uri", uri}, {"name", name}, {"mimeType", type}};
  if (size) link["size"] = *size;
  result["content"].push_back(std::move(link));
}

}  // namespace caisson::mcp
