#include "plan/secrets.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include "base/text.h"
#include "policy/rules/git_config_shown.h"

namespace caisson::plan {
namespace {

constexpr std::string_view kWorkspaceNames[] = {
    ".boto",    ".dockercfg",  ".git-credentials", ".htpasswd",     ".my.cnf",          ".netrc",
    ".npmrc",   ".pgpass",     ".pypirc",          ".s3cfg",        "credentials.json", "id_dsa",
    "id_ecdsa", "id_ecdsa_sk", "id_ed25519",       "id_ed25519_sk", "id_rsa",
};
constexpr std::string_view kWorkspaceEndings[] = {".pem", ".key", ".p12", ".pfx", ".ppk", ".jks", ".keystore"};
constexpr std::string_view kTemplateEndings[] = {".example", ".sample", ".template", ".dist"};

constexpr std::string_view kPublicEndings[] = {".pem", ".key"};
constexpr std::string_view kKeyWords[] = {"key",    "rsa",  "ed25519", "ecdsa", "private",
                                          "secret", "cert", "crt",     "tls",   "ssl"};
/// Endings of text and program sources whose name has such a word by chance.
constexpr std::string_view kSourceEndings[] = {".c",    ".cc",  ".cpp", ".h",    ".hpp",  ".rs",  ".go",   ".py",
                                               ".js",   ".mjs", ".ts",  ".tsx",  ".jsx",  ".css", ".html", ".md",
                                               ".java", ".rb",  ".php", ".json", ".yaml", ".yml", ".toml", ".map"};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

bool endsWithAny(std::string_view name, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

bool looksSecret(std::string_view name) {
  if (name.starts_with(".env")) return !isTemplate(name);
  return endsWithAny(name, kWorkspaceEndings) ||
         std::find(std::begin(kWorkspaceNames), std::end(kWorkspaceNames), name) != std::end(kWorkspaceNames);
}

bool isTemplate(std::string_view name) { return endsWithAny(name, kTemplateEndings); }

bool mayBePublic(std::string_view name) { return endsWithAny(name, kPublicEndings); }

bool mayHoldKey(std::string_view name) {
  const std::string lower = lowered(name);
  if (lower.ends_with(".pub") || endsWithAny(lower, kSourceEndings)) return false;
  return std::ranges::any_of(kKeyWords, [&](std::string_view word) { return contains(lower, word); });
}

bool hasPrivateKey(std::string_view content) {
  for (std::size_t at = content.find("-----BEGIN "); at != std::string_view::npos;
       at = content.find("-----BEGIN ", at + 1)) {
    // Only the words of a PEM header: programs that look for keys have both texts, too.
    const std::string_view rest = content.substr(at + 11);
    const std::string_view words = rest.substr(0, rest.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 "));
    if (contains(words, "PRIVATE KEY")) return true;
  }
  return content.starts_with("PuTTY-User-Key-File-");
}

bool hasOnlyPublicKeys(std::string_view content) {
  return !hasPrivateKey(content) &&
         (contains(content, "-----BEGIN CERTIFICATE") || contains(content, "-----BEGIN TRUSTED CERTIFICATE") ||
          contains(content, "PUBLIC KEY-----"));
}

std::optional<std::string> redactGitConfig(std::string_view text) {
  policy::ShownGitConfig shown = policy::shownGitConfig(text);
  if (shown.complete) return std::nullopt;
  // In the file itself, so that who wonders finds them where they are missing.
  std::string named;
  for (const std::string& key : shown.left_out) {
    if (std::ranges::all_of(key, [](char c) { return c > ' ' && c < 0x7f; })) named += " " + key;
  }
  return (named.empty() ? "" : "# not shown in the sandbox:" + named + "\n") + shown.text;
}

}  // namespace caisson::plan
