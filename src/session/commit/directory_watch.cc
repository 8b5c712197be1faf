#include "session/commit/directory_watch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <unordered_set>

#include "base/path_parts.h"
#include "base/sha256.h"
#include "session/commit/host_attributes.h"

namespace caisson::session {
namespace {

using sys::FileInfo;
using sys::FileType;

/// Of staging directories and temporary copies.
constexpr std::string_view kOwnPrefix = ".caisson-";

void addText(Sha256& state, std::string_view text) { state.add(text).add(std::uint8_t{0}); }

}  // namespace

std::string attributesDigest(RealTree& tree, const std::string& directory) {
  std::string name = ".";
  const auto parent = directory.empty() ? Result<int>(tree.root().descriptor()) : tree.parentOf(directory, name);
  if (!parent) return "";
  const sys::Fd opened(::openat(*parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return opened ? attributesDigest(opened.get(), directory) : "";
}

std::string attributesDigest(int directory, const std::string& path) {
  struct stat there{};
  const auto attributes = readAttributes(directory, path);
  if (!attributes || ::fstat(directory, &there) != 0) return "";
  Sha256 state;
  addText(state, std::to_string(there.st_uid) + " " + std::to_string(there.st_gid));
  for (const auto& [key, value] : *attributes) {
    addText(state, key);
    addText(state, std::to_string(value.size()));
    addText(state, value);
  }
  return hex(state.finish());
}

DirectoryWatch::DirectoryWatch(RealTree& tree, const std::vector<Action>& actions) : tree_(tree), actions_(actions) {
  for (std::size_t index = 0; index < actions.size(); ++index) {
    const Action& action = actions[index];
    in_[directoryOf(action.path)].push_back(index);
    const bool was_directory = action.before && action.before->type == FileType::directory;
    if (action.kind == ActionKind::directory && was_directory) changed_modes_[action.path] = index;
  }
}

std::optional<std::size_t> DirectoryWatch::modeChangeOf(const std::string& directory) const {
  const auto found = changed_modes_.find(directory);
  return found == changed_modes_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> DirectoryWatch::othersIn(const std::string& directory) const {
  std::unordered_set<std::string> own;
  if (const auto found = in_.find(directory); found != in_.end()) {
    for (const std::size_t index : found->second) own.insert(nameOf(actions_[index].path));
  }
  const auto entries = tree_.root().list(directory);
  if (!entries) return std::nullopt;
  Sha256 state;
  for (const sys::DirectoryEntry& entry : *entries) {
    if (entry.name.starts_with(kOwnPrefix) || own.contains(entry.name)) continue;
    addText(state, entry.name);
    addText(state, sys::name(entry.type));
    if (entry.type != FileType::directory) continue;  // a rename sets the change time of a file
    const auto info = tree_.root().stat(directory.empty() ? entry.name : directory + "/" + entry.name);
    if (!info) return std::nullopt;
    addText(state, std::to_string(info->inode));
  }
  if (modeChangeOf(directory)) return hex(state.finish());  // chmod changes the access list, too
  const std::string attributes = attributesDigest(tree_, directory);
  if (attributes.empty()) return std::nullopt;
  addText(state, attributes);
  return hex(state.finish());
}

std::optional<KnownDirectory> DirectoryWatch::begin(const std::string& directory, std::int64_t changed_ns) const {
  const auto before = tree_.lookAtDirectory(directory);
  if (!before || (changed_ns != 0 && before->info.changed_ns != changed_ns)) return std::nullopt;
  auto others = othersIn(directory);
  const auto after = tree_.lookAtDirectory(directory);
  const FileInfo& info = before->info;
  if (!others || !after || after->info.inode != info.inode || after->info.changed_ns != info.changed_ns) {
    return std::nullopt;
  }
  return KnownDirectory{directory, info.device, info.inode, info.mode, *std::move(others)};
}

bool DirectoryWatch::areLeft(const std::string& directory, const IsLeft& is_left) const {
  const auto own = in_.find(directory);
  return own == in_.end() || std::ranges::all_of(own->second, is_left);
}

std::optional<FileInfo> DirectoryWatch::endMade(const std::string& directory, const IsLeft& is_left) const {
  const auto now = tree_.lookAtDirectory(directory);
  const auto entries = now ? tree_.root().list(directory) : fail(sysError(Stage::state, "open", directory, ENOENT));
  if (!entries || !areLeft(directory, is_left)) return std::nullopt;
  const auto own = in_.find(directory);
  const std::size_t most = own == in_.end() ? 0 : own->second.size();
  const auto temporary = [](const sys::DirectoryEntry& entry) { return entry.name.starts_with(kOwnPrefix); };
  // Each of its names is the transaction's, or there are more.
  const auto names = entries->size() - static_cast<std::size_t>(std::ranges::count_if(*entries, temporary));
  const auto after = tree_.lookAtDirectory(directory);
  const bool stayed = after && after->info.inode == now->info.inode && after->info.changed_ns == now->info.changed_ns;
  return stayed && names <= most ? std::optional(after->info) : std::nullopt;
}

std::optional<FileInfo> DirectoryWatch::end(const KnownDirectory& directory, const IsLeft& is_left) const {
  const auto now = tree_.lookAtDirectory(directory.path);
  if (!now || now->info.device != directory.device || now->info.inode != directory.inode) return std::nullopt;
  const auto mode_change = modeChangeOf(directory.path);
  const bool given = mode_change && (actions_[*mode_change].mode & 0777U) == (now->info.mode & 0777U);
  if (now->info.mode != directory.mode && !given) return std::nullopt;
  if (mode_change && !is_left(*mode_change)) return std::nullopt;
  const auto others = othersIn(directory.path);
  if (!others || *others != directory.others) return std::nullopt;
  if (!areLeft(directory.path, is_left)) return std::nullopt;
  const auto after = tree_.lookAtDirectory(directory.path);
  if (!after || after->info.inode != now->info.inode || after->info.changed_ns != now->info.changed_ns) {
    return std::nullopt;
  }
  return after->info;
}

}  // namespace caisson::session
