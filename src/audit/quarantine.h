// Tools and commands that must not run again until the owner releases them.
//
//   if (auto refusal = audit::refusalFor({tool, audit::commandKey(command)}); !refusal || *refusal) ...   // do not run
//
// A key is a declared tool's name, or `sha256:` and the hash of a whole command line; never an interpreter such as
// bash, which would block every user of it. One small file per key in CAISSON_HOME/quarantine, written atomically. The
// directory exists only after the first quarantine, so a launch costs one lookup. An unreadable entry counts as
// quarantined.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace caisson::audit {

struct Quarantined {
  std::string key;
  std::string reason;
  std::string sandbox;  ///< of the escape attempt, or empty
  std::string preview;  ///< of the command, redacted, or empty
  std::string since;    ///< "2026-11-15T05:11:04.123456Z"; if empty, quarantine() uses the current time
};

/// `sha256:` and the hash of the arguments, each followed by a NUL byte.
std::string commandKey(std::span<const std::string> command);

/// Checks the name, ignoring directory and version: /usr/bin/python3.11 is python.
bool isInterpreterName(std::string_view program);

/// The key to quarantine after an escape attempt of this command: its commandKey(). nullopt for an interpreter without
/// a program argument (`bash`, `python3 -i`), whose code came from elsewhere.
std::optional<std::string> keyForQuarantine(std::span<const std::string> command);

/// Quarantines the key, durably. A second call updates reason and time. An error for interpreters.
Result<void> quarantine(Quarantined what);
/// Ends the quarantine of the key. Returns whether there was one.
Result<bool> release(const std::string& key);
/// nullopt if the key is not quarantined. An entry with damaged content is returned; one that cannot be read is an
/// error.
Result<std::optional<Quarantined>> findQuarantined(const std::string& key);
/// All entries, sorted by key. A damaged one has the key `damaged:FILE`, which release() accepts.
Result<std::vector<Quarantined>> quarantined();

/// Why something with one of these keys is denied, with the remedy; or nullopt. Skips empty keys.
Result<std::optional<Error>> refusalFor(std::initializer_list<std::string_view> keys);

}  // namespace caisson::audit
