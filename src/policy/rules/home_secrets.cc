#include "policy/rules/home_secrets.h"

namespace caisson::policy {
namespace {

constexpr std::string_view kHomeSecrets[] = {
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

}  // namespace

std::span<const std::string_view> homeSecrets() { return kHomeSecrets; }

}  // namespace caisson::policy
