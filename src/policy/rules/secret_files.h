// The catalogue of secret files: which names and places are secret, and which files are judged by their content. Pure.
// The table is secret_files.inc; secret_content.h judges content.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::policy {

enum class SecretKind : std::uint8_t {
  environment,
  token,
  package_manager,
  cloud,
  infrastructure,
  key,
  version_control,
  service,
  agent,
  history,
  browser,
  mail,
  keyring,
};
/// As results name it: "environment".
std::string_view name(SecretKind kind);

enum class SecretVerdict : std::uint8_t { no, hide, by_content };

/// What makes the content of a file secret.
enum SecretChecks : std::uint16_t {
  kCheckKeys = 1,        ///< private keys
  kCheckTokens = 2,      ///< tokens that services issue, and credentials of clusters
  kCheckSettings = 4,    ///< values of keys such as `password`, and URLs with a password
  kCheckRandom = 8,      ///< the same if the value looks random
  kCheckRaw = 16,        ///< a single value
  kCheckPrivate = 32,    ///< anything but public keys and certificates
  kCheckUrls = 64,       ///< URLs with a password that looks random
  kCheckAllUrls = 128,   ///< URLs with any password
  kCheckCommands = 256,  ///< passwords that commands of a script are given
  kCheckTable = 512,     ///< a column of passwords
};

struct SecretJudgement {
  SecretVerdict verdict = SecretVerdict::no;
  SecretKind kind = SecretKind::token;
  std::uint16_t checks = 0;       ///< of `by_content`
  bool bounded = false;           ///< read for its ending alone: a large one is data, and shown
  bool first_only = false;        ///< the first lines decide
  bool unnamed = false;           ///< its ending says nothing: programs and archives are shown
  std::string_view pattern = "";  ///< of the catalogue; empty: no name, but the content decides
};

/// Whether a rule may concern a file or directory of this name, in some place. Runs for every name of a workspace.
bool mayBeSecret(std::string_view name);

/// Judges the entry `name` of `directory`, an absolute path with the directories above the workspace. Whether
/// `directory` itself is secret is not checked; see isInSecretDirectory().
SecretJudgement judgeSecret(std::string_view directory, std::string_view name, bool is_directory);

/// Whether the name or place of a file says that it is secret, if its content does not say otherwise: "x.pem".
bool usuallySecret(std::string_view directory, std::string_view name);

/// Whether an absolute path is a secret directory or lies in one.
bool isInSecretDirectory(std::string_view path);

/// The names that a file may be a copy of, itself first, folded.
std::vector<std::string> originalNames(std::string_view name);

/// Whether a file of this name is a template, which is meant to be read.
bool isTemplate(std::string_view name);

/// One pattern of the table.
struct SecretPattern {
  std::string_view pattern;
  SecretKind kind;
  SecretVerdict verdict = SecretVerdict::hide;
  std::uint16_t checks = 0;
};
/// The table, in its order.
std::span<const SecretPattern> secretPatterns();

/// Paths in a home directory that are hidden wherever the home is shown, unless the policy names them.
std::span<const SecretPattern> homeSecrets();

}  // namespace caisson::policy
