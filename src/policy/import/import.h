// Imports policies written for other sandboxes.
//
//   agent            JSON  {"sandbox": {"bash": {"defaultNetwork": ...}}}
//   compose          YAML  services.sandbox
//   shell-toml       TOML  [sandbox] with timeout, memory_limit, network_mode
//   declared-policy  JSON  {"isolationLevel": "LEVEL_2", "filesystem": {...}}
//   cargo            YAML  sandbox_config, process_limits, execution_policy ...
//   srt              JSON  {"network": {"allowedDomains": ...}, "filesystem": {"allowWrite": ...}}
//   devcontainer     JSON with comments: image, mounts, containerEnv, runArgs ...
//
// The result is a native policy and a report: what was imported, what could not be, what was rejected as unsafe, what
// became wider than ours. Nothing is dropped silently: an unknown key is an error, as in our own files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/document/document.h"
#include "policy/limits.h"
#include "policy/model.h"

namespace caisson::policy {

struct ImportNote {
  enum class Kind : std::uint8_t {
    lossy,     ///< has no counterpart here, or is always so here
    unsafe,    ///< rejected: it would weaken the sandbox below caisson's minimum
    widening,  ///< wider than the profile it starts from
  };
  Kind kind = Kind::lossy;
  std::string key;  ///< of the foreign document
  std::string text;
};

/// For the report: "not taken over", "refused as unsafe", "wider".
std::string_view name(ImportNote::Kind kind);

struct Imported {
  std::string shape;  ///< one of the names above
  Policy policy;
  std::vector<std::string> extra_ceilings;  ///< of an owner's configuration: "memory = 2147483648"
  std::vector<ImportNote> notes;
};

/// Blanks out the comments and trailing commas that devcontainer.json may have; lines stay where they are.
std::string withoutComments(std::string_view json);

/// Detects the shape of a document and imports it. An error for an unknown shape. Absolute paths below `workspace`, the
/// canonical path of the directory that the document is for, are those of the workspace; "" if it is not known.
Result<Imported> importPolicy(const Document& document, std::string_view workspace = {});

}  // namespace caisson::policy
