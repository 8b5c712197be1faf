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
constexpr std::size_t kMaxTrails = 64;  ///< ways that one link may lead
/// Parts of paths that are looked at, in all: for the places, and later for ends(). It takes seconds at most.
constexpr std::size_t kMaxSteps = 2'000'000, kMaxLaterSteps = 20'000'000;
constexpr std::size_t kStepsOfAName = 10;  ///< comparing a name with all patterns takes this much longer
constexpr std::size_t kStepsOutside = 10;  ///< the same for reading a link outside

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

/// One way that a link leads, as far as it was followed.
struct ProtectedLinks::Trail {
  Paths at;                      ///< the parts of an absolute path, if the workspace's is known
  std::deque<std::string> rest;  ///< parts to be followed
  int links = 0;
  std::size_t own = 0;  ///< how many parts are the place of the first link, not named by a target
};

ProtectedLinks::ProtectedLinks(const ProtectedFiles& files, const std::string& workspace,
                               const std::vector<WorkspaceLink>& links, const std::vector<NamedProgram>& programs,
                               OutsideLinks outside)
    : files_(files), outside_(std::move(outside)) {
  for (const std::string_view part : splitParts(workspace, '/')) root_.emplace_back(part);
  for (const WorkspaceLink& link : links) links_[link.path].push_back(link);
  for (const NamedProgram& program : programs) {
    addTarget({.path = "x", .target = program.path}, "", program.configuration, 1, program.file);
  }
  for (const auto& [path, all] : links_) {
    const bool matters = mayMatter(path);
    for (const WorkspaceLink& link : all) {
      if (link.executed || matters) addTarget(link, link.executed ? "" : path, path, 1);
    }
  }
}

bool ProtectedLinks::mayMatter(std::string_view name) const {
  if (files_.match(name) || files_.mayHold(name)) return true;
  const auto parts = splitParts(name, '/');
  return std::ranges::any_of(parts, [](std::string_view part) { return foldName(part) == ".git"; });
}

std::optional<std::string> ProtectedLinks::inside(const Paths& at) const {
  if (at.size() < root_.size() || !std::equal(root_.begin(), root_.end(), at.begin())) return std::nullopt;
  return caisson::joined({at.begin() + static_cast<std::ptrdiff_t>(root_.size()), at.end()}, "/");
}

/// The trail is in the directory that holds the link. False if that cannot be followed.
bool ProtectedLinks::enter(Trail& trail, const std::string& target) const {
  if (++trail.links > kMaxLinks) return false;
  if (target.starts_with('/')) {
    if (root_.empty()) return false;
    trail.at.clear();
    trail.own = 0;
  }
  const auto parts = splitParts(target, '/');
  trail.rest.insert(trail.rest.begin(), parts.begin(), parts.end());
  return true;
}

bool ProtectedLinks::branch(Trail& trail, std::vector<Trail>& trails) const {
  const auto path = inside(trail.at);
  const auto found = path ? links_.find(*path) : links_.end();
  if (found == links_.end()) return false;
  trail.at.pop_back();
  trail.own = trail.at.size();  // the link is on the way, and so are all directories above it
  for (const WorkspaceLink& link : found->second) {
    Trail next = trail;
    if (enter(next, link.target)) trails.push_back(std::move(next));
  }
  return true;
}

bool ProtectedLinks::leave(Trail& trail, Paths& passed) const {
  if (trail.at.empty()) return !root_.empty();
  // A link in the place of a directory that a target names would change what is above it.
  if (trail.at.size() > trail.own) {
    if (auto left = inside(trail.at); left && !left->empty()) passed.push_back(*std::move(left));
  }
  trail.at.pop_back();
  trail.own = std::min(trail.own, trail.at.size());
  return true;
}

bool ProtectedLinks::step(Trail& trail, std::vector<Trail>& trails, Paths& passed) const {
  const std::string part = std::move(trail.rest.front());
  trail.rest.pop_front();
  if (part == ".") return true;
  if (part == "..") return leave(trail, passed);
  trail.at.push_back(part);
  if (auto here = inside(trail.at)) {
    if (!branch(trail, trails)) return true;
    passed.push_back(*std::move(here));
    return false;
  }
  if (!outside_ || root_.empty()) return true;
  steps_ += kStepsOutside;
  const auto target = outside_("/" + caisson::joined(trail.at, "/"));
  if (!target) return true;
  trail.at.pop_back();
  return enter(trail, *target);
}

bool ProtectedLinks::follow(const WorkspaceLink& link, Paths& ends, Paths& passed) const {
  const auto own = splitParts(link.path, '/');
  if (own.empty()) return true;
  Trail first{.at = root_, .rest = {}};
  first.at.insert(first.at.end(), own.begin(), own.end() - 1);
  first.own = first.at.size();
  if (!enter(first, link.target)) return true;
  std::vector<Trail> trails{std::move(first)};
  while (!trails.empty()) {
    Trail trail = std::move(trails.back());
    trails.pop_back();
    if (trails.size() + ends.size() > kMaxTrails) return false;
    bool whole = true;
    while (whole && !trail.rest.empty()) {
      steps_ += 1 + trail.at.size() / 8;  // long paths take longer
      if (steps_ > kMaxLaterSteps) return false;
      whole = step(trail, trails, passed);
    }
    const auto end = whole ? inside(trail.at) : std::nullopt;
    if (end) ends.push_back(*end);
  }
  return true;
}

std::optional<std::vector<std::string>> ProtectedLinks::ends(const WorkspaceLink& link) const {
  Paths found, passed;
  if (!follow(link, found, passed)) return std::nullopt;
  return found;
}

void ProtectedLinks::addTarget(const WorkspaceLink& link, std::string_view name, std::string_view source, int depth,
                               bool file) {
  Paths found, passed;
  incomplete_ = incomplete_ || steps_ > kMaxSteps || !follow(link, found, passed);
  if (incomplete_) return;
  for (std::string& path : passed) {
    Place way{.path = path, .name = std::string(name), .source = std::string(source), .way = true};
    ways_.try_emplace(std::move(path), std::move(way));
  }
  for (std::string& path : found) {
    addPlace({.path = std::move(path), .name = std::string(name), .source = std::string(source), .file = file}, depth);
  }
}

/// Links below a place have other names, too: with `.config -> cfg`, the link cfg/fish is also called .config/fish.
void ProtectedLinks::addPlace(Place place, int depth) {
  const auto same = [&](const Place& one) {
    return one.path == place.path && one.name == place.name && one.file <= place.file;
  };
  if (std::ranges::any_of(places_, same)) return;
  incomplete_ = incomplete_ || places_.size() >= kMaxPlaces;
  if (incomplete_) return;
  places_.push_back(place);
  if (depth >= kMaxDepth || place.file) return;
  for (auto below = links_.lower_bound(place.path); below != links_.end() && !incomplete_; ++below) {
    if (!place.path.empty() && !below->first.starts_with(place.path)) break;
    steps_ += kStepsOfAName;
    incomplete_ = steps_ > kMaxSteps;
    if (!isBelow(below->first, place.path)) continue;
    const std::string name = place.executed() ? "" : renamed(below->first, place.path, place.name);
    if (!place.executed() && !mayMatter(name)) continue;
    for (const WorkspaceLink& link : below->second) addTarget(link, name, below->first, depth + 1);
  }
}

std::string ProtectedLinks::Found::reason(std::string_view path) const {
  if (place == nullptr) return "the workspace has too many links to tell whether the host would execute it";
  if (place->way) return "on the way to a protected file, to which " + displayedPath(place->source) + " leads";
  if (place->executed()) return "the host executes it: " + displayedPath(place->source) + " leads to it";
  return std::string(policy::reason(category)) + ", as " + displayedPath(renamed(path, place->path, place->name)) +
         " through the link " + displayedPath(place->source);
}

std::optional<ProtectedLinks::Found> ProtectedLinks::match(std::string_view path, bool directory) const {
  if (incomplete_) return Found{};
  if (const auto way = ways_.find(path); way != ways_.end()) return Found{.place = &way->second};
  for (const Place& place : places_) {
    if (place.file ? directory || path != place.path : !isBelow(path, place.path)) continue;
    if (place.executed()) return Found{.place = &place};
    const auto found = files_.match(renamed(path, place.path, place.name));
    if (found) return Found{found->category, &place};
  }
  return std::nullopt;
}

bool ProtectedLinks::isOnTheWay(std::string_view path) const {
  const auto leads = [&](const Place& place) { return isBelow(place.path, path); };
  return std::ranges::any_of(places_, leads) ||
         std::ranges::any_of(ways_, [&](const auto& one) { return leads(one.second); });
}

}  // namespace caisson::policy
