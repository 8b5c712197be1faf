// Three-way merge of a file that both the session and the real workspace changed.
#pragma once

#include <expected>
#include <optional>
#include <string>

#include "session/changes/line_diff.h"
#include "session/commit/committed.h"
#include "session/commit/git_base.h"
#include "session/commit/real_tree.h"
#include "session/layers/layer_stack.h"

namespace caisson::session {

/// Finds the common base of a merge: what this session committed to the path last, if one of its frozen layers still
/// has it, else the content that git has of the file at the session's beginning.
class MergeBases {
 public:
  MergeBases(const sys::RootDir& session, const Metadata& metadata, LayerRoots& roots, const Committed& committed)
      : session_(session), metadata_(metadata), roots_(roots), committed_(committed) {}

  /// Whether a merge can be tried, without reading any content. If true, find() may still fail.
  [[nodiscard]] bool mayHave(const std::string& path);
  /// The content of the base, or nothing.
  [[nodiscard]] std::optional<std::string> find(const std::string& path);

 private:
  /// The content that this session committed to the path last, from the newest frozen state or checkpoint that has it.
  std::optional<std::string> findCommitted(const std::string& path);
  const GitBases& git();

  const sys::RootDir& session_;
  const Metadata& metadata_;
  LayerRoots& roots_;
  const Committed& committed_;
  std::optional<GitBases> git_;
};

class FileMerger {
 public:
  /// `hidden`: what of the real workspace is not read.
  FileMerger(MergeBases& bases, RealTree& real, const LayerStack& now, HiddenHostFiles& hidden)
      : bases_(bases), real_(real), now_(now), hidden_(hidden) {}

  [[nodiscard]] bool mayMerge(const std::string& path) { return bases_.mayHave(path) && !hidden_.hides(path); }
  /// The changes of both sides in one text, or the reason why they cannot be merged. `there` is the real file as it was
  /// looked at, `entry` the session's; both are regular files. Nothing: the real file has the session's changes
  /// already.
  std::expected<std::optional<std::string>, std::string> merge(const std::string& path, const sys::FileInfo& there,
                                                               const LayerStack::Entry& entry);

 private:
  /// The real file's content. Nothing if it is not `there` any more, changes meanwhile, or is over 16 MiB.
  std::optional<std::string> realContent(const std::string& path, const sys::FileInfo& there);

  MergeBases& bases_;
  RealTree& real_;
  const LayerStack& now_;
  HiddenHostFiles& hidden_;
  DiffBudget budget_;
};

/// The first `size` bytes of a file; nothing if it has fewer.
std::optional<std::string> readBytes(int file, std::uint64_t size);

}  // namespace caisson::session
