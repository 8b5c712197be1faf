#include "session/store/unused_stores.h"

#include <cerrno>
#include <optional>
#include <set>

#include "session/store/unreadable.h"
#include "supervise/disk/foreign_files.h"

namespace caisson::session {
namespace {

/// The family that an entry of the directory of stores belongs to; empty for other entries.
std::string familyOfStore(const std::string& entry) {
  std::string family = entry.substr(0, entry.find('.'));
  return isId(family) ? family : "";
}

/// The families of all sessions; nothing if one of them is unknown.
std::optional<std::set<std::string>> familiesInUse(const SessionPaths& paths, MetadataCache& cache) {
  const auto sessions = paths.sessions().list("");
  if (!sessions) return std::nullopt;
  std::set<std::string> families;
  for (const sys::DirectoryEntry& entry : *sessions) {
    if (!isId(entry.name)) continue;
    const auto directory = paths.sessions().enter(entry.name);
    if (!directory && directory.error().sys_errno == ENOENT) continue;
    auto family = directory ? familyOf(*directory, cache) : std::nullopt;
    if (!family) return std::nullopt;
    families.insert(*std::move(family));
  }
  return families;
}

}  // namespace

void dropUnusedStores(const SessionPaths& paths, MetadataCache& cache, std::string_view trash) {
  const auto entries = paths.stores().list("");
  if (!entries) return;
  std::set<std::string> candidates;  // usually few: a session has the name of its family, unless that was forked
  for (const sys::DirectoryEntry& entry : *entries) {
    const std::string family = familyOfStore(entry.name);
    if (!family.empty() && !paths.sessions().stat(family)) candidates.insert(entry.name);
  }
  if (candidates.empty()) return;
  const auto lock = paths.lockAll();
  const auto families = lock ? familiesInUse(paths, cache) : std::nullopt;
  if (!families) return;
  for (const std::string& name : candidates) {
    if (!families->contains(familyOfStore(name)))
      (void)supervise::renameForeign(paths.stores(), name, std::string(trash) + name);
  }
}

}  // namespace caisson::session
