#include "session/commit/restored.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "session/store/metadata.h"

namespace caisson::session {
namespace {

using sys::DirectoryEntry;
using sys::FileInfo;
using sys::FileType;
using sys::RootDir;

constexpr int kDeepest = 200;

/// One object that came back.
struct Restored {
  std::string path;
  FileInfo old, now;  ///< before the commit replaced it, and as the uncommit put it back
};

FileInfo asInfo(const HostIdentity& identity) {
  FileInfo info;
  info.type = identity.type;
  info.device = identity.device;
  info.inode = identity.inode;
  info.size = identity.size;
  info.modified_ns = identity.modified_ns;
  info.changed_ns = identity.changed_ns;
  return info;
}

/// Finds what came back below the directories that came back.
class BelowDirectory {
 public:
  BelowDirectory(const KeptCommit& kept, std::size_t action, const RootDir& real, const std::string& path,
                 std::vector<Restored>& found)
      : kept_(kept.directory()),
        real_(real),
        top_("objects/" + std::to_string(action)),
        path_(path),
        originals_(kept.originals(action)),
        found_(found) {}

  void find(const std::string& below = {}, int level = 0) {
    const auto entries = kept_.list(top_ + below);
    if (!entries || level > kDeepest) return;
    for (const DirectoryEntry& entry : *entries) {
      const std::string name = below + "/" + entry.name;
      const auto kept = kept_.stat(top_ + name), now = real_.stat(path_ + name);
      if (!kept || !now || !isSame(*kept, *now, name)) continue;
      const auto original = originals_.find(name);
      found_.push_back({path_ + name, original == originals_.end() ? *kept : asInfo(original->second), *now});
      if (kept->type == FileType::directory) find(name, level + 1);
    }
  }

 private:
  /// Whether it is as it was put back.
  [[nodiscard]] bool isSame(const FileInfo& kept, const FileInfo& now, const std::string& name) const {
    if (kept.type != now.type) return false;
    if (kept.type == FileType::directory) return kept.mode == now.mode;
    if (kept.type != FileType::link) {
      return kept.mode == now.mode && kept.size == now.size && kept.modified_ns == now.modified_ns;
    }
    const auto old_target = kept_.readLink(top_ + name), target = real_.readLink(path_ + name);
    return old_target && target && *old_target == *target;
  }

  const RootDir& kept_;
  const RootDir& real_;
  const std::string top_, path_;
  const std::map<std::string, HostIdentity> originals_;
  std::vector<Restored>& found_;
};

std::vector<Restored> findRestored(const KeptCommit& undone, const CommitRecord& record, RealTree& tree,
                                   const Committed& put_back) {
  std::vector<Restored> found;
  for (std::size_t index = 0; index < record.done.size(); ++index) {
    const Action& action = record.transaction.actions[index];
    if (record.done[index] == 0 || !action.before) continue;
    const auto now = tree.look(action.path);
    if (!now || !*now || !put_back.isOurs(action.path, **now)) continue;
    found.push_back({action.path, asInfo(*action.before), **now});
    const bool came_back = action.before->type == FileType::directory && undone.has(index);
    if (came_back) BelowDirectory(undone, index, tree.root(), action.path, found).find();
  }
  return found;
}

/// The paths of one workspace as another one has them, where one lies in the other.
class Translation {
 public:
  Translation(const std::string& from, const std::string& to) {
    if (from.starts_with(to + "/")) added_ = from.substr(to.size() + 1);
    if (to.starts_with(from + "/")) dropped_ = to.substr(from.size() + 1);
  }
  /// Nothing: it is outside of the other one. Other workspaces are the same one, or one that was moved since.
  [[nodiscard]] std::optional<std::string> of(const std::string& path) const {
    if (!added_.empty()) return path.empty() ? added_ : added_ + "/" + path;
    if (dropped_.empty()) return path;
    if (path == dropped_) return "";
    return path.starts_with(dropped_ + "/") ? std::optional(path.substr(dropped_.size() + 1)) : std::nullopt;
  }

 private:
  std::string added_, dropped_;
};

void renew(const RootDir& where, const std::vector<Restored>& restored, RealTree& tree,
           const std::vector<std::string>& directories, const Translation& translation) {
  if (!Committed::isIn(where)) return;
  auto left = Committed::load(where);
  if (!left) return;
  for (const Restored& one : restored) {
    const bool directory = one.old.type == FileType::directory;
    const auto path = translation.of(one.path);
    if (!path) continue;
    if (left->isOurs(*path, one.old)) left->add(*path, one.now);
    if (directory && left->isOurs(*path + "/", one.old)) left->add(*path + "/", one.now);
  }
  for (const std::string& directory : directories) {
    const auto now = tree.lookAtDirectory(directory);
    const auto path = translation.of(directory);
    if (now && path && left->isSameObject(*path, now->info)) left->add(*path + "/", now->info);
  }
  (void)left->save();
}

/// The workspace of a session, or of a commit that is kept. Empty: not known.
std::string workspaceOf(const RootDir& directory) {
  const auto metadata = readMetadata(directory);
  return metadata ? metadata->workspace : "";
}

std::string workspaceOf(const KeptCommit& kept) {
  const auto record = kept.record();
  return record && *record ? (*record)->workspace : "";
}

/// For the session of the commit: a path that is gone, or there again, after its uncommit was not changed by the host.
void recordUndone(const RootDir& session, const CommitRecord& record, RealTree& tree) {
  if (!Committed::isIn(session)) return;
  auto left = Committed::load(session);
  if (!left) return;
  for (std::size_t index = 0; index < record.done.size(); ++index) {
    const Action& action = record.transaction.actions[index];
    const auto now = tree.look(action.path);
    if (record.done[index] == 0 || !now) continue;
    if (!action.before && !*now) left->addRemoved(action.path);
    if (action.before && *now && (*now)->type == action.before->type) left->addRestored(action.path);
  }
  (void)left->save();
}

}  // namespace

void renewRecords(const SessionPaths& paths, const KeptCommit& undone, const CommitRecord& record, RealTree& tree,
                  const Committed& put_back, const std::vector<std::string>& directories) {
  tree.forget();
  const std::vector<Restored> restored = findRestored(undone, record, tree, put_back);
  const auto renewIn = [&](const RootDir& where, const std::string& workspace) {
    renew(where, restored, tree, directories, {tree.root().knownAs(), workspace});
  };
  const auto namesIn = [](const RootDir& top, const std::string& directory) {
    auto entries = top.list(directory);
    return entries ? *std::move(entries) : std::vector<DirectoryEntry>{};
  };
  if (const auto own = paths.sessions().enter(undone.name().substr(0, undone.name().find('/')))) {
    recordUndone(*own, record, tree);
  }
  for (const DirectoryEntry& session : namesIn(paths.sessions(), "")) {
    const auto where = isId(session.name) ? paths.sessions().enter(session.name) : fail(Error());
    if (where) renewIn(*where, workspaceOf(*where));
  }
  const auto replaced = paths.replaced();
  if (!replaced) return;
  for (const DirectoryEntry& session : namesIn(*replaced, "")) {
    for (const DirectoryEntry& commit : namesIn(*replaced, session.name)) {
      const std::string name = session.name + "/" + commit.name;
      const auto kept = KeptCommit::open(paths, name);
      if (!kept || name == undone.name() || kept->isUndone()) continue;
      renewIn(kept->directory(), workspaceOf(*kept));
    }
  }
}

}  // namespace caisson::session
