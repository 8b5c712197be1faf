#include "session/commit/commit_planner.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/path_parts.h"
#include "base/path_text.h"
#include "base/text.h"
#include "policy/rules/name_pattern.h"
#include "session/changes/sparse_read.h"
#include "session/commit/apply.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::FileInfo;
using sys::FileType;

constexpr const char* kChanged = "it was changed meanwhile";
constexpr const char* kModeChanged = "its permissions were or may have been changed there meanwhile";
constexpr const char* kOpen = "a program on the host has it open for writing, and may have changed it meanwhile";
constexpr const char* kNoDirectory = "its directory was removed there meanwhile";
constexpr const char* kOther = "it is another directory there now: it was moved or replaced meanwhile";

/// A real file whose change time is later than this counts as changed since the session began. If the wall clock was
/// set back since, files changed later may carry an earlier time: then the result is earlier, so that more counts as
/// changed.
std::int64_t changedSince(const Metadata& metadata) {
  const Moment now = Moment::now();
  if (now.boot != metadata.began.boot) return metadata.began.wall_ns;
  const std::int64_t set = (now.wall_ns - metadata.began.wall_ns) - (now.boot_ns - metadata.began.boot_ns);
  constexpr std::int64_t kNoticeable = 1'000'000'000;
  return set < -kNoticeable ? metadata.began.wall_ns + set : metadata.began.wall_ns;
}

bool below(std::string_view path, std::string_view directory) {
  return directory.empty() ||
         (path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/'));
}

/// Also a file system that ignores case finds a directory by this path.
std::string foldedPath(const std::string& path) {
  std::vector<std::string> parts;
  for (const std::string_view part : policy::splitParts(path, '/')) parts.push_back(policy::foldName(part));
  return joined(parts, "/");
}

/// The order of a transaction: deletions, directories, files, links. Links come last, since they are checked in the
/// tree that the other actions leave.
int rankOf(const Change& change, FileType type) {
  if (change.kind == ChangeKind::deleted) return 0;
  return type == FileType::directory ? 1 : type == FileType::link ? 3 : 2;
}

}  // namespace

Result<std::string> normalCommitPath(std::string_view path, const std::string& workspace) {
  std::string result;
  if (!workspace.empty() && path.starts_with(workspace + "/")) {
    path.remove_prefix(workspace.size() + 1);
  } else if (path.starts_with("/workspace/")) {
    path.remove_prefix(11);
  }
  const auto refuse = [&] {
    return fail(withCode(plainError(Stage::usage, "session commit", path, "not a path below the workspace",
                                    "name it relative to /workspace"),
                         ErrorCode::path_escapes));
  };
  if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos) return refuse();
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") return refuse();
    result += (result.empty() ? "" : "/") + std::string(part);
  }
  return result;
}

CommitPlanner::CommitPlanner(const Metadata& metadata, const LayerStack& before, const LayerStack& now, RealTree& real,
                             const Committed& committed, DirectoryBaseline baseline, MergeBases& bases,
                             const Staging* staging)
    : workspace_(metadata.workspace),
      before_(before),
      now_(now),
      real_(real),
      committed_(committed),
      since_ns_(changedSince(metadata)),
      directories_there_(real, committed, std::move(baseline), since_ns_),
      merger_(bases, real, now),
      staging_(staging),
      held_(real, metadata.policy.filesystem.workspace, metadata.workspace),
      result_(real) {
  transaction_.since_ns = since_ns_;
}

void CommitPlanner::leave(std::vector<NotCommitted>& list, const std::string& path, std::string_view why) {
  list.push_back({path, std::string(why)});
}

Result<void> CommitPlanner::readRequest(const CommitRequest& request) {
  for (const std::string& path : request.paths) {
    auto relative = normalCommitPath(path, workspace_);
    if (!relative) return fail(relative.error());
    chosen_.push_back(*std::move(relative));
  }
  for (const auto& [paths, how] :
       {std::pair(&request.ours, Resolution::ours), std::pair(&request.theirs, Resolution::theirs),
        std::pair(&request.merge, Resolution::merge)}) {
    for (const std::string& path : *paths) {
      auto relative = normalCommitPath(path, workspace_);
      if (!relative) return fail(relative.error());
      const auto [chosen, added] = choices_.try_emplace(*std::move(relative), Choice{how});
      if (added || chosen->second.how == how || how == Resolution::merge) continue;
      return fail(plainError(Stage::usage, "session commit", path, "both --ours and --theirs", "choose one"));
    }
  }
  met_.assign(chosen_.size(), false);
  for (const std::string& directory : request.excluded) excluded_.push_back(foldedPath(directory));
  if (request.ordinary_files_only) held_.holdUnusual();
  return {};
}

bool CommitPlanner::isWanted(const Change& change, bool& named) const {
  bool wanted = chosen_.empty();
  named = false;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const bool inside = below(change.path, chosen_[i]);
    // A directory on the way to a chosen path comes with it; what else is in it does not.
    const bool on_the_way =
        !inside && change.type == "directory" && change.kind != ChangeKind::deleted && below(chosen_[i], change.path);
    if (!inside && !on_the_way) continue;
    wanted = true;
    named = named || on_the_way || change.path == chosen_[i];
  }
  return wanted;
}

bool CommitPlanner::isExcluded(const Change& change) const {
  if (excluded_.empty()) return false;
  const std::string path = foldedPath(change.path);
  const bool stays = change.type == "directory" && change.kind != ChangeKind::deleted;
  return std::ranges::any_of(excluded_, [&](const std::string& directory) {
    return below(path, directory) || (!stays && below(directory, path));
  });
}

void CommitPlanner::markMet(const std::string& path) {
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    if (below(path, chosen_[i])) met_[i] = true;
  }
}

const LayerStack::View& CommitPlanner::viewOf(const std::string& directory) {
  if (const auto found = views_.find(directory); found != views_.end()) return found->second;
  LayerStack::View view;
  if (directory.empty()) {
    view = now_.root();
  } else {
    LayerStack::Entry entry = now_.lookUp(directory, viewOf(directoryOf(directory)));
    if (entry.present) view = std::move(entry.below);
  }
  return views_.emplace(directory, std::move(view)).first->second;
}

LayerStack::Entry CommitPlanner::find(const std::string& path) { return now_.lookUp(path, viewOf(directoryOf(path))); }

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

bool CommitPlanner::isSame(const Candidate& candidate) {
  if (candidate.change.kind == ChangeKind::deleted) return !candidate.there;
  if (!candidate.there || candidate.there->type != candidate.entry.info.type) return false;
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

std::string CommitPlanner::whyHeld(const Candidate& candidate) {
  const std::string& path = candidate.change.path;
  if (std::string why = held_.why(path, candidate.change.type == "directory"); !why.empty()) return why;
  if (candidate.entry.present && candidate.entry.info.type == FileType::link) {
    if (std::string why = held_.whyLink(path, candidate.target); !why.empty()) return why;
  }
  const RemovedDirectory& removed = candidate.removed;
  return removed.held.empty() ? "" : "it holds " + displayedPath(removed.held) + ": " + removed.held_reason;
}

void CommitPlanner::findLinks(const std::vector<StackChange>& changes) {
  std::vector<policy::WorkspaceLink> added;
  for (const StackChange& change : changes) {
    bool named = false;
    if (change.kind == ChangeKind::deleted || change.now.info.type != FileType::link) continue;
    if (!isWanted(toChange(change), named) || !named) continue;
    if (auto target = now_.readLink(change.path, change.now)) added.push_back({change.path, *std::move(target)});
  }
  held_.findLinks(added);
  report_.searched = held_.searchedAll();
}

bool CommitPlanner::removesDirectory(const Candidate& candidate) {
  const bool stays = candidate.entry.present && candidate.entry.info.type == FileType::directory;
  return candidate.there && candidate.there->type == FileType::directory && !stays;
}

RemovedDirectory CommitPlanner::inspectRemoved(const std::string& path) {
  return inspectRemoval(
      real_, before_, path,
      {.since_ns = since_ns_,
       .is_ours = [&](const std::string& below, const FileInfo& info) { return committed_.isOurs(below, info); },
       .is_unchanged_directory =
           [&](const std::string& below) {
             const DirectoryState state = directories_there_.stateOf(below);
             return state == DirectoryState::unchanged || state == DirectoryState::ours;
           },
       .why_held = [&](const std::string& below, bool directory) { return held_.why(below, directory); }});
}

std::string CommitPlanner::conflict(const Candidate& candidate) {
  const Change& change = candidate.change;
  const auto& there = candidate.there;
  const auto ours = [&](const std::string& path, const FileInfo& info) { return committed_.isOurs(path, info); };
  const bool directory = candidate.entry.present && candidate.entry.info.type == FileType::directory;
  if (!there) {
    const std::string parent = directoryOf(change.path);
    std::string name;
    if (!directories_.contains(parent) && !real_.parentOf(change.path, name)) {
      return kNoDirectory;
    }
    const bool suspect = candidate.entry.present && !directory && parentChanged(change.path) &&
                         cameFromBelow(now_, change.path, candidate.entry);
    return suspect ? "it may have been removed there meanwhile" : "";
  }
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
    return removed.unseen.empty() ? "" : "it holds " + removed.unseen + ", which was hidden from the session";
  }
  if (ours(change.path, *there)) return "";
  // A git configuration is shown without its credentials: writing it back would remove them.
  if (const auto shown = now_.statIn("mask", change.path); shown && shown->type == FileType::regular) {
    return "a part of it was hidden from the session";
  }
  if (change.kind == ChangeKind::added) return "it was made there meanwhile, or was hidden from the session";
  if (there->changed_ns > since_ns_) return kChanged;
  if (std::string why = whyElsewhere(change.path); !why.empty()) return why;
  return there->type == FileType::regular && real_.isOpenForWriting(change.path) ? kOpen : "";
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
    return true;
  }
  const bool both_files = (why == kChanged || why == kOpen) && candidate.entry.present && candidate.there &&
                          candidate.entry.info.type == FileType::regular && candidate.there->type == FileType::regular;
  std::string reason = why;
  if (how == Resolution::merge && both_files) {
    auto merged = merger_.merge(path, *candidate.there, candidate.entry);
    if (merged) {
      candidate.merged = *std::move(merged);
      return candidate.merged.has_value();
    }
    reason = merged.error();
  } else if (both_files && merger_.mayMerge(path)) {
    reason += "; --merge can combine both versions";
  }
  leaveConflict(path, reason);
  return false;
}

bool CommitPlanner::lookAtReal(Candidate& candidate) {
  const Change& change = candidate.change;
  auto there = real_.look(change.path);
  // The commit puts a directory where a file or link is now: there is nothing below it yet.
  if (!there && directories_.contains(directoryOf(change.path))) there = std::nullopt;
  if (!there) {
    markMet(change.path);
    leaveConflict(change.path, there.error().message());
    return false;
  }
  candidate.there = *there;
  if (*there && (*there)->type == FileType::regular) {
    real_.syncFile(change.path);
    if (const auto synced = real_.look(change.path)) candidate.there = *synced;
  }
  limitMode(candidate);
  if (isSame(candidate)) {
    if (candidate.withheld == 0) return false;
    markMet(change.path);
    reportWithheld(candidate);
    return false;
  }
  markMet(change.path);
  return true;
}

void CommitPlanner::consider(const StackChange& found) {
  Candidate candidate{.change = toChange(found), .entry = found.now};
  const Change& change = candidate.change;
  if (!isWanted(change, candidate.named)) return;
  const bool named = candidate.named;
  if (isExcluded(change) || !found.unread.empty()) {
    markMet(change.path);
    return leave(report_.skipped, change.path, found.unread.empty() ? "nothing may be written there" : found.unread);
  }
  if (change.kind != ChangeKind::deleted) {
    const FileType type = candidate.entry.info.type;
    if (type != FileType::regular && type != FileType::directory && type != FileType::link) {
      markMet(change.path);
      return leave(report_.skipped, change.path, "a " + std::string(sys::name(type)) + " is not committed");
    }
    if (type == FileType::link) {
      auto target = now_.readLink(change.path, candidate.entry);
      if (!target) return leave(report_.skipped, change.path, target.error().message());
      candidate.target = *std::move(target);  // read once: this is what arrives
    }
  }
  if (!lookAtReal(candidate)) return;
  if (const auto chosen = choices_.find(change.path);
      chosen != choices_.end() && chosen->second.how == Resolution::ours) {
    return leaveConflict(change.path, "");
  }
  if (removesDirectory(candidate)) {
    real_.syncAll();
    candidate.removed = inspectRemoved(change.path);
  }
  if (const std::string parent = directoryOf(change.path); held_directories_.contains(parent)) {
    if (candidate.entry.present && candidate.entry.info.type == FileType::directory)
      held_directories_.insert(change.path);
    return leave(report_.held, change.path, "its directory " + displayedPath(parent) + " is held back");
  }
  if (std::string why = whyHeld(candidate); !why.empty()) {
    if (!named) {
      const bool made = !candidate.there && candidate.entry.info.type == FileType::directory;
      if (made && change.kind != ChangeKind::deleted) held_directories_.insert(change.path);
      return leave(report_.held, change.path, why);
    }
    candidate.named_despite = std::move(why);
  }
  if (const std::string why = conflict(candidate); !why.empty() && !settle(candidate, why)) return;
  if (change.kind == ChangeKind::deleted) {
    result_.putDeleted(change.path);
  } else {
    result_.put(change.path, candidate.entry.info.type, candidate.target);
    if (candidate.entry.info.type == FileType::directory) directories_.insert(change.path);
  }
  candidates_.push_back(std::move(candidate));
}

/// Other links may lead elsewhere once a link is held back, so this repeats until nothing changes. A path passes at
/// most 40 links, so that is soon.
void CommitPlanner::holdLinks() {
  for (bool changed = true; changed;) {
    changed = false;
    for (Candidate& candidate : candidates_) {
      if (candidate.entry.info.type != FileType::link) continue;
      if (!candidate.held.empty()) continue;
      std::string why = result_.whyHeld(candidate.change.path, candidate.target);
      if (why.empty()) continue;
      if (candidate.named) {
        if (candidate.named_despite.empty()) candidate.named_despite = std::move(why);
        continue;
      }
      result_.leaveOut(candidate.change.path);
      candidate.held = std::move(why);
      changed = true;
    }
  }
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    if (candidate.held.empty()) return false;
    leave(report_.held, candidate.change.path, candidate.held);
    return true;
  });
}

Result<void> CommitPlanner::plan(const std::vector<StackChange>& changes, const CommitRequest& request) {
  if (auto read = readRequest(request); !read) return read;
  for (const StackChange& change : changes) {
    if (change.kind != ChangeKind::deleted) held_.addPresent(change.path);
  }
  if (!changes.empty()) findLinks(changes);
  for (const StackChange& change : changes) consider(change);
  holdLinks();
  std::stable_sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return rankOf(a.change, a.entry.info.type) < rankOf(b.change, b.entry.info.type);
  });
  for (const Candidate& candidate : candidates_) {
    if (auto accepted = accept(candidate); !accepted) return accepted;
  }
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    if (!met_[i]) leave(report_.skipped, chosen_[i], "nothing changed there");
  }
  for (const auto& [path, choice] : choices_) {
    if (!choice.met) leave(report_.skipped, path.empty() ? "." : path, "there is no conflict");
  }
  for (const std::string& directory : known_) {
    const auto there = real_.lookAtDirectory(directory);
    // One that the commit itself makes has no names that others could have made before.
    if (there) transaction_.known_directories.push_back({directory, there->info.device, there->info.inode});
  }
  const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
  std::sort(report_.applied.begin(), report_.applied.end(), by_path);
  std::stable_sort(report_.held.begin(), report_.held.end(), by_path);
  return {};
}

}  // namespace caisson::session
