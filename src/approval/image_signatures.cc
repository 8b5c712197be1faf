#include "approval/image_signatures.h"

#include <unistd.h>

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "image/reference.h"
#include "sys/own_file.h"

namespace caisson::approval {

namespace {

constexpr std::string_view kOfficial = "docker.io/library/", kDocker = "docker.io/";

std::string canonicalName(std::string_view text) {
  const auto reference = image::Reference::parse(text);
  return reference ? reference->name() : "docker.io/library/debian";
}

Error patternError(std::string_view pattern, std::string_view reason, std::string_view canonical) {
  return plainError(Stage::policy, "configuration", printable(pattern), reason,
                    "write HOST/REPOSITORY, or a prefix of it and `*`: \"" + std::string(canonical) + "\"");
}

/// The part of a name before its tag; all of it if it has none.
std::string_view withoutTag(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  return text.substr(0, text.find(':', slash == std::string_view::npos ? 0 : slash));
}

}  // namespace

bool matchesImage(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return name == pattern;
  const std::string_view prefix = pattern.substr(0, pattern.size() - 1);
  if (name.starts_with(prefix)) return true;
  return name.starts_with(kOfficial) &&
         (std::string(kDocker) + std::string(name.substr(kOfficial.size()))).starts_with(prefix);
}

Result<std::string> canonicalPattern(std::string_view pattern) {
  if (pattern == "*") return std::string(pattern);
  const bool prefix = pattern.ends_with('*');
  const std::string_view text = pattern.substr(0, pattern.size() - (prefix ? 1 : 0));
  if (text.find('*') != std::string_view::npos)
    return fail(
        patternError(pattern, "a `*` can only be at the end", canonicalName(text.substr(0, text.find('*'))) + "*"));
  if (const std::size_t at = text.find('@'); at != std::string_view::npos)
    return fail(patternError(pattern, "a rule is for all images of a name, not for a digest",
                             canonicalName(withoutTag(text.substr(0, at)))));
  if (const std::string_view name = withoutTag(text); name != text)
    return fail(patternError(pattern, "a rule is for all images of a name, not for a tag", canonicalName(name)));
  const std::size_t slash = text.find('/');
  if (prefix && slash == std::string_view::npos)
    return fail(patternError(pattern, "a prefix begins with a registry", canonicalName(text) + "*"));
  // A prefix is good if some name begins with it.
  const std::string whole = std::string(text) + (prefix ? "x" : "");
  const auto reference = image::Reference::parse(whole);
  if (!reference) return fail(patternError(pattern, reference.error().reason, canonicalName(lowered(text))));
  if (!prefix) return reference->name();
  const bool without_host = reference->repository == whole;
  return reference->host + "/" + std::string(text.substr(without_host ? 0 : slash + 1)) + "*";
}

Result<void> canonicalizeRules(std::string_view where, ImageSettings& settings) {
  for (SignatureRule& rule : settings.signatures) {
    auto pattern = canonicalPattern(rule.pattern);
    if (!pattern) {
      const Error& error = pattern.error();
      return fail(plainError(Stage::policy, "configuration", where, error.object + ": " + error.reason, error.hint));
    }
    rule.pattern = *std::move(pattern);
  }
  return {};
}

SignatureRules signatureRulesFor(std::string_view name, const ImageSettings& settings) {
  SignatureRules groups;
  for (const SignatureRule& rule : settings.signatures)
    if (matchesImage(rule.pattern, name)) groups[{rule.file, rule.pattern}].push_back(&rule);
  return groups;
}

Result<std::string> readSignatureKey(const SignatureRule& rule) {
  // The key decides what runs here: no other user may have written it.
  const auto file = sys::openOwnFile(rule.key, sys::Privacy::unchanging);
  if (!file) return fail(file.error());
  std::string text(64U << 10, '\0');
  const ssize_t got = ::read(file->get(), text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::string signatureKeyId(std::string_view key) { return "sha256:" + hex(Sha256().add(key).finish()); }

Error unsignedImage(std::string_view shown_name, std::string_view reason, std::string_view hint) {
  return plainError(Stage::policy, "image", shown_name, reason, hint);
}

Result<void> requireSignedBy(std::string_view name, std::string_view shown_name, std::span<const std::string> signed_by,
                             const ImageSettings& settings) {
  for (const auto& [group, rules] : signatureRulesFor(name, settings)) {
    bool accepted = false;
    for (const SignatureRule* rule : rules) {
      const auto key = readSignatureKey(*rule);
      if (!key) return fail(key.error());
      accepted = accepted || std::ranges::find(signed_by, signatureKeyId(*key)) != signed_by.end();
    }
    if (accepted) continue;
    return fail(unsignedImage(shown_name,
                              "images.signatures of the configuration requires a signature for this name, and the "
                              "stored image was pulled without one by an accepted key",
                              "caisson image pull " + std::string(shown_name) + ", which checks its signature"));
  }
  return {};
}

}  // namespace caisson::approval
