#include "session/commit/seal.h"

#include "base/hmac.h"
#include "sys/state_secret.h"

namespace caisson::session {
namespace {

constexpr std::size_t kMacDigits = 64;

Result<std::string> macOfFile(std::string_view heading, std::string_view body) {
  const auto key = sys::stateSecret("keys", "sessions");
  if (!key) return fail(key.error());
  return hmacSha256(*key, std::string(heading).append(body));
}

}  // namespace

Result<std::string> sealed(std::string_view heading, std::string_view body) {
  const auto mac = macOfFile(heading, body);
  if (!mac) return mac;
  return std::string(heading).append(*mac).append("\n").append(body);
}

Result<std::optional<std::string>> unsealed(std::string_view heading, const std::string& text) {
  const std::size_t begin = heading.size() + kMacDigits + 1;
  if (text.size() < begin || !text.starts_with(heading) || text[begin - 1] != '\n') return std::nullopt;
  const std::string_view body = std::string_view(text).substr(begin);
  const auto mac = macOfFile(heading, body);
  if (!mac) return fail(mac.error());
  if (!sameSecret(*mac, std::string_view(text).substr(heading.size(), kMacDigits))) return std::nullopt;
  return std::string(body);
}

Error keepAside(const sys::RootDir& directory, const char* name, std::string_view call, std::string_view hint) {
  const std::string aside = std::string(name) + ".invalid";
  const auto renamed = directory.rename(name, aside, true);
  return plainError(Stage::state, call, directory.knownAs() + "/" + name,
                    renamed ? "it is damaged or not caisson's own, and is kept as " + aside
                            : "it is damaged or not caisson's own, and cannot be renamed: " + renamed.error().reason,
                    hint);
}

}  // namespace caisson::session
