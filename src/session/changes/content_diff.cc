// diffFiles: what changed inside the files, read from the layers.
//
// Everything read here was written by a payload, and may be written to at this moment. Files are opened below a RootDir
// (no links, no pipes, no devices) and read up to a limit, so neither time nor memory depends on what they become.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "session/changes/git_patch.h"
#include "session/changes/renames.h"
#include "session/client/session_context.h"

namespace caisson::session {
namespace {

using sys::FileType;

constexpr std::uint64_t kMaxFileBytes = 16U << 20;
constexpr std::size_t kMaxPaths = 1'000'000;
constexpr std::size_t kMaxContextLines = 1000;

struct Item {
  std::string path;
  std::string old_path;  // of a rename
  LayerStack::Entry before, now;
  unsigned similarity = 100;
  bool dropped = false;  // the other half of a rename
};

/// The content of one side: of a file or link up to the limit, or why there is none.
struct Content {
  std::string bytes;
  std::string problem;
};

Content readRegular(const LayerStack& stack, const LayerStack::Entry& entry, const std::string& path) {
  if (stack.isHidden(path, entry)) return {{}, kHiddenOnHost};
  const auto opened = stack.open(path, entry);
  if (!opened) {
    return {{}, opened.error().sys_errno == EACCES ? "its content cannot be read" : "it changed while it was read"};
  }
  Content content;
  const std::uint64_t size = opened->info.size;
  if (size > kMaxFileBytes) return {{}, "it is larger than 16 MiB"};
  // One byte more shows a file that grows meanwhile.
  content.bytes.resize(size + 1);
  std::size_t have = 0;
  for (;;) {
    const ssize_t got = ::read(opened->file.get(), content.bytes.data() + have, content.bytes.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {{}, "its content cannot be read"};
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
    if (have < content.bytes.size()) continue;
    if (have > kMaxFileBytes) return {{}, "it is larger than 16 MiB"};
    content.bytes.resize(std::min<std::uint64_t>(have * 2, kMaxFileBytes + 1));
  }
  content.bytes.resize(have);
  if (stack.isHiddenContent(path, entry, content.bytes, have)) return {{}, kHiddenOnHost};
  return content;
}

Content readSide(const LayerStack& stack, const LayerStack::Entry& entry, const std::string& path) {
  if (!entry.present) return {};
  if (entry.info.type == FileType::link) {
    if (stack.isHidden(path, entry)) return {{}, kHiddenOnHost};
    auto target = stack.readLink(path, entry);
    if (!target) return {{}, "it changed while it was read"};
    return {*std::move(target), {}};
  }
  if (entry.info.type == FileType::regular) return readRegular(stack, entry, path);
  return {};
}

PatchSide::Mode modeOf(const LayerStack::Entry& entry) {
  if (!entry.present) return PatchSide::Mode::none;
  if (entry.info.type == FileType::link) return PatchSide::Mode::link;
  if (entry.info.type != FileType::regular) return PatchSide::Mode::none;
  return (entry.info.mode & S_IXUSR) != 0 ? PatchSide::Mode::executable : PatchSide::Mode::file;
}

std::string octal(mode_t mode) {
  std::string text = "0";
  for (const int shift : {6, 3, 0}) text += static_cast<char>('0' + (mode >> shift & 7U));
  return text;
}

class ContentDiff {
 public:
  ContentDiff(const LayerStack& before, const LayerStack& now, const DiffOptions& options)
      : before_(before), now_(now), options_(options) {}

  Result<void> collect(std::vector<StackChange> changes) {
    for (StackChange& change : changes) {
      const bool was_directory = change.before.present && change.before.info.type == FileType::directory;
      const bool is_directory = change.now.present && change.now.info.type == FileType::directory;
      if (was_directory && !is_directory) {
        if (auto added = addDeleted(change.path, change.before); !added) return added;
      }
      if (items_.size() >= kMaxPaths) return tooMany(change.path);
      if (!change.unread.empty()) unread_.emplace(change.path, std::move(change.unread));
      items_.push_back({change.path, change.path, std::move(change.before), std::move(change.now)});
    }
    std::stable_sort(items_.begin(), items_.end(), [](const Item& a, const Item& b) { return a.path < b.path; });
    return {};
  }

  [[nodiscard]] bool empty() const { return items_.empty(); }

  void pairRenames() {
    std::vector<RenameCandidate> deleted, added;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const Item& item = items_[i];
      if (item.before.present == item.now.present) continue;
      const LayerStack::Entry& entry = item.before.present ? item.before : item.now;
      if (entry.info.type != FileType::regular) continue;
      (item.before.present ? deleted : added).push_back({i, entry.info.size});
    }
    const auto read = [&](std::size_t number) -> std::optional<std::string> {
      const Item& item = items_[number];
      Content content =
          item.before.present ? readSide(before_, item.before, item.path) : readSide(now_, item.now, item.path);
      if (!content.problem.empty()) return std::nullopt;
      return std::move(content.bytes);
    };
    for (const Rename& rename : findRenames(deleted, added, read)) {
      Item& to = items_[rename.to];
      Item& from = items_[rename.from];
      to.old_path = from.path;
      to.before = std::move(from.before);
      to.similarity = rename.similarity;
      from.dropped = true;
    }
  }

  void visitAll(const std::function<bool(const FileDiff&)>& visit) {
    for (const Item& item : items_) {
      if (item.dropped) continue;
      const auto diff = fileDiff(item);
      if (diff && !visit(*diff)) return;
    }
  }

 private:
  static Result<void> tooMany(const std::string& path) {
    return fail(plainError(Stage::state, "session diff", path,
                           "more than " + std::to_string(kMaxPaths) + " paths differ",
                           "compare with a later checkpoint"));
  }

  /// Everything below a directory that is gone. Of one that is hidden on the host not even the names.
  Result<void> addDeleted(const std::string& top, const LayerStack::Entry& removed) {
    std::vector<std::pair<std::string, LayerStack::Entry>> pending{{top, removed}};
    while (!pending.empty()) {
      const auto [directory, parent] = std::move(pending.back());
      pending.pop_back();
      if (before_.isHidden(directory, parent)) continue;
      auto names = before_.names(directory, parent.below);
      if (!names && isUnread(names.error().sys_errno)) {
        unread_.emplace(directory, describeUnread(names.error().sys_errno));
        continue;
      }
      if (!names) return fail(names.error());
      for (const std::string& name : *names) {
        const std::string path = directory + "/" + name;
        LayerStack::Entry entry = before_.lookUp(path, parent.below);
        if (entry.problem != 0) unread_.emplace(directory, describeUnread(entry.problem));
        if (!entry.present) continue;
        if (entry.info.type == FileType::directory) pending.emplace_back(path, entry);
        if (items_.size() >= kMaxPaths) return tooMany(path);
        items_.push_back({path, path, std::move(entry), {}});
      }
    }
    return {};
  }

  /// The diff of one path; nothing when the two sides turn out to be the same.
  std::optional<FileDiff> fileDiff(const Item& item) {
    FileDiff diff;
    diff.path = item.path;
    diff.old_path = item.old_path;
    diff.kind = !item.before.present ? ChangeKind::added
                : !item.now.present  ? ChangeKind::deleted
                                     : ChangeKind::modified;
    describe(item.before, diff.old_type, diff.old_mode, diff.old_size);
    describe(item.now, diff.type, diff.mode, diff.size);
    if (before_.isHidden(item.old_path, item.before)) diff.old_size = 0;
    if (now_.isHidden(item.path, item.now)) diff.size = 0;
    diff.unread = unread_.contains(item.path);
    const PatchSide::Mode old_mode = modeOf(item.before), new_mode = modeOf(item.now);
    if (old_mode == PatchSide::Mode::none && new_mode == PatchSide::Mode::none) {
      diff.omitted = whyNoPatch(item, diff);
      return diff;
    }
    const Content before =
        old_mode == PatchSide::Mode::none ? Content{} : readSide(before_, item.before, item.old_path);
    const Content now = new_mode == PatchSide::Mode::none ? Content{} : readSide(now_, item.now, item.path);
    const std::string& problem = before.problem.empty() ? now.problem : before.problem;
    const bool same_type = diff.type == diff.old_type && !diff.renamed();
    if (!problem.empty()) {
      diff.binary = true;
      diff.omitted = problem;
      const std::string old_name = item.before.present ? quotePath("a/", item.old_path) : "/dev/null";
      const std::string new_name = item.now.present ? quotePath("b/", item.path) : "/dev/null";
      if (options_.patch) diff.patch = "Files " + old_name + " and " + new_name + " differ: " + problem + "\n";
      return diff;
    }
    if (same_type && diff.mode == diff.old_mode && before.bytes == now.bytes) return std::nullopt;
    FilePatch patch =
        makePatch({old_mode, item.old_path, before.bytes}, {new_mode, item.path, now.bytes}, item.similarity,
                  {.context_lines = std::min(options_.context_lines, kMaxContextLines),
                   .text = options_.patch,
                   .binary_content = options_.binary},
                  budget_);
    diff.binary = patch.binary;
    diff.added_lines = patch.added_lines;
    diff.removed_lines = patch.removed_lines;
    if (patch.binary && !options_.binary) diff.omitted = "the content of a binary file";
    if (same_type && before.bytes == now.bytes && old_mode == new_mode) {
      diff.omitted = "permissions changed from " + octal(diff.old_mode) + " to " + octal(diff.mode) +
                     ", of which a patch holds only whether a file is executable";
      return diff;
    }
    diff.patch = std::move(patch.text);
    if (item.now.present && new_mode == PatchSide::Mode::none) diff.omitted = whyNoPatch(item, diff);
    return diff;
  }

  /// Why a path has no patch, for objects that git does not track; empty for a directory with files in the diff, which
  /// git creates and removes with them.
  std::string whyNoPatch(const Item& item, const FileDiff& diff) const {
    if (diff.unread) return unread_.at(item.path);
    if (before_.isHidden(item.old_path, item.before)) return kHiddenOnHost;
    const std::string below = item.path + "/";
    const auto first = std::lower_bound(items_.begin(), items_.end(), below,
                                        [](const Item& one, const std::string& path) { return one.path < path; });
    const bool directory = item.now.present ? diff.type == "directory" : diff.old_type == "directory";
    if (directory && diff.kind == ChangeKind::modified && diff.old_type == diff.type) {
      return "permissions of a directory changed from " + octal(diff.old_mode) + " to " + octal(diff.mode);
    }
    if (directory && first != items_.end() && first->path.starts_with(below)) return {};
    return "a patch holds no " + std::string(directory          ? "empty directory"
                                             : item.now.present ? diff.type
                                                                : diff.old_type);
  }

  static void describe(const LayerStack::Entry& entry, std::string& type, std::uint32_t& mode, std::uint64_t& size) {
    if (!entry.present) return;
    type = sys::name(entry.info.type);
    mode = entry.info.mode & 0777U;
    size = entry.info.size;
  }

  const LayerStack& before_;
  const LayerStack& now_;
  const DiffOptions& options_;
  DiffBudget budget_;
  std::vector<Item> items_;
  std::map<std::string, std::string> unread_;  // directories that could not be read, with the reason
};

}  // namespace

Result<void> SessionContext::diffFiles(const DiffOptions& options, const std::function<bool(const FileDiff&)>& visit) {
  auto held = lock();
  if (!held) return fail(held.error());
  auto compared = openForComparison("session diff", options.checkpoint);
  if (!compared) return fail(compared.error());
  auto changes = compareEntries(compared->before, compared->now, {.contents = false});
  if (!changes) return fail(changes.error());
  ContentDiff diff(compared->before, compared->now, options);
  if (auto collected = diff.collect(std::move(*changes)); !collected) return collected;
  // After everything was looked up: what changes from now on is not read.
  if (compared->roots.hidden() != nullptr && !diff.empty()) compared->roots.hidden()->search();
  // The reader of the result may be slow, and must not block other users of the session.
  held->reset();
  if (options.renames) diff.pairRenames();
  diff.visitAll(visit);
  return {};
}

}  // namespace caisson::session
