#include "server/body_paths.h"

#include "base/path_text.h"

namespace caisson::server {

std::optional<std::string> pathInBody(const Call& call, std::string_view field) {
  return decodePath(call.text(field), call.text(kPathEncoding.name));
}

std::optional<std::vector<std::string>> pathsInBody(const Call& call, std::string_view field) {
  std::vector<std::string> paths;
  for (std::string& text : call.texts(field)) {
    auto path = decodePath(std::move(text), call.text(kPathEncoding.name));
    if (!path) return std::nullopt;
    paths.push_back(std::move(*path));
  }
  return paths;
}

http::Response invalidPath() { return problem(400, "invalid_body", "a path is not valid base64, or contains NUL"); }

}  // namespace caisson::server
