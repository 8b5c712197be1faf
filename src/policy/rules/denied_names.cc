#include "policy/rules/denied_names.h"

#include <fnmatch.h>

#include <algorithm>

#include "policy/decode/syntax.h"
#include "policy/rules/name_pattern.h"

namespace caisson::policy {
bool deniesName(const std::string& part, const std::string& name) {
  return part == name || ::fnmatch(part.c_str(), name.c_str(), 0) == 0;
}

DeniedEntry::DeniedEntry(std::string_view entry) {
  // Two `**` mean what one does, and with many of them rests() would be quadratic.
  for (const std::string_view part : splitParts(entry, '/'))
    if (part != kAnyDirectories || parts_.empty() || parts_.back() != kAnyDirectories) parts_.emplace_back(part);
}

DeniedEntry::Positions DeniedEntry::start() const {
  Positions positions(parts_.size() + 1);
  positions.front() = true;
  return positions;
}

DeniedEntry::Positions DeniedEntry::withoutDirectories(Positions positions) const {
  for (std::size_t i = 0; i + 1 < parts_.size(); ++i) {
    if (positions[i] && parts_[i] == kAnyDirectories) positions[i + 1] = true;
  }
  return positions;
}

DeniedEntry::Positions DeniedEntry::after(const Positions& positions, std::string_view name) const {
  const Positions from = withoutDirectories(positions);
  Positions next(from.size());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!from[i]) continue;
    if (parts_[i] == kAnyDirectories) {
      next[i] = true;
      if (i + 1 == parts_.size()) next[i + 1] = true;  // all that is in a directory
    } else if (deniesName(parts_[i], std::string(name))) {
      next[i + 1] = true;
    }
  }
  return next;
}

bool DeniedEntry::leadsOn(const Positions& positions) const {
  return std::find(positions.begin(), positions.end() - 1, true) != positions.end() - 1;
}

std::vector<std::string> DeniedEntry::onlyNames(const Positions& positions) const {
  const Positions from = withoutDirectories(positions);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (!from[i]) continue;
    if (parts_[i].find_first_of("*?[\\") != std::string::npos) return {};
    names.push_back(parts_[i]);
  }
  return names;
}

std::vector<std::string> DeniedEntry::rests(const Positions& positions) const {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (!positions[i]) continue;
    std::string rest;
    for (std::size_t part = i; part < parts_.size(); ++part) rest += (rest.empty() ? "" : "/") + parts_[part];
    found.push_back(std::move(rest));
  }
  return found;
}

bool deniesPath(std::string_view entry, std::string_view path) {
  const DeniedEntry denied(entry);
  DeniedEntry::Positions positions = denied.start();
  for (const std::string_view name : splitParts(path, '/')) positions = denied.after(positions, name);
  return denied.denies(positions);
}

DeniedElsewhere deniedElsewhere(const std::vector<std::string>& entries, std::string_view top,
                                std::string_view workspace) {
  constexpr std::string_view kShown = "/workspace";
  DeniedElsewhere found;
  if (workspace == top) return found;
  const bool above = isWithin(top, workspace);
  if (!above && !isWithin(workspace, top)) return found;
  const auto way = above ? std::vector<std::string_view>() : splitParts(workspace.substr(top.size()), '/');
  std::string prefix(kShown);
  if (above) prefix += (workspace == "/" ? "/" : "") + std::string(top.substr(workspace.size()));
  for (const std::string& entry : entries) {
    const std::string path = normalPath(entry);
    if (!isWithin(path, kShown)) continue;
    const DeniedEntry denied(std::string_view(path).substr(kShown.size()));
    DeniedEntry::Positions positions = denied.start();
    bool whole = !above && denied.denies(positions);
    for (const std::string_view name : way) {
      positions = denied.after(positions, name);
      whole = whole || denied.denies(positions);
    }
    if (whole) found.whole = entry;
    for (const std::string& rest : denied.rests(positions)) {
      if (rest.empty() && !above) continue;
      std::string inside = prefix + (rest.empty() ? "" : "/" + rest);
      if (std::ranges::find(found.entries, inside) == found.entries.end()) found.entries.push_back(std::move(inside));
    }
  }
  return found;
}

}  // namespace caisson::policy
