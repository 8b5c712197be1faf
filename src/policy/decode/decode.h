// Decodes a document into a policy. Nothing is ignored: an unknown key, a wrong type, an impossible value or
// contradictory rules are an error that names the file, the line if known, and the key.
//
//   auto policy = policy::load("agent.toml");
//   auto other = policy::parse("resources.memory = \"256M\"", Format::toml, "<arguments>");
//
// A file starts from the profile or file that its `extends` names, else from `bash`; each of its keys replaces the
// inherited one, lists included. A table in place of a list of tables changes single entries by their key
// (`filesystem.tmpfs."/tmp".size`). Widenings are recorded in Policy::widenings.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "caisson/error.h"
#include "policy/document/document.h"
#include "policy/limits.h"
#include "policy/model.h"

namespace caisson::policy {

/// Properties of a document's source that affect decoding.
struct Origin {
  std::string directory;         ///< base of a relative `extends`; empty: only profiles can be named
  const Policy* base = nullptr;  ///< start from this instead; `extends` is an error then, widenings are not recorded
  const Ceilings* ceilings = nullptr;  ///< an owner's; null: ceilingsOf(policy)
  std::vector<std::string> chain;      ///< files that led here by `extends`, to detect a cycle
};

/// Decodes and checks a document. An error lists its mistakes, 50 at most.
Result<Policy> decode(const Document& document, const Origin& origin);

/// Reads, decodes and checks a file; its extension selects the format.
Result<Policy> load(const std::string& path);
/// The same with these ceilings instead of ceilingsOf(policy).
Result<Policy> load(const std::string& path, const Ceilings& ceilings);

/// The same from text; `name` is its name in errors. `extends` can name built-in profiles only, since a text has no
/// directory.
Result<Policy> parse(std::string_view text, Format format, std::string name);

/// Sets one key from text, as a command-line flag does; a list gets the text as its only element. Records a widening if
/// that allows more. Checks only the value, not its ceiling; validate() checks the policy as a whole.
Result<void> setKey(Policy& policy, std::string_view key, std::string_view text);
/// The same, but adds to a list or to assignments; an unset list, which may mean "any", becomes a list of this element.
/// An error for a key that holds no list.
Result<void> appendKey(Policy& policy, std::string_view key, std::string_view text);

// For many texts: these record no widenings, for which each call above compares two policies.
Result<void> setUnrecorded(Policy& policy, std::string_view key, std::string_view text);
/// Checks a text as appendKey() does.
Result<void> checkEntry(std::string_view key, std::string_view text);
Result<void> appendUnrecorded(Policy& policy, std::string_view key, std::span<const std::string> texts);

}  // namespace caisson::policy
