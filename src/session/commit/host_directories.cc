#include "session/commit/host_directories.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/path_parts.h"
#include "session/commit/host_attributes.h"

namespace caisson::session {
namespace {

using sys::FileInfo;
using sys::FileType;

}  // namespace

DirectoryState HostDirectories::stateOf(const std::string& directory) {
  if (const auto found = states_.find(directory); found != states_.end()) return found->second;
  const DirectoryState state = find(directory);
  return states_.emplace(directory, state).first->second;
}

DirectoryState HostDirectories::find(const std::string& directory) {
  const bool top = directory.empty();
  if (top && !baseline_.isOfWorkspace()) return DirectoryState::another;
  const DirectoryState above = top ? DirectoryState::changed : stateOf(directoryOf(directory));
  if (above == DirectoryState::another || above == DirectoryState::missing) return above;
  const auto there = real_.lookAtDirectory(directory);
  if (!there) return DirectoryState::missing;
  // A mount hides what the session sees: an overlay does not show the mounts below its layers.
  if (there->mounted) return DirectoryState::another;
  const FileInfo& info = there->info;
  changed_ns_[directory] = info.changed_ns;
  const bool ours = committed_.isOurs(directory + "/", info);
  const auto* const known = baseline_.find(directory);
  if (known != nullptr && known->inode != info.inode) {
    // This session's commit may have replaced it.
    if (!committed_.isSameObject(directory, info)) return DirectoryState::another;
    return ours ? DirectoryState::ours : DirectoryState::changed;
  }
  if (known != nullptr && known->changed_ns == info.changed_ns) return DirectoryState::unchanged;
  // The record has no time of a directory that changed just before the session began.
  if (known != nullptr && known->changed_ns == 0 && !real_.isLater(info, since_ns_)) return DirectoryState::unchanged;
  if (ours) return DirectoryState::ours;
  if (known != nullptr) return DirectoryState::changed;
  if (!real_.isLater(info, since_ns_)) return DirectoryState::unchanged;
  // Moving a directory changes its directory, too.
  const bool above_is_known = above == DirectoryState::unchanged || above == DirectoryState::ours;
  const bool stayed = top || above_is_known || committed_.isSameObject(directory, info);
  return stayed ? DirectoryState::changed : DirectoryState::another;
}

std::int64_t HostDirectories::examinedAt(const std::string& directory) {
  (void)stateOf(directory);
  const auto found = changed_ns_.find(directory);
  return found == changed_ns_.end() ? -1 : found->second;
}

std::optional<std::string> HostDirectories::replacedOnTheWay(const std::string& path) {
  std::string directory = directoryOf(path);
  if (stateOf(directory) != DirectoryState::another) return std::nullopt;
  while (!directory.empty() && stateOf(directoryOf(directory)) == DirectoryState::another) {
    directory = directoryOf(directory);
  }
  return directory;
}

bool HostDirectories::wasThere(const std::string& directory) {
  if (directory.empty() || baseline_.find(directory) != nullptr) return true;
  const auto there = real_.lookAtDirectory(directory);
  return there && there->mounted;
}

bool HostDirectories::isModeChanged(const std::string& directory, const FileInfo& info) {
  if (committed_.isOurs(directory, info) || committed_.isOurs(directory + "/", info)) return false;
  const auto* const known = baseline_.find(directory);
  if (known == nullptr) return real_.isLater(info, since_ns_);
  if (known->mode != info.mode) return true;
  const DirectoryState state = stateOf(directory);
  return state != DirectoryState::unchanged && state != DirectoryState::ours && hasAccessList(directory);
}

bool HostDirectories::hasAccessList(const std::string& directory) {
  std::string name;
  const auto parent = real_.parentOf(directory, name);
  const auto attributes = parent ? readAttributes(*parent, name, directory) : fail(parent.error());
  return !attributes || std::ranges::any_of(*attributes, [](const auto& one) { return one.first == kAccessList; });
}

}  // namespace caisson::session
