// Files that usually hold secrets, and are hidden from payloads unless a person asks otherwise. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace caisson::plan {

/// Whether a file of this name usually holds a secret.
bool looksSecret(std::string_view name);

/// Whether a file of this name is a template, which is meant to be read.
bool isTemplate(std::string_view name);

/// Whether the name looks secret but the content may show that it is public: a .pem or .key file, which may have
/// certificates or public keys only.
bool mayBePublic(std::string_view name);
/// Whether the content of a file that does not look secret should be read, because its name has a word such as `key`,
/// `cert` or `tls`. False for .pub files, program sources and texts such as .md and .json.
bool mayHoldKey(std::string_view name);

/// Whether the text has a PEM or PuTTY private key.
bool hasPrivateKey(std::string_view content);
/// Whether the text has certificates or public keys, and no private key.
bool hasOnlyPublicKeys(std::string_view content);

/// A git configuration with the settings that policy::shownGitConfig() shows; nullopt if these are all.
std::optional<std::string> redactGitConfig(std::string_view text);

}  // namespace caisson::plan
