#include "policy/rules/protected_links.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/path_text.h"
#include "base/text.h"
#include "policy/rules/name_pattern.h"

namespace caisson::policy {
namespace {

constexpr int kMaxLinks = 40;  // on the way to one target, as in the kernel
/// How many links a name may pass. Each adds a part, and a pattern has three at most.
constexpr int kMaxDepth = 4;
constexpr std::size_t kMaxPlaces = 4096;

bool isBelow(std::string_view path, std::string_view directory) {
  return directory.empty() ||
         (path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/'));
}

/// What `path` is called if the directory `place` above it is called `name`.
std::string renamed(std::string_view path, std::string_view place, std::string_view name) {
  std::string_view rest = path.substr(place.size());
  if (rest.starts_with('/')) rest.remove_prefix(1);
  if (rest.empty()) return std::string(name);
  return std::string(name) + "/" + std::string(rest);
}

}  // namespace

ProtectedLinks::ProtectedLinks(const ProtectedFiles& files, std::string workspace,
                               const std::vector<WorkspaceLink>& links, const std::vector<NamedProgram>& programs)
    : files_(files), workspace_(std::move(workspace)) {
  for (const WorkspaceLink& link : links) links_.insert_or_assign(link.path, link);
  for (const NamedProgram& program : programs) {
    if (auto path = resolve({.path = "x", .target = program.path})) {
      addPlace({.path = *std::move(path), .source = program.configuration}, 1);
    }
  }
  for (const auto& [path, link] : links_) {
    if (!link.executed && !mayMatter(path)) continue;
    if (auto target = resolve(link)) {
      addPlace({.path = *std::move(target), .name = link.executed ? "" : path, .source = path}, 1);
    }
  }
}

bool ProtectedLinks::mayMatter(std::string_view name) const {
  if (files_.match(name) || files_.mayHold(name)) return true;
  const auto parts = splitParts(name, '/');
  return std::ranges::any_of(parts, [](std::string_view part) { return foldName(part) == ".git"; });
}

std::optional<std::string> ProtectedLinks::resolve(const WorkspaceLink& link) const {
  std::vector<std::string> at;
  std::deque<std::string> rest;
  const auto follow = [&](const WorkspaceLink& one) {  // `at` is the directory that holds it
    std::string_view target = one.target;
    if (target.starts_with('/')) {
      if (workspace_.empty() || !isBelow(target, workspace_)) return false;
      target.remove_prefix(workspace_.size());
      at.clear();
    }
    const auto parts = splitParts(target, '/');
    rest.insert(rest.begin(), parts.begin(), parts.end());
    return true;
  };
  const auto own = splitParts(link.path, '/');
  if (own.empty()) return std::nullopt;
  at.assign(own.begin(), own.end() - 1);
  if (!follow(link)) return std::nullopt;
  for (int links = 1; !rest.empty();) {
    const std::string part = std::move(rest.front());
    rest.pop_front();
    if (part == ".") continue;
    if (part == "..") {
      if (at.empty()) return std::nullopt;
      at.pop_back();
      continue;
    }
    at.push_back(part);
    const auto next = links_.find(caisson::joined(at, "/"));
    if (next == links_.end()) continue;
    at.pop_back();
    if (++links > kMaxLinks || !follow(next->second)) return std::nullopt;
  }
  return caisson::joined(at, "/");
}

/// Links below a place have other names, too: with `.config -> cfg`, the link cfg/fish is also called .config/fish.
void ProtectedLinks::addPlace(Place place, int depth) {
  const auto same = [&](const Place& one) { return one.path == place.path && one.name == place.name; };
  if (std::ranges::any_of(places_, same)) return;
  crowded_ = crowded_ || places_.size() >= kMaxPlaces;
  if (crowded_) return;
  places_.push_back(place);
  if (depth >= kMaxDepth) return;
  for (auto below = links_.lower_bound(place.path); below != links_.end(); ++below) {
    if (!place.path.empty() && !below->first.starts_with(place.path)) break;
    if (!isBelow(below->first, place.path)) continue;
    const std::string name = place.executed() ? "" : renamed(below->first, place.path, place.name);
    if (!place.executed() && !mayMatter(name)) continue;
    if (auto target = resolve(below->second)) {
      addPlace({.path = *std::move(target), .name = name, .source = below->first}, depth + 1);
    }
  }
}

std::string ProtectedLinks::Found::reason(std::string_view path) const {
  if (place->executed()) return "the host executes it: " + displayedPath(place->source) + " leads to it";
  return std::string(policy::reason(category)) + ", as " + displayedPath(renamed(path, place->path, place->name)) +
         " through the link " + displayedPath(place->source);
}

std::optional<ProtectedLinks::Found> ProtectedLinks::match(std::string_view path) const {
  for (const Place& place : places_) {
    if (!isBelow(path, place.path)) continue;
    if (place.executed()) return Found{.place = &place};
    const auto found = files_.match(renamed(path, place.path, place.name));
    if (found) return Found{found->category, &place};
  }
  if (crowded_) return Found{.place = &places_.back()};
  return std::nullopt;
}

bool ProtectedLinks::isOnTheWay(std::string_view path) const {
  return std::ranges::any_of(places_, [&](const Place& place) { return isBelow(place.path, path); });
}

}  // namespace caisson::policy
