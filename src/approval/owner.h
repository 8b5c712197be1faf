// The owner's configuration: what every policy on this machine, or of this user, must keep to.
//
//   /etc/caisson/config.toml                     the system's: written by root
//   $XDG_CONFIG_HOME/caisson/config.toml         the user's (default ~/.config): written by that user
//
//   [ceilings]                 # the most a policy may ask for; a request above is refused
//   memory = "4G"
//   [defaults]
//   profile = "shell"          # when a command line names neither --profile nor --policy
//   [filesystem]
//   always_denied = ["/srv/secrets"]     # host paths that no sandbox shows, whatever a policy says
//   [alerts]                   # what happens when a sandbox is ended for an attempt to get out (docs/audit.md)
//   command = ["/usr/local/bin/page-me"]     # its standard input is the event as JSON
//   webhook = "http://127.0.0.1:8080/alert"  # is sent the same by POST
//
// The user's file wins over the system's for defaults; denied paths and alerts add up; a ceiling that the system's file
// sets can be lowered by the user's, not raised. A file that another user could have written is an error, not ignored.
// Nothing of a project or a sandbox is ever read as configuration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/document.h"
#include "policy/limits.h"

namespace caisson::approval {

struct CeilingWishes {
  std::optional<double> cpus, wall_seconds;
  std::optional<std::uint64_t> memory, swap, processes, open_files, output;
};

/// Where a critical event is told at once. One file has at most one.
struct Alert {
  std::vector<std::string> command;  ///< argv; empty: none
  std::string webhook;               ///< http:// or https://; empty: none
};

struct Owner {
  CeilingWishes ceilings;
  std::optional<std::string> profile;
  std::vector<std::string> always_denied;
  std::vector<Alert> alerts;
  std::vector<std::string> files;  ///< that this came from

  [[nodiscard]] bool empty() const { return files.empty(); }
  /// The ceilings in force at a level: SPEC's, replaced by what the owner set.
  [[nodiscard]] policy::Ceilings ceilingsAt(policy::Level level) const;
};

/// For reading a policy whose ceilings are not known yet.
policy::Ceilings noCeilings();

/// One file's content, as a document that was read already.
Result<Owner> decodeOwner(const policy::Document& document);
/// System first, then user.
Result<Owner> mergeOwners(const Owner& system, const Owner& user);

/// Reads both files; a missing one says nothing.
Result<Owner> loadOwner(const std::string& system_file, const std::string& user_file);
/// The same from where they belong.
Result<Owner> loadOwner();

/// Adds the denied host paths to what `policy` denies, as the sandbox names them. An error if the policy shows what is
/// denied by name, or has a workspace in it. `workspace` is its canonical host path, or empty.
Result<void> denyAlways(const Owner& owner, const std::string& workspace, policy::Policy& policy);

/// `policy` as it is in force under the owner's configuration: held against the owner's ceilings, with the owner's
/// denied paths. Every door calls this before it plans anything.
Result<policy::Policy> underOwner(const policy::Policy& policy);

}  // namespace caisson::approval
