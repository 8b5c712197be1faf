// Sandbox resources by address, and the completion of addresses and arguments.
//
//   caisson://sandboxes                            all of them, as JSON
//   caisson://{sandbox_id}/info                    one of them
//   caisson://{sandbox_id}/fs/{+path}              a file of its workspace, or what is in a directory
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
std::string fileUri(const Sandbox& sandbox, std::string_view path);
std::string outputUri(const Sandbox& sandbox, std::string_view exec_id, std::string_view stream);
std::string auditUri(const Sandbox& sandbox);

// contents.cc: their contents. `rest` is the address after fs/ or exec/.
/// A file up to 1 MiB, or the entries of a directory as JSON; larger files are an error.
Outcome readFileContent(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, const std::string& uri,
                        std::string_view rest);
/// What is kept of a command's output so far, at most 4 MiB.
Outcome readOutputContent(Sandboxes& sandboxes, const Call& call, Sandbox& sandbox, const std::string& uri,
                          std::string_view rest);
/// The newest 500 records about the sandbox, as JSON.
Outcome readAuditContent(const Call& call, const Sandbox& sandbox, const std::string& uri);
Json jsonContent(const std::string& uri, const Json& value);

}  // namespace caisson::mcp
