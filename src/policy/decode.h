// From a document to a policy. Nothing is ignored: an unknown key, a wrong type, an impossible value or two rules
// that contradict each other is an error that names the file, the line where it is known, and the key.
//
//   auto policy = policy::load("agent.toml");
//   auto other = policy::parse("resources.memory = \"256M\"", Format::toml, "<arguments>");
//
// A file starts from the profile or file its `extends` names, else from `bash`; each key it gives replaces that
// key, lists included. What that widens is recorded in Policy::widenings.
#pragma once

#include "caisson/error.h"
#include "policy/document.h"
#include "policy/limits.h"
#include "policy/model.h"

namespace caisson::policy {

/// Where a document comes from, as far as decoding it depends on that.
struct Origin {
  std::string directory;               ///< that a relative `extends` starts from; empty: only profiles can be named
  const Policy* base = nullptr;        ///< start from this instead; `extends` is then refused
  const Ceilings* ceilings = nullptr;  ///< an owner's; null: those of the policy's level
  std::vector<std::string> chain;      ///< files that led here by `extends`, to find a cycle
};

Result<Policy> decode(const Document& document, const Origin& origin);

/// Reads, decodes and checks a file; its extension says the format.
Result<Policy> load(const std::string& path);
Result<Policy> load(const std::string& path, const Ceilings& ceilings);

/// The same from text. `extends` can name built-in profiles only, since a text has no directory.
Result<Policy> parse(std::string_view text, Format format, std::string name);

/// Sets or extends one key from text, as a command-line flag does; a widening is recorded. The value is checked by
/// itself; that the policy as a whole agrees is validate()'s to say.
Result<void> setKey(Policy& policy, std::string_view key, std::string_view text);
Result<void> appendKey(Policy& policy, std::string_view key, std::string_view text);

}  // namespace caisson::policy
