#include "session/commit/apply.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/path_parts.h"
#include "session/changes/sparse_read.h"
#include "session/commit/directory_watch.h"
#include "session/commit/host_attributes.h"
#include "session/commit/kept_copy.h"
#include "session/commit/object_moves.h"
#include "session/layers/steps.h"
#include "sys/kernel_abi.h"
#include "sys/raw_syscall.h"
#include "sys/remove_tree.h"

namespace caisson::session {
namespace {

using sys::Fd;
using sys::FileInfo;
using sys::FileType;

Error failed(std::string_view call, const std::string& path, int error) {
  return sysError(Stage::state, call, path, error);
}

constexpr const char* kChanged = "it was changed meanwhile";
constexpr const char* kChangedBelow = "something in it changed meanwhile";
constexpr const char* kChangedOrOpen = "something in it changed meanwhile, or a program has it open for writing";
constexpr const char* kOpen = "a program has it open for writing";
constexpr const char* kGone = "what was put there before the interruption was removed or moved since";

/// Whether a rename failed because it does not work between these directories.
bool needsCopy(int error) { return error == EXDEV; }

}  // namespace

std::string stagedName(std::size_t index) { return std::to_string(index); }

Applier::Applier(RealTree& tree, const Staging& staging, const Transaction& transaction, const Committed& committed,
                 Committed& placements, const KeptCommit* kept, bool recovering)
    : tree_(tree),
      staging_(staging),
      transaction_(transaction),
      committed_(committed),
      placements_(placements),
      kept_(kept),
      recovering_(recovering) {
  struct stat status;
  if (!recovering && ::fstat(staging.descriptor(), &status) == 0 && status.st_gid == ::getegid()) {
    staged_owner_ = {::geteuid(), ::getegid()};
  }
  if (recovering) findOwnMoves();
}

void Applier::inheritOwner(const RealTree::ParentFacts& parent, int directory, const std::string& name) const {
  const bool root = ::geteuid() == 0;
  if (!root && !parent.gives_group) return;
  if (staged_owner_ && staged_owner_->first == parent.uid && staged_owner_->second == parent.gid) return;
  (void)!::fchownat(directory, name.c_str(), root ? parent.uid : static_cast<uid_t>(-1), parent.gid,
                    AT_SYMLINK_NOFOLLOW);
}

std::string Applier::temporaryName(std::size_t index) const {
  return ".caisson-" + transaction_.id + "-" + std::to_string(index);
}

bool Applier::wouldExpose(const Action& action, const Source& source) const {
  return action.replaces_hidden && (source.beside || staging_.isInWorkspace());
}

bool Applier::leadsOut(const Action& action) const {
  const std::string directory = directoryOf(action.path);
  const std::string path = directory.empty() ? action.target : directory + "/" + action.target;
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  const long opened = sys::raw(SYS_openat2, tree_.root().descriptor(), path.c_str(), &how, sizeof(how));
  if (opened >= 0) ::close(static_cast<int>(opened));
  if (opened == -ENOSYS || opened == -EPERM) {  // an old kernel, or a filter: walk by hand
    const auto root =
        sys::RootDir::share(tree_.root().descriptor(),
                            {.known_as = tree_.root().knownAs(), .walk_by_hand = true, .refuse_links_out = true});
    const auto found = root ? root->enter(path) : fail(root.error());
    return action.target.starts_with('/') || !root || (!found && found.error().code == ErrorCode::path_escapes);
  }
  return opened == -EXDEV || action.target.starts_with('/');
}

std::string Applier::whyNot(const Action& action, const std::optional<FileInfo>& there) const {
  if (!there) return action.before ? "it was removed there meanwhile" : "";
  if (!action.before) return "it was made there meanwhile";
  // After a crash, too: the host may have changed its attributes or permissions, which only the change time tells.
  if (!action.before->matches(*there, isOwnMove(*there))) return kChanged;
  if (there->type != FileType::directory || action.kind == ActionKind::directory) return "";
  const DirectoryToCheck directory{tree_.root(), action.path, action.path};
  return isChangedSince(directory, transaction_.since_ns, isOurs()) ? kChangedBelow : "";
}

std::string Applier::whyPutBack(const Action& action, int directory, const std::string& name) const {
  const auto old = infoAt(directory, name);
  if (!old || !action.before->matches(*old, true)) return kChanged;
  if (old->type == FileType::regular && !tree_.acceptsWriters(action.path) && isOpenForWriting(directory, name)) {
    return kOpen;
  }
  if (old->type != FileType::directory) return "";
  auto root = sys::RootDir::adopt(Fd(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), {});
  const bool changed = !root || isChangedSince({*root, name, action.path, true}, transaction_.since_ns, isOurs());
  return changed ? kChangedOrOpen : "";
}

Result<std::string> Applier::apply(std::size_t index) {
  const Action& action = transaction_.actions[index];
  if (recovering_) settleAside(index);
  Result<std::string> done = std::string();
  if (action.kind == ActionKind::remove) {
    done = remove(index);
  } else if (action.kind == ActionKind::directory && action.inode == 0) {
    done = makeDirectory(index);
  } else {
    done = place(index);
  }
  if (action.kind == ActionKind::directory || (action.before && action.before->type == FileType::directory)) {
    tree_.forget();
  }
  step("commit: one applied");
  return done;
}

Result<std::string> Applier::place(std::size_t index) {
  const Action& action = transaction_.actions[index];
  std::string name;
  const auto parent = tree_.parentOf(action.path, name);
  if (!parent) return "its directory: " + parent.error().message();
  const auto there = infoAt(*parent, name);
  if (there && action.isStaged(*there)) {
    const bool known = wasPlaced(index);
    if (known ? !isPlaced(index, *there) : !isAsStaged(index, *parent, name)) return kChanged;
    if (!known) placements_.add(action.path, *there);
    // Exchanged before a crash, but perhaps the old file was not checked yet.
    const int staging = staging_.descriptor();
    if (!action.before || isKept(index) || !infoAt(staging, stagedName(index))) return "";
    return checkExchanged(index, {staging, stagedName(index)}, *parent, name);
  }
  if (std::string why = whyNot(action, there); !why.empty()) {
    if (!recovering_) return why;
    const auto copied = isDoneByCopy(action, *parent, name);
    if (!copied) return fail(copied.error());
    if (*copied && there && wasPlaced(index) && !isPlaced(index, *there)) return kChanged;
    const bool checked = isKept(index) || !infoAt(*parent, temporaryName(index));
    if (!*copied || !action.before || checked) return *copied ? "" : why;
    // Exchanged with a copy before a crash: the same check.
    return checkExchanged(index, {*parent, temporaryName(index), true}, *parent, name);
  }
  if (recovering_ && !infoAt(staging_.descriptor(), stagedName(index))) return kGone;
  if (action.kind == ActionKind::link && !action.may_lead_out && leadsOut(action)) {
    return "a link that leads out of the workspace";
  }
  Source source{staging_.descriptor(), stagedName(index)};
  std::string conflict;
  int error = EXDEV;
  const auto facts = tree_.parentFacts();
  if (!facts) return fail(facts.error());
  if (!facts->gives_access_list || keepsAttributes(action) || action.restored) {
    if (!action.restored && !keepsAttributes(action)) inheritOwner(*facts, source.directory, source.name);
    error = move(index, source, *parent, name, conflict);
  }
  // Moving a directory changes its `..`, which needs write permission for it; beside its place it stays.
  const bool moves_directory =
      action.kind == ActionKind::directory || (action.before && action.before->type == FileType::directory);
  if (needsCopy(error) || (moves_directory && (error == EACCES || error == EPERM))) {
    auto copied = copyBeside(index, *parent, *facts);
    if (!copied) return fail(copied.error());
    // Copying takes long, and a rename sets the change time, which tells.
    if (std::string why = recovering_ ? "" : whyNot(action, infoAt(*parent, name)); !why.empty()) return why;
    error = move(index, *copied, *parent, name, conflict);
  }
  if (error == EEXIST) return "it was made there meanwhile";
  if (error == ENOENT && action.before) return "it was removed there meanwhile";
  if (error != 0) return fail(failed("rename", action.path, error));
  return conflict;
}

Result<std::string> Applier::checkExchanged(std::size_t index, const Source& source, int parent,
                                            const std::string& name) {
  const Action& action = transaction_.actions[index];
  std::string why = whyPutBack(action, source.directory, source.name);
  const int error = why.empty() ? 0 : exchangeBack(index, source, parent, name, why);
  if (error != 0) return fail(failed("rename", action.path, error));
  return why;
}

int Applier::move(std::size_t index, const Source& source, int parent, const std::string& name, std::string& conflict) {
  const Action& action = transaction_.actions[index];
  const auto staged = infoAt(source.directory, source.name);
  if (!action.before) {
    const int error = moveNew(source.directory, source.name, parent, name);
    if (error != 0) return error;
    notePlaced(index, staged, parent, name);
    done_.push_back({index, How::added, source.beside});
    return 0;
  }
  if (wouldExpose(action, source)) {
    auto replaced = replaceHidden(index, &source, parent, name);
    if (!replaced) return replaced.error().sys_errno != 0 ? replaced.error().sys_errno : EIO;
    conflict = *std::move(replaced);
    return 0;
  }
  if (const int error = exchange(source.directory, source.name, parent, name); error != 0) return error;
  notePlaced(index, staged, parent, name);
  step("commit: exchanged");
  conflict = whyPutBack(action, source.directory, source.name);
  if (!conflict.empty()) return exchangeBack(index, source, parent, name, conflict);
  noteOwnMove(action, source.directory, source.name);
  noteMovedOut(index, infoAt(source.directory, source.name));
  done_.push_back({index, How::exchanged, source.beside});
  return 0;
}

void Applier::settleAside(std::size_t index) {
  std::string name;
  const auto parent = tree_.parentOf(transaction_.actions[index].path, name);
  if (!parent) return;
  for (const Source& at : {Source{staging_.descriptor(), stagedName(index)}, Source{*parent, temporaryName(index)}}) {
    const std::string aside = asideName(at.name);
    if (!infoAt(at.directory, aside)) continue;
    if (!infoAt(*parent, name)) {
      // As if it had not begun.
      if (moveNew(at.directory, aside, *parent, name) == 0) noteMovedBack(transaction_.actions[index], *parent, name);
    } else if (!infoAt(at.directory, at.name)) {
      (void)moveNew(at.directory, aside, at.directory, at.name);  // the last of its renames
    }
  }
}

Result<Applier::Source> Applier::copyBeside(std::size_t index, int parent, const RealTree::ParentFacts& facts) {
  const Action& action = transaction_.actions[index];
  Source made{parent, temporaryName(index), true};
  if (auto removed = sys::removeTreeAt(parent, made.name, action.path, Stage::state); !removed) {
    return fail(removed.error());
  }
  beside_.push_back(index);
  if (!holdDirectory(index, parent) && action.before) {
    if (auto copied = keepInPlace(index, parent, nameOf(action.path)); !copied) return fail(copied.error());
  }
  if (action.restored) {
    auto copied = copyForKeeping(staging_.descriptor(), stagedName(index), parent, made.name, action.path);
    if (!copied) return fail(copied.error());
    return made;
  }
  if (action.kind == ActionKind::link) {
    if (::symlinkat(action.target.c_str(), parent, made.name.c_str()) != 0) {
      return fail(failed("symlink", action.path, errno));
    }
    inheritOwner(facts, parent, made.name);
    return made;
  }
  if (action.kind == ActionKind::directory) {
    if (::mkdirat(parent, made.name.c_str(), 0700) != 0) return fail(failed("mkdir", action.path, errno));
    const Fd directory(::openat(parent, made.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!directory || ::fchmod(directory.get(), action.mode) != 0) return fail(failed("mkdir", action.path, errno));
    inheritOwner(facts, parent, made.name);
    return made;
  }
  const Fd staged(::openat(staging_.descriptor(), stagedName(index).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!staged) return fail(failed("open", action.path, errno));
  const Fd file(::openat(parent, made.name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail(failed("create", action.path, errno));
  const auto copied = readOnce(staged.get(), action.size, file.get(), action.path);
  if (!copied) return fail(copied.error());
  if (hex(copied->sha256) != action.sha256) return fail(failed("read", action.path, EIO));
  mode_t mode = action.mode;
  if (keepsAttributes(action)) {
    struct stat status;
    if (::fstat(staged.get(), &status) != 0) return fail(failed("stat", action.path, errno));
    mode = takeOwner(file.get(), {status.st_uid, status.st_gid}, mode);
    const auto attributes = readAttributes(staging_.descriptor(), stagedName(index), action.path);
    if (!attributes) return fail(attributes.error());
    if (auto set = setAttributes(file.get(), *attributes, action.path); !set) return fail(set.error());
  }
  if (::fchmod(file.get(), mode) != 0 || ::fsync(file.get()) != 0) {
    return fail(failed("write", action.path, errno));
  }
  if (!keepsAttributes(action)) inheritOwner(facts, parent, made.name);
  step("commit: copied beside");
  return made;
}

Result<bool> Applier::isDoneByCopy(const Action& action, int parent, const std::string& name) const {
  const auto there = infoAt(parent, name);
  if (!there) return false;
  if (action.kind == ActionKind::directory) return there->type == FileType::directory;
  if (action.kind == ActionKind::link) {
    if (there->type != FileType::link) return false;
    std::string target(action.target.size() + 1, '\0');
    const ssize_t length = ::readlinkat(parent, name.c_str(), target.data(), target.size());
    return length >= 0 && std::string_view(target.data(), static_cast<std::size_t>(length)) == action.target;
  }
  if (there->type != FileType::regular || there->size != action.size) return false;
  const Fd file(::openat(parent, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return false;
  if (action.restored) {
    const std::string staged = stagedName(static_cast<std::size_t>(&action - transaction_.actions.data()));
    const Fd old(::openat(staging_.descriptor(), staged.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    return old && sameContent(old.get(), file.get(), action.size);
  }
  const auto content = readOnce(file.get(), action.size, -1, action.path);
  if (!content) return fail(content.error());
  return hex(content->sha256) == action.sha256;
}

Result<std::string> Applier::remove(std::size_t index) {
  const Action& action = transaction_.actions[index];
  std::string name;
  const auto parent = tree_.parentOf(action.path, name);
  if (!parent && parent.error().sys_errno == ENOENT) return "";
  if (!parent) return "its directory: " + parent.error().message();
  const auto there = infoAt(*parent, name);
  const std::string away = stagedName(index);
  if (!there) {
    // Moved away before a crash, but perhaps the old file was not checked yet.
    const Source beside{*parent, temporaryName(index), true};
    for (const Source& moved : {Source{staging_.descriptor(), away}, beside}) {
      if (isKept(index) || !infoAt(moved.directory, moved.name)) continue;
      std::string changed = whyPutBack(action, moved.directory, moved.name);
      const int error = changed.empty() ? 0 : moveNew(moved.directory, moved.name, *parent, name);
      if (error != 0) return fail(failed("rename", action.path, error));
      return changed;
    }
    return "";
  }
  if (std::string why = whyNot(action, there); !why.empty()) return why;
  if (wouldExpose(action, {staging_.descriptor(), away})) return replaceHidden(index, nullptr, *parent, name);
  Source to{staging_.descriptor(), away};
  int error = moveNew(*parent, name, to.directory, to.name);
  if (needsCopy(error) || error == EACCES || error == EPERM) {
    to = {*parent, temporaryName(index), true};
    beside_.push_back(index);
    if (!holdDirectory(index, *parent)) {
      if (auto copied = keepInPlace(index, *parent, name); !copied) return fail(copied.error());
    }
    error = moveNew(*parent, name, to.directory, to.name);
  }
  if (error == ENOENT) return "";
  if (error != 0) return fail(failed("rename", action.path, error));
  step("commit: moved away");
  std::string why = whyPutBack(action, to.directory, to.name);
  if (why.empty()) {
    noteOwnMove(action, to.directory, to.name);
    noteMovedOut(index, infoAt(to.directory, to.name));
    done_.push_back({index, How::moved_away, to.beside});
    return "";
  }
  error = moveNew(to.directory, to.name, *parent, name);
  if (error != 0) return fail(failed("rename", action.path, error));
  return why;
}

Result<bool> Applier::makeWhole(std::size_t index, int parent, const std::string& name) {
  const Action& action = transaction_.actions[index];
  const std::string temporary = temporaryName(index);
  if (auto removed = sys::removeTreeAt(parent, temporary, action.path, Stage::state); !removed) {
    return fail(removed.error());
  }
  if (::mkdirat(parent, temporary.c_str(), 0700) != 0) return fail(failed("mkdir", action.path, errno));
  step("commit: directory made");
  const auto complete = [&]() -> Result<void> {
    const auto facts = tree_.parentFacts();
    if (!facts) return fail(facts.error());
    inheritOwner(*facts, parent, temporary);
    const Fd made(::openat(parent, temporary.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat status{};
    if (!made || ::fstat(made.get(), &status) != 0) return fail(failed("open", action.path, errno));
    const mode_t inherited = status.st_mode & S_ISGID;
    if (::fchmod(made.get(), action.mode | inherited) != 0) return fail(failed("chmod", action.path, errno));
    return {};
  };
  auto completed = complete();
  const int error = completed ? moveNew(parent, temporary, parent, name) : 0;
  if (completed && error == 0) return true;
  (void)::unlinkat(parent, temporary.c_str(), AT_REMOVEDIR);
  if (!completed) return fail(completed.error());
  if (error == EEXIST) return false;
  return fail(failed("mkdir", action.path, error));
}

Result<std::string> Applier::makeDirectory(std::size_t index) {
  const Action& action = transaction_.actions[index];
  std::string name;
  const auto parent = tree_.parentOf(action.path, name);
  if (!parent) return "its directory: " + parent.error().message();
  auto there = infoAt(*parent, name);
  Done done{index, How::mode};
  bool is_known = !there;
  if (!there) {
    if (action.before) return "it was removed there meanwhile";
    const auto whole = makeWhole(index, *parent, name);
    if (!whole) return fail(whole.error());
    if (*whole) done.how = How::made;
  } else if (there->type != FileType::directory) {
    return "something else was made there meanwhile";
  } else if (recovering_ && wasPlaced(index)) {
    return isPlaced(index, *there) ? "" : kChanged;
  } else if (action.before) {
    if (!action.before->matches(*there)) return "it is another directory there now: it was moved or replaced meanwhile";
    const bool done_before = recovering_ && there->mode == action.mode;
    is_known = there->mode == action.before->mode && attributesDigest(tree_, action.path) == action.attributes;
    if (!is_known && !done_before) return "its permissions were changed meanwhile";
  }
  const Fd made(::openat(*parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!made) return fail(failed("open", action.path, errno));
  done.mode_before = there ? there->mode : 0;
  // A directory that was made meanwhile keeps its mode.
  if (there && action.before && there->mode != action.mode && ::fchmod(made.get(), action.mode) != 0) {
    return fail(failed("chmod", action.path, errno));
  }
  if (is_known && (done.how == How::made || there)) notePlaced(index, made.get());
  if (there && action.before && there->changed_ns == action.before->changed_ns) {
    noteMovedOut(index, infoAt(*parent, name));
  }
  done_.push_back(done);
  return "";
}

}  // namespace caisson::session
