// The last step of planning: permissions; reads what is committed, once, and adds it to the transaction.
#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/path_parts.h"
#include "base/sha256.h"
#include "session/commit/apply.h"
#include "session/commit/commit_planner.h"
#include "session/commit/directory_watch.h"
#include "session/commit/manifest.h"
#include "session/layers/steps.h"

namespace caisson::session {
namespace {

using sys::FileInfo;
using sys::FileType;

constexpr int kReadTries = 3;
constexpr std::string_view kAttributesLost = "its access list and extended attributes cannot be kept: ";

bool isFull(const Error& error) { return error.sys_errno == ENOSPC || error.sys_errno == EDQUOT; }

}  // namespace

mode_t CommitPlanner::modeToWrite(const Candidate& candidate) {
  const FileType type = candidate.entry.info.type;
  mode_t mode = candidate.entry.info.mode & kCommittedBits;
  if (type == FileType::directory) mode |= 0700U;
  if (!candidate.there || candidate.there->type != type) return mode;
  // Writable by others only where it was before, and where the session leaves them access.
  mode |= candidate.there->mode & 022U & (candidate.entry.info.mode | ((mode & 044U) >> 1U));
  if (type == FileType::directory) mode |= candidate.there->mode & 07000U;
  return mode & ~candidate.withheld;
}

mode_t CommitPlanner::modeOfDirectory(const Candidate& candidate) const {
  const auto opened = now_.layers()[candidate.entry.layer].root->enter(candidate.change.path);
  if (!opened || candidate.there) return modeToWrite(candidate);
  Candidate made = candidate;
  made.entry.info.mode = modeWithoutAccessList(opened->descriptor(), candidate.entry.info.mode);
  return modeToWrite(made);
}

void CommitPlanner::limitMode(Candidate& candidate) const {
  const FileType type = candidate.entry.info.type;
  if (candidate.change.kind == ChangeKind::deleted || !candidate.there || candidate.there->type != type) return;
  if (type != FileType::regular && type != FileType::directory) return;
  const mode_t there = candidate.there->mode;
  const mode_t access = type == FileType::directory ? kAllOfOthers : accessOfOthers(there);
  const mode_t gained = modeToWrite(candidate) & ~there & access;
  if (gained == 0) return;
  const bool named = std::ranges::find(chosen_, candidate.change.path) != chosen_.end();
  if (!named) {
    candidate.withheld = gained;
  } else if (candidate.named_despite.empty()) {
    candidate.named_despite = "it gives access to the group or to others that the real one does not give";
  }
}

bool CommitPlanner::isOurs(const std::string& path, const FileInfo& info) {
  if (!committed_.isOurs(path, info)) return false;
  if (info.type != FileType::regular || !real_.isCoarse(info)) return true;
  std::string name;
  const auto parent = real_.parentOf(path, name);
  if (!parent) return false;
  const sys::Fd file(::openat(*parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return false;
  const auto content = readOnce(file.get(), info.size, -1, path);
  return content && hex(content->sha256) == committed_.hashOf(path);
}

void CommitPlanner::reportWithheld(const Candidate& candidate) {
  Change wide;
  wide.old_mode = candidate.there->mode & 0777U;
  wide.new_mode = (modeToWrite(candidate) | candidate.withheld) & 0777U;
  leave(report_.held, candidate.change.path,
        modeChange(wide) + " gives access to the group or to others, and is left out");
}

bool CommitPlanner::mayReadHoles(const FileInfo& info) {
  const std::uint64_t stored = info.blocks * 512;
  const std::uint64_t holes = info.size > stored ? info.size - stored : 0;
  if (holes > hole_bytes_) return false;
  hole_bytes_ -= holes;
  return true;
}

Result<bool> CommitPlanner::readContent(const Candidate& candidate, const HostAttributes& attributes, Action& action) {
  const std::string& path = candidate.change.path;
  const std::string staged = stagedName(transaction_.actions.size());
  for (int tries = 0; tries < kReadTries; ++tries) {
    if (tries > 0) {
      views_.clear();
      now_.forget();
    }
    const LayerStack::Entry entry = tries == 0 ? candidate.entry : find(path);
    if (!entry.present || entry.info.type != FileType::regular) continue;
    const auto source = now_.open(path, entry);
    if (!source && (source.error().sys_errno == EACCES || source.error().sys_errno == EPERM)) {
      leave(report_.skipped, path, source.error().message());
      return false;
    }
    if (!source) continue;
    const std::uint64_t size = source->info.size;
    if (!mayReadHoles(source->info)) {
      leave(report_.skipped, path, "a sparse file: one commit reads 4 GiB of holes at most, in all files together");
      return false;
    }
    Candidate read_now = candidate;
    const bool replaces_file = candidate.there && candidate.there->type == FileType::regular;
    read_now.entry.info.mode =
        replaces_file ? source->info.mode : modeWithoutAccessList(source->file.get(), source->info.mode);
    limitMode(read_now);
    action.mode = modeForOwner(ownerToKeep(candidate), modeToWrite(read_now));
    ReadFile read;
    if (staging_ != nullptr) {
      auto object = staging_->addFile(staged, source->file.get(), size,
                                      {action.mode, attributes, ownerToKeep(candidate)}, read, path);
      if (!object) {
        (void)staging_->drop(staged);
        if (isFull(object.error())) return fail(object.error());
        leave(report_.skipped, path, object.error().message());
        return false;
      }
      action.device = object->device;
      action.inode = object->inode;
      action.modified_ns = object->modified_ns;
      action.mode = object->mode;
    } else {
      auto hashed = readOnce(source->file.get(), size, -1, path);
      if (!hashed) {
        leave(report_.skipped, path, hashed.error().message());
        return false;
      }
      read = *hashed;
    }
    action.size = read.size;
    action.sha256 = hex(read.sha256);
    if (candidate.judged_sha256.empty() || candidate.judged_sha256 == action.sha256) return true;
    if (staging_ != nullptr) (void)staging_->drop(staged);
    break;  // what is staged is not what was judged
  }
  leave(report_.skipped, path, "it changes while it is read");
  return false;
}

Result<HostAttributes> CommitPlanner::attributesToKeep(const Candidate& candidate) {
  const bool replaces_file = candidate.there && candidate.there->type == FileType::regular;
  const bool file = candidate.change.kind != ChangeKind::deleted && candidate.entry.info.type == FileType::regular;
  if (!replaces_file || !file) return HostAttributes{};
  std::string name;
  const auto parent = real_.parentOf(candidate.change.path, name);
  if (!parent) return fail(parent.error());
  return readAttributes(*parent, name, candidate.change.path);
}

std::optional<HostOwner> CommitPlanner::ownerToKeep(const Candidate& candidate) {
  if (!candidate.there || candidate.there->type != FileType::regular) return std::nullopt;
  return HostOwner{candidate.there->uid, candidate.there->gid};
}

void CommitPlanner::addToReport(const Candidate& candidate, const Action& action) {
  const Change& change = candidate.change;
  ManifestEntry entry = manifestEntry(change, action);
  entry.held_unless_named = !candidate.named_despite.empty();
  entry.held_reason = candidate.named_despite;
  entry.replaces_directory = change.kind != ChangeKind::deleted && removesDirectory(candidate);
  if (removesDirectory(candidate)) entry.replaced += " " + candidate.removed.state;
  if (!candidate.there) {
    // That it lands in the directory that was reviewed.
    const auto parent = real_.lookAtDirectory(directoryOf(change.path));
    if (parent) entry.replaced = "in " + std::to_string(parent->info.inode) + (parent->mounted ? " mounted" : "");
  }
  if (!action.attributes.empty()) entry.replaced += " " + action.attributes;
  const bool stays = candidate.there && candidate.there->type == candidate.entry.info.type && action.mode != 0;
  entry.old_mode = stays ? candidate.there->mode & 0777U : 0;
  entry.new_mode = stays ? action.mode & 0777U : 0;
  if (entry.old_mode == entry.new_mode) entry.old_mode = entry.new_mode = 0;
  if (candidate.withheld != 0 && !candidate.merged) reportWithheld(candidate);
  if (action.kind == ActionKind::file) report_.bytes += action.size;
  report_.replaced_bytes += action.replaced_bytes;
  report_.applied.push_back(std::move(entry));
  real_.pin(directoryOf(change.path));
}

void CommitPlanner::noteKnown(const Candidate& candidate, const Action& action) {
  const std::string& path = candidate.change.path;
  if (!parentChanged(path)) known_.insert(directoryOf(path));
  const bool was_directory = candidate.there && candidate.there->type == FileType::directory;
  if (action.kind != ActionKind::directory || !was_directory) return;
  const DirectoryState state = directories_there_.stateOf(path);
  if (state == DirectoryState::unchanged || state == DirectoryState::ours) known_.insert(path);
}

bool CommitPlanner::planDirectory(const Candidate& candidate, Action& action) {
  action.kind = ActionKind::directory;
  action.mode = modeOfDirectory(candidate);
  if (!candidate.there || candidate.there->type != FileType::directory) return true;
  action.attributes = attributesDigest(real_, action.path);
  if (action.attributes.empty()) leaveConflict(action.path, "its access list and extended attributes cannot be read");
  return !action.attributes.empty();
}

Result<void> CommitPlanner::accept(const Candidate& candidate) {
  const Change& change = candidate.change;
  Action action{.path = change.path};
  if (candidate.there) action.before = HostIdentity::of(*candidate.there);
  action.replaces_hidden = candidate.replaces_hidden;
  action.replaced_bytes =
      candidate.there && !removesDirectory(candidate) ? candidate.there->size : candidate.removed.bytes;
  const std::string staged = stagedName(transaction_.actions.size());
  const auto object = [&](Result<StagedObject> made) -> Result<void> {
    if (!made) return fail(made.error());
    action.device = made->device;
    action.inode = made->inode;
    action.modified_ns = made->modified_ns;
    if (made->mode != 0) action.mode = made->mode;
    return {};
  };
  const auto attributes = attributesToKeep(candidate);
  if (!attributes) {
    leaveConflict(change.path, std::string(kAttributesLost) + attributes.error().message());
    return {};
  }
  if (change.kind == ChangeKind::deleted) {
    action.kind = ActionKind::remove;
  } else if (candidate.entry.info.type == FileType::directory) {
    if (!planDirectory(candidate, action)) return {};
    if (candidate.there && candidate.there->type != FileType::directory && staging_ != nullptr) {
      if (auto made = object(staging_->addDirectory(staged, action.mode, change.path)); !made) return made;
    }
  } else if (candidate.entry.info.type == FileType::link) {
    action.kind = ActionKind::link;
    action.target = candidate.target;
    action.size = candidate.target.size();
    action.may_lead_out = !candidate.named_despite.empty();
    if (staging_ != nullptr) {
      if (auto made = object(staging_->addLink(staged, action.target, change.path)); !made) return made;
    }
  } else if (candidate.merged) {
    action.kind = ActionKind::file;
    action.merged = true;
    action.mode = modeForOwner(ownerToKeep(candidate), candidate.there->mode & 0777U);  // they stay as they are
    action.size = candidate.merged->size();
    action.sha256 = hex(Sha256().add(*candidate.merged).finish());
    if (staging_ != nullptr) {
      const FileRights rights{action.mode, *attributes, ownerToKeep(candidate)};
      if (auto made = object(staging_->addContent(staged, *candidate.merged, rights, change.path)); !made) return made;
    }
  } else {
    action.kind = ActionKind::file;
    const auto read = readContent(candidate, *attributes, action);
    if (!read) return fail(read.error());
    if (!*read) return {};
  }
  addToReport(candidate, action);
  noteKnown(candidate, action);
  transaction_.actions.push_back(std::move(action));
  step("commit: one staged");
  return {};
}

}  // namespace caisson::session
