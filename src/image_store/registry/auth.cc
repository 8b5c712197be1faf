#include "image_store/registry/auth.h"

#include <curl/curl.h>

#include <memory>

#include "base/base64.h"
#include "base/json_value.h"
#include "base/text.h"

namespace caisson::image {
namespace {

constexpr std::uint64_t kMaxToken = 1U << 20;

std::string percentEncoded(const std::string& text) {
  const std::unique_ptr<char, decltype(&curl_free)> escaped(
      curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())), curl_free);
  return escaped ? escaped.get() : "";
}

Error authError(const std::string& host, std::string_view reason) {
  return plainError(Stage::state, "registry", host, reason, "docker login " + host + ", or podman login " + host);
}

/// `name="value"` or `name=value`, separated by commas; advances `text`.
std::optional<std::pair<std::string, std::string>> nextParameter(std::string_view& text) {
  text = trimmed(text, " \t,");
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const std::string name = lowered(trimmed(text.substr(0, equals)));
  text.remove_prefix(equals + 1);
  std::string value;
  if (!text.starts_with('"')) {
    value = text.substr(0, text.find(','));
    text.remove_prefix(value.size());
    return std::pair(name, value);
  }
  text.remove_prefix(1);
  while (!text.empty() && text[0] != '"') {
    if (text[0] == '\\' && text.size() > 1) text.remove_prefix(1);
    value += text[0];
    text.remove_prefix(1);
  }
  if (!text.empty()) text.remove_prefix(1);
  return std::pair(name, value);
}

std::string basicHeader(const RegistryCredentials& credentials) {
  return "Basic " + encodeBase64(credentials.username + ":" + credentials.password);
}

}  // namespace

std::optional<AuthChallenge> parseChallenge(std::string_view header) {
  const std::string_view scheme = header.substr(0, header.find(' '));
  AuthChallenge challenge{.bearer = lowered(scheme) == "bearer"};
  if (!challenge.bearer && lowered(scheme) != "basic") return std::nullopt;
  std::string_view rest = header.substr(scheme.size());
  while (const auto parameter = nextParameter(rest)) {
    if (parameter->first == "realm") challenge.realm = parameter->second;
    if (parameter->first == "service") challenge.service = parameter->second;
    if (parameter->first == "scope") challenge.scope = parameter->second;
  }
  if (challenge.bearer && challenge.realm.empty()) return std::nullopt;
  return challenge;
}

std::string Authorizer::current() {
  const std::lock_guard guard(mutex_);
  return header_;
}

Result<std::string> Authorizer::bearerToken(HttpClient& http, const AuthChallenge& challenge,
                                            const std::string& registry_url) {
  // The registry chooses the address of the token server; a password goes there only with TLS, or where the registry
  // itself has none.
  const bool tls = challenge.realm.starts_with("https://");
  if (!tls && (registry_url.starts_with("https://") || !challenge.realm.starts_with("http://"))) {
    return fail(authError(host_, "the registry names a token server without TLS"));
  }
  const auto credentials = credentialsFor(host_, repository_);
  if (!credentials) return fail(credentials.error());
  const std::string scope = challenge.scope.empty() ? "repository:" + repository_ + ":" + actions_ : challenge.scope;
  HttpRequest request{.max_bytes = kMaxToken};
  if (*credentials && !(*credentials)->identity_token.empty()) {
    request.method = "POST";
    request.url = challenge.realm;
    request.headers = {"Content-Type: application/x-www-form-urlencoded"};
    request.body = "grant_type=refresh_token&client_id=caisson&service=" + percentEncoded(challenge.service) +
                   "&scope=" + percentEncoded(scope) +
                   "&refresh_token=" + percentEncoded((*credentials)->identity_token);
  } else {
    request.url = challenge.realm + (challenge.realm.find('?') == std::string::npos ? "?" : "&") +
                  "service=" + percentEncoded(challenge.service) + "&scope=" + percentEncoded(scope);
    if (*credentials) request.authorization = basicHeader(**credentials);
  }
  const auto response = http.perform(request);
  if (!response) return fail(response.error());
  if (response->status != 200) {
    return fail(
        authError(host_, *credentials ? "the registry refused your credentials" : "the registry requires a login"));
  }
  const auto value = JsonValue::parse(response->body);
  std::string token = value ? value->textAt("token").value_or("") : "";
  if (token.empty() && value) token = value->textAt("access_token").value_or("");
  if (token.empty() || token.find_first_of("\r\n") != std::string::npos)
    return fail(authError(host_, "the token server sent no token"));
  return "Bearer " + token;
}

Result<void> Authorizer::answer(HttpClient& http, const HttpResponse& refused, const std::string& used) {
  const std::lock_guard guard(mutex_);
  if (header_ != used) return {};  // another thread has a new one already
  const auto challenge = parseChallenge(refused.header("www-authenticate"));
  if (!challenge) return fail(authError(host_, "the registry refused access"));
  if (challenge->bearer) {
    auto token = bearerToken(http, *challenge, refused.url);
    if (!token) return fail(token.error());
    if (*token == used) return fail(authError(host_, "the registry refused access to " + repository_));
    header_ = std::move(*token);
    return {};
  }
  const auto credentials = credentialsFor(host_, repository_);
  if (!credentials) return fail(credentials.error());
  if (!*credentials || (*credentials)->username.empty()) return fail(authError(host_, "the registry requires a login"));
  const std::string header = basicHeader(**credentials);
  if (header == used) return fail(authError(host_, "the registry refused your credentials"));
  header_ = header;
  return {};
}

}  // namespace caisson::image
