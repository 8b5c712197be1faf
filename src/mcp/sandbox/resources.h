// Sandbox resources by address, and the completion of addresses and arguments.
//
//   caisson://sandboxes                            all of them, as JSON
//   caisson://{sandbox_id}/info                    one of them
//   caisson://{sandbox_id}/fs/{+path}              a file of its workspace, or what is in a directory
//   caisson://{sandbox_id}/root/{+path}            the same for a path from its root directory on
//                                                  both with ?offset=N&limit=N for a part of a large file
//   caisson://{sandbox_id}/exec/{exec_id}/stdout   the whole output that is kept (or stderr)
//   caisson://{sandbox_id}/audit                   what is on record about it
#pragma once

#include "mcp/sandbox/sandboxes.h"
#include "mcp/server/features.h"

namespace caisson::mcp {

/// Of each sandbox its info, top directory and audit records; other files and outputs have only templates.
Json listResources(Sandboxes& sandboxes);
Json listTemplates();
Outcome readResource(Sandboxes& sandboxes, const Call& call);
Outcome completeArgument(Sandboxes& sandboxes, const Call& call);  // completion.cc

// The addresses.
/// `path`: relative to the workspace, or absolute inside.
std::string fileUri(const Sandbox& sandbox, std::string_view path);
struct FileAddress {
  std::string sandbox_id, path;  ///< the path as tools take it
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> limit;
};
/// Parses what fileUri() returns, with or without a range; nothing for any other text.
std::optional<FileAddress> parseFileUri(std::string_view uri);
std::string outputUri(const Sandbox& sandbox, std::string_view exec_id, std::string_view stream);
std::string auditUri(const Sandbox& sandbox);

// contents.cc: their contents.
/// A file up to 1 MiB, a part of a file, or the entries of a directory as JSON; larger files are an error.
Outcome readFileContent(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, const std::string& uri,
                        const FileAddress& address);
/// `rest` is the address after exec/.
/// What is kept of a command's output so far, at most 4 MiB.
Outcome readOutputContent(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, const std::string& uri,
                          std::string_view rest);
/// The newest 500 records about the sandbox, as JSON.
Outcome readAuditContent(const Call& call, const Sandbox& sandbox, const std::string& uri);
Json jsonContent(const std::string& uri, const Json& value);
/// Whether bytes are sent as text, else as base64. Control characters make JSON six times as long as the file, so bytes
/// with many of them count as binary.
bool isSentAsText(std::string_view bytes);
/// Removes the part of a character at the end of a piece; the rest of it is in the next piece.
void endAtCharacter(std::string& data);
/// The MIME type of a file, by its name, else by whether these bytes of it are text.
std::string_view mimeTypeOf(std::string_view path, std::string_view bytes);

}  // namespace caisson::mcp
