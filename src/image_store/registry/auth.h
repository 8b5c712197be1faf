// How a registry wants to be authenticated: the challenge of a 401 response, and the tokens that answer it.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "image_store/registry/credentials.h"
#include "image_store/registry/http.h"

namespace caisson::image {

struct AuthChallenge {
  bool bearer = false;  ///< otherwise Basic
  std::string realm, service, scope;
};

/// Parses the value of WWW-Authenticate; nothing if it is neither Bearer with a realm nor Basic.
std::optional<AuthChallenge> parseChallenge(std::string_view header);

/// The Authorization headers for one repository of one registry. Thread-safe.
class Authorizer {
 public:
  Authorizer(std::string host, std::string repository, std::string actions)
      : host_(std::move(host)), repository_(std::move(repository)), actions_(std::move(actions)) {}

  /// The header to send; empty before the first challenge.
  [[nodiscard]] std::string current();
  /// Answers a 401 to a request that was sent with `used`: gets a token, or the user's name and password. An error if
  /// the registry refused the same credentials already.
  Result<void> answer(HttpClient& http, const HttpResponse& refused, const std::string& used);

 private:
  Result<std::string> bearerToken(HttpClient& http, const AuthChallenge& challenge, const std::string& registry_url);

  std::string host_, repository_, actions_;
  std::mutex mutex_;
  std::string header_;
};

}  // namespace caisson::image
