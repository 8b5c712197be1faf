#include "mcp/protocol/request_state.h"

#include <sys/random.h>

#include <cstdlib>

#include "base/base64.h"
#include "base/sha256.h"
#include "mcp/protocol/secret.h"

namespace caisson::mcp {
namespace {

/// Identifies a request: the method, and all parameters except those of the round.
std::string digestOf(const std::string& method, const Json& params) {
  Json kept = params;
  for (const char* key : {"_meta", "inputResponses", "requestState"}) kept.erase(key);
  return hex(Sha256().add(method).add(std::string_view("\n")).add(writeJson(kept)).finish());
}

std::int64_t seconds(RequestState::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

}  // namespace

RequestState::RequestState() {
  // Without random bytes every token could be forged; getrandom fails only early at boot.
  if (::getrandom(key_.data(), key_.size(), 0) != static_cast<ssize_t>(key_.size())) std::abort();
}

std::string RequestState::sign(std::string_view text) const {
  return hmacSha256({reinterpret_cast<const char*>(key_.data()), key_.size()}, text);
}

std::string RequestState::seal(std::string_view state, const std::string& method, const Json& params) const {
  const Json body{{"state", state}, {"of", digestOf(method, params)}, {"at", seconds(Clock::now())}};
  const std::string text = encodeBase64(writeJson(body));
  return text + "." + sign(text);
}

std::optional<std::string> RequestState::open(std::string_view token, const std::string& method, const Json& params,
                                              Clock::time_point now) const {
  const std::size_t dot = token.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view text = token.substr(0, dot);
  if (!sameSecret(sign(text), token.substr(dot + 1))) return std::nullopt;
  const auto bytes = decodeBase64(text);
  if (!bytes) return std::nullopt;
  const auto body = parseJson(*bytes);
  if (!body || textAt(*body, "of") != digestOf(method, params)) return std::nullopt;
  const std::int64_t age = seconds(now) - integerAt(*body, "at").value_or(0);
  if (age < 0 || age > std::chrono::seconds(kLifetime).count()) return std::nullopt;
  return textAt(*body, "state");
}

}  // namespace caisson::mcp
