#include "policy/rules/credential.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "policy/decode/syntax.h"

namespace caisson::policy {
namespace {

constexpr std::size_t kMaxCredentials = 32;
constexpr std::size_t kMaxName = 64, kMaxValue = 1024;
constexpr std::string_view kKey = "network.credentials";

constexpr CredentialKey kKeys[] = {
    {"name", &Credential::name, "What audit and errors call it; the host when left out."},
    {"host", &Credential::host, "The one host that gets it: a name, with \":port\" if that is not 443."},
    {"header", &Credential::header, "The field that is set in every request to that host."},
    {"value", &Credential::value, "The field's value, with {secret} where the secret goes."},
    {"secret_env", &Credential::secret_env, "The caller's variable that holds the secret."},
    {"secret_file", &Credential::secret_file, "Or the caller's private file that holds it."},
    {"env", &Credential::env, "A variable that is set to a placeholder inside."},
    {"ca_file", &Credential::ca_file, "The only authorities that may vouch for the host; the system's when left out."},
};

/// Headers that affect framing, routing or proxies: setting one would change how the message is parsed.
constexpr std::string_view kNeverSet[] = {"host",
                                          "content-length",
                                          "transfer-encoding",
                                          "connection",
                                          "keep-alive",
                                          "te",
                                          "trailer",
                                          "upgrade",
                                          "proxy-authenticate",
                                          "proxy-connection",
                                          "proxy-authorization",
                                          "expect",
                                          "via",
                                          "http2-settings",
                                          "content-encoding",
                                          "range"};

bool isWordLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool isName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && isWordLetter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return isWordLetter(c) || c == '-' || c == '_' || c == '.'; });
}

bool isHeader(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && isWordLetter(text.front()) &&
         std::ranges::all_of(text, [](char c) { return isWordLetter(c) || c == '-' || c == '_'; });
}

bool isVariableName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxName && !(text.front() >= '0' && text.front() <= '9') &&
         std::ranges::all_of(text, [](char c) { return isWordLetter(c) || c == '_'; });
}

/// Checks that there is one mark, with valid header text around it. Never prints the text: it may be a secret.
std::optional<Problem> checkTemplate(const std::string& key, std::string_view text) {
  const std::size_t mark = text.find(kSecretMark);
  if (mark == std::string_view::npos || text.find(kSecretMark, mark + 1) != std::string_view::npos) {
    return Problem{key, "expected a text with one {secret} in it",
                   "write \"Bearer {secret}\" and name secret_env or secret_file; a policy holds no secret"};
  }
  const bool plain = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!plain || text.size() > kMaxValue || text.front() == ' ' || text.back() == ' ') {
    return Problem{key, "expected at most 1024 visible ASCII characters, no blank at either end", {}};
  }
  return std::nullopt;
}

std::optional<Problem> checkSource(const std::string& key, const Credential& one) {
  if (one.secret_env.empty() == one.secret_file.empty()) {
    return Problem{key, "expected either secret_env or secret_file",
                   "say where the secret comes from: a variable of yours or a private file of yours"};
  }
  if (!one.secret_env.empty() && !isVariableName(one.secret_env)) {
    return Problem{key + ".secret_env", "expected the name of a variable", "a policy holds no secret, only its name"};
  }
  for (const auto& [name, path] : {std::pair("secret_file", &one.secret_file), std::pair("ca_file", &one.ca_file)}) {
    if (const auto flaw = findFlaw(Syntax::file, *path)) {
      return Problem{key + "." + name, "expected " + flaw->expected, flaw->hint};
    }
  }
  if (!one.env.empty() && !isVariableName(one.env)) {
    return Problem{key + ".env", "expected the name of a variable", {}};
  }
  return std::nullopt;
}

std::optional<Problem> checkOne(const std::string& key, const Credential& one) {
  if (const auto flaw = findFlaw(Syntax::credential_host, one.host)) {
    return Problem{key + ".host", "expected " + flaw->expected, flaw->hint};
  }
  if (!one.name.empty() && !isName(one.name)) {
    return Problem{key + ".name", "expected up to 64 letters, digits, '-', '_' and '.'", {}};
  }
  if (!isHeader(one.header)) {
    return Problem{key + ".header", "expected the name of a header: letters, digits, '-' and '_'", {}};
  }
  const std::string header = lowered(one.header);
  if (std::ranges::find(kNeverSet, header) != std::end(kNeverSet)) {
    return Problem{key + ".header", "\"" + one.header + "\" says how a message travels and cannot carry a secret",
                   "use Authorization or the field that the host documents"};
  }
  if (auto problem = checkTemplate(key + ".value", one.value)) return problem;
  return checkSource(key, one);
}

}  // namespace

std::span<const CredentialKey> credentialKeys() { return kKeys; }

std::string targetOf(const Credential& credential) {
  return credential.host.find(':') == std::string::npos ? credential.host + ":443" : credential.host;
}

std::string nameOf(const Credential& credential) {
  return credential.name.empty() ? credential.host.substr(0, credential.host.find(':')) : credential.name;
}

std::string placeholderOf(const Credential& credential) { return "caisson-credential-" + nameOf(credential); }

std::string describe(const Credential& credential) {
  return nameOf(credential) + ": " + credential.header + " for " + targetOf(credential) + ", from " +
         (credential.secret_env.empty() ? "file " + credential.secret_file : "variable " + credential.secret_env);
}

std::optional<Problem> findCredentialProblem(const Policy& policy) {
  const auto& credentials = policy.network.credentials;
  if (credentials.size() > kMaxCredentials) return Problem{std::string(kKey), "expected at most 32", {}};
  std::set<std::string> names, places, variables;
  std::map<std::string, std::string> authorities;
  for (std::size_t index = 0; index < credentials.size(); ++index) {
    const Credential& one = credentials[index];
    const std::string key = std::string(kKey) + "[" + std::to_string(index) + "]";
    if (auto problem = checkOne(key, one)) return problem;
    if (!names.insert(nameOf(one)).second) {
      return Problem{key, "two credentials are called \"" + nameOf(one) + "\"", "give each a different name"};
    }
    if (!places.insert(targetOf(one) + " " + lowered(one.header)).second) {
      return Problem{key + ".header", "the same header is set twice for " + targetOf(one), "keep one of the two"};
    }
    const auto [known, first] = authorities.try_emplace(targetOf(one), one.ca_file);
    if (!first && known->second != one.ca_file) {
      return Problem{key + ".ca_file", "two credentials trust different authorities for " + targetOf(one),
                     "a host proves itself once: name the same file in both"};
    }
    if (!one.env.empty() && (!variables.insert(one.env).second || policy.environment.set.contains(one.env))) {
      return Problem{key + ".env", "\"" + one.env + "\" is set twice", "keep one of the two"};
    }
    // The payload must not get the secret itself through the environment.
    if (!one.secret_env.empty() &&
        std::ranges::find(policy.environment.pass, one.secret_env) != policy.environment.pass.end()) {
      return Problem{key + ".secret_env", "environment.pass hands \"" + one.secret_env + "\" to the program itself",
                     "take it out of environment.pass; env = \"" + one.secret_env + "\" sets a placeholder instead"};
    }
  }
  return std::nullopt;
}

}  // namespace caisson::policy
