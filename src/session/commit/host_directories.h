// Whether the directories of the real workspace are those that the session's commands could see.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "session/commit/committed.h"
#include "session/commit/directory_baseline.h"
#include "session/commit/real_tree.h"

namespace caisson::session {

enum class DirectoryState : std::uint8_t {
  unchanged,  ///< the same directory with the same names
  ours,       ///< only this session's commits made or removed names in it
  changed,    ///< the same directory; names were made, removed or replaced in it
  another,    ///< moved here, or replaced, or a mount since the session began, or this is not known
  missing,
};

class HostDirectories {
 public:
  /// `since_ns`: what changed later, changed since the session began.
  HostDirectories(RealTree& real, const Committed& committed, DirectoryBaseline baseline, std::int64_t since_ns)
      : real_(real), committed_(committed), baseline_(std::move(baseline)), since_ns_(since_ns) {}

  /// Of a directory of the workspace; "" is the workspace itself. In another directory, everything is another.
  DirectoryState stateOf(const std::string& directory);
  /// The change time of the directory when stateOf() examined it; -1 if it was missing.
  std::int64_t examinedAt(const std::string& directory);
  /// The uppermost directory on the way to `path` that is another one now. Nothing: `path` leads where it did.
  std::optional<std::string> replacedOnTheWay(const std::string& path);
  /// Whether the directory was there when the session began, or is a mount: then it is none that the session and the
  /// host both made.
  bool wasThere(const std::string& directory);
  /// Whether something was at `path` when the session began, as far as that was recorded.
  [[nodiscard]] bool hadName(const std::string& path) const { return baseline_.hasName(path); }
  /// Whether the permissions of a directory are others than when the session began, or that is not known: that of an
  /// access list is not, if the directory changed at all. `info`: as it is now.
  [[nodiscard]] bool isModeChanged(const std::string& directory, const sys::FileInfo& info);

 private:
  DirectoryState find(const std::string& directory);
  [[nodiscard]] bool hasAccessList(const std::string& directory);

  RealTree& real_;
  const Committed& committed_;
  DirectoryBaseline baseline_;
  std::int64_t since_ns_;
  std::unordered_map<std::string, DirectoryState> states_;
  std::unordered_map<std::string, std::int64_t> changed_ns_;  ///< of those that are there
};

}  // namespace caisson::session
