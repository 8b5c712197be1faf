// Whether the text of a file is a secret: private keys, tokens that services issue, and values of keys such as
// `password`. Pure. secret_files.h says which files are to be read.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "policy/rules/secret_files.h"

namespace caisson::policy {

/// A file that is judged by content is read up to this size; a larger one is hidden.
inline constexpr std::size_t kMaxJudgedBytes = 4 * 1024 * 1024;
/// A larger file whose ending alone says that it is a configuration is data, and shown unread.
inline constexpr std::size_t kMaxConfigurationBytes = 256 * 1024;
/// What isKnownFormat() needs.
inline constexpr std::size_t kFormatBytes = 4096;

/// Whether a file that begins like this is a program, an archive, a picture or other data, whose name without an ending
/// says nothing: it is not read on.
bool isKnownFormat(std::string_view beginning);

/// Why the content makes the file secret: "private key", "GitHub token". `whole`: the text is all of the file.
std::optional<std::string_view> secretIn(const SecretJudgement& judgement, std::string_view text, bool whole = true);

/// Whether the text has a private key in one of the usual forms.
bool hasPrivateKey(std::string_view text);
/// Whether the text has certificates or public keys, and no private key.
bool hasOnlyPublicKeys(std::string_view text);
/// The issuer of a token in the text.
std::optional<std::string_view> findToken(std::string_view text);
/// Which file of a known program, with passwords, the text is: cookies, a store of passwords.
std::optional<std::string_view> secretDocument(std::string_view text);
/// Whether a command of a script is given a password: `sshpass -p x`.
bool hasCommandPassword(std::string_view text);
/// Whether a table has a column of passwords with a value: one that looks random, or any if a column names places.
bool hasPasswordColumn(std::string_view text);
/// Whether a setting of the text is a password, token or key, and no placeholder; `random`: only one that looks random.
bool hasSecretSetting(std::string_view text, bool random);
/// Whether a URL of the text has a password; `random`: only one that looks random.
bool hasUrlPassword(std::string_view text, bool random);
/// Whether a value has the length and the letters of a generated one.
bool looksRandom(std::string_view value);

}  // namespace caisson::policy
