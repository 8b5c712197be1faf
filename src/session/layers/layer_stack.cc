#include "session/layers/layer_stack.h"

#include <fcntl.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "plan/image_root.h"
#include "session/changes/sparse_read.h"
#include "session/store/workspace_root.h"
#include "session/tier/tier_files.h"
#include "supervise/disk/foreign_files.h"

namespace caisson::session {
namespace {

using sys::FileInfo;
using sys::FileType;
using sys::RootDir;

/// Whether nothing is at a path. ELOOP: a payload put a link in the place of a directory meanwhile.
bool isMissing(int sys_errno) { return sys_errno == ENOENT || sys_errno == ENOTDIR || sys_errno == ELOOP; }

bool isOpaque(const RootDir& root, const std::string& path) {
  const auto directory = root.openFile(path, {.flags = O_RDONLY, .types = {FileType::directory}});
  if (!directory) return false;
  char value = 0;
  return ::fgetxattr(directory->get(), "user.overlay.opaque", &value, 1) == 1 && value == 'y';
}

bool isSameState(const FileInfo& a, const FileInfo& b) {
  return a.device == b.device && a.inode == b.inode && a.size == b.size && a.modified_ns == b.modified_ns &&
         a.changed_ns == b.changed_ns;
}

bool sameBytes(const LayerStack& before, const LayerStack::Entry& old, const LayerStack& now,
               const LayerStack::Entry& current, const std::string& path) {
  const auto first = before.open(path, old);
  const auto second = now.open(path, current);
  if (!first || !second || first->info.size != second->info.size) return false;
  return sameContent(first->file.get(), second->file.get(), first->info.size);
}

/// Whether two objects of the same path are the same to a user: type, mode, content. Times are not a change.
bool sameObject(const LayerStack& before, const LayerStack::Entry& old, const LayerStack& now,
                const LayerStack::Entry& current, const std::string& path, const CompareOptions& options) {
  constexpr mode_t kModeBits = 0777;
  const LayerStack::Layer& a = before.layers()[old.layer];
  const LayerStack::Layer& b = now.layers()[current.layer];
  if (a.name == b.name) return true;
  // Linked by a squash: two names of one file.
  if (old.info.device == current.info.device && old.info.inode == current.info.inode &&
      current.info.type != FileType::directory) {
    return true;
  }
  if (old.info.type != current.info.type || (old.info.mode & kModeBits) != (current.info.mode & kModeBits))
    return false;
  if (current.info.type == FileType::directory) return true;
  if (current.info.type == FileType::link) {
    const auto left = before.readLink(path, old);
    const auto right = now.readLink(path, current);
    return left && right && *left == *right;
  }
  if (current.info.type != FileType::regular) return false;
  const bool contents = options.contents && (options.real_contents || !a.name.empty());
  return old.info.size == current.info.size && contents && sameBytes(before, old, now, current, path);
}

struct Work {
  std::string path;  // of a directory; "" is the root
  LayerStack::View before, now;
  std::size_t change = SIZE_MAX;  // index of the change that lists the directory itself, if there is one
};

/// Bounds for callers that only need to know whether anything differs.
struct CompareBudget {
  std::size_t entries = SIZE_MAX;
  std::uint64_t bytes = UINT64_MAX;
  bool first_only = false;
};

class Comparison {
 public:
  Comparison(const LayerStack& before, const LayerStack& now, const CompareOptions& options,
             const CompareBudget& budget = {})
      : before_(before), now_(now), options_(options), budget_(budget) {
    std::set<std::string> old_names, new_names;
    for (const auto& layer : before.layers()) old_names.insert(layer.name);
    for (const auto& layer : now.layers()) new_names.insert(layer.name);
    for (const auto& layer : before.layers()) {
      if (!new_names.contains(layer.name)) apart_.insert(layer.name);
    }
    for (const auto& layer : now.layers()) {
      if (!old_names.contains(layer.name)) apart_.insert(layer.name);
    }
  }

  Result<std::vector<StackChange>> run() {
    pending_.push_back({"", before_.root(), now_.root()});
    while (!pending_.empty() && !isDone()) {
      Work work = std::move(pending_.back());
      pending_.pop_back();
      if (auto looked = lookInto(work); !looked) return fail(looked.error());
    }
    std::sort(changes_.begin(), changes_.end(),
              [](const StackChange& a, const StackChange& b) { return a.path < b.path; });
    return std::move(changes_);
  }
  /// Whether the budget ended the comparison.
  [[nodiscard]] bool cutShort() const { return budget_.entries == 0 || budget_.bytes == 0; }

 private:
  /// Adds the names that may differ between the sides: those in layers that only one side has; `all`: in every layer.
  Result<void> collect(const LayerStack& stack, const LayerStack::View& view, const std::string& path, bool all,
                       std::set<std::string>& names) {
    for (const std::size_t index : view) {
      const LayerStack::Layer& layer = stack.layers()[index];
      if (!all && !apart_.contains(layer.name)) continue;
      auto entries = layer.root->list(path);
      if (!entries && entries.error().sys_errno == EACCES && stack.reopen(index, view, path)) {
        entries = layer.root->list(path);
      }
      if (!entries && (entries.error().sys_errno == ENOENT || entries.error().sys_errno == ENOTDIR)) continue;
      if (!entries) return fail(entries.error());
      for (const sys::DirectoryEntry& entry : *entries) names.insert(entry.name);
    }
    return {};
  }

  /// Keeps in the result that a directory could not be read.
  Result<void> markUnread(Work& work, int problem) {
    if (work.path.empty()) {
      return fail(sysError(Stage::state, "open", "/workspace", problem,
                           problem == EACCES ? "in the session, run `chmod u+rwx /workspace`" : ""));
    }
    if (work.change == SIZE_MAX) {
      work.change = changes_.size();
      changes_.push_back({work.path, ChangeKind::modified, before_.find(work.path), now_.find(work.path), {}});
    }
    changes_[work.change].unread = describeUnread(problem);
    return {};
  }

  Result<void> lookInto(Work& work) {
    std::set<std::string> names;
    // Where the two sides rest on different layers (one is opaque, or only one side has the directory), every name
    // counts.
    const bool all = commonPart(before_, work.before) != commonPart(now_, work.now);
    auto read = collect(before_, work.before, work.path, all, names);
    if (read) read = collect(now_, work.now, work.path, all, names);
    if (!read && isUnread(read.error().sys_errno)) return markUnread(work, read.error().sys_errno);
    if (!read) return read;
    for (const std::string& name : names) {
      const std::string path = work.path.empty() ? name : work.path + "/" + name;
      const LayerStack::Entry old = before_.lookUp(path, work.before), current = now_.lookUp(path, work.now);
      if (const int problem = old.problem != 0 ? old.problem : current.problem; problem != 0) {
        if (auto marked = markUnread(work, problem); !marked) return marked;
        continue;
      }
      compare(path, old, current);
      if (changes_.size() > options_.max_changes) {
        return fail(plainError(Stage::state, "session diff", path,
                               "more than " + std::to_string(options_.max_changes) + " changes", "look at a part"));
      }
      if (isDone()) break;
    }
    return {};
  }

  [[nodiscard]] bool isDone() const { return cutShort() || (budget_.first_only && !changes_.empty()); }

  [[nodiscard]] std::vector<std::string> commonPart(const LayerStack& stack, const LayerStack::View& view) const {
    std::vector<std::string> names;
    for (const std::size_t index : view) {
      if (!apart_.contains(stack.layers()[index].name)) names.push_back(stack.layers()[index].name);
    }
    return names;
  }

  /// Whether a directory of `now_` is the real one alone, of which parts are hidden.
  [[nodiscard]] bool isOfHost(const LayerStack::Entry& current) const {
    return now_.layers()[current.layer].hidden != nullptr;
  }

  void spend(const LayerStack::Entry& old, const LayerStack::Entry& current) {
    --budget_.entries;
    if (old.present && current.present && old.info.size == current.info.size) {
      budget_.bytes -= std::min(budget_.bytes, current.info.size);
    }
  }

  void compare(const std::string& path, const LayerStack::Entry& old, const LayerStack::Entry& current) {
    if (!old.present && !current.present) return;
    if (!current.present) return changes_.push_back({path, ChangeKind::deleted, old, current, {}});
    const bool directory = current.info.type == FileType::directory;
    const bool was_directory = old.present && old.info.type == FileType::directory;
    spend(old, current);
    if (cutShort()) return;
    const std::size_t count = changes_.size();
    if (!old.present) {
      changes_.push_back({path, ChangeKind::added, old, current, {}});
    } else if (!sameObject(before_, old, now_, current, path, options_)) {
      changes_.push_back({path, ChangeKind::modified, old, current, {}});
    }
    if (!directory || (isOfHost(current) && now_.isHidden(path, current))) return;  // not even the names
    pending_.push_back({path, was_directory ? old.below : LayerStack::View{}, current.below,
                        changes_.size() > count ? count : SIZE_MAX});
  }

  const LayerStack& before_;
  const LayerStack& now_;
  std::set<std::string> apart_;  // layers that only one of the two has
  CompareOptions options_;
  CompareBudget budget_;
  std::vector<Work> pending_;
  std::vector<StackChange> changes_;
};

}  // namespace

Result<void> claimLayers(const SessionPaths& paths, const Metadata& metadata) {
  if (metadata.policy.isolation.user != policy::InsideUser::root || !plan::hasOtherRoot(metadata.policy)) return {};
  auto store = paths.stores().openFile(metadata.family, {.flags = O_PATH, .types = {FileType::directory}});
  if (!store) return store.error().sys_errno == ENOENT ? Result<void>() : fail(store.error());
  return supervise::claimTree(store->get());
}

Result<LayerRoots> LayerRoots::open(const SessionPaths& paths, const Metadata& metadata) {
  LayerRoots roots;
  if (auto claimed = claimLayers(paths, metadata); !claimed) return fail(claimed.error());
  roots.copied_ = inLandlockTier(metadata.policy);
  auto store = roots.copied_ ? openTierFiles(paths, metadata) : paths.stores().enter(metadata.family);
  if (!store && store.error().sys_errno != ENOENT) return fail(store.error());
  if (store) {
    auto mask = store->enter("mask");
    if (mask) roots.mask_ = std::make_unique<RootDir>(std::move(*mask));
    roots.store_ = std::make_unique<RootDir>(std::move(*store));
  }
  if (!metadata.workspace.empty()) {
    auto real = openRealDirectory(metadata);
    if (!real) return fail(real.error());
    roots.real_ = std::make_unique<RootDir>(std::move(*real));
    roots.hidden_ = std::make_unique<HiddenHostFiles>(*roots.real_, metadata);
  }
  return roots;
}

Result<LayerStack> LayerRoots::stack(const std::vector<std::string>& names) {
  if (copied_ && names.empty()) return stack({kBaseLayer});
  std::vector<LayerStack::Layer> layers;
  for (const std::string& name : names) {
    auto& root = layers_[name];
    if (!root) {
      auto opened = store_ ? store_->enter(name) : Result<RootDir>(fail(sysError(Stage::state, "open", name, ENOENT)));
      if (!opened && opened.error().sys_errno == ENOENT) continue;  // nothing was written yet
      if (!opened) return fail(opened.error());
      root = std::make_unique<RootDir>(std::move(*opened));
    }
    layers.push_back({name, root.get()});
  }
  if (copied_) return LayerStack(std::move(layers));
  if (mask_) layers.push_back({"mask", mask_.get()});
  if (real_) layers.push_back({"", real_.get(), hidden_.get()});
  return LayerStack(std::move(layers));
}

LayerStack::LayerStack(std::vector<Layer> layers) : layers_(std::move(layers)) {
  for (const Layer& layer : layers_) readers_.emplace_back(*layer.root);
}

bool LayerStack::isHidden(const std::string& path, const Entry& entry) const {
  const auto hides = [&](std::size_t layer) {
    HiddenHostFiles* hidden = layers_[layer].hidden;
    return hidden != nullptr && hidden->hides(path, entry.info.type == FileType::directory);
  };
  return entry.present && (hides(entry.layer) || std::ranges::any_of(entry.below, hides));
}

bool LayerStack::isHiddenContent(const std::string& path, const Entry& entry, std::string_view text,
                                 std::uint64_t size) const {
  const HiddenHostFiles* hidden = layers_[entry.layer].hidden;
  return hidden != nullptr && hidden->hidesContent(path, text, size);
}

Result<sys::OpenedFile> LayerStack::open(const std::string& path, const Entry& entry) const {
  if (isHidden(path, entry)) return fail(sysError(Stage::state, "open", path, EACCES, kHiddenOnHost));
  auto opened = readers_[entry.layer].open(path);
  if (opened && layers_[entry.layer].hidden != nullptr && !isSameState(opened->info, entry.info)) {
    return fail(sysError(Stage::state, "open", path, ESTALE));
  }
  return opened;
}

Result<std::string> LayerStack::readLink(const std::string& path, const Entry& entry) const {
  if (isHidden(path, entry)) return fail(sysError(Stage::state, "readlink", path, EACCES, kHiddenOnHost));
  return readers_[entry.layer].readLink(path);
}

void LayerStack::forget() const {
  for (sys::PathReader& reader : readers_) reader.forget();
}

std::optional<FileInfo> LayerStack::statIn(std::string_view layer, const std::string& path) const {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (layers_[i].name != layer) continue;
    if (const auto info = readers_[i].stat(path)) return *info;
  }
  return std::nullopt;
}

LayerStack::View LayerStack::root() const {
  View view(layers_.size());
  for (std::size_t i = 0; i < view.size(); ++i) view[i] = i;
  return view;
}

bool LayerStack::reopen(std::size_t layer, const View& view, const std::string& directory) const {
  const bool is_real = layers_[layer].name.empty();  // the user's own directory, which is never changed
  return !is_real && layer != view.front() && layers_[layer].root->openToOwner(directory);
}

LayerStack::Entry LayerStack::lookUp(const std::string& path, const View& parent) const {
  Entry entry;
  for (const std::size_t index : parent) {
    auto info = readers_[index].stat(path);
    if (!info && info.error().sys_errno == EACCES) {
      const std::size_t slash = path.rfind('/');
      if (reopen(index, parent, slash == std::string::npos ? "" : path.substr(0, slash))) {
        info = readers_[index].stat(path);
      }
    }
    if (!info && !isMissing(info.error().sys_errno)) entry.problem = info.error().sys_errno;
    if (!info) continue;
    if (info->type == FileType::character_device) break;  // deleted here; nothing below counts
    if (entry.present && info->type != FileType::directory) break;
    if (!entry.present) {
      entry.present = true;
      entry.info = *info;
      entry.layer = index;
    }
    if (info->type != FileType::directory) break;
    entry.below.push_back(index);
    if (isOpaque(*layers_[index].root, path)) break;
  }
  return entry;
}

LayerStack::Entry LayerStack::find(const std::string& path) const {
  Entry entry;
  entry.below = root();
  for (std::size_t at = 0; at != std::string::npos;) {
    at = path.find('/', at + 1);
    entry = lookUp(path.substr(0, at), entry.below);
    if (!entry.present) break;
  }
  return entry;
}

Result<std::vector<std::string>> LayerStack::names(const std::string& path, const View& view) const {
  std::set<std::string> names;
  for (const std::size_t index : view) {
    auto entries = layers_[index].root->list(path);
    if (!entries && (entries.error().sys_errno == ENOENT || entries.error().sys_errno == ENOTDIR)) continue;
    if (!entries) return fail(entries.error());
    for (sys::DirectoryEntry& entry : *entries) names.insert(std::move(entry.name));
  }
  return std::vector<std::string>(names.begin(), names.end());
}

Result<std::vector<StackChange>> compareEntries(const LayerStack& before, const LayerStack& now,
                                                const CompareOptions& options) {
  return Comparison(before, now, options).run();
}

bool differs(const LayerStack& before, const LayerStack& now, std::size_t max_entries, std::uint64_t max_bytes) {
  Comparison comparison(before, now, {}, {.entries = max_entries, .bytes = max_bytes, .first_only = true});
  const auto changes = comparison.run();
  return !changes || !changes->empty() || comparison.cutShort();
}

Result<std::vector<Change>> compareStacks(const LayerStack& before, const LayerStack& now) {
  auto found = compareEntries(before, now);
  if (!found) return fail(found.error());
  std::vector<Change> changes;
  changes.reserve(found->size());
  for (const StackChange& one : *found) changes.push_back(toChange(one));
  return changes;
}

std::string describeUnread(int sys_errno) {
  if (sys_errno == EACCES) {
    return "what is in it cannot be read: its permissions deny that (in the session, run `chmod u+rwx` on it)";
  }
  if (sys_errno == ENAMETOOLONG) return "what is in it is left out: its path is too long";
  return "what is in it cannot be read: " + errnoName(sys_errno);
}

bool isUnread(int sys_errno) { return sys_errno == EACCES || sys_errno == ENAMETOOLONG; }

Change toChange(const StackChange& change) {
  const bool deleted = change.kind == ChangeKind::deleted;
  const FileInfo& info = deleted ? change.before.info : change.now.info;
  Change made{change.path, change.kind, std::string(sys::name(info.type)), deleted ? 0 : info.size, change.unread};
  constexpr mode_t kModeBits = 0777;
  const FileInfo& old = change.before.info;
  const bool same_type = change.kind == ChangeKind::modified && change.before.present && old.type == info.type;
  if (same_type && info.type != FileType::link && ((old.mode ^ info.mode) & kModeBits) != 0) {
    made.old_mode = old.mode & kModeBits;
    made.new_mode = info.mode & kModeBits;
  }
  return made;
}

bool cameFromBelow(const LayerStack& stack, const std::string& path, const LayerStack::Entry& entry) {
  const auto opened = stack.open(path, entry);
  return opened && ::fgetxattr(opened->file.get(), "user.overlay.origin", nullptr, 0) >= 0;
}

}  // namespace caisson::session
