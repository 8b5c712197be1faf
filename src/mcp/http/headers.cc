#include "mcp/http/headers.h"

#include "base/base64.h"
#include "mcp/protocol/version.h"

namespace caisson::mcp {
namespace {

RpcError mismatch(std::string_view header, std::string_view reason) {
  return {code::kHeaderMismatch, "header " + std::string(header) + ": " + std::string(reason), {}};
}

std::optional<RpcError> compare(const http::RequestHead& request, std::string_view header, std::string_view lower_case,
                                std::string_view expected) {
  const std::string* given = request.header(lower_case);
  if (given == nullptr) return mismatch(header, "is missing");
  const auto value = decodeHeaderValue(*given);
  if (!value) return mismatch(header, "is not valid base64");
  if (*value != expected) return mismatch(header, "does not agree with the body");
  return std::nullopt;
}

/// The header form of a mirrored parameter.
std::optional<std::string> headerText(const Json& value) {
  if (value.is_string()) return value.get_ref<const std::string&>();
  if (value.is_boolean() || value.is_number()) return writeJson(value);
  return std::nullopt;
}

std::string lowerCase(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

std::optional<RpcError> checkParameters(const http::RequestHead& request, const Message& message, const Json& tools) {
  const auto name = textAt(message.params, "name");
  for (const Json& tool : tools) {
    if (textAt(tool, "name") != name) continue;
    const Json* schema = findObject(tool, "inputSchema");
    const Json* properties = schema == nullptr ? nullptr : findObject(*schema, "properties");
    if (properties == nullptr) return std::nullopt;
    for (const auto& [parameter, description] : properties->items()) {
      const auto header = textAt(description, "x-mcp-header");
      if (!header) continue;
      const Json* arguments = findObject(message.params, "arguments");
      const Json* argument = arguments == nullptr ? nullptr : find(*arguments, parameter);
      const auto expected = argument == nullptr ? std::nullopt : headerText(*argument);
      const std::string full = "Mcp-Param-" + *header;
      if (!expected) {
        if (request.header(lowerCase(full)) != nullptr) return mismatch(full, "has no counterpart in the body");
        continue;
      }
      if (auto problem = compare(request, full, lowerCase(full), *expected)) return problem;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> decodeHeaderValue(std::string_view value) {
  constexpr std::string_view kBegin = "=?base64?";
  constexpr std::string_view kEnd = "?=";
  if (value.size() < kBegin.size() + kEnd.size() || !value.starts_with(kBegin) || !value.ends_with(kEnd))
    return std::string(value);
  return decodeBase64(value.substr(kBegin.size(), value.size() - kBegin.size() - kEnd.size()));
}

std::optional<RpcError> checkHeaders(const http::RequestHead& request, const Message& message, const Json& tools) {
  const Json* meta = findObject(message.params, "_meta");
  if (const auto version = meta == nullptr ? std::nullopt : textAt(*meta, meta::kProtocolVersion)) {
    if (auto problem = compare(request, "MCP-Protocol-Version", "mcp-protocol-version", *version)) return problem;
  }
  if (auto problem = compare(request, "Mcp-Method", "mcp-method", message.method)) return problem;
  const char* subject = nullptr;
  if (message.method == "tools/call" || message.method == "prompts/get") subject = "name";
  if (message.method == "resources/read") subject = "uri";
  if (message.method == "tasks/get" || message.method == "tasks/update" || message.method == "tasks/cancel")
    subject = "taskId";
  if (subject == nullptr) return std::nullopt;
  if (const auto name = textAt(message.params, subject)) {
    if (auto problem = compare(request, "Mcp-Name", "mcp-name", *name)) return problem;
  }
  return message.method == "tools/call" ? checkParameters(request, message, tools) : std::nullopt;
}

}  // namespace caisson::mcp
