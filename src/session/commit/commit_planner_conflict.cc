// What makes a path of a commit a conflict, and how the caller's choices settle it.
#include <fcntl.h>
#include <sys/xattr.h>

#include <string_view>

#include "base/path_parts.h"
#include "base/path_text.h"
#include "session/changes/sparse_read.h"
#include "session/commit/apply.h"
#include "session/commit/commit_planner.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::FileInfo;
using sys::FileType;

constexpr const char* kChanged = "it was changed meanwhile";
constexpr const char* kModeChanged = "its permissions were or may have been changed there meanwhile";
constexpr const char* kOpen = "a program on the host has it open for writing, and may have changed it meanwhile";
constexpr const char* kNoDirectory = "its directory was removed there meanwhile";
constexpr const char* kRemovedThere = "it was removed there meanwhile";
constexpr const char* kPerhapsRemoved = "it may have been removed there meanwhile";
constexpr const char* kOther = "it is another directory there now: it was moved or replaced meanwhile";

}  // namespace

bool CommitPlanner::parentChanged(const std::string& path) {
  const DirectoryState state = directories_there_.stateOf(directoryOf(path));
  return state == DirectoryState::changed || state == DirectoryState::another;
}

std::string CommitPlanner::whyElsewhere(const std::string& path) {
  const auto other = directories_there_.replacedOnTheWay(path);
  if (!other) return "";
  const std::string name = other->empty() ? "the workspace" : displayedPath(*other);
  return name + " is another directory there now: it was moved or replaced meanwhile";
}

std::string CommitPlanner::whyAddedElsewhere(const std::string& path) {
  const auto other = directories_there_.replacedOnTheWay(path);
  if (!other) return "";
  if (directories_there_.wasThere(*other)) return whyElsewhere(path);
  const LayerStack::Entry entry = find(*other);
  const auto opened = now_.layers()[entry.layer].root->enter(*other);
  if (!entry.present || !opened) return whyElsewhere(path);
  const std::string self = "/proc/self/fd/" + std::to_string(opened->descriptor());
  const bool from_below = ::getxattr(self.c_str(), "user.overlay.origin", nullptr, 0) >= 0;
  return from_below ? whyElsewhere(path) : "";
}

bool CommitPlanner::isSame(const Candidate& candidate) {
  if (candidate.change.kind == ChangeKind::deleted) return !candidate.there;
  if (!candidate.there || candidate.there->type != candidate.entry.info.type) return false;
  // Whether a guess is the same as a hidden file would tell what is in it.
  if (candidate.there->type != FileType::directory && hidden_.hides(candidate.change.path) &&
      !committed_.isOurs(candidate.change.path, *candidate.there)) {
    return false;
  }
  const FileInfo& there = *candidate.there;
  const FileInfo& here = candidate.entry.info;
  if (there.type == FileType::link) {
    const auto target = real_.root().readLink(candidate.change.path);
    return target && *target == candidate.target;
  }
  if ((there.mode & 0777U) != (modeToWrite(candidate) & 0777U)) return false;
  if (there.type == FileType::directory) return true;
  if (there.type != FileType::regular || there.size != here.size) return false;
  std::string name;
  const auto parent = real_.parentOf(candidate.change.path, name);
  if (!parent) return false;
  const Fd real(::openat(*parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  const auto own = now_.open(candidate.change.path, candidate.entry);
  return real && own && sameContent(real.get(), own->file.get(), here.size);
}

std::string CommitPlanner::conflictIfGone(const Candidate& candidate) {
  const Change& change = candidate.change;
  std::string name;
  if (!directories_.contains(directoryOf(change.path)) && !real_.parentOf(change.path, name)) return kNoDirectory;
  if (std::string why = whyAddedElsewhere(change.path); !why.empty()) return why;
  if (!candidate.entry.present) return "";
  switch (committed_.lastChange(change.path)) {
    case LastChange::put: return kRemovedThere;
    case LastChange::removed: return "";
    case LastChange::none: break;
  }
  // In the landlock tier, the session has a copy of what was there.
  if (change.kind == ChangeKind::modified || directories_there_.hadName(change.path)) return kRemovedThere;
  // Where names were not recorded, a file that the kernel copied up was there. One that was replaced by a new file is
  // not told from an addition.
  const bool suspect = candidate.entry.info.type != FileType::directory && parentChanged(change.path) &&
                       cameFromBelow(now_, change.path, candidate.entry);
  return suspect ? kPerhapsRemoved : "";
}

std::string CommitPlanner::conflict(const Candidate& candidate) {
  const Change& change = candidate.change;
  const auto& there = candidate.there;
  const bool directory = candidate.entry.present && candidate.entry.info.type == FileType::directory;
  if (!there) return conflictIfGone(candidate);
  if (there->type == FileType::directory) {
    if (directory && directories_there_.stateOf(change.path) == DirectoryState::another) return kOther;
    if (directory) return directories_there_.isModeChanged(change.path, *there) ? kModeChanged : "";
    if (change.kind == ChangeKind::added) return "a directory was made there meanwhile";
    const RemovedDirectory& removed = candidate.removed;
    if (std::string why = whyElsewhere(change.path); !why.empty()) return why;
    if (!removed.changed.empty()) {
      return std::string(change.kind == ChangeKind::deleted ? "the session removed it" : "the session replaced it") +
             ", and " + displayedPath(removed.changed) + " was changed or moved there meanwhile";
    }
    if (!removed.open.empty()) return displayedPath(removed.open) + ": " + kOpen;
    return removed.unseen.empty() ? "" : "it holds " + removed.unseen + ", which was hidden from the session";
  }
  const auto why_open = [&] {
    return there->type == FileType::regular && real_.isOpenForWriting(change.path) ? kOpen : "";
  };
  if (isOurs(change.path, *there)) return why_open();
  // A git configuration is shown without its credentials: writing it back would remove them.
  if (const auto shown = now_.statIn("mask", change.path); shown && shown->type == FileType::regular) {
    return "a part of it was hidden from the session";
  }
  if (change.kind == ChangeKind::added) return "it was made there meanwhile, or was hidden from the session";
  if (real_.isLater(*there, since_ns_)) return kChanged;
  if (std::string why = whyElsewhere(change.path); !why.empty()) return why;
  return why_open();
}

CommitPlanner::Resolution CommitPlanner::resolutionOf(const std::string& path) {
  Resolution how = Resolution::none;
  for (std::string at = path;; at = directoryOf(at)) {
    if (const auto chosen = choices_.find(at); chosen != choices_.end()) {
      chosen->second.met = true;
      if (how == Resolution::none) how = chosen->second.how;
    }
    if (at.empty()) return how;
  }
}

bool CommitPlanner::wasHidden(const std::string& path) const {
  for (std::string at = path; !at.empty(); at = directoryOf(at)) {
    const auto mask = now_.statIn("mask", at);
    if (mask && mask->type != FileType::directory) return true;
  }
  return false;
}

void CommitPlanner::leaveConflict(const std::string& path, std::string_view why) {
  if (resolutionOf(path) == Resolution::ours) return report_.kept.push_back(path);
  leave(report_.conflicts, path, why);
}

bool CommitPlanner::settle(Candidate& candidate, const std::string& why) {
  const std::string& path = candidate.change.path;
  const bool directory = candidate.there && candidate.there->type == FileType::directory;
  const Resolution how = resolutionOf(path);
  if (how == Resolution::theirs && !directory && why != kNoDirectory) {
    // A directory may name a hidden file, such as .env, by accident, and its content would be lost.
    if (!choices_.contains(path) && wasHidden(path)) {
      leave(report_.conflicts, path, why + "; --theirs replaces it only by its own path");
      return false;
    }
    candidate.replaces_hidden = why != kChanged && why != kOpen;
    real_.acceptWriters(path);
    return true;
  }
  const bool both_files = (why == kChanged || why == kOpen) && candidate.entry.present && candidate.there &&
                          candidate.entry.info.type == FileType::regular && candidate.there->type == FileType::regular;
  std::string reason = why;
  if (how == Resolution::merge && both_files) {
    auto merged = merger_.merge(path, *candidate.there, candidate.entry);
    if (merged) {
      candidate.merged = *std::move(merged);
      real_.acceptWriters(path);
      return candidate.merged.has_value();
    }
    reason = merged.error();
  } else if (both_files && merger_.mayMerge(path)) {
    reason += "; --merge can combine both versions";
  }
  leaveConflict(path, reason);
  return false;
}

}  // namespace caisson::session
