// The table of all policy keys: one row per key.
//
// Decoding, setting a key from text, comparing, printing, the JSON Schema and the compiled profiles all walk this
// table, so a new key is one member in model.h and one row in fields.cc. A key's path is the member's path.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "policy/model.h"

namespace caisson::policy {

/// A field's value. std::monostate: unset.
using Value = std::variant<std::monostate, bool, std::uint64_t, double, std::string, std::vector<std::string>,
                           std::vector<std::uint64_t>, std::map<std::string, std::string>, std::vector<Tmpfs>,
                           std::vector<Credential>>;

enum class Kind : std::uint8_t {
  boolean,      ///< bool
  count,        ///< uint64
  size,         ///< uint64, bytes
  number,       ///< double
  seconds,      ///< double
  text,         ///< string
  choice,       ///< string, one of `choices`
  texts,        ///< list of strings
  choices,      ///< list of strings, each one of `choices`
  numbers,      ///< list of uint64
  assignments,  ///< names with values
  tmpfs,        ///< list of Tmpfs
  credentials,  ///< list of Credential
};

/// Which change of a value allows more.
enum class Widens : std::uint8_t {
  never,    ///< does not affect what the payload may do
  more,     ///< a larger number, or unset
  less,     ///< a smaller number
  on,       ///< true
  off,      ///< false
  added,    ///< a new element, or no list at all
  removed,  ///< a removed element
  rank,     ///< a choice of higher rank
  changed,  ///< any other value: a user must judge it
};

/// Further checks of a value, beyond its kind (decode/syntax.cc, decode/validate.cc).
enum class Syntax : std::uint8_t {
  any,
  name,  ///< one printable line, not empty
  hostname,
  workspace_path,  ///< absolute, or empty for the current directory
  root,            ///< "host" or an absolute path
  shown_path,      ///< a host path that may be shown inside
  inside_path,     ///< absolute, inside the sandbox
  directory,       ///< inside, absolute or relative to the workspace, or empty
  executable,      ///< absolute path or bare name
  host_pattern,
  reachable_host,   ///< a host pattern that does not mean this machine itself
  credential_host,  ///< a host name with or without a port, in canonical form
  single_host,      ///< a host name or an address, no pattern, not this machine itself
  port,
  address,
  proxy_url,
  file,        ///< absolute path or empty
  descriptor,  ///< the number of a descriptor beyond the standard ones
  syscall,
  allowed_syscall,   ///< a syscall that is not always blocked
  reported_syscall,  ///< a syscall whose refusal can be reported
  variable,
  pattern,
  positive,           ///< a number above zero
  time_limit,         ///< a duration above zero, or "none"
  memory,             ///< at least 4 MiB, or a share of the host's memory
  cpu_count,          ///< a number above zero, or "all"
  open_files,         ///< at least 8
  stack,              ///< at least 64 KiB
  cpu,                ///< the number of a CPU
  protected_pattern,  ///< rules/protected_files.h
};

/// Which member of Ceilings bounds a field.
enum class Ceiling : std::uint8_t { none, cpus, memory, swap, processes, open_files, wall, output };

struct Field {
  std::string_view key;
  std::string_view description;
  Kind kind = Kind::text;
  bool optional = false;  ///< can be unset
  Widens widens = Widens::never;
  Syntax syntax = Syntax::any;
  Ceiling ceiling = Ceiling::none;
  std::span<const std::string_view> choices;
  std::string_view ranks;  ///< one digit per choice, for Widens::rank
  Value (*get)(const Policy&) = nullptr;
  void (*put)(Policy&, Value) = nullptr;  ///< the value must be of the field's kind
};

/// All fields, in the order of files and help.
std::span<const Field> fields();

/// The field of a key path, or nullptr.
const Field* findField(std::string_view key);

/// Whether `key` is a table of fields: "resources", "filesystem.workspace".
bool isSection(std::string_view key);

/// The known key nearest to a mistyped one, or "" if none is near.
std::string_view nearestKey(std::string_view key);

/// A key that may hold text that is not UTF-8, as paths of the host do, has a second one with this suffix beside it in
/// JSON: `"denied": ["YQ=="], "denied_encoding": "base64"`.
inline constexpr std::string_view kEncodingSuffix = "_encoding", kBase64 = "base64";
bool mayBeEncoded(const Field& field);

/// The nearest of `names` to `word` by edit distance, or "" if none is near.
std::string_view nearest(std::string_view word, std::span<const std::string_view> names);

/// "rw", "wo", "ro".
std::string_view name(TmpfsAccess access);
std::optional<TmpfsAccess> tmpfsAccessNamed(std::string_view text);
/// "memory", "disk", "prefer_disk".
std::string_view name(DirectoryStore store);
std::optional<DirectoryStore> directoryStoreNamed(std::string_view text);

/// Whether two policies agree in every field, name and description included. Ignores `typed` and `widenings`.
bool sameSettings(const Policy& a, const Policy& b);

/// Formats a value for display: "512 MiB", "[a, b]", "unset".
std::string display(const Field& field, const Value& value);

}  // namespace caisson::policy
