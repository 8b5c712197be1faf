#include "plan/secrets.h"

#include <algorithm>

namespace caisson::plan {
namespace {

constexpr std::string_view kWorkspaceNames[] = {
    ".boto",    ".dockercfg",  ".git-credentials", ".htpasswd",     ".my.cnf",          ".netrc",
    ".npmrc",   ".pgpass",     ".pypirc",          ".s3cfg",        "credentials.json", "id_dsa",
    "id_ecdsa", "id_ecdsa_sk", "id_ed25519",       "id_ed25519_sk", "id_rsa",
};
constexpr std::string_view kWorkspaceEndings[] = {".pem", ".key", ".p12", ".pfx", ".ppk", ".jks", ".keystore"};
constexpr std::string_view kTemplateEndings[] = {".example", ".sample", ".template", ".dist"};

constexpr std::string_view kHome[] = {
    ".ssh",
    ".aws",
    ".config/gcloud",
    ".kube",
    ".gnupg",
    ".gitconfig",
    ".config/git",
    ".netrc",
    ".git-credentials",
    ".docker",
    ".npmrc",
    ".pypirc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".azure",
    ".config/gh",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".lesshst",
    ".viminfo",
    ".mozilla",
    ".config/chromium",
    ".config/google-chrome",
    ".config/BraveSoftware",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/caisson",
    ".pgpass",
    ".my.cnf",
    ".claude",
    ".codex",
};

bool endsWithAny(std::string_view name, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

bool looksSecret(std::string_view name) {
  if (name.starts_with(".env")) return !endsWithAny(name, kTemplateEndings);  // templates are meant to be read
  return endsWithAny(name, kWorkspaceEndings) ||
         std::find(std::begin(kWorkspaceNames), std::end(kWorkspaceNames), name) != std::end(kWorkspaceNames);
}

std::span<const std::string_view> homeSecrets() { return kHome; }

}  // namespace caisson::plan
