#include "session/commit/own_paths.h"

#include <algorithm>

#include "base/path_parts.h"
#include "base/text.h"
#include "host/own_places.h"
#include "plan/named_paths.h"
#include "policy/decode/syntax.h"
#include "policy/rules/name_pattern.h"
#include "policy/rules/protected_files.h"

namespace caisson::session {

std::string foldedPath(std::string_view path) {
  std::vector<std::string> parts;
  for (const std::string_view part : policy::splitParts(path, '/')) parts.push_back(policy::foldName(part));
  return joined(parts, "/");
}

OwnPaths::OwnPaths(std::string_view directory) : directory_("/" + foldedPath(directory)) {
  if (directory_ == "/") directory_.clear();
  const host::OwnPlaces own = host::findOwnPlaces();
  for (const std::string& path : own.paths) {
    const bool state = std::ranges::find(own.states, path) != own.states.end();
    if (!state || !plan::isOwnWorkspace(path, std::string(directory))) places_.push_back("/" + foldedPath(path));
  }
}

bool OwnPaths::contain(std::string_view path) const {
  const std::string on_host = directory_ + "/" + foldedPath(path);
  return std::ranges::any_of(places_, [&](const std::string& own) { return policy::isWithin(on_host, own); });
}

bool OwnPaths::areBelow(std::string_view path) const {
  const std::string on_host = directory_ + "/" + foldedPath(path);
  return std::ranges::any_of(places_, [&](const std::string& own) { return policy::isWithin(own, on_host); });
}

}  // namespace caisson::session
