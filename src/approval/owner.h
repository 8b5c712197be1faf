// The owner's configuration: constraints on every policy on this machine, or of this user.
//
//   /etc/caisson/config.toml                     system-wide: written by root
//   $XDG_CONFIG_HOME/caisson/config.toml         per user (default ~/.config): written by that user
//
//   [ceilings]                 # maximum values of a policy; a higher value is an error
//   memory = "4G"
//   [defaults]
//   profile = "shell"          # if a command line has neither --profile nor --policy
//   [filesystem]
//   always_denied = ["/srv/secrets"]     # host paths that no sandbox shows, regardless of its policy
//   [network]
//   private_hosts = ["registry.local"]   # reachable where a policy allows the host, whatever address it has
//   [images]                   # docs/images.md
//   quota = "50G"
//   mirrors = ["docker.io=https://mirror.local:5000"]
//   plain_http = ["registry.local:5000"]
//   signatures = ["docker.io/library/*=/etc/caisson/keys/team.pem"]
//   [runtimes]                 # docs/runtimes.md
//   allowed = ["crun"]         # OCI runtimes that a policy may name; default: all
//   paths = ["crun=/opt/crun/bin/crun"]  # where one is, instead of the system's directories
//   [alerts]                   # what to run after an escape attempt (docs/audit.md)
//   command = ["/usr/local/bin/page-me"]     # gets the event as JSON on standard input
//   webhook = "http://127.0.0.1:8080/alert"  # gets the same by POST
//
// The user's file overrides the system's for defaults; denied paths, private hosts, mirrors, signatures and alerts are
// combined; the user's file can lower a ceiling of the system's file, not raise it. A file that another user could have
// written is an error, and so is a link. No file of a project or a sandbox is ever read as configuration.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/document/document.h"
#include "policy/limits.h"

namespace caisson::approval {

/// Ceilings that the owner sets; unset: the built-in one.
struct CeilingOverrides {
  std::optional<double> cpus, wall_seconds;
  std::optional<std::uint64_t> memory, swap, processes, open_files, output;
};

/// How to report a critical event immediately. At most one per file.
struct Alert {
  std::vector<std::string> command;  ///< argv; empty: none
  std::string webhook;               ///< http:// or https://; empty: none
};

/// One line of images.signatures: images whose name matches need a signature by this key, or by another key that the
/// same file lists for the same pattern.
struct SignatureRule {
  std::string pattern;  ///< HOST/REPOSITORY, or a prefix of it with `*`
  std::string key;      ///< path of a public key, PEM
  std::string file;     ///< the configuration file
};

/// How `caisson image` gets images.
struct ImageSettings {
  std::optional<std::uint64_t> quota;                        ///< bytes of the image store
  std::vector<std::pair<std::string, std::string>> mirrors;  ///< registry host -> address, in the order to try
  std::vector<std::string> plain_http;                       ///< registry hosts without TLS
  std::vector<SignatureRule> signatures;
};

/// Which OCI runtimes a policy may name, and where they are.
struct RuntimeSettings {
  std::optional<std::vector<std::string>> allowed;         ///< names; unset: all
  std::vector<std::pair<std::string, std::string>> paths;  ///< name -> absolute path of its program
};

struct Owner {
  CeilingOverrides ceilings;
  RuntimeSettings runtimes;
  ImageSettings images;
  std::optional<std::string> profile;      ///< defaults.profile
  std::vector<std::string> always_denied;  ///< host paths, normalized
  std::vector<std::string> private_hosts;  ///< added to network.private_hosts of every policy
  std::vector<Alert> alerts;
  std::vector<std::string> files;  ///< the files that were read

  /// Whether there is no configuration file.
  [[nodiscard]] bool empty() const { return files.empty(); }
  /// The ceilings for this policy: the built-in ones, overridden by the owner's.
  [[nodiscard]] policy::Ceilings ceilingsFor(const policy::Policy& policy) const;
  /// Applies the owner's configuration, except denied paths, and checks all of `policy`. Lowers defaults to the owner's
  /// ceilings: values that profile `dev` has unchanged, unset time and output. A value that a file or a flag sets is
  /// refused if it is above a ceiling, never lowered. Adds private_hosts, unless the policy chooses its own DNS servers
  /// or proxy: those could resolve the names differently.
  Result<void> check(policy::Policy& policy) const;
};

/// Ceilings above every value, for decoding a policy before its real ceilings are known.
policy::Ceilings noCeilings();

/// Decodes the content of one file.
Result<Owner> decodeOwner(const policy::Document& document);
/// Combines both files. An error if the user's raises a ceiling of the system's.
Result<Owner> mergeOwners(const Owner& system, const Owner& user);

/// Reads both files; a missing one counts as empty.
Result<Owner> loadOwner(const std::string& system_file, const std::string& user_file);
/// The same from the standard paths.
Result<Owner> loadOwner();

/// Where the user's part of the configuration lies, or "" without a home directory.
std::string userConfigDirectory();

/// Adds the owner's denied host paths to `policy`, translated to paths inside. An error if the policy shows a denied
/// path explicitly, or if the workspace is within one. `workspace` is its canonical host path, or empty.
Result<void> denyAlways(const Owner& owner, const std::string& workspace, policy::Policy& policy);

/// Returns `policy` with the owner's configuration applied: check() and denyAlways(). Every entry point calls this
/// before planning.
Result<policy::Policy> underOwner(const policy::Policy& policy);

}  // namespace caisson::approval
