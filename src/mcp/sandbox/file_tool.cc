#include "mcp/sandbox/file_tool.h"

#include "base/base64.h"
#include "base/path_text.h"
#include "mcp/sandbox/resources.h"

namespace caisson::mcp {

std::expected<std::string, std::string> givenContent(const Arguments& arguments) {
  std::string content = arguments.text("content");
  if (arguments.text("encoding") != "base64") return content;
  auto bytes = decodeBase64(content);
  if (!bytes) return std::unexpected("`content` is not valid base64");
  return *std::move(bytes);
}

WriteOptions writeOptions(const Arguments& arguments) {
  WriteOptions options{.reach = FileReach::sandbox};
  if (arguments.flag("executable")) options.mode = 0755;
  return options;
}

Json fileResult(const Call& call, const Sandbox& sandbox, const WrittenFile& file, Json value) {
  const std::string uri = fileUri(sandbox, file.path);
  setBytes(value, "path", file.path);
  value["uri"] = uri;
  Json result = structuredResult(call, std::move(value));
  addLink(call, result, uri, displayedPath(file.path), file.type, file.size);
  return result;
}

}  // namespace caisson::mcp
