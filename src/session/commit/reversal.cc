#include "session/commit/reversal.h"

#include <algorithm>
#include <utility>

#include "base/path_parts.h"
#include "session/commit/directory_watch.h"
#include "session/commit/journal.h"

namespace caisson::session {
namespace {

using sys::FileInfo;
using sys::FileType;

constexpr const char* kChangedSince = "it was changed since the commit";

}  // namespace

Reversal::Reversal(RealTree& real, const KeptCommit& kept, const CommitRecord& record, Committed& left,
                   const std::set<std::string>& restored)
    : real_(real), kept_(kept), record_(record), left_(left), restored_(restored), again_(isPartial(kept.directory())) {
  for (std::size_t index = 0; index < record.done.size(); ++index) {
    if (isToDo(index)) by_path_[record.transaction.actions[index].path] = index;
  }
}

void Reversal::plan() {
  const auto& actions = record_.transaction.actions;
  // Backwards: links, files, directories, deletions.
  for (std::size_t index = actions.size(); index-- > 0;) {
    if (isToDo(index)) consider(actions[index], index);
  }
  // What comes back goes below directories that come back before it; what was added in a directory goes before it.
  std::ranges::stable_sort(steps_, [](const Step& a, const Step& b) { return rankOf(a) < rankOf(b); });
  std::ranges::sort(report.applied, [](const auto& a, const auto& b) { return a.path < b.path; });
  std::ranges::sort(report.conflicts, {}, &NotCommitted::path);
}

void Reversal::leaveOut(const std::string& path, const std::string& why) {
  std::erase_if(report.applied, [&](const ManifestEntry& entry) { return entry.path == path; });
  conflict(path, why);
}

void Reversal::conflict(const std::string& path, std::string why) {
  const auto done = by_path_.find(path);
  if (done != by_path_.end() && kept_.has(done->second)) {
    why += "; what the commit replaced is kept as " + kept_.directory().knownAs() + "/objects/" +
           std::to_string(done->second);
  }
  report.conflicts.push_back({path, std::move(why)});
}

bool Reversal::isToDo(std::size_t index) const {
  return record_.done[index] != 0 && !restored_.contains(record_.transaction.actions[index].path);
}

bool Reversal::isLeft(const std::string& path, const FileInfo& there) const {
  return left_.isOurs(path, there) || (there.type == FileType::directory && left_.isOurs(path + "/", there));
}

void Reversal::consider(const Action& done, std::size_t index) {
  const auto there = real_.look(done.path);
  if (!there) return conflict(done.path, there.error().message());
  if (done.kind == ActionKind::directory && done.before && done.before->type == FileType::directory) {
    return considerMode(done, *there);
  }
  // After a conflict, its owner moves the other object away.
  const bool moved_away = again_ && !*there && kept_.has(index);
  if (done.kind != ActionKind::remove && !moved_away && (!*there || !isUnchanged(done, **there))) {
    if (!*there && !done.before) return;  // what it added is gone already
    return conflict(done.path, *there ? kChangedSince : "it was removed since the commit");
  }
  if (done.kind == ActionKind::remove && *there)
    return conflict(done.path, "something was made there since the commit");
  if (!done.before) return removeAdded(done, **there);
  if (!kept_.has(index)) return conflict(done.path, "what was there was not kept");
  Step step{.action = {.path = done.path, .restored = true}, .kept = index};
  if (*there) step.action.before = HostIdentity::of(**there);
  step.action.kind = kindOf(done.before->type);
  step.action.mode = done.before->mode;
  step.action.may_lead_out = true;
  add(std::move(step), *there ? ChangeKind::modified : ChangeKind::added, done.before->type);
}

ActionKind Reversal::kindOf(FileType type) {
  return type == FileType::directory ? ActionKind::directory
         : type == FileType::link    ? ActionKind::link
                                     : ActionKind::file;
}

bool Reversal::isUnchanged(const Action& done, const FileInfo& there) const {
  // Names that came and went have changed a directory: those of another session, or that an earlier uncommit removed.
  const bool same_directory = there.type == FileType::directory && done.kind == ActionKind::directory &&
                              (there.mode & 0777U) == (done.mode & 0777U) && left_.isSameObject(done.path, there);
  const bool placed = isLeft(done.path, there);
  if (!placed && !same_directory) return false;
  if (!placed && attributesDigest(real_, done.path) != left_.hashOf(done.path + "/")) return false;
  if (there.type == FileType::directory && hasOthers(done.path)) return false;
  if (same_directory) left_.add(done.path, there);
  return true;
}

bool Reversal::hasOthers(const std::string& directory) const {
  if (const auto found = others_.find(directory); found != others_.end()) return found->second;
  const bool others = findOthers(directory);
  others_.emplace(directory, others);
  return others;
}

bool Reversal::findOthers(const std::string& directory) const {
  const auto entries = real_.root().list(directory);
  if (!entries) return true;
  return std::ranges::any_of(*entries, [&](const sys::DirectoryEntry& entry) {
    const std::string below = directory + "/" + entry.name;
    const auto info = real_.root().stat(below);
    const auto made = by_path_.find(below);
    if (!info || made == by_path_.end()) return true;
    const Action& action = record_.transaction.actions[made->second];
    return action.before || !isUnchanged(action, *info);
  });
}

void Reversal::considerMode(const Action& done, const std::optional<FileInfo>& there) {
  const bool same = there && (there->inode == done.before->inode || isLeft(done.path, *there));
  if (!same || there->type != FileType::directory) {
    return conflict(done.path, "it is another directory there now");
  }
  if (there->mode == done.before->mode) return;
  const std::string attributes = attributesDigest(real_, done.path);
  const bool same_rights = (there->mode & 0777U) == (done.mode & 0777U) && !attributes.empty() &&
                           attributes == left_.hashOf(done.path + "/");
  if (!same_rights) return conflict(done.path, kChangedSince);
  Step step{.action = {.kind = ActionKind::directory, .path = done.path, .mode = done.before->mode}};
  step.action.attributes = attributes;
  step.action.before = HostIdentity::of(*there);
  add(std::move(step), ChangeKind::modified, FileType::directory);
}

void Reversal::removeAdded(const Action& done, const FileInfo& there) {
  // With a directory goes everything in it.
  for (std::string above = directoryOf(done.path); !above.empty(); above = directoryOf(above)) {
    const auto made = by_path_.find(above);
    if (made == by_path_.end()) continue;
    const Action& directory = record_.transaction.actions[made->second];
    const auto info = real_.look(above);
    if (directory.kind != ActionKind::directory) continue;
    if (directory.before && directory.before->type == FileType::directory) continue;
    if (info && *info && isUnchanged(directory, **info)) return;
  }
  Step step{.action = {.kind = ActionKind::remove, .path = done.path}};
  step.action.before = HostIdentity::of(there);
  if (there.type == FileType::regular) step.action.replaced_bytes = there.size;
  add(std::move(step), ChangeKind::deleted, there.type);
}

void Reversal::add(Step step, ChangeKind kind, FileType type) {
  ManifestEntry entry;
  entry.path = step.action.path;
  entry.kind = kind;
  entry.type = sys::name(type);
  entry.mode = step.action.mode & 0777U;
  report.applied.push_back(std::move(entry));
  steps_.push_back(std::move(step));
}

}  // namespace caisson::session
