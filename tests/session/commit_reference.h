// A reference for commits that shares nothing with the product: the workspace as lstat and read show it, what a session
// can have seen of it, and what a commit and its undoing may therefore change.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "caisson/session.h"

namespace caisson::test {

/// One object of the workspace.
struct Seen {
  char type = 'f';      ///< f, d or l
  mode_t mode = 0;      ///< of files and directories
  std::string content;  ///< or the target of a link
  std::string rights;   ///< access lists and user.note
  std::int64_t modified_ns = 0;

  [[nodiscard]] std::string text() const;
  /// The same but for the time of modification, which a change to and fro sets.
  [[nodiscard]] bool isSame(const Seen& other) const { return text() == other.text(); }
};

using Tree = std::map<std::string, Seen>;

/// Reads everything below a directory but what a commit that was killed left (.caisson-*).
Tree readTree(const std::string& top);
/// The differences, one per line; empty if there are none. `times`: also of files' times of modification.
std::string differences(const Tree& expected, const Tree& found, bool times = false);

/// What one session can know of the workspace.
class Knowledge {
 public:
  explicit Knowledge(const Tree& begun);
  /// The session itself left this there.
  void add(const std::string& path, const Seen& object) { known_[path].insert(object.text()); }
  [[nodiscard]] bool covers(const std::string& path, const Seen& object) const;

 private:
  std::map<std::string, std::set<std::string>> known_;
};

/// A commit as it was reported, and what the session has.
struct CommitFacts {
  std::vector<ManifestEntry> shown;
  std::set<std::string> named, theirs;
  Tree view;  ///< the session's workspace, as its last command saw it
};

/// Checks a commit during which only the commit changed the workspace. The first thing that is wrong, or empty.
std::string checkCommit(const Tree& before, const Tree& after, const Knowledge& knowledge, const CommitFacts& facts);
/// Whether all of what was shown is there, or nothing of it: what a killed commit must be after it was finished.
std::string checkAllOrNothing(const Tree& before, const Tree& after, const CommitFacts& facts);
/// Whether each path is as it was before or as it was afterwards.
std::string checkOldOrNew(const Tree& before, const Tree& between, const Tree& after);
/// Contents that the session did not see, wherever they are: whatever the host does, a commit loses none.
std::set<std::string> unseenContents(const Tree& tree, const Knowledge& knowledge);
std::string checkContents(const std::set<std::string>& contents, const Tree& after);
/// Checks an uncommit of a commit that made `left` of `begun`: it changed `before` to `after`.
std::string checkUncommit(const Tree& begun, const Tree& left, const Tree& before, const Tree& after);

}  // namespace caisson::test
