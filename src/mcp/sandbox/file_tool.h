// What the tools share that write a file of a sandbox.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "caisson/session.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tool.h"

namespace caisson::mcp {

inline constexpr Parameter kEncoding{
    .name = "encoding", .description = "How content is given: utf-8 (default) or base64.", .choices = "utf-8|base64"};
inline constexpr Parameter kExecutable{
    .name = "executable", .type = ParameterType::boolean, .description = "Make the file executable (mode 0755)."};

/// The bytes of `content`, decoded as `encoding` says, or what is wrong with them.
std::expected<std::string, std::string> givenContent(const Arguments& arguments);

/// For a path anywhere in the sandbox, with the mode that `executable` asks for.
WriteOptions writeOptions(const Arguments& arguments);

struct WrittenFile {
  std::string path;
  std::string_view type;
  std::uint64_t size = 0;
};
/// A result about a file: `value` with the file's `path` and its address as `uri`, and a link.
Json fileResult(const Call& call, const Sandbox& sandbox, const WrittenFile& file, Json value);

}  // namespace caisson::mcp
