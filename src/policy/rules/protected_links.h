// Protected names that files have through symbolic links: with `.vscode -> tools/vscode`, the editor reads
// tools/vscode/tasks.json as .vscode/tasks.json.
//
// Everything here is pure: callers supply all links of a workspace, so paths are resolved without the file system.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/rules/protected_files.h"

namespace caisson::policy {

struct WorkspaceLink {
  std::string path;  ///< relative to the workspace
  std::string target;
  bool executed = false;  ///< the host executes what it leads to, whatever its name is: a link among git's hooks
};

/// A file or directory that the host executes whatever its name is, because a configuration names it.
struct NamedProgram {
  std::string path;           ///< relative to the workspace; it need not exist
  std::string configuration;  ///< that names it
};

class ProtectedLinks {
 public:
  /// `workspace` is the absolute path on the host, for targets that are absolute. `files` must outlive this.
  ProtectedLinks(const ProtectedFiles& files, std::string workspace, const std::vector<WorkspaceLink>& links,
                 const std::vector<NamedProgram>& programs = {});

  /// A file or directory that is protected for another reason than its own name.
  struct Place {
    std::string path;    ///< where it is; it need not exist. "": the workspace itself
    std::string name;    ///< its other name, through links; empty: it is executed whatever its name is
    std::string source;  ///< the link or the configuration that leads there
    [[nodiscard]] bool executed() const { return name.empty(); }
  };
  /// All places that are protected, or may hold something protected.
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }

  struct Found {
    ProtectedCategory category = ProtectedCategory::version_control;
    const Place* place = nullptr;
    /// "editors run tasks from it, as .vscode/tasks.json through the link .vscode"
    [[nodiscard]] std::string reason(std::string_view path) const;
  };
  /// Why a path is protected through a link, if it is. Every path is if there are more such links than are kept.
  [[nodiscard]] std::optional<Found> match(std::string_view path) const;
  /// Whether a link at this path would change where a place is: `path` is on the way to one.
  [[nodiscard]] bool isOnTheWay(std::string_view path) const;
  /// The path inside the workspace that a link leads to, with all links on the way resolved. Parts that do not exist
  /// stay as they are. nullopt: it leads out, or in a circle.
  [[nodiscard]] std::optional<std::string> resolve(const WorkspaceLink& link) const;

 private:
  void addPlace(Place place, int depth);
  /// Whether a name, or one below it, may be protected.
  [[nodiscard]] bool mayMatter(std::string_view name) const;

  const ProtectedFiles& files_;
  std::string workspace_;
  std::map<std::string, WorkspaceLink, std::less<>> links_;  ///< by path
  std::vector<Place> places_;
  bool crowded_ = false;  ///< some places are missing
};

}  // namespace caisson::policy
