// Which files a writer of a tree of the host would have found protected when it began, had they been there.
//
// Of a file that one writer finds protected, and another one beside it does not, only this tells whether the other
// one's program made it: a writer with other patterns, or of a directory further down, judges fewer files. What is
// judged is in the records of the writers, so that no program can change it while it runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "policy/rules/protected_files.h"
#include "policy/rules/protected_links.h"

namespace caisson::host {

/// What a search for protected files goes by, besides the names and the links that it finds protected.
struct TreeJudgement {
  std::vector<std::string> patterns;  ///< of the policy
  std::string around;                 ///< the directory around the tree that it is judged from; empty: there is none
  std::vector<std::string> programs;  ///< that git's configurations name, relative to the tree; need not exist
};

class JudgedFiles {
 public:
  /// `tree`: its path on the host; `found`: what the search found protected in it.
  JudgedFiles(const std::string& tree, const TreeJudgement& judgement,
              const std::vector<plan::WorkspaceScan::Protected>& found);
  JudgedFiles(const JudgedFiles&) = delete;
  JudgedFiles& operator=(const JudgedFiles&) = delete;

  /// Whether the name of a path is protected, or of a link may give protected names to files elsewhere.
  [[nodiscard]] bool names(const std::string& path, bool link) const;
  /// Whether a file at this path is found protected: for its name, or for what was there when the search was made. Also
  /// if that is not known.
  [[nodiscard]] bool covers(const std::string& path, bool link) const;

 private:
  policy::ProtectedFiles files_;
  bool around_ = false;
  std::vector<std::string> programs_;
  policy::ProtectedLinks links_;
};

}  // namespace caisson::host
