// commit: chosen changes to the real workspace.
//
// Conflicts are found by the real file's change time, which nobody sets: later than the session's beginning means that
// somebody touched it since, unless it is exactly what this session left there. The lower layer is the real tree
// itself, so comparing with that would show nothing.
#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "policy/protected_files.h"
#include "session/client/session_context.h"
#include "session/commit/commit_filter.h"
#include "session/commit/committed.h"
#include "session/commit/real_tree.h"
#include "session/layers/layer_stack.h"
#include "session/layers/steps.h"

namespace caisson::session {
namespace {

constexpr int kLockTries = 500;
constexpr unsigned kLockPauseUs = 10'000;

using sys::FileInfo;
using sys::FileType;

constexpr mode_t kCommittedBits = 0755;  // no setuid, setgid or sticky bit, and not writable by others

/// The moment from which on a change time means a change, on the wall clock as it was then. If that clock was set back
/// since, files changed later may carry an earlier time: then more counts as changed, never less.
std::int64_t changedSince(const Metadata& metadata) {
  const Moment now = Moment::now();
  if (now.boot != metadata.began.boot) return metadata.began.wall_ns;
  const std::int64_t set = (now.wall_ns - metadata.began.wall_ns) - (now.boot_ns - metadata.began.boot_ns);
  constexpr std::int64_t kNoticeable = 1'000'000'000;
  return set < -kNoticeable ? metadata.began.wall_ns + set : metadata.began.wall_ns;
}

/// Relative, without `.` and empty parts; an error when it is not below the workspace.
Result<std::string> normal(std::string_view path) {
  std::string result;
  if (path.starts_with("/workspace/")) path.remove_prefix(11);
  const auto refuse = [&] {
    return fail(plainError(Stage::usage, "session commit", path, "not a path below the workspace",
                           "name it relative to /workspace"));
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

bool below(std::string_view path, std::string_view directory) {
  return directory.empty() ||
         (path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/'));
}

class Commit {
 public:
  Commit(const Metadata& metadata, const LayerStack& now, const sys::RootDir& real, Committed& committed, bool dry_run)
      : now_(now),
        real_(real),
        tree_(real),
        committed_(committed),
        protected_(metadata.policy.filesystem.workspace.protected_files),
        since_(changedSince(metadata)),
        dry_run_(dry_run) {}

  void consider(const Change& change, bool named);
  [[nodiscard]] CommitReport& report() { return report_; }

 private:
  [[nodiscard]] std::string conflict(const Change& change, const std::optional<FileInfo>& there,
                                     const LayerStack::Entry& entry) const;
  /// Whether names were made or removed beside it since the session began, other than by this session's commits.
  [[nodiscard]] bool parentChanged(const std::string& path) const;
  Result<void> apply(const Change& change, const std::optional<FileInfo>& there, const LayerStack::Entry& entry);

  const LayerStack& now_;
  const sys::RootDir& real_;
  RealTree tree_;
  Committed& committed_;
  policy::ProtectedFiles protected_;
  std::int64_t since_;
  bool dry_run_;
  CommitReport report_;
};

std::string parentOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

bool Commit::parentChanged(const std::string& path) const {
  const auto parent = real_.stat(parentOf(path));
  return parent && parent->modified_ns > since_ && !committed_.isOurs(parentOf(path) + "/", *parent);
}

/// Why the real file must be left alone, or empty.
std::string Commit::conflict(const Change& change, const std::optional<FileInfo>& there,
                             const LayerStack::Entry& entry) const {
  const auto ours = [&](const std::string& path, const FileInfo& info) { return committed_.isOurs(path, info); };
  const bool directory = entry.present && entry.info.type == FileType::directory;
  if (!there) {
    const bool suspect = entry.present && !directory && parentChanged(change.path) &&
                         cameFromBelow(*now_.layers()[entry.layer].root, change.path);
    return suspect ? "it may have been removed there meanwhile" : "";
  }
  if (there->type == FileType::directory) {
    if (directory) return "";
    if (change.kind == ChangeKind::added) return "a directory was made there meanwhile";
    return tree_.changedBelow(change.path, since_, ours) ? "something in it changed meanwhile" : "";
  }
  if (ours(change.path, *there)) return "";
  if (change.kind == ChangeKind::added) return "it was made there meanwhile, or was hidden from the session";
  return there->changed_ns > since_ ? "it was changed meanwhile" : "";
}

Result<void> Commit::apply(const Change& change, const std::optional<FileInfo>& there, const LayerStack::Entry& entry) {
  if (change.kind == ChangeKind::deleted) return tree_.remove(change.path);
  const sys::RootDir& layer = *now_.layers()[entry.layer].root;
  // Writable by others only where it was before.
  const mode_t kept = there && there->type == entry.info.type ? there->mode & 022 : 0;
  const mode_t mode = (entry.info.mode & kCommittedBits) | kept;
  if (entry.info.type == FileType::directory) return tree_.putDirectory(change.path, mode | 0700);
  if (entry.info.type == FileType::link) {
    auto target = layer.readLink(change.path);
    if (!target) return fail(target.error());
    return tree_.putLink(change.path, *target);
  }
  auto source = layer.openFile(change.path, {.flags = O_RDONLY});
  if (!source) return fail(source.error());
  return tree_.putFile(change.path, source->get(), mode);
}

void Commit::consider(const Change& change, bool named) {
  const auto put = [&](std::vector<NotCommitted>& list, std::string_view why) {
    list.push_back({change.path, std::string(why)});
  };
  const LayerStack::Entry entry = change.kind == ChangeKind::deleted ? LayerStack::Entry{} : now_.find(change.path);
  if (change.kind != ChangeKind::deleted) {
    if (!entry.present) return put(report_.skipped, "it is gone meanwhile");
    const FileType type = entry.info.type;
    if (type != FileType::regular && type != FileType::directory && type != FileType::link) {
      return put(report_.skipped, "a " + std::string(sys::name(type)) + " is not committed");
    }
    if (type == FileType::link && !named) {
      const auto target = now_.layers()[entry.layer].root->readLink(change.path);
      if (!target || leadsOut(change.path, *target)) return put(report_.held, "a link that leads out of the workspace");
    }
  }
  if (const auto found = protected_.match(change.path); found && !named) {
    return put(report_.held, policy::reason(found->category));
  }
  auto there = tree_.look(change.path);
  if (!there) return put(report_.conflicts, there.error().message());
  if (const std::string why = conflict(change, *there, entry); !why.empty()) return put(report_.conflicts, why);
  if (!dry_run_) {
    const bool parent_is_known = !parentChanged(change.path);
    if (auto applied = apply(change, *there, entry); !applied) return put(report_.skipped, applied.error().message());
    step("commit: one applied");
    if (auto left = tree_.look(change.path); left && *left) (void)committed_.add(change.path, **left);
    const std::string parent = parentOf(change.path);
    if (auto left = real_.stat(parent); left && parent_is_known) (void)committed_.add(parent + "/", *left);
    step("commit: one recorded");
  }
  report_.applied.push_back(change);
}

/// Whether the real workspace has this already: a commit that was interrupted after the file was put in place, or one
/// that is repeated.
bool sameAsReal(const LayerStack& now, const sys::RootDir& real, const Change& change) {
  const auto there = real.stat(change.path);
  if (change.kind == ChangeKind::deleted) return !there && there.error().sys_errno == ENOENT;
  const LayerStack::Entry entry = now.find(change.path);
  if (!there || !entry.present || entry.info.type != there->type) return false;
  const LayerStack one({{"now", now.layers()[entry.layer].root}});
  const LayerStack other({{"real", &real}});
  return sameAt(other, one, change.path, kCommittedBits);
}

}  // namespace

Result<CommitReport> SessionContext::commit(const CommitRequest& request) {
  std::vector<std::string> chosen;
  for (const std::string& path : request.paths) {
    auto relative = normal(path);
    if (!relative) return fail(relative.error());
    chosen.push_back(*std::move(relative));
  }
  if (metadata_.workspace.empty()) {
    return fail(plainError(Stage::usage, "session commit", id(), "the session began without a workspace",
                           "read its files with `caisson session read`"));
  }
  auto changes = diff({});
  if (!changes) return fail(changes.error());
  auto held = lock();
  if (!held) return fail(held.error());
  auto roots = LayerRoots::open(store_->paths(), metadata_);
  if (!roots) return fail(roots.error());
  std::vector<std::string> current = metadata_.frozen;
  current.insert(current.begin(), metadata_.upper);
  auto now = roots->stack(current);
  if (!now) return fail(now.error());
  // One commit at a time to one workspace, whichever session it is from.
  const sys::Fd turn(::openat(roots->real()->descriptor(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // A sandbox that sees the directory can hold this lock, too.
  int locked = -1;
  for (int tries = 0; turn && tries < kLockTries; ++tries) {
    locked = ::flock(turn.get(), LOCK_EX | LOCK_NB);
    if (locked == 0 || errno != EWOULDBLOCK) break;
    ::usleep(kLockPauseUs);
  }
  if (locked != 0) {
    return fail(sysError(Stage::state, "flock", metadata_.workspace, errno,
                         "another commit is under way, or a program has locked the directory; try again"));
  }
  auto committed = Committed::load(directory_);
  if (!committed) return fail(committed.error());
  if (!request.dry_run) {
    if (auto noted = note("committing", metadata_.workspace); !noted) return fail(noted.error());
  }
  Commit commit(metadata_, *now, *roots->real(), *committed, request.dry_run);
  std::vector<bool> met(chosen.size(), false);
  for (const Change& change : *changes) {
    bool wanted = chosen.empty();
    bool named = false;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      if (!below(change.path, chosen[i]) && !below(chosen[i], change.path)) continue;
      // A directory on the way to a chosen path comes with it; what else is in it does not.
      if (!below(change.path, chosen[i]) && change.type != "directory") continue;
      wanted = met[i] = true;
      named = named || change.path == chosen[i];
    }
    if (!wanted || sameAsReal(*now, *roots->real(), change)) continue;
    commit.consider(change, named);
  }
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (!met[i]) commit.report().skipped.push_back({chosen[i], "nothing changed there"});
  }
  if (!request.dry_run) (void)note("committed", std::to_string(commit.report().applied.size()) + " changes");
  return std::move(commit.report());
}

}  // namespace caisson::session
