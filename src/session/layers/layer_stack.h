// Layers of an overlay read from outside, in the kernel's own format: a character device is a deletion, a directory
// marked opaque hides what lies below it.
//
// The layers hold what payloads wrote. Nothing is followed: every path is taken name by name, and a name that is a link
// is a link.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "caisson/session.h"
#include "session/layers/hidden_host_files.h"
#include "session/store/metadata.h"
#include "session/store/session_paths.h"
#include "sys/path_reader.h"
#include "sys/root_dir.h"

namespace caisson::session {

/// Directories that lie over each other, uppermost first.
class LayerStack {
 public:
  struct Layer {
    std::string name;  ///< two stacks share the layers of the same name
    const sys::RootDir* root;
    HiddenHostFiles* hidden = nullptr;  ///< of the real directory: what is not read
  };
  explicit LayerStack(std::vector<Layer> layers);

  /// Which layers of the stack contribute to a directory, by index. The root: all of them.
  using View = std::vector<std::size_t>;
  [[nodiscard]] View root() const;

  /// What a path is in the stack: absent, or an object of the topmost layer that has it.
  struct Entry {
    bool present = false;
    sys::FileInfo info;
    std::size_t layer = 0;  ///< index of that layer
    View below;             ///< of a directory: which layers contribute to it
    int problem = 0;        ///< errno if a layer could not be read, so that what the path is remains unknown
  };
  /// `path`: from the root; `parent`: the view of its directory.
  [[nodiscard]] Entry lookUp(const std::string& path, const View& parent) const;

  /// lookUp() without a known view: resolves all directories from the root on.
  [[nodiscard]] Entry find(const std::string& path) const;

  /// Opens a directory of a layer to its owner again that a payload closed before the layer was frozen, if a layer
  /// above it in `view` has the directory too: the mode there is the one that the session shows.
  [[nodiscard]] bool reopen(std::size_t layer, const View& view, const std::string& directory) const;

  /// Names in a directory of this view, deleted ones included, sorted.
  [[nodiscard]] Result<std::vector<std::string>> names(const std::string& path, const View& view) const;

  /// Whether the real directory has a part in the entry that the session does not show (hidden_host_files.h).
  [[nodiscard]] bool isHidden(const std::string& path, const Entry& entry) const;
  /// Whether this content of a regular file, the first bytes of `size`, is such a part.
  [[nodiscard]] bool isHiddenContent(const std::string& path, const Entry& entry, std::string_view text,
                                     std::uint64_t size) const;

  /// Opens the file that an entry of this stack stands for. An error if it is hidden, or if a file of the real
  /// directory is another one, or changed, since the entry was looked up.
  [[nodiscard]] Result<sys::OpenedFile> open(const std::string& path, const Entry& entry) const;
  /// An error if the link is hidden.
  [[nodiscard]] Result<std::string> readLink(const std::string& path, const Entry& entry) const;
  /// What the layer of this name has at a path, by itself; nothing if the path or the layer does not exist.
  [[nodiscard]] std::optional<sys::FileInfo> statIn(std::string_view layer, const std::string& path) const;
  /// Drops cached directories. Call when directories may have been renamed.
  void forget() const;

  [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }

 private:
  std::vector<Layer> layers_;
  mutable std::vector<sys::PathReader> readers_;  ///< by layer; one thread uses a stack
};

/// The opened layers of one session, and the real directory below them.
class LayerRoots {
 public:
  /// An error if the real directory is gone; a missing store means that nothing was written.
  static Result<LayerRoots> open(const SessionPaths& paths, const Metadata& metadata);
  /// A stack of the layers of these names, the mask layer, and the real directory. Layers without a directory, to which
  /// nothing was written, are left out. This object must outlive the result. In the landlock tier a layer is a whole
  /// copy, with nothing below it, and no layer at all means the workspace when the session began.
  Result<LayerStack> stack(const std::vector<std::string>& names);
  /// The real directory, or null when the session began empty.
  [[nodiscard]] const sys::RootDir* real() const { return real_.get(); }
  /// What it does not show; null when the session began empty.
  [[nodiscard]] HiddenHostFiles* hidden() const { return hidden_.get(); }

 private:
  bool copied_ = false;  ///< a session in the landlock tier
  std::unique_ptr<sys::RootDir> store_, mask_, real_;
  std::unique_ptr<HiddenHostFiles> hidden_;
  std::map<std::string, std::unique_ptr<sys::RootDir>> layers_;
};

/// Makes the caller the owner of files in the layers that belong to its subordinate ids, if the session's commands can
/// make such files. For their owner alone they could be neither compared nor merged.
Result<void> claimLayers(const SessionPaths& paths, const Metadata& metadata);

/// A path that differs, with what it is on both sides.
struct StackChange {
  std::string path;
  ChangeKind kind = ChangeKind::modified;
  LayerStack::Entry before, now;
  std::string unread;  ///< of a directory: why what is in it could not be compared; or empty
};

/// Why what is in a directory is left out, for a user who can change that in the session.
std::string describeUnread(int sys_errno);
/// Whether an error of listing a directory is about this directory alone, so that the others can be compared.
bool isUnread(int sys_errno);

struct CompareOptions {
  /// Read files of the same size to see whether they differ. If false, they count as modified.
  bool contents = true;
  /// The same for files whose old content is in the real directory. False for a commit, which compares these itself.
  bool real_contents = true;
  std::size_t max_changes = 1'000'000;  ///< more are an error
};

/// What is different in `now` against `before`, sorted by path. A directory that is gone is one change. A directory
/// that cannot be read is a change with the reason, even if it is the same on both sides; an error only for the root.
Result<std::vector<StackChange>> compareEntries(const LayerStack& before, const LayerStack& now,
                                                const CompareOptions& options = {});

/// Whether anything differs. Looks at no more than `max_entries` paths and `max_bytes` of content; beyond that, and
/// after a read error, the answer is yes.
bool differs(const LayerStack& before, const LayerStack& now, std::size_t max_entries, std::uint64_t max_bytes);

/// A change as the public interface has it.
Change toChange(const StackChange& change);

/// What is different in `now` against `before`, sorted by path. Only directories that a layer of one of them alone has
/// are looked at, so the cost is that of the changes, not of the tree.
Result<std::vector<Change>> compareStacks(const LayerStack& before, const LayerStack& now);

/// Whether the kernel copied this file up from a lower layer, under this name or another.
bool cameFromBelow(const LayerStack& stack, const std::string& path, const LayerStack::Entry& entry);

}  // namespace caisson::session
