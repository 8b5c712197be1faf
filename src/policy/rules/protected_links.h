// Protected names that files have through symbolic links: with `.vscode -> tools/vscode`, the editor reads
// tools/vscode/tasks.json as .vscode/tasks.json.
//
// Everything here is pure: callers supply all links of a workspace, and a function for those outside, so paths are
// resolved without the file system.
#pragma once

#include <functional>
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
  std::string path;           ///< relative to the workspace, as written; it need not exist
  std::string configuration;  ///< that names it
  bool file = false;          ///< not meant if it is a directory
};

/// The target of the link at an absolute path outside of the workspace; the path has no links above its last part.
/// nullopt: it is none.
using OutsideLinks = std::function<std::optional<std::string>(const std::string& path)>;

class ProtectedLinks {
 public:
  /// `workspace` is the absolute path on the host, for targets that are absolute or lead out and back. Of several links
  /// with one path each counts: which one is there after a commit is not known. `outside`: for targets that pass other
  /// links; without it, they lead where their text says. `files` must outlive this.
  ProtectedLinks(const ProtectedFiles& files, const std::string& workspace, const std::vector<WorkspaceLink>& links,
                 const std::vector<NamedProgram>& programs = {}, OutsideLinks outside = {});

  /// A file or directory that is protected for another reason than its own name.
  struct Place {
    std::string path;    ///< where it is; it need not exist. "": the workspace itself
    std::string name;    ///< its other name, through links; empty: it is executed whatever its name is
    std::string source;  ///< the link or the configuration that leads there
    bool way = false;    ///< it decides where such a place is; what is below it is not meant
    bool file = false;   ///< NamedProgram::file
    [[nodiscard]] bool executed() const { return name.empty(); }
  };
  /// All places that are protected, or may hold something protected. No ways.
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  /// The links on the way to places, and the directories that `..` on the way leaves, by path.
  [[nodiscard]] const std::map<std::string, Place, std::less<>>& ways() const { return ways_; }
  /// Whether there are more places or links than are followed, so that some places are missing.
  [[nodiscard]] bool isIncomplete() const { return incomplete_; }

  struct Found {
    ProtectedCategory category = ProtectedCategory::version_control;
    const Place* place = nullptr;  ///< null: some places are missing, and this may be one
    /// "editors run tasks from it, as .vscode/tasks.json through the link .vscode"
    [[nodiscard]] std::string reason(std::string_view path) const;
  };
  /// Why a path is protected through a link, if it is. Every path is if isIncomplete(). `directory`: it is one.
  [[nodiscard]] std::optional<Found> match(std::string_view path, bool directory = false) const;
  /// Whether a link at this path would change where a place is: `path` is on the way to one.
  [[nodiscard]] bool isOnTheWay(std::string_view path) const;
  /// The paths inside the workspace that a link may lead to, with all links on the way resolved. Parts that do not
  /// exist stay as they are. None if it leads out, or in a circle. nullopt: there are too many ways to follow.
  [[nodiscard]] std::optional<std::vector<std::string>> ends(const WorkspaceLink& link) const;

 private:
  struct Trail;
  using Paths = std::vector<std::string>;
  /// As ends(), and collects the links on the way. False if there are too many ways to follow.
  bool follow(const WorkspaceLink& link, Paths& ends, Paths& passed) const;
  /// Continues with each link at the trail's end, if there are any. False if there is none.
  bool branch(Trail& trail, std::vector<Trail>& trails) const;
  [[nodiscard]] bool enter(Trail& trail, const std::string& target) const;
  /// Takes a step of a trail that is not empty, and adds what decides where it leads to `passed`. False if the trail
  /// ends here: it leads nowhere, or continues as others.
  bool step(Trail& trail, std::vector<Trail>& trails, Paths& passed) const;
  /// Goes to the directory above.
  [[nodiscard]] bool leave(Trail& trail, Paths& passed) const;
  /// The path relative to the workspace; nullopt: outside.
  [[nodiscard]] std::optional<std::string> inside(const Paths& at) const;

  /// Adds what `link` leads to, as a place with this name.
  void addTarget(const WorkspaceLink& link, std::string_view name, std::string_view source, int depth,
                 bool file = false);
  void addPlace(Place place, int depth);
  /// Whether a name, or one below it, may be protected.
  [[nodiscard]] bool mayMatter(std::string_view name) const;

  const ProtectedFiles& files_;
  OutsideLinks outside_;
  Paths root_;                                                            ///< the parts of the workspace's path
  std::map<std::string, std::vector<WorkspaceLink>, std::less<>> links_;  ///< by path
  std::vector<Place> places_;
  std::map<std::string, Place, std::less<>> ways_;
  mutable std::size_t steps_ = 0;  ///< how much was followed so far
  bool incomplete_ = false;
};

}  // namespace caisson::policy
