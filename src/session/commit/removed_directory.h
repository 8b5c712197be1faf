// What a commit would remove together with a directory of the real workspace.
//
// In a session's changes a directory that is gone, or that became a file, is one change. The real directory can hold
// more than the session saw: secrets that were hidden from it, and repositories.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "session/commit/real_tree.h"
#include "session/layers/layer_stack.h"

namespace caisson::session {

struct RemovedDirectory {
  std::string changed;      ///< what changed since or was moved there, or cannot be read; empty: nothing
  std::string open;         ///< a file that a program has open for writing; empty: there is none
  std::string unseen;       ///< a file that the session did not see, or not in full; empty: it saw all of them
  std::string state;        ///< SHA-256 of the names in it and their states
  std::uint64_t bytes = 0;  ///< of the files in it
  std::string held;         ///< a path that is held back unless it is named; empty: there is none
  std::string held_reason;  ///< why
  std::string closed;       ///< a path where the policy lets nothing be written; empty: there is none
};

struct RemovalRules {
  std::int64_t since_ns = 0;  ///< a later change time means that a file changed
  /// Whether a file is as a commit of this session left it: then it counts as seen and unchanged.
  IsOurs is_ours;
  /// Whether a directory is the one that was there when the session began, with the same names but for what this
  /// session's commits changed.
  std::function<bool(const std::string& path)> is_unchanged_directory;
  /// Whether a program has a file open for writing.
  std::function<bool(const std::string& path)> is_open;
  /// Why a path is held back, or empty.
  std::function<std::string(const std::string& path, bool directory)> why_held;
  /// Whether the policy lets nothing be written at a path.
  std::function<bool(const std::string& path)> is_closed;
};

/// Looks at everything in the real directory `path`; stops where `changed`, `open` or `unseen` is found. `before`: what
/// the session began with.
RemovedDirectory inspectRemoval(const RealTree& real, const LayerStack& before, const std::string& path,
                                const RemovalRules& rules);

}  // namespace caisson::session
