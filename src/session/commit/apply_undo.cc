// What follows the actions of a transaction: undoing them, keeping what they replaced, removing temporary files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/path_parts.h"
#include "session/commit/apply.h"
#include "session/commit/directory_watch.h"
#include "session/commit/host_attributes.h"
#include "session/commit/kept_copy.h"
#include "session/commit/object_moves.h"
#include "session/layers/steps.h"
#include "sys/remove_tree.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::FileInfo;
using sys::FileType;

constexpr std::size_t kMaxHeld = 256;  // of the usual limit of 1,024 descriptors

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

void Applier::noteMovedBack(const Action& action, int directory, const std::string& name) {
  const auto moved = infoAt(directory, name);
  if (!moved || !action.before || !action.before->matches(*moved, true)) return;
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

void Applier::noteMovedOut(std::size_t index, const std::optional<FileInfo>& now) {
  const Action& action = transaction_.actions[index];
  if (!now || !action.before || !action.before->matches(*now, true)) return;
  // A file that was a conflict, and was replaced all the same, stays one.
  FileInfo before = *now;
  before.changed_ns = action.before->changed_ns;
  const bool directory = now->type == FileType::directory;
  if (!directory && before.changed_ns > transaction_.since_ns && !committed_.isOurs(action.path, before)) return;
  moved_out_[index] = now->changed_ns;
}

bool Applier::isAsMovedOut(std::size_t index, const std::optional<FileInfo>& now) const {
  const auto found = moved_out_.find(index);
  return now && found != moved_out_.end() && found->second == now->changed_ns;
}

std::optional<FileInfo> Applier::putBack(std::size_t index) const {
  const auto found = put_back_.find(index);
  return found == put_back_.end() ? std::nullopt : std::optional(found->second);
}

bool Applier::isLeft(std::size_t index, bool done) const {
  const Action& action = transaction_.actions[index];
  const auto there = tree_.look(action.path);
  if (!there) return false;
  if (!done && !*there) return !action.before;
  if (!done && !action.attributes.empty() &&
      ((*there)->mode != action.before->mode || attributesDigest(tree_, action.path) != action.attributes)) {
    return false;
  }
  if (!done) return action.before && action.before->matches(**there, true);
  return action.kind == ActionKind::remove ? !*there : *there && isPlaced(index, **there);
}

bool Applier::isPlaced(std::size_t index, const FileInfo& there) const {
  const Action& action = transaction_.actions[index];
  if (action.kind == ActionKind::remove) return false;
  if (action.kind != ActionKind::link && (there.mode & 0777U) != (action.mode & 0777U)) return false;
  if (action.kind != ActionKind::directory) return placements_.isOurs(action.path, there);
  return there.type == FileType::directory && placements_.isSameObject(action.path, there) &&
         hasPlacedAttributes(action);
}

bool Applier::hasPlacedAttributes(const Action& action) const {
  const std::string attributes = attributesDigest(tree_, action.path);
  return !attributes.empty() && attributes == placements_.hashOf(action.path + "/");
}

void Applier::notePlaced(std::size_t index, const std::optional<FileInfo>& staged, int parent,
                         const std::string& name) {
  const Action& action = transaction_.actions[index];
  const auto placed = infoAt(parent, name);
  if (!placed || !staged || !HostIdentity::of(*staged).matches(*placed, true)) return;
  if (action.kind == ActionKind::directory) {
    const Fd directory(::openat(parent, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (directory) notePlaced(index, directory.get());
    return;
  }
  placements_.add(action.path, *placed);
  (void)placements_.save();  // else it is a conflict after a crash
}

bool Applier::isAsStaged(std::size_t index, int parent, const std::string& name) const {
  const Action& action = transaction_.actions[index];
  const auto there = infoAt(parent, name);
  if (action.kind == ActionKind::directory || action.restored || !there) return false;
  const bool same_mode = action.kind == ActionKind::link || (there->mode & 0777U) == (action.mode & 0777U);
  if (!same_mode || !action.isStaged(*there) || !action.isUnchanged(*there)) return false;
  if (!isDoneByCopy(action, parent, name).value_or(false)) return false;
  if (action.kind == ActionKind::link) return true;
  const auto attributes = readAttributes(parent, name, action.path);
  if (!attributes || !keepsAttributes(action)) return attributes && attributes->empty();
  // It was given those of what it replaced.
  const auto source = isKept(index) ? Source{kept_->objects(), stagedName(index)} : replacedObject(index);
  const auto old = source ? infoAt(source->directory, source->name) : std::nullopt;
  const auto kept = old ? readAttributes(source->directory, source->name, action.path) : fail(Error());
  return kept && std::ranges::is_permutation(*kept, *attributes) && old->uid == there->uid && old->gid == there->gid;
}

void Applier::noteTakenBack(std::size_t index) {
  if (!wasPlaced(index)) return;
  placements_.addRemoved(transaction_.actions[index].path);
  (void)placements_.save();
}

void Applier::notePlaced(std::size_t index, int directory) {
  const std::string& path = transaction_.actions[index].path;
  struct stat status;
  if (::fstat(directory, &status) != 0) return;
  placements_.addHash(path + "/", attributesDigest(directory, path));
  placements_.add(path, fileInfoOf(status));
  (void)placements_.save();
}

bool Applier::isAsPlaced(const Done& done, int directory, const std::string& name, bool moved) const {
  const Action& action = transaction_.actions[done.index];
  const auto there = infoAt(directory, name);
  if (!there) return false;
  if (action.kind != ActionKind::directory) {
    if (!moved && !isPlaced(done.index, *there)) return false;
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

int Applier::exchangeBack(std::size_t index, const Source& source, int parent, const std::string& name,
                          std::string& why) {
  const Done done{index, How::exchanged, source.beside};
  if (isAsPlaced(done, parent, name)) {
    if (const int error = exchange(source.directory, source.name, parent, name); error != 0) return error;
    if (isAsPlaced(done, source.directory, source.name, true)) {
      noteTakenBack(index);
      return 0;
    }
    // Changed in between.
    if (const int error = exchange(source.directory, source.name, parent, name); error != 0) return error;
  }
  done_.push_back(done);
  if (kept_ == nullptr && !recovering_) return EBUSY;
  why = "it was changed meanwhile, before and after it was replaced";
  if (kept_ != nullptr) {
    why += "; what was there is kept as " + kept_->directory().knownAs() + "/objects/" + std::to_string(index);
  }
  return 0;
}

bool Applier::undoOne(const Done& done) {
  const Action& action = transaction_.actions[done.index];
  std::string name = nameOf(action.path);
  const auto parent = done.beside ? Result<int>(besideDirectory(done.index)) : tree_.parentOf(action.path, name);
  if (!parent || *parent < 0) return false;
  const Source source{done.beside ? *parent : staging_.descriptor(),
                      done.beside ? temporaryName(done.index) : stagedName(done.index), done.beside};
  const bool in_place = done.how == How::mode;
  const bool unchanged =
      isAsMovedOut(done.index, in_place ? infoAt(*parent, name) : infoAt(source.directory, source.name));
  if (!undoOne(done, source, *parent, name)) return false;
  const auto back = unchanged ? infoAt(*parent, name) : std::nullopt;
  if (back && action.before->matches(*back, true)) put_back_[done.index] = *back;
  return true;
}

bool Applier::undoOne(const Done& done, const Source& from, int parent, const std::string& name) {
  const Action& action = transaction_.actions[done.index];
  const auto& [directory, source, beside] = from;
  if ((done.how == How::exchanged || done.how == How::added) && !isAsPlaced(done, parent, name)) return false;
  switch (done.how) {
    case How::made: removeCopiesIn(action.path); return ::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0;
    case How::exchanged:
      if (exchange(directory, source, parent, name) != 0) return false;
      if (isAsPlaced(done, directory, source, true)) return true;  // else it was changed meanwhile
      (void)exchange(directory, source, parent, name);
      return false;
    case How::added:
      if (moveNew(parent, name, directory, source) != 0) return false;
      if (isAsPlaced(done, directory, source, true)) return true;
      (void)moveNew(directory, source, parent, name);
      return false;
    case How::moved_away: return moveNew(directory, source, parent, name) == 0;
    case How::mode: {
      if (!action.before) return true;
      const Fd made(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      return made && ::fchmod(made.get(), done.mode_before) == 0;
    }
    case How::replaced:
    case How::removed: return false;
  }
  return false;
}

bool Applier::holdDirectory(std::size_t index, int parent) {
  struct stat status;
  if (::fstat(parent, &status) != 0) return false;
  const std::pair<std::uint64_t, std::uint64_t> identity{status.st_dev, status.st_ino};
  auto held = held_.find(identity);
  if (held == held_.end()) {
    Fd copy(held_.size() < kMaxHeld ? ::fcntl(parent, F_DUPFD_CLOEXEC, 0) : -1);
    if (!copy) return false;
    held = held_.emplace(identity, std::move(copy)).first;
  }
  held_of_[index] = held->second.get();
  return true;
}

int Applier::besideDirectory(std::size_t index) const {
  if (const auto held = held_of_.find(index); held != held_of_.end()) return held->second;
  std::string name;
  const auto parent = tree_.parentOf(transaction_.actions[index].path, name);
  return parent ? *parent : -1;
}

std::optional<FileInfo> Applier::lookAtPlaced(std::size_t index) const {
  const std::string& path = transaction_.actions[index].path;
  if (const auto held = held_of_.find(index); held != held_of_.end()) return infoAt(held->second, nameOf(path));
  const auto there = tree_.look(path);
  return there ? *there : std::nullopt;
}

void Applier::removeCopiesIn(const std::string& directory) {
  for (const std::size_t index : beside_) {
    const Action& action = transaction_.actions[index];
    if (directoryOf(action.path) != directory || action.before) continue;
    (void)sys::removeTreeAt(besideDirectory(index), temporaryName(index), action.path, Stage::state);
  }
}

Result<void> Applier::keepInPlace(std::size_t index, int parent, const std::string& name) const {
  if (kept_ == nullptr || kept_->has(index)) return {};
  return kept_->copy(index, parent, name, transaction_.actions[index].path);
}

Result<void> Applier::checkDiscarded() const {
  for (const Done& done : done_) {
    const Action& action = transaction_.actions[done.index];
    if (!action.before || (done.how != How::exchanged && done.how != How::moved_away)) continue;
    const auto source = replacedObject(done.index);
    if (!source) continue;
    const std::string why = whyPutBack(action, source->directory, source->name);
    if (!why.empty()) return fail(plainError(Stage::state, "session commit", action.path, why, "commit again"));
  }
  return {};
}

Result<void> Applier::keepReplaced(const KeptCommit* kept) const {
  if (kept == nullptr) return recovering_ ? Result<void>() : checkDiscarded();
  std::map<std::size_t, CopiedFiles> copied;
  for (std::size_t index = 0; index < transaction_.actions.size(); ++index) {
    const Action& action = transaction_.actions[index];
    const auto source = action.before ? replacedObject(index) : std::nullopt;
    if (!source) continue;
    CopiedFiles files;
    if (!kept->has(index)) {
      if (auto taken = kept->take(index, source->directory, source->name, action.path, files); !taken) return taken;
    }
    if (infoAt(source->directory, source->name)) copied[index] = std::move(files);
    step("commit: one kept");
  }
  // Only now: if one cannot be kept, all are put back.
  for (const auto& [index, files] : copied) {
    const auto source = replacedObject(index);
    if (!source) continue;
    const std::string& path = transaction_.actions[index].path;
    auto removed = removeCopied(source->directory, source->name, kept->objects(), std::to_string(index), path, files);
    if (!removed) return removed;
  }
  return {};
}

std::optional<Applier::Source> Applier::replacedObject(std::size_t index) const {
  const Action& action = transaction_.actions[index];
  const Source staged{staging_.descriptor(), stagedName(index)};
  const Source beside{besideDirectory(index), temporaryName(index), true};
  const Source staged_aside{staged.directory, asideName(staged.name)};
  const Source beside_aside{beside.directory, asideName(beside.name), true};
  for (const Source& place : {staged, beside, staged_aside, beside_aside}) {
    const auto there = place.directory < 0 ? std::nullopt : infoAt(place.directory, place.name);
    const bool old = there && there->device == action.before->device && there->inode == action.before->inode;
    // Else it may be what the commit was to put in place. A copy beside has no known inode.
    const bool of_host = place.beside ? action.kind == ActionKind::remove : there && !action.isStaged(*there);
    if (there && (old || of_host)) return place;
  }
  return std::nullopt;
}

bool Applier::returnKept(const Done& done) const {
  if (kept_ == nullptr || !kept_->has(done.index)) return true;
  if (done.how != How::exchanged && done.how != How::moved_away) return true;
  const int directory = done.beside ? besideDirectory(done.index) : staging_.descriptor();
  const std::string name = done.beside ? temporaryName(done.index) : stagedName(done.index);
  const std::string& path = transaction_.actions[done.index].path;
  return directory >= 0 && putBackCopied(kept_->objects(), std::to_string(done.index), directory, name, path);
}

std::vector<std::string> Applier::undo() {
  std::vector<std::string> left;
  for (auto done = done_.rbegin(); done != done_.rend(); ++done) {
    tree_.forget();
    const bool undone = returnKept(*done) && undoOne(*done);
    if (!undone) left.push_back(transaction_.actions[done->index].path);
    if (undone) noteTakenBack(done->index);
    if (undone && kept_ != nullptr) kept_->drop(done->index);
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
    const int directory = besideDirectory(index);
    if (directory < 0 || !infoAt(directory, temporaryName(index))) continue;
    (void)sys::removeTreeAt(directory, temporaryName(index), temporaryName(index), Stage::state);
  }
  beside_.clear();
}

}  // namespace caisson::session
