// The owner's rules of images.signatures: which images must be signed, and by which keys. `name` is HOST/REPOSITORY.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "approval/owner.h"
#include "base/error.h"

namespace caisson::approval {

/// The names of the patterns: HOST/REPOSITORY exactly, or a prefix with a final `*`. `docker.io/de*` also means the
/// images that Docker names without an owner, `docker.io/library/debian`.
bool matchesImage(std::string_view pattern, std::string_view name);

/// A pattern as the names of images are written: HOST/REPOSITORY with the parts that Docker adds, or such a prefix with
/// a final `*`. An error for what no name can match, such as a tag: its rule would let every image pass.
Result<std::string> canonicalPattern(std::string_view pattern);
/// Makes the patterns of all rules canonical. `where`: the place of the rules in their file, for errors.
Result<void> canonicalizeRules(std::string_view where, ImageSettings& settings);

/// The rules for this image, grouped by file and pattern: each group must be satisfied by one of its keys.
using SignatureRules = std::map<std::pair<std::string, std::string>, std::vector<const SignatureRule*>>;
SignatureRules signatureRulesFor(std::string_view name, const ImageSettings& settings);

/// The text of the rule's public key. An error if another user could have written it.
Result<std::string> readSignatureKey(const SignatureRule& rule);
/// How the image store refers to a key that signed an image: by the SHA-256 of its text.
std::string signatureKeyId(std::string_view key);

Error unsignedImage(
    std::string_view shown_name, std::string_view reason,
    std::string_view hint = "images.signatures of the configuration requires a signature for this name");

/// An error if a stored image must be signed, and its signatures that were checked when it was pulled (`signed_by`: ids
/// of keys) do not satisfy the rules of today.
Result<void> requireSignedBy(std::string_view name, std::string_view shown_name, std::span<const std::string> signed_by,
                             const ImageSettings& settings);

}  // namespace caisson::approval
