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
#include "session/commit/apply.h"
#include "session/commit/directory_watch.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::FileInfo;
using sys::FileType;

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

/// The order of a transaction: directories that their owner gets access to, deletions, directories, files, links. What
/// is deleted may be in one of the first; undone, they are closed last. No commit takes access from a directory's
/// owner. Links come last, since they are checked in the tree that the other actions leave.
int rankOf(const Change& change, FileType type, const std::optional<FileInfo>& there) {
  if (change.kind == ChangeKind::deleted) return 1;
  if (type != FileType::directory) return type == FileType::link ? 4 : 3;
  const bool opened = there && there->type == FileType::directory && (there->mode & 0700U) != 0700U;
  return opened ? 0 : 2;
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
                             HiddenHostFiles& hidden, const Committed& committed, DirectoryBaseline baseline,
                             MergeBases& bases)
    : workspace_(metadata.workspace),
      before_(before),
      now_(now),
      real_(real),
      hidden_(hidden),
      committed_(committed),
      since_ns_(changedSince(metadata)),
      directories_there_(real, committed, std::move(baseline), since_ns_),
      merger_(bases, real, now, hidden),
      held_(real, metadata.policy.filesystem.workspace, metadata.workspace),
      closed_(metadata.policy, metadata.workspace),
      own_(metadata.workspace),
      result_(real) {
  transaction_.since_ns = since_ns_;
  (void)topIsKnown();
}

bool CommitPlanner::topIsKnown() {
  const DirectoryState top = directories_there_.stateOf("");
  return top == DirectoryState::unchanged || top == DirectoryState::ours;
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
  by_model_ = request.ordinary_files_only;
  if (by_model_) held_.holdUnusual();
  if (by_model_) closed_.closeWorkspaceInReadOnly();
  return {};
}

bool CommitPlanner::leadsThere(const Change& change) {
  if (change.type != "directory" || change.kind == ChangeKind::deleted) return false;
  const auto there = real_.look(change.path);
  return !there || !*there || (*there)->type != FileType::directory || ((*there)->mode & 0700U) != 0700U;
}

bool CommitPlanner::isWanted(const Change& change, bool& named) {
  bool wanted = chosen_.empty();
  named = false;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const bool inside = below(change.path, chosen_[i]);
    // A directory on the way to a chosen path comes with it; what else is in it does not.
    const bool on_the_way = !inside && below(chosen_[i], change.path) && leadsThere(change);
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

bool CommitPlanner::isClosed(const Candidate& candidate, std::string& why) const {
  why = closed_.why(candidate.change.path);
  const std::string& inside = candidate.removed.closed;
  if (why.empty() && !inside.empty()) why = "it holds " + displayedPath(inside) + ": " + closed_.why(inside);
  return !why.empty();
}

std::string CommitPlanner::whyNever(const Candidate& candidate) const {
  const std::string& path = candidate.change.path;
  if (own_.contain(path)) return "it belongs to caisson's own configuration or state";
  const bool directory = candidate.entry.present && candidate.entry.info.type == FileType::directory;
  return !directory && own_.areBelow(path) ? "caisson's own configuration or state is below it" : "";
}

std::string CommitPlanner::whyHeld(Candidate& candidate) {
  const std::string& path = candidate.change.path;
  if (std::string why; isClosed(candidate, why)) return why;
  if (std::string why = held_.why(path, candidate.change.type == "directory"); !why.empty()) return why;
  if (candidate.entry.present && candidate.entry.info.type == FileType::link) {
    if (std::string why = held_.whyLink(path, candidate.target); !why.empty()) return why;
  }
  if (std::string why = whyIndexHeld(candidate); !why.empty()) return why;
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
       .is_ours = [&](const std::string& below, const FileInfo& info) { return isOurs(below, info); },
       .is_unchanged_directory =
           [&](const std::string& below) {
             const DirectoryState state = directories_there_.stateOf(below);
             return state == DirectoryState::unchanged || state == DirectoryState::ours;
           },
       .is_open = [&](const std::string& below) { return real_.isOpenForWriting(below); },
       .why_held = [&](const std::string& below, bool directory) { return held_.why(below, directory); },
       .is_closed = [&](const std::string& below) { return !closed_.why(below).empty(); }});
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
  if (const std::string never = whyNever(candidate); !never.empty()) {
    markMet(change.path);
    return leave(report_.skipped, change.path, never);
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
    if (std::string closed; !named || (by_model_ && isClosed(candidate, closed))) {
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

void CommitPlanner::stageIn(const Staging& staging) {
  staging_ = &staging;
  const auto top = staging.isInWorkspace() ? real_.lookAtDirectory("") : std::nullopt;
  if (top) top_changed_ns_ = top->info.changed_ns;
}

void CommitPlanner::watchDirectories() {
  const DirectoryWatch watch(real_, transaction_.actions);
  for (const std::string& directory : known_) {
    const bool with_staging = directory.empty() && top_changed_ns_;
    // One that the commit itself makes has no names that others could have made before.
    auto known = watch.begin(directory, with_staging ? *top_changed_ns_ : directories_there_.examinedAt(directory));
    if (known) transaction_.known_directories.push_back(*std::move(known));
  }
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
    return rankOf(a.change, a.entry.info.type, a.there) < rankOf(b.change, b.entry.info.type, b.there);
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
  if (staging_ != nullptr) watchDirectories();
  const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
  std::sort(report_.applied.begin(), report_.applied.end(), by_path);
  std::stable_sort(report_.held.begin(), report_.held.end(), by_path);
  return {};
}

}  // namespace caisson::session
