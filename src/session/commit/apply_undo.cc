// What follows the actions of a transaction: undoing them, keeping what they replaced, removing temporary files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "session/commit/apply.h"
#include "session/commit/object_moves.h"
#include "session/layers/steps.h"
#include "sys/remove_tree.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::FileInfo;
using sys::FileType;

}  // namespace

IsOurs Applier::isOurs() const {
  return [this](const std::string& path, const FileInfo& info) {
    return committed_.isOurs(path, info) || isOwnMove(info);
  };
}

void Applier::noteOwnMove(const Action& action, int directory, const std::string& name) {
  const auto moved = infoAt(directory, name);
  if (!moved || moved->type == FileType::directory || moved->links < 2) return;
  if (!action.before || !action.before->matches(*moved, true)) return;
  // Not of a file that was replaced although the host had changed it: its other links are conflicts.
  FileInfo before = *moved;
  before.changed_ns = action.before->changed_ns;
  if (before.changed_ns > transaction_.since_ns && !committed_.isOurs(action.path, before)) return;
  own_moves_[{moved->device, moved->inode}] = moved->changed_ns;
}

void Applier::findOwnMoves() {
  for (std::size_t index = 0; index < transaction_.actions.size(); ++index) {
    const Action& action = transaction_.actions[index];
    if (!action.before || action.before->type == FileType::directory) continue;
    noteOwnMove(action, staging_.descriptor(), stagedName(index));
    if (kept_ != nullptr) noteOwnMove(action, kept_->objects(), stagedName(index));
    std::string name;
    if (const auto parent = tree_.parentOf(action.path, name)) noteOwnMove(action, *parent, temporaryName(index));
  }
}

bool Applier::isOwnMove(const FileInfo& info) const {
  const auto found = own_moves_.find({info.device, info.inode});
  return found != own_moves_.end() && info.type != FileType::directory && found->second == info.changed_ns;
}

bool Applier::isPlaced(std::size_t index, const FileInfo& there) const {
  const Action& action = transaction_.actions[index];
  if (action.kind == ActionKind::remove) return false;
  const auto placed = placed_.find(index);
  if (action.kind != ActionKind::link && (there.mode & 0777U) != (action.mode & 0777U)) return false;
  if (placed != placed_.end()) {
    const FileInfo& made = placed->second;
    if (made.device != there.device || made.inode != there.inode || made.type != there.type) return false;
    return action.kind == ActionKind::directory || (made.size == there.size && made.modified_ns == there.modified_ns);
  }
  if (action.inode != 0) return action.isStaged(there) && action.isUnchanged(there);
  if (!recovering_ || there.type != FileType::directory) return false;
  const auto entries = tree_.root().list(action.path);
  if (own_paths_.empty()) {
    for (const Action& one : transaction_.actions) own_paths_.insert(one.path);
  }
  return entries && std::ranges::all_of(*entries, [&](const sys::DirectoryEntry& entry) {
           return own_paths_.contains(action.path + "/" + entry.name);
         });
}

bool Applier::isAsPlaced(const Done& done, int directory, const std::string& name) const {
  const Action& action = transaction_.actions[done.index];
  const auto there = infoAt(directory, name);
  if (!there) return false;
  if (action.kind != ActionKind::directory) {
    if (!done.beside) return action.isStaged(*there) && action.isUnchanged(*there);
    const auto copied = isDoneByCopy(action, directory, name);
    return copied && *copied;
  }
  if (there->type != FileType::directory || (!done.beside && !action.isStaged(*there))) return false;
  if (action.restored) return true;
  // What the transaction put into it was taken out before: what is left, others made.
  const auto root = sys::RootDir::adopt(Fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), {});
  const auto entries = root ? root->list(name, 1) : Result<std::vector<sys::DirectoryEntry>>(fail(root.error()));
  return entries && entries->empty();
}

bool Applier::undoOne(const Done& done) {
  const Action& action = transaction_.actions[done.index];
  std::string name;
  const auto parent = tree_.parentOf(action.path, name);
  if (!parent) return false;
  const int directory = done.beside ? *parent : staging_.descriptor();
  const std::string source = done.beside ? temporaryName(done.index) : stagedName(done.index);
  if ((done.how == How::exchanged || done.how == How::added) && !isAsPlaced(done, *parent, name)) return false;
  switch (done.how) {
    case How::made: return ::unlinkat(*parent, name.c_str(), AT_REMOVEDIR) == 0;
    case How::exchanged:
      if (renameWith(directory, source, *parent, name, RENAME_EXCHANGE) != 0) return false;
      if (isAsPlaced(done, directory, source)) return true;  // else it was changed meanwhile
      (void)renameWith(directory, source, *parent, name, RENAME_EXCHANGE);
      return false;
    case How::added:
      if (moveNew(*parent, name, directory, source) != 0) return false;
      if (isAsPlaced(done, directory, source)) return true;
      (void)moveNew(directory, source, *parent, name);
      return false;
    case How::moved_away: return moveNew(directory, source, *parent, name) == 0;
    case How::mode: {
      if (!action.before) return true;
      const Fd made(::openat(*parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      return made && ::fchmod(made.get(), done.mode_before) == 0;
    }
    case How::replaced:
    case How::removed: return false;
  }
  return false;
}

Result<void> Applier::keepInPlace(std::size_t index, int parent, const std::string& name) const {
  if (kept_ == nullptr || kept_->has(index)) return {};
  return kept_->copy(index, parent, name, transaction_.actions[index].path);
}

Result<void> Applier::keepReplaced(const KeptCommit* kept) const {
  if (kept == nullptr) return {};
  for (std::size_t index = 0; index < transaction_.actions.size(); ++index) {
    const Action& action = transaction_.actions[index];
    if (!action.before || kept->has(index)) continue;
    std::string name;
    const auto parent = tree_.parentOf(action.path, name);
    const Source staged{staging_.descriptor(), stagedName(index)};
    const Source beside{parent ? *parent : -1, temporaryName(index), true};
    for (const Source& place : {staged, beside}) {
      if (place.directory < 0) continue;
      const auto there = infoAt(place.directory, place.name);
      const bool old = there && there->device == action.before->device && there->inode == action.before->inode;
      // Else it may be what the commit was to put in place. A copy beside has no known inode.
      const bool of_host = place.beside ? action.kind == ActionKind::remove : there && !action.isStaged(*there);
      if (!there || (!old && !of_host)) continue;
      if (auto taken = kept->take(index, place.directory, place.name, action.path); !taken) return taken;
    }
    step("commit: one kept");
  }
  return {};
}

std::vector<std::string> Applier::undo() {
  std::vector<std::string> left;
  for (auto done = done_.rbegin(); done != done_.rend(); ++done) {
    tree_.forget();
    if (!undoOne(*done)) left.push_back(transaction_.actions[done->index].path);
  }
  done_.clear();
  return left;
}

void Applier::removeTemporaries() {
  if (recovering_) {
    beside_.clear();
    for (std::size_t index = 0; index < transaction_.actions.size(); ++index) beside_.push_back(index);
  }
  for (const std::size_t index : beside_) {
    std::string name;
    const auto parent = tree_.parentOf(transaction_.actions[index].path, name);
    if (!parent || !infoAt(*parent, temporaryName(index))) continue;
    (void)sys::removeTreeAt(*parent, temporaryName(index), temporaryName(index), Stage::state);
  }
  beside_.clear();
}

}  // namespace caisson::session
