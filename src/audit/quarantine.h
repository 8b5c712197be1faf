// Tools and commands that must not run again until an owner releases them (SPEC S4).
//
//   if (auto refusal = audit::refusalFor({tool, audit::commandKey(command)}); !refusal || *refusal) ...   // do not run
//
// A key is a declared tool's name, or `sha256:` and the hash of a whole command line; never an interpreter such as
// bash, which would stop everybody. One small file per key in CAISSON_HOME/quarantine: written atomically, and no
// directory until something was put away, so that a launch pays a single look. What can't be read counts as put away.
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
  std::string sandbox;  ///< whose escape attempt it was, or empty
  std::string preview;  ///< of the command, redacted, or empty
  std::string since;    ///< "2026-11-15T05:11:04.123456Z"; quarantine() fills in the present if empty
};

/// `sha256:` and the hash of the words, each followed by a NUL byte.
std::string commandKey(std::span<const std::string> command);

/// By name, whatever directory and version: /usr/bin/python3.11 is python.
bool isInterpreterName(std::string_view program);

/// What to put away after this command tried to get out: its key, or nothing for an interpreter that was given no
/// program to run (`bash`, `python3 -i`): what it ran came from elsewhere.
std::optional<std::string> keyForQuarantine(std::span<const std::string> command);

/// Puts the key away, durably. A second time renews reason and time. Interpreters are refused.
Result<void> quarantine(Quarantined what);
/// Whether it was there.
Result<bool> release(const std::string& key);
Result<std::optional<Quarantined>> findQuarantined(const std::string& key);
/// Sorted by key.
Result<std::vector<Quarantined>> quarantined();

/// Why something with one of these keys is refused, with the way out; or nothing. Empty keys are passed over.
Result<std::optional<Error>> refusalFor(std::initializer_list<std::string_view> keys);

}  // namespace caisson::audit
