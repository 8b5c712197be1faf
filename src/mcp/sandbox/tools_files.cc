// Tools for files of a sandbox, as its commands see them.
#include <cerrno>

#include "base/base64.h"
#include "base/path_text.h"
#include "mcp/sandbox/file_tool.h"
#include "mcp/sandbox/resources.h"
#include "mcp/sandbox/sandboxes.h"
#include "mcp/sandbox/tools.h"

namespace caisson::mcp {
namespace {

constexpr std::int64_t kUsualPiece = 48'000;  ///< the part of a result that hosts show
constexpr std::int64_t kLargestPiece = 1 << 20;
constexpr std::size_t kMaxEntries = 1000;
constexpr std::uint64_t kLargestAppended = std::uint64_t{64} << 20U;
constexpr std::uint64_t kLargestEdited = std::uint64_t{16} << 20U;

constexpr Parameter kPath{.name = "path",
                          .required = true,
                          .description =
                              "Relative to /workspace, or absolute: any path that a command in the sandbox "
                              "sees, such as /tmp/x."};

constexpr Parameter kReadParameters[] = {
    kSandboxId,
    kPath,
    kPathEncoding,
    {.name = "offset",
     .type = ParameterType::integer,
     .description = "Start at this byte (default 0).",
     .least = 0,
     .most = INT64_MAX},
    {.name = "limit",
     .type = ParameterType::integer,
     .description = "At most this many bytes (default 48000).",
     .least = 1,
     .most = kLargestPiece},
};

constexpr Parameter kWriteParameters[] = {
    kSandboxId,
    kPath,
    kPathEncoding,
    {.name = "content", .required = true, .description = "The whole new content.", .any_bytes = true},
    kEncoding,
    {.name = "append", .type = ParameterType::boolean, .description = "Add to the end instead of replacing."},
    kExecutable,
};

constexpr Parameter kEditParameters[] = {
    kSandboxId,
    kPath,
    kPathEncoding,
    {.name = "old_text",
     .required = true,
     .description = "The exact text to replace, with enough around it to be found once only.",
     .any_bytes = true},
    {.name = "new_text", .required = true, .description = "What to put in its place.", .any_bytes = true},
    {.name = "replace_all", .type = ParameterType::boolean, .description = "Replace every place where it is found."},
};

Json describeEntries(const std::string& path, const std::vector<FileEntry>& entries) {
  Json list = Json::array();
  for (const FileEntry& entry : entries) {
    if (list.size() == kMaxEntries) break;
    Json one{{"type", entry.type}, {"size", entry.size}, {"modified", entry.modified}};
    setBytes(one, "name", entry.name);
    list.push_back(std::move(one));
  }
  const bool cut = entries.size() > list.size();
  Json value{
      {"type", "directory"}, {"entries", std::move(list)}, {"total_entries", entries.size()}, {"truncated", cut}};
  setBytes(value, "path", path);
  return value;
}

Outcome readFile(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  const auto given_path = arguments.path("path");
  if (!given_path) return errorResult(kInvalidPath);
  const std::string& path = *given_path;
  const auto offset = static_cast<std::uint64_t>(arguments.integer("offset").value_or(0));
  const auto limit = static_cast<std::uint64_t>(arguments.integer("limit").value_or(kUsualPiece));
  auto piece = sandboxes.with(**sandbox,
                              [&](Session& session) { return session.read(path, offset, limit, FileReach::sandbox); });
  const bool other = !piece && piece.error().sys_errno != EISDIR && piece.error().sys_errno != ELOOP;
  if (other) return failure(call, piece.error());
  if (!piece) {
    const auto entries = sandboxes.with(
        **sandbox, [&](Session& session) { return session.listFiles(path, nullptr, FileReach::sandbox); });
    return entries ? structuredResult(call, describeEntries(path, *entries)) : failure(call, entries.error());
  }
  const bool more = offset + piece->data.size() < piece->size;
  if (more) endAtCharacter(piece->data);
  Json value{{"type", "file"}, {"size", piece->size}, {"offset", offset}, {"truncated", more}};
  setBytes(value, "path", path);
  if (more) value["next_offset"] = offset + piece->data.size();
  const bool text = isSentAsText(piece->data);
  const std::string uri = fileUri(**sandbox, path);
  const std::string_view type = mimeTypeOf(path, piece->data);
  value["encoding"] = text ? "utf-8" : "base64";
  value["mime_type"] = type;
  value["uri"] = uri;
  value["content"] = text ? std::move(piece->data) : encodeBase64(piece->data);
  Json result = structuredResult(call, std::move(value));
  addLink(call, result, uri, displayedPath(path), type, piece->size);
  return result;
}

Outcome writeFile(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  const auto given_path = arguments.path("path");
  if (!given_path) return errorResult(kInvalidPath);
  const std::string& path = *given_path;
  auto decoded = givenContent(arguments);
  if (!decoded) return errorResult(decoded.error());
  std::string content = *std::move(decoded);
  const std::size_t given = content.size();
  const WriteOptions options = writeOptions(arguments);
  const auto written = sandboxes.with(**sandbox, [&](Session& session) -> Result<void> {
    if (arguments.flag("append")) {
      auto before = session.read(path, 0, kLargestAppended, FileReach::sandbox);
      if (!before && before.error().sys_errno != ENOENT) return std::unexpected(before.error());
      if (before && before->size > before->data.size())
        return std::unexpected(Error{.stage = Stage::usage,
                                     .call = "append",
                                     .object = path,
                                     .reason = "the file is too large for this tool",
                                     .hint = "use cat >> in sandbox_execute"});
      if (before) content.insert(0, before->data);
    }
    return session.write(path, content, options);
  });
  if (!written) return failure(call, written.error());
  const std::string_view type = mimeTypeOf(path, content);
  return fileResult(call, **sandbox, {path, type, content.size()},
                    {{"bytes_written", given}, {"size", content.size()}, {"mime_type", type}});
}

std::size_t countPlaces(const std::string& text, const std::string& wanted) {
  std::size_t places = 0;
  for (std::size_t at = 0; (at = text.find(wanted, at)) != std::string::npos; at += wanted.size()) ++places;
  return places;
}

std::string replacePlaces(const std::string& text, const std::string& before, const std::string& after) {
  std::string changed;
  std::size_t from = 0;
  for (std::size_t at = 0; (at = text.find(before, from)) != std::string::npos; from = at + before.size())
    changed.append(text, from, at - from).append(after);
  return changed.append(text, from);
}

/// Why an edit of a file with `size` bytes, which has the old text at `places`, is refused; empty if it is not. Call it
/// before the result is built: a short text at many places can make any size of it, outside every limit of the sandbox.
std::string findEditProblem(const Arguments& arguments, std::size_t size, std::size_t places) {
  if (places == 0) return "`old_text` is not in the file; read it again, white space counts";
  if (places > 1 && !arguments.flag("replace_all"))
    return "`old_text` is in the file " + std::to_string(places) +
           " times; give more of the text around it, or set replace_all";
  const std::uint64_t result =
      size - places * arguments.text("old_text").size() + std::uint64_t{places} * arguments.text("new_text").size();
  if (result <= kLargestEdited) return {};
  return "the edited file would have " + std::to_string(result) + " bytes, and at most " +
         std::to_string(kLargestEdited) + " can be edited here; use sed in sandbox_execute";
}

Outcome editFile(Sandboxes& sandboxes, Call& call, const Arguments& arguments) {
  auto sandbox = sandboxes.find(arguments.text("sandbox_id"));
  if (!sandbox) return failure(call, sandbox.error());
  const auto given_path = arguments.path("path");
  if (!given_path) return errorResult(kInvalidPath);
  const std::string& path = *given_path;
  const std::string before = arguments.text("old_text");
  const std::string after = arguments.text("new_text");
  if (before.empty()) return errorResult("`old_text` is empty; use sandbox_write_file to make a file");
  std::size_t places = 0, size = 0;
  std::string problem;
  std::string_view type;
  const auto edited = sandboxes.with(**sandbox, [&](Session& session) -> Result<void> {
    auto piece = session.read(path, 0, kLargestEdited, FileReach::sandbox);
    if (!piece) return std::unexpected(piece.error());
    if (piece->size > kLargestEdited) {
      problem = "the file is too large to be edited here; use sed in sandbox_execute";
      return {};
    }
    places = countPlaces(piece->data, before);
    problem = findEditProblem(arguments, piece->data.size(), places);
    if (!problem.empty()) return {};
    const std::string changed = replacePlaces(piece->data, before, after);
    size = changed.size();
    type = mimeTypeOf(path, changed);
    return session.write(path, changed, {.reach = FileReach::sandbox});
  });
  if (!edited) return failure(call, edited.error());
  if (!problem.empty()) return errorResult(problem);
  return fileResult(call, **sandbox, {path, type, size}, {{"replacements", places}, {"size", size}});
}

}  // namespace

constinit const Tool kReadTool{
    .name = "sandbox_read_file",
    .title = "Read a file or list a directory",
    .description =
        "Read a file of the sandbox, or list a directory if the path is one, with the rights of a command in it: "
        "/workspace, /tmp, the home directory and the others. Not /proc, /sys and devices: use a command for these. "
        "Text comes as it is, other bytes as base64 (see encoding). When truncated is true, go on at next_offset.",
    .parameters = kReadParameters,
    .output = R"("path":{"type":"string"},"type":{"type":"string","enum":["file","directory"]},
      "size":{"type":"integer"},"offset":{"type":"integer"},"next_offset":{"type":"integer"},
      "truncated":{"type":"boolean"},"encoding":{"type":"string","enum":["utf-8","base64"]},
      "mime_type":{"type":"string"},
      "uri":{"type":"string","description":"The file as a resource"},"content":{"type":"string"},"entries":{"type":"array","items":{"type":"object"}},
      "total_entries":{"type":"integer"})",
    .behaviour = {.read_only = true, .destructive = false, .idempotent = true},
    .perform = readFile,
};

constinit const Tool kWriteTool{
    .name = "sandbox_write_file",
    .title = "Write a file",
    .description =
        "Make or replace a file of the sandbox, in /workspace or wherever a command in it may write; missing "
        "directories "
        "are made. The user's own file of that name is not changed.",
    .parameters = kWriteParameters,
    .output = R"("path":{"type":"string"},"bytes_written":{"type":"integer"},"size":{"type":"integer"},
      "mime_type":{"type":"string"},"uri":{"type":"string","description":"The file as a resource"})",
    .behaviour = {.destructive = true, .idempotent = true},
    .perform = writeFile,
};

constinit const Tool kEditTool{
    .name = "sandbox_edit_file",
    .title = "Edit a file",
    .description = "Replace an exact piece of text in a file of the sandbox.",
    .parameters = kEditParameters,
    .output = R"("path":{"type":"string"},"replacements":{"type":"integer"},"size":{"type":"integer"},
      "uri":{"type":"string","description":"The file as a resource"})",
    .behaviour = {.destructive = true},
    .perform = editFile,
};

}  // namespace caisson::mcp
